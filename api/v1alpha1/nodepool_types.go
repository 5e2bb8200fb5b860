package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ConditionPlaced of a NodePool: every Machine that is asked for has a host. Its other condition is Ready, which has the reasons of Placed while a
// Machine is missing.
const ConditionPlaced = "Placed"

// Reasons of NodePool's conditions Placed and Ready. NoHostAvailable is one of them: the message says how many hosts there are and how many of them are
// free; one Machine waits for the next host, and the others are created when there are hosts for them. ClusterChanged, of the TenantCluster, is another
// one: no Machine is created while another cluster answers there than the one that its Machines joined.
const (
	// ReasonPlaced: every Machine that is asked for has a host.
	ReasonPlaced = "Placed"
	// ReasonTenantNotFound: spec.tenantClusterRef names no TenantCluster. No Machine is created.
	ReasonTenantNotFound = "TenantNotFound"
	// ReasonTenantDeleting: the TenantCluster is being deleted and takes no further nodes. No Machine is created.
	ReasonTenantDeleting = "TenantDeleting"
	// ReasonScaling: there are more or fewer Machines than asked for, or not all are Ready.
	ReasonScaling = "Scaling"
	// ReasonNodeTypeNotFound: spec.nodeTypeRef names no NodeType.
	ReasonNodeTypeNotFound = "NodeTypeNotFound"
	// ReasonNodeTypeDeleting: the NodeType is being deleted, so that no further Machine of it is made.
	ReasonNodeTypeDeleting = "NodeTypeDeleting"
)

// NodePoolSpec is so many Machines of one NodeType for one TenantCluster.
// +kubebuilder:validation:XValidation:rule="self.nodeTypeRef == oldSelf.nodeTypeRef && self.tenantClusterRef == oldSelf.tenantClusterRef",message="nodeTypeRef and tenantClusterRef are immutable: create a new NodePool and scale this one down"
type NodePoolSpec struct {
	// nodeTypeRef names the NodeType.
	// +required
	NodeTypeRef LocalReference `json:"nodeTypeRef"`
	// tenantClusterRef names the TenantCluster in this namespace.
	// +required
	TenantClusterRef LocalReference `json:"tenantClusterRef"`
	// replicas is how many Machines.
	// +optional
	// +default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Replicas *int32 `json:"replicas,omitempty"`
	// rollout may only tighten the NodeType's.
	// +optional
	Rollout *NodePoolRollout `json:"rollout,omitempty"`
}

// NodePoolRollout tightens the NodeType's rollout policy.
type NodePoolRollout struct {
	// maxUnavailable Machines of this pool that have a host, as a number or a percentage rounded down, at least 1; default 10%.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : self.matches('^([1-9][0-9]?|100)%$')",message="maxUnavailable must be a number of at least 1, or a percentage from 1% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// NodePoolStatus counts the pool's Machines.
type NodePoolStatus struct {
	// observedGeneration is the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// replicas that exist and are not being deleted. There are fewer than asked for while there are no hosts for more.
	// +optional
	// +default=0
	Replicas int32 `json:"replicas"`
	// placedReplicas have a host.
	// +optional
	// +default=0
	PlacedReplicas int32 `json:"placedReplicas"`
	// readyReplicas are Ready.
	// +optional
	// +default=0
	ReadyReplicas int32 `json:"readyReplicas"`
	// upToDateReplicas have the NodeType's target revision.
	// +optional
	// +default=0
	UpToDateReplicas int32 `json:"upToDateReplicas"`
	// selector of the pool's Machines, for the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`
	// conditions: Placed, Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// NodePool is so many Machines of one NodeType for one TenantCluster.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:shortName=np,categories=ingot
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 50 && !self.metadata.name.contains('.')",message="metadata.name must be at most 50 characters without dots: Machines and Nodes are named after the pool"
// +kubebuilder:printcolumn:name="NodeType",type=string,JSONPath=".spec.nodeTypeRef.name"
// +kubebuilder:printcolumn:name="Tenant",type=string,JSONPath=".spec.tenantClusterRef.name"
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=".spec.replicas"
// +kubebuilder:printcolumn:name="Machines",type=integer,JSONPath=".status.replicas"
// +kubebuilder:printcolumn:name="Placed",type=integer,JSONPath=".status.placedReplicas"
// +kubebuilder:printcolumn:name="Up",type=integer,JSONPath=".status.readyReplicas"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].reason"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].message"
type NodePool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec NodePoolSpec `json:"spec"`
	// +optional
	Status NodePoolStatus `json:"status,omitempty"`
}

// NodePoolList is a list of NodePools.
// +kubebuilder:object:root=true
type NodePoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodePool `json:"items"`
}

// NodePoolOf returns the name of the NodePool that controls a Machine. It is empty for a Machine that a person made.
func NodePoolOf(machine *Machine) string {
	if owner := metav1.GetControllerOfNoCopy(machine); owner != nil && owner.Kind == "NodePool" && owner.APIVersion == GroupVersion.String() {
		return owner.Name
	}
	return ""
}
