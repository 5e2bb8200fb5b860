package step

import (
	"reflect"
	"strings"
)

// MissingDependenciesError is returned by the SetupWithManager of a Reconciler whose dependencies are not all set.
type MissingDependenciesError struct {
	// Controller is the name of the controller.
	Controller string
	// Fields are the fields of its Reconciler that are nil, in the order of their declaration.
	Fields []string
}

// Error names the controller and the fields.
func (e *MissingDependenciesError) Error() string {
	return e.Controller + " controller: fields of Reconciler are not set: " + strings.Join(e.Fields, ", ")
}

// CheckDependencies returns a *MissingDependenciesError if an exported field of the struct that reconciler points to is nil. Without
// this check the controller would start, and panic when a reconcile uses the field. Fields that cannot be nil, such as numbers and
// structs, are not checked.
func CheckDependencies(controller string, reconciler any) error {
	var missing []string
	for field, value := range reflect.ValueOf(reconciler).Elem().Fields() {
		if field.IsExported() && canBeNil(value.Kind()) && value.IsNil() {
			missing = append(missing, field.Name)
		}
	}
	if len(missing) > 0 {
		return &MissingDependenciesError{Controller: controller, Fields: missing}
	}
	return nil
}

func canBeNil(kind reflect.Kind) bool {
	switch kind {
	case reflect.Interface, reflect.Pointer, reflect.Func, reflect.Map, reflect.Slice, reflect.Chan:
		return true
	}
	return false
}
