package step

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
)

// Kind is what messages call an object: NodeType. An object that was read by a typed client does not say it itself; its type then has
// the name of the kind, under which schemes register it.
func Kind(o runtime.Object) string {
	if kind := o.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return reflect.TypeOf(o).Elem().Name()
}
