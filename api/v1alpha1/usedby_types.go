package v1alpha1

import (
	"fmt"
	"strings"
)

// ReasonInUse of the condition Ready of a NodeType, a NodeProvider and an OSImage: it is being deleted, nothing new may use it, and it is
// kept for those that use it already. The message counts them.
const ReasonInUse = "InUse"

// UsedBy counts what depends on an object. A ValidatingAdmissionPolicy refuses the deletion of an object while the count is not 0.
//
// It has no names: tenants read the NodeTypes and OSImages that they share, and would read each other's names there. `ingot users` lists the
// users with its caller's rights.
type UsedBy struct {
	// count of the objects that use it.
	// +required
	// +kubebuilder:validation:Minimum=0
	Count int32 `json:"count"`
	// byKind says how many of them there are of each kind.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=8
	ByKind []KindCount `json:"byKind,omitempty"`
}

// KindCount is how many objects of one kind there are.
type KindCount struct {
	// kind of the objects: Machine, NodePool.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// count of the objects.
	// +required
	// +kubebuilder:validation:Minimum=1
	Count int32 `json:"count"`
}

// String returns the users in one line: 1 NodePool, 5 Machines.
func (u *UsedBy) String() string {
	if u == nil || u.Count == 0 {
		return "nothing"
	}
	var counts []string
	for _, k := range u.ByKind {
		plural := "s"
		if k.Count == 1 {
			plural = ""
		}
		counts = append(counts, fmt.Sprintf("%d %s%s", k.Count, k.Kind, plural))
	}
	return strings.Join(counts, ", ")
}
