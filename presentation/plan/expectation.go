package plan

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Expectation is everything that a node must show before it is admitted.
type Expectation struct {
	// Resources whose capacity and allocatable must both equal the quantity: extended resources and hugepages, sorted by name.
	Resources []Resource
	// CPU that the node's capacity must equal; nil: not promised.
	CPU *resource.Quantity
	// Memory of which the node's capacity must be 95% to 100%: firmware and kernel keep some; nil: not promised.
	Memory *resource.Quantity
	// EphemeralStorage that the node's capacity must reach; nil: not promised.
	EphemeralStorage *resource.Quantity
	// AbsentPrefixes begin the names of resources that must be absent, unless Resources has that very name. A key with
	// the value 0 counts as absent: kubelet keeps the names of earlier plugins at 0 until the Node object is deleted.
	AbsentPrefixes []string
	// Kernel is the release, or its leading numbers, that nodeInfo must show; empty: not checked.
	Kernel string
	// Kubelet is the version, without v, that nodeInfo must show; empty: not checked.
	Kubelet string
	// Labels whose value, where the node has the label at all, must be this one. Who sets them is not part of every cluster.
	Labels []Label
	// Slices that DRA drivers must publish for the node, sorted by driver.
	Slices []SliceExpectation
	// AbsentDrivers are DRA drivers that must publish no device for the node: the same GPUs would be given away twice.
	AbsentDrivers []string
}

// Resource is a resource that a node must advertise.
type Resource struct {
	// Name of the resource.
	Name corev1.ResourceName
	// Quantity promised.
	Quantity resource.Quantity
	// Waits says that it appears some time after the boot, so that less than promised is no failure yet.
	Waits bool
	// Hint says where to look when it is not as promised.
	Hint string
}

// Label is a label that a vendor's software sets to tell what it found.
type Label struct {
	// Check names the check: software/gpu-driver.
	Check string
	// Key of the label.
	Key string
	// Value expected.
	Value string
	// Passing are values that the label has while the software that sets it still works.
	Passing []string
	// Hint says where to look when it differs.
	Hint string
}

// Foreign says whether a resource of that name must be absent from the node.
func (e Expectation) Foreign(name corev1.ResourceName) bool {
	for _, r := range e.Resources {
		if r.Name == name {
			return false
		}
	}
	for _, p := range e.AbsentPrefixes {
		if strings.HasPrefix(string(name), p) {
			return true
		}
	}
	return false
}
