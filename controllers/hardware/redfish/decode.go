package redfish

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/ingot-dev/ingot/api/input"
)

// number is a number as BMCs write it: 3840755982336, 3.84e12, "3840755982336" or null, which is 0.
type number float64

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(raw []byte) error {
	text := strings.TrimSpace(strings.Trim(string(raw), `"`))
	if *n = 0; text == "null" || text == "" {
		return nil
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
		return fmt.Errorf("expected a number, seen %.40q", text)
	}
	*n = number(value)
	return nil
}

// memberError is a member of a resource that cannot be decoded.
type memberError struct {
	// path is the member within the resource, as in MemorySummary.TotalSystemMemoryGiB.
	path string
	err  error
}

const (
	// maxListItems is the number of items of a list that are decoded.
	maxListItems = 4096
	// maxMemberErrors is the number of the members that are named when they cannot be decoded.
	maxMemberErrors = 16
)

// decodeMembers decodes the members of a JSON object that the struct has, each by itself, so that a member of an unexpected type costs only that
// member. It returns the members that cannot be decoded, and an error when the text is not a JSON object.
//
// Without it: one drive reports its Location as an array, which the schema does not allow, and the server has no disk.
func decodeMembers(raw []byte, into any) ([]memberError, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, err
	}
	if object == nil {
		return nil, errors.New("expected a JSON object, seen null")
	}
	var failed []memberError
	decodeObject(object, reflect.ValueOf(into).Elem(), "", &failed)
	return failed, nil
}

// decodeObject sets the fields of the struct from the members of the object.
func decodeObject(object map[string]json.RawMessage, into reflect.Value, path string, failed *[]memberError) {
	for i := range into.NumField() {
		name := memberName(into.Type().Field(i))
		if raw, found := object[name]; found && string(raw) != "null" {
			decodeValue(raw, into.Field(i), path+name, failed)
		}
	}
}

// memberName returns the name of the member for a field.
func memberName(field reflect.StructField) string {
	if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
		return name
	}
	return field.Name
}

// decodeValue sets the value, member by member when it is a struct or a list of structs without a decoder of its own.
func decodeValue(raw json.RawMessage, into reflect.Value, path string, failed *[]memberError) {
	_, hasDecoder := into.Addr().Interface().(json.Unmarshaler)
	switch {
	case !hasDecoder && into.Kind() == reflect.Struct:
		var object map[string]json.RawMessage
		if err := json.Unmarshal(raw, &object); err != nil {
			*failed = append(*failed, memberError{path, err})
			return
		}
		decodeObject(object, into, path+".", failed)
	case !hasDecoder && into.Kind() == reflect.Slice && into.Type().Elem().Kind() != reflect.Uint8:
		items, err := decodeItems(raw)
		if err != nil {
			*failed = append(*failed, memberError{path, err})
			return
		}
		list := reflect.MakeSlice(into.Type(), len(items), len(items))
		for i, item := range items {
			if string(item) != "null" {
				decodeValue(item, list.Index(i), fmt.Sprintf("%s[%d]", path, i), failed)
			}
		}
		into.Set(list)
	default:
		if err := json.Unmarshal(raw, into.Addr().Interface()); err != nil {
			into.SetZero()
			*failed = append(*failed, memberError{path, err})
		}
	}
}

func decodeItems(raw json.RawMessage) ([]json.RawMessage, error) {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, err
	}
	if len(items) > maxListItems {
		return nil, &input.Error{Seen: int64(len(items)), Most: maxListItems, Unit: "items of a list"}
	}
	return items, nil
}

// decode decodes the members of a resource that the struct has, and logs those that cannot be decoded.
func (c *conn) decode(uri string, raw []byte, into any) error {
	failed, err := decodeMembers(raw, into)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", errMalformed, uri, err)
	}
	for i, f := range failed {
		if i == maxMemberErrors {
			c.logMistyped(uri, memberError{"(more)", fmt.Errorf("%d further members cannot be decoded", len(failed)-i)})
			break
		}
		c.logMistyped(uri, f)
	}
	return nil
}

// logMistyped logs a member of a resource that was left out.
func (c *conn) logMistyped(uri string, f memberError) {
	c.bmc.client.options.Log.Info("BMC resource has a member that cannot be decoded; it is left out", "bmc", c.bmc.endpoint.Address,
		"path", uri, "member", f.path, "error", redact(f.err.Error(), c.bmc.endpoint, c.login.transport.token))
}
