package requests

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/spec"
)

// CheckRefusal fails the test when the error is not a Refusal with the reason and the rule, or its text does not contain says, or its
// field does not exist.
func CheckRefusal(t *testing.T, err error, reason, rule, says string) {
	t.Helper()
	var refusal *spec.Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("error %v, want a *Refusal", err)
	}
	CheckField(t, refusal)
	if refusal.Reason != reason || refusal.Rule != rule || !strings.Contains(refusal.Error(), says) {
		t.Errorf("refused with %s, %s: %s; want %s, %s and a message with %q", refusal.Reason, refusal.Rule, refusal, reason, rule, says)
	}
}

// CheckField fails the test when the field of the refusal does not exist in its object.
func CheckField(t *testing.T, r *spec.Refusal) {
	t.Helper()
	object := reflect.TypeFor[v1alpha1.NodeType]()
	if r.Field.IsInOSImage() {
		object = reflect.TypeFor[v1alpha1.OSImage]()
	}
	if (r.Field.Kind != spec.KindNodeType && !r.Field.IsInOSImage()) || !strings.HasPrefix(r.Field.Path, "spec.") || !hasField(object, r.Field.Path) {
		t.Errorf("rule %s: the %s has no field %q", r.Rule, r.Field.Kind, r.Field.Path)
	}
	// What is said of the field must not begin with its name once more.
	if last := r.Field.Path[strings.LastIndex(r.Field.Path, ".")+1:]; strings.HasPrefix(r.Message, last) {
		t.Errorf("rule %s says %q twice: %s", r.Rule, last, r)
	}
}

// hasField returns true when a value of the type can have the path: spec.gpu.presentation.mig.layout[0].profiles.
func hasField(object reflect.Type, path string) bool {
	for path != "" {
		for object.Kind() == reflect.Pointer {
			object = object.Elem()
		}
		inside, rest, indexed := strings.Cut(strings.TrimPrefix(path, "["), "]")
		switch {
		case strings.HasPrefix(path, "[") && indexed && object.Kind() == reflect.Map:
			object, path = object.Elem(), rest
		case strings.HasPrefix(path, "[") && indexed && object.Kind() == reflect.Slice:
			if _, err := strconv.Atoi(inside); err != nil {
				return false
			}
			object, path = object.Elem(), rest
		case object.Kind() == reflect.Struct:
			path = strings.TrimPrefix(path, ".")
			end := strings.IndexAny(path+".", ".[")
			field, ok := fieldNamed(object, path[:end])
			if !ok {
				return false
			}
			object, path = field, path[end:]
		default:
			return false
		}
	}
	return true
}

func fieldNamed(object reflect.Type, name string) (reflect.Type, bool) {
	for i := range object.NumField() {
		if tag, _, _ := strings.Cut(object.Field(i).Tag.Get("json"), ","); tag == name && name != "" {
			return object.Field(i).Type, true
		}
	}
	return nil, false
}
