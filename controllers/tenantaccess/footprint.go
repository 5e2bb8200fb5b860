package tenantaccess

import (
	"reflect"
	"time"
)

// entryOverhead is about what a cache needs for one object beside it: its name as a key of the store, of the indexes and of the ledger.
const entryOverhead = 512

// mapOverhead is about what a map needs for one entry beside its key and its value, because its tables are not full.
const mapOverhead = 24

var timeType = reflect.TypeFor[time.Time]()

// footprint returns about how many bytes of memory an object takes. The text of the object is no measure: an empty string in a list
// takes two bytes there and sixteen in memory.
func footprint(object any) int64 {
	return entryOverhead + indirect(reflect.ValueOf(object))
}

// indirect returns the memory that a value refers to, without the value itself.
func indirect(v reflect.Value) int64 {
	switch v.Kind() {
	case reflect.String:
		return int64(v.Len())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return 0
		}
		return int64(v.Elem().Type().Size()) + indirect(v.Elem())
	case reflect.Slice:
		size := int64(v.Cap()) * int64(v.Type().Elem().Size())
		for i := range v.Len() {
			size += indirect(v.Index(i))
		}
		return size
	case reflect.Map:
		each := int64(v.Type().Key().Size()+v.Type().Elem().Size()) + mapOverhead
		size := int64(v.Len()) * each
		for entries := v.MapRange(); entries.Next(); {
			size += indirect(entries.Key()) + indirect(entries.Value())
		}
		return size
	case reflect.Struct:
		// The location of a time is shared.
		if v.Type() == timeType {
			return 0
		}
		var size int64
		for i := range v.NumField() {
			size += indirect(v.Field(i))
		}
		return size
	}
	return 0
}
