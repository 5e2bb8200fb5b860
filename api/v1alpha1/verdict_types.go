package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// CheckResult is the outcome of one check, or of all.
// +kubebuilder:validation:Enum=Pass;Wait;Fail
type CheckResult string

// Check results.
const (
	// CheckPass: as promised.
	CheckPass CheckResult = "Pass"
	// CheckWait: not yet as promised, and may still become so.
	CheckWait CheckResult = "Wait"
	// CheckFail: not as promised.
	CheckFail CheckResult = "Fail"
)

// Check compares one promise with what the node shows.
type Check struct {
	// name of the check: resource/nvidia.com/gpu, identity/system-uuid.
	// +required
	Name string `json:"name"`
	// result of the check:
	//   - Pass: the node has what was promised.
	//   - Wait: the node does not have it yet, and may still get it.
	//   - Fail: the node does not have what was promised.
	//
	// +required
	Result CheckResult `json:"result"`
	// expected value.
	// +optional
	Expected string `json:"expected,omitempty"`
	// observed value.
	// +optional
	Observed string `json:"observed,omitempty"`
	// hint says where to look.
	// +optional
	Hint string `json:"hint,omitempty"`
}

// GateStatus is what is known of the gate that was placed on a Node.
type GateStatus struct {
	// nodeUID is the Node object.
	// +required
	NodeUID types.UID `json:"nodeUID"`
	// placedAt is when the gate was placed last.
	// +required
	PlacedAt metav1.MicroTime `json:"placedAt"`
	// removals counts how often somebody else removed the gate after it was placed. It begins again when the gate has stayed for ten minutes.
	// +optional
	Removals int32 `json:"removals,omitempty"`
	// removedBy is the field manager that wrote the Node's taints before the gate was placed last; absent where the Node does not tell.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	RemovedBy string `json:"removedBy,omitempty"`
}

// NodeMetadataStatus is what is known of the labels and taints of a NodeType that were added to a Node.
type NodeMetadataStatus struct {
	// nodeUID is the Node object.
	// +required
	NodeUID types.UID `json:"nodeUID"`
	// nodeTypeGeneration is that of the NodeType whose labels and taints they are.
	// +required
	NodeTypeGeneration int64 `json:"nodeTypeGeneration"`
	// placedAt is when they were added last.
	// +required
	PlacedAt metav1.MicroTime `json:"placedAt"`
	// removals counts how often somebody else removed or changed one of them after that. It begins again when they have stayed for ten minutes.
	// +optional
	Removals int32 `json:"removals,omitempty"`
	// removedBy is the field manager that wrote them before they were added last; absent where the Node does not tell.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	RemovedBy string `json:"removedBy,omitempty"`
	// labels are the keys of the first labels that were added last, and taints the keys of the first taints.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=317
	Labels []string `json:"labels,omitempty"`
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=317
	Taints []string `json:"taints,omitempty"`
}

// Verdict compares a node with its promise, check by check.
type Verdict struct {
	// result of all checks:
	//   - Pass: every check passes.
	//   - Wait: no check fails, and at least one waits.
	//   - Fail: at least one check fails.
	//
	// +required
	Result CheckResult `json:"result"`
	// admitted: the gate was lifted on the strength of this verdict.
	// +optional
	Admitted bool `json:"admitted,omitempty"`
	// nodeUID, bootID and revision are what the verdict speaks of.
	// +optional
	NodeUID types.UID `json:"nodeUID,omitempty"`
	// bootID of the Node.
	// +optional
	BootID string `json:"bootID,omitempty"`
	// revision of the Machine.
	// +optional
	Revision string `json:"revision,omitempty"`
	// rendering that was judged by.
	// +optional
	Rendering string `json:"rendering,omitempty"`
	// since when the result is what it is; for Pass, the start of the settle time.
	// +optional
	Since *metav1.MicroTime `json:"since,omitempty"`
	// probedAt is when a probe ended last.
	// +optional
	ProbedAt *metav1.MicroTime `json:"probedAt,omitempty"`
	// checks, in the order of their importance.
	// +optional
	// +listType=map
	// +listMapKey=name
	Checks []Check `json:"checks,omitempty"`
}
