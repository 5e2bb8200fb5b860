package v1alpha1

import (
	"fmt"
	"strings"
)

// ReasonInUse of the condition Ready of a NodeType, a NodeProvider and an OSImage: it is being deleted, nothing new may use it, and it is
// kept for those that use it already. The message names them.
const ReasonInUse = "InUse"

// MaxUsersNamed is how many users UsedBy names. The others are counted.
const MaxUsersNamed = 5

// UsedBy says what depends on an object. A ValidatingAdmissionPolicy refuses the deletion of an object while the count is not 0.
type UsedBy struct {
	// count of the objects that use it.
	// +required
	// +kubebuilder:validation:Minimum=0
	Count int32 `json:"count"`
	// names of the first of them, by kind and name: Machine team-a/workers-x7k2p, NodeType h100.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:MaxLength=384
	Names []string `json:"names,omitempty"`
}

// String returns the users in one line: NodePool team-a/workers, Machine team-a/workers-x7k2p and 3 more.
func (u *UsedBy) String() string {
	if u == nil || u.Count == 0 {
		return "nothing"
	}
	text := strings.Join(u.Names, ", ")
	if more := int(u.Count) - len(u.Names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
