package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RolloutPhase is how far a rollout is.
// +kubebuilder:validation:Enum=Pending;Canary;Rolling;Paused;Stopped;Done
type RolloutPhase string

// Rollout phases.
const (
	RolloutPending RolloutPhase = "Pending"
	RolloutCanary  RolloutPhase = "Canary"
	RolloutRolling RolloutPhase = "Rolling"
	RolloutPaused  RolloutPhase = "Paused"
	RolloutStopped RolloutPhase = "Stopped"
	RolloutDone    RolloutPhase = "Done"
)

// RolloutSpec moves Machines from one revision to the next. The NodeType's controller makes it; users set paused only.
// +kubebuilder:validation:XValidation:rule="self.nodeTypeRef == oldSelf.nodeTypeRef && self.from == oldSelf.from && self.to == oldSelf.to",message="only paused may change: change the NodeType instead"
type RolloutSpec struct {
	// nodeTypeRef names the NodeType.
	// +required
	NodeTypeRef LocalReference `json:"nodeTypeRef"`
	// from is the stable revision.
	// +required
	// +kubebuilder:validation:MaxLength=253
	From string `json:"from"`
	// to is the target revision.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	To string `json:"to"`
	// paused starts no further Machine.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// RolloutTargets counts the Machines of a rollout.
type RolloutTargets struct {
	// total of Machines to be moved.
	// +optional
	// +default=0
	Total int32 `json:"total"`
	// done Machines are Ready with the new revision.
	// +optional
	// +default=0
	Done int32 `json:"done"`
	// inProgress Machines are on their way.
	// +optional
	// +default=0
	InProgress int32 `json:"inProgress"`
	// failed Machines count against the failure budget.
	// +optional
	// +default=0
	Failed int32 `json:"failed"`
}

// RolloutStatus is how far a rollout is.
type RolloutStatus struct {
	// phase of the rollout.
	// +optional
	Phase RolloutPhase `json:"phase,omitempty"`
	// targets are the Machines to be moved.
	// +optional
	Targets RolloutTargets `json:"targets,omitempty"`
	// stoppedBy is why the rollout stopped.
	// +optional
	StoppedBy string `json:"stoppedBy,omitempty"`
	// inProgress names Machines on their way, namespace/name.
	// +optional
	// +listType=atomic
	InProgress []string `json:"inProgress,omitempty"`
	// conditions: Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Rollout moves Machines from one revision to the next.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=ro,categories=ingot
// +kubebuilder:printcolumn:name="NodeType",type=string,JSONPath=".spec.nodeTypeRef.name"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="Done",type=integer,JSONPath=".status.targets.done"
// +kubebuilder:printcolumn:name="Total",type=integer,JSONPath=".status.targets.total"
// +kubebuilder:printcolumn:name="Stopped-By",type=string,JSONPath=".status.stoppedBy"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type Rollout struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec RolloutSpec `json:"spec"`
	// +optional
	Status RolloutStatus `json:"status,omitempty"`
}

// RolloutList is a list of Rollouts.
// +kubebuilder:object:root=true
type RolloutList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Rollout `json:"items"`
}
