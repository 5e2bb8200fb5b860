package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ReasonQuotaExceeded is a reason of Machine's condition Claimed, and of NodePool's conditions Placed and Ready: the NodeQuota of the namespace leaves no
// room for another host. The message says what is used, what the limit is, and which Machine is the next. The Machine goes on when there is room, the
// oldest one first.
const ReasonQuotaExceeded = "QuotaExceeded"

// ConditionWithinLimits of a NodeQuota: the namespace uses no more than its limits. Of an Entitlement and of its classes: no namespace of the tenant has more
// devices than it may have.
const ConditionWithinLimits = "WithinLimits"

// Reasons of the condition WithinLimits.
const (
	// ReasonWithinLimits: nothing is used beyond a limit.
	ReasonWithinLimits = "WithinLimits"
	// ReasonLimitLowered: more is used than a limit says, because the limit was set or lowered later. No Machine loses its host for it.
	ReasonLimitLowered = "LimitLowered"
)

// ConditionNodeTypesKnown of a NodeQuota is there where it is, or was, not True: spec names a NodeType that does not exist.
const ConditionNodeTypesKnown = "NodeTypesKnown"

// ReasonNodeTypesKnown of the condition NodeTypesKnown: every NodeType that spec names is there. Otherwise the reason is NodeTypeUnknown.
const ReasonNodeTypesKnown = "NodeTypesKnown"

// NodeQuotaSpec limits what the Machines of a namespace may have in hosts. What it does not name is not limited.
// +kubebuilder:validation:XValidation:rule="has(self.machines) || has(self.gpus)",message="give machines, gpus or both: a NodeQuota without a limit limits nothing"
type NodeQuotaSpec struct {
	// machines limits the Machines that have a host, by NodeType. A NodeType that is not listed is limited by gpus alone.
	// +optional
	// +listType=map
	// +listMapKey=nodeType
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Machines []NodeTypeLimit `json:"machines,omitempty"`
	// gpus limits the GPUs of all Machines that have a host, of every NodeType. A Machine counts with the gpu.count of its NodeType.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	GPUs *int32 `json:"gpus,omitempty"`
}

// NodeTypeLimit limits the Machines of a NodeType.
type NodeTypeLimit struct {
	// nodeType is the name of the NodeType.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	NodeType string `json:"nodeType"`
	// limit is how many Machines of it may have a host.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Limit int32 `json:"limit"`
}

// NodeQuotaStatus is what the namespace uses.
type NodeQuotaStatus struct {
	// observedGeneration is the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// machines are the Machines of the namespace, for each NodeType that one of them has or spec limits.
	// +optional
	// +listType=map
	// +listMapKey=nodeType
	Machines []NodeTypeUse `json:"machines,omitempty"`
	// gpus is how many GPUs are used: those of Machines that have a host, and of those that are about to claim one.
	// +optional
	// +default=0
	GPUs int32 `json:"gpus"`
	// waiting is how many Machines wait for a place.
	// +optional
	// +default=0
	Waiting int32 `json:"waiting"`
	// next is the Machine that has waited longest for GPUs. Those that become free are kept for it. It is empty where none waits for GPUs.
	// +optional
	Next string `json:"next,omitempty"`
	// reservations are the Machines that have a place and may claim a host now. A reservation is removed once the Machine has its host.
	// +optional
	// +listType=map
	// +listMapKey=uid
	// +kubebuilder:validation:MaxItems=1024
	Reservations []QuotaReservation `json:"reservations,omitempty"`
	// machinesResourceVersion is the resourceVersion that a cache of Machines must have reached before places are given by what it shows: the Machines
	// whose reservations were removed have their hosts there. Where it is empty, the Machines are read from the API server.
	// +optional
	MachinesResourceVersion string `json:"machinesResourceVersion,omitempty"`
	// conditions: WithinLimits; NodeTypesKnown where it has something to say.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// NodeTypeUse is what a namespace uses of a NodeType.
type NodeTypeUse struct {
	// nodeType is the name of the NodeType.
	// +required
	NodeType string `json:"nodeType"`
	// used is how many Machines have a host, or are about to claim one.
	// +required
	Used int32 `json:"used"`
	// limit is that of spec. It is absent where the NodeType is not limited by itself.
	// +optional
	Limit *int32 `json:"limit,omitempty"`
	// waiting is how many Machines wait for a place.
	// +optional
	// +default=0
	Waiting int32 `json:"waiting"`
	// next is the Machine that has waited longest of those. One that is larger than a limit is not meant. It is empty where none waits.
	// +optional
	Next string `json:"next,omitempty"`
}

// QuotaReservation is a Machine that may claim a host.
type QuotaReservation struct {
	// machine is the name of the Machine.
	// +required
	Machine string `json:"machine"`
	// uid of the Machine.
	// +required
	// +kubebuilder:validation:MinLength=1
	UID string `json:"uid"`
	// at is when the Machine was given its place.
	// +required
	At metav1.Time `json:"at"`
}

// NodeQuota limits how many hosts and GPUs the Machines of a namespace may have. A namespace has at most one.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=nq,categories=ingot
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'default'",message="metadata.name must be default: a namespace has one NodeQuota"
// +kubebuilder:printcolumn:name="GPUs",type=integer,JSONPath=".status.gpus"
// +kubebuilder:printcolumn:name="Limit",type=integer,JSONPath=".spec.gpus"
// +kubebuilder:printcolumn:name="Waiting",type=integer,JSONPath=".status.waiting"
// +kubebuilder:printcolumn:name="Within",type=string,JSONPath=".status.conditions[?(@.type=='WithinLimits')].status"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=".status.conditions[?(@.type=='WithinLimits')].message"
type NodeQuota struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec NodeQuotaSpec `json:"spec"`
	// +optional
	Status NodeQuotaStatus `json:"status,omitempty"`
}

// NodeQuotaName is the name of every NodeQuota.
const NodeQuotaName = "default"

// NodeQuotaList is a list of NodeQuotas.
// +kubebuilder:object:root=true
type NodeQuotaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeQuota `json:"items"`
}
