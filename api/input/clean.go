package input

import (
	"math"
	"reflect"
)

// Clean makes every text of a decoded value a Line of at most so many bytes, brings each number of type int between 0 and the largest of 32 bits, which is the
// type that the API has for counts, and returns an *Error when one of its lists or maps has more than so many items. It follows pointers, lists, maps and exported fields; value is a pointer. Keys of maps are left as they are.
func Clean(value any, text, items int) error {
	return clean(reflect.ValueOf(value), text, items)
}

func clean(v reflect.Value, text, items int) error {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString(Line(v.String(), text))
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return clean(v.Elem(), text, items)
		}
	case reflect.Struct:
		return cleanFields(v, text, items)
	case reflect.Slice, reflect.Array:
		return cleanItems(v, text, items)
	case reflect.Map:
		return cleanMap(v, text, items)
	case reflect.Int:
		if v.CanSet() {
			v.SetInt(min(max(v.Int(), 0), math.MaxInt32))
		}
	default: // another number or a truth value
	}
	return nil
}

func cleanFields(v reflect.Value, text, items int) error {
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() {
			continue
		}
		if err := clean(v.Field(i), text, items); err != nil {
			return err
		}
	}
	return nil
}

func checkItems(v reflect.Value, items int) error {
	if v.Len() > items {
		return &Error{Seen: int64(v.Len()), Most: int64(items), Unit: "items of a list"}
	}
	return nil
}

func cleanItems(v reflect.Value, text, items int) error {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return nil // bytes are no list
	}
	if err := checkItems(v, items); err != nil {
		return err
	}
	for i := range v.Len() {
		if err := clean(v.Index(i), text, items); err != nil {
			return err
		}
	}
	return nil
}

func cleanMap(v reflect.Value, text, items int) error {
	if err := checkItems(v, items); err != nil {
		return err
	}
	for _, key := range v.MapKeys() {
		item := reflect.New(v.Type().Elem()).Elem()
		item.Set(v.MapIndex(key))
		if err := clean(item, text, items); err != nil {
			return err
		}
		v.SetMapIndex(key, item)
	}
	return nil
}
