package step

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// OnUpdate returns a predicate that lets an update of a T through if the objects differ, and every creation and deletion.
func OnUpdate[T client.Object](differs func(before, after T) bool) predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(T)
		after, ok2 := e.ObjectNew.(T)
		return ok1 && ok2 && differs(before, after)
	}}
}

// CreatedOrDeleted leaves out updates, for objects of which only the number or the existence matters.
var CreatedOrDeleted = predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}

// HasOtherProtection reports whether the object's deletion has begun with an update, or it has other finalizers.
func HasOtherProtection(before, after client.Object) bool {
	return (before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) || !slices.Equal(before.GetFinalizers(), after.GetFinalizers())
}
