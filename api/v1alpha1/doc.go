// Package v1alpha1 is the API of Ingot, group ingot.dev: what a team declares to turn racked GPU servers into Kubernetes
// nodes that are proven to be what was ordered.
//
// Read machine_types.go first: a Machine is one server given to one NodeType, and everything else exists for it. Each
// <kind>_types.go holds the kind, its conditions and their reasons. A condition's reason is also the reason of the event
// and of the log line that report it.
//
// +kubebuilder:object:generate=true
// +groupName=ingot.dev
package v1alpha1
