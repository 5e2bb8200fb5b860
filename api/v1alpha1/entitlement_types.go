package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// EntitlementFinalizer keeps an Entitlement until its objects in the shared cluster are removed.
const EntitlementFinalizer = "ingot.dev/entitlement"

// Labels and the annotation of the objects that Ingot keeps for an Entitlement in the shared cluster.
const (
	// LabelTenant is the key under which a DeviceClass has its tenant, unless the Entitlement names another one.
	LabelTenant = "gpu.platform/tenant"
	// LabelEntitlement is the ObjectsUID of the Entitlement. An object without it is never changed.
	LabelEntitlement = "ingot.dev/entitlement"
	// AnnotationMadeFor identifies what a DeviceClass gives: NodeType, kind, profile and selector. One that was made for something else is never kept.
	AnnotationMadeFor = "ingot.dev/made-for"
)

// Conditions of an Entitlement.
const (
	// ConditionEnforced: the shared cluster refuses what the tenant is not entitled to. While it is not True, count on nothing.
	ConditionEnforced = "Enforced"
	// ConditionAvailable of a class: devices of admitted nodes can be claimed by it.
	ConditionAvailable = "Available"
	// ConditionIsolated of a class: on the nodes of its NodeType a pod has only devices that it has asked for.
	ConditionIsolated = "Isolated"
)

// Reasons of the condition Isolated of an Entitlement's class.
const (
	// ReasonNodesShared: the NodeType has gpu.tenancy Shared, or a vendor whose devices no environment variable gives.
	ReasonNodesShared = "NodesShared"
	// ReasonNodesDedicated: the NodeType has not. NVIDIA_VISIBLE_DEVICES gives a pod the GPUs of its node, whatever it has asked for.
	ReasonNodesDedicated = "NodesDedicated"
)

// Reasons of Entitlement's condition Enforced.
const (
	// ReasonEnforced: every object is in the shared cluster as it should be, and a claim that must be refused was refused in a namespace of the tenant.
	ReasonEnforced = "Enforced"
	// ReasonEntitlementConflict: an older Entitlement has the same tenant, a namespace or the name of a DeviceClass. Nothing is written for the younger one.
	ReasonEntitlementConflict = "EntitlementConflict"
	// ReasonNameTaken: the shared cluster has an object of that name which is not this Entitlement's. It is left alone.
	ReasonNameTaken = "NameTaken"
	// ReasonEntitlementRightsMissing: the kubeconfig's user may not write the objects.
	ReasonEntitlementRightsMissing = "RightsMissing"
	// ReasonServerLacksFeature: the shared cluster's API server does not serve what the enforcement is made of.
	ReasonServerLacksFeature = "ServerLacksFeature"
	// ReasonNoNamespace: the tenant has no namespace in the shared cluster yet, or all are being deleted. What is to refuse is there, and nothing was tried.
	ReasonNoNamespace = "NoNamespace"
	// ReasonNotProvedYet: the policies were written some seconds ago, and the shared cluster's API server does not use them yet.
	ReasonNotProvedYet = "NotProvedYet"
	// ReasonNotRefused: the shared cluster took, as a dry run, a claim that it must refuse, or something else than the policy refused it.
	ReasonNotRefused = "NotRefused"
	// ReasonObjectRefused: the shared cluster's API server refuses one of the objects as invalid.
	ReasonObjectRefused = "ObjectRefused"
)

// ReasonOverEntitled of the condition WithinLimits of an Entitlement and of its classes: a namespace has or asks for more devices than it may have, or claims have
// devices of a class that was taken away. No claim loses its devices for it.
const ReasonOverEntitled = "OverEntitled"

// ReasonObjectsRemain of an Event: the TenantCluster of a deleted Entitlement is gone, and nobody can remove its objects.
const ReasonObjectsRemain = "ObjectsRemain"

// ReasonFenceRemoved of an Event: the Entitlement was deleted, and its objects are gone from the shared cluster.
const ReasonFenceRemoved = "FenceRemoved"

// ReasonFenceChanged of an Event: somebody has changed or deleted an object of the Entitlement in the shared cluster, and it is put right.
const ReasonFenceChanged = "FenceChanged"

// Reasons of the condition Available of an Entitlement's class.
const (
	// ReasonDevicesAvailable: devices of admitted nodes match.
	ReasonDevicesAvailable = "DevicesAvailable"
	// ReasonNodeTypeUnknown: there is no such NodeType, or what it promises cannot be read. A DeviceClass that was made before then stays, for the second.
	ReasonNodeTypeUnknown = "NodeTypeUnknown"
	// ReasonNotPromised: nodes of the NodeType have no such devices. There is no DeviceClass. The message says what they have.
	ReasonNotPromised = "NotPromised"
	// ReasonSelectsNothing: no device in the shared cluster matches.
	ReasonSelectsNothing = "SelectsNothing"
	// ReasonNodesUnderWay: no device of an admitted node matches now, and Machines of the NodeType are being installed or rolled.
	ReasonNodesUnderWay = "NodesUnderWay"
	// ReasonUseUnknown: what the tenant has, and what its classes select, cannot be read. What is enforced stays so.
	ReasonUseUnknown = "UseUnknown"
	// ReasonNodesNotAdmitted: the devices that match are of nodes that are not admitted.
	ReasonNodesNotAdmitted = "NodesNotAdmitted"
)

// DeviceKind is what a class of an Entitlement gives.
type DeviceKind string

// The kinds of devices.
const (
	// DeviceGPU is a GPU that is not partitioned, published by a DRA driver.
	DeviceGPU DeviceKind = "GPU"
	// DeviceMIG is a MIG instance of a profile, published by a DRA driver.
	DeviceMIG DeviceKind = "MIG"
	// DeviceVFIO is a GPU for a virtual machine, published by a DRA driver.
	DeviceVFIO DeviceKind = "VFIO"
	// DevicePartition is a partition of an AMD GPU, published by a DRA driver.
	DevicePartition DeviceKind = "Partition"
	// DeviceResource is an extended resource of a device plugin.
	DeviceResource DeviceKind = "Resource"
)

// EntitlementSpec says what a tenant may ask for in a cluster that tenants share.
// +kubebuilder:validation:XValidation:rule="self.tenant == oldSelf.tenant && self.tenantClusterRef == oldSelf.tenantClusterRef",message="tenant and tenantClusterRef are immutable: delete the Entitlement and create another"
// +kubebuilder:validation:XValidation:rule="!has(self.classes) || self.classes.all(c, size(self.tenant) + size(c.name) < 63)",message="tenant and a class's name must have at most 62 characters together: the DeviceClass is named TENANT-CLASS"
type EntitlementSpec struct {
	// tenantClusterRef names the TenantCluster in this namespace that tenants share.
	// +required
	TenantClusterRef LocalReference `json:"tenantClusterRef"`
	// tenant is its name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Tenant string `json:"tenant"`
	// tenantLabel is the label key under which a DeviceClass has its tenant.
	// +optional
	// +default="gpu.platform/tenant"
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('ingot.dev/')",message="tenantLabel must not be one of Ingot's own labels"
	TenantLabel string `json:"tenantLabel,omitempty"`
	// namespaces of the shared cluster that are the tenant's.
	// +required
	Namespaces TenantNamespaces `json:"namespaces"`
	// schedulers are the users that may bind pods in the namespaces; absent: system:kube-scheduler. Any other binding would bypass the gate of a node.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Schedulers []string `json:"schedulers,omitempty"`
	// classes that the tenant may ask for. Without one the namespaces get no device at all.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Classes []EntitledClass `json:"classes,omitempty"`
}

// TenantNamespaces are namespaces by name or by label.
// +kubebuilder:validation:XValidation:rule="has(self.names) != has(self.selector)",message="set exactly one of names, selector"
type TenantNamespaces struct {
	// names of the namespaces.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self.all(n, !n.startsWith('kube-'))",message="names must not be namespaces of Kubernetes: its own pods would be refused"
	Names []string `json:"names,omitempty"`
	// selector matches the labels of the namespaces. The tenant must not be able to change them. kube-system, kube-public and kube-node-lease never match.
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="selector must not be empty: it would match every namespace"
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// EntitledClass is a class of devices that the tenant may ask for.
// +kubebuilder:validation:XValidation:rule="!has(self.maxUnavailable) || self.kind != 'Resource'",message="maxUnavailable counts the devices that claims hold, and kind Resource has no claims: leave maxUnavailable out"
// +kubebuilder:validation:XValidation:rule="has(self.profile) == (self.kind in ['MIG', 'Partition'])",message="profile goes with kind MIG, such as 1g.5gb, and with kind Partition, such as cpx_nps4"
// +kubebuilder:validation:XValidation:rule="has(self.resource) == (self.kind == 'Resource')",message="resource goes with kind Resource, such as nvidia.com/gpu"
type EntitledClass struct {
	// name of the class. The DeviceClass is named TENANT-NAME.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// nodeTypeRef names the NodeType whose nodes have the devices. The DeviceClass selects by what their drivers publish, so it also selects equal
	// devices of other NodeTypes.
	// +required
	NodeTypeRef LocalReference `json:"nodeTypeRef"`
	// kind of the devices.
	//   - GPU: GPUs that are not partitioned, of a DRA driver.
	//   - MIG: MIG instances of profile, of a DRA driver.
	//   - VFIO: GPUs for virtual machines, of a DRA driver.
	//   - Partition: partitions of an AMD GPU with profile, of a DRA driver.
	//   - Resource: the extended resource of a device plugin, also a shared one such as nvidia.com/gpu.shared.
	//
	// +required
	// +kubebuilder:validation:Enum=GPU;MIG;VFIO;Partition;Resource
	Kind DeviceKind `json:"kind"`
	// profile of the MIG instances, such as 1g.5gb, or of the partitions, such as cpx_nps4.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Profile string `json:"profile,omitempty"`
	// resource is the name of the extended resource.
	// +optional
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Resource string `json:"resource,omitempty"`
	// devices is the most that each namespace may have. Kubernetes counts a claim with allocationMode All as 32, and one with firstAvailable with the
	// largest alternative of each class.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Devices int32 `json:"devices"`
	// maxUnavailable is how many devices of the class rollouts may take away from the tenant at once; absent: only the budgets of the NodeType and the
	// NodePool hold. Counted are the devices that claims of the DeviceClass hold on a node before it is drained, in all namespaces of the tenant and for all
	// Rollouts together, until the Machine is Ready again. A Machine on which no claim holds one is not held back. One on which more are held waits until
	// claims are freed or this is raised; with 0 every Machine waits until nothing of the class is held on it. While the claims cannot be read, no Machine of
	// the cluster is moved. Not for kind Resource.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	MaxUnavailable *int32 `json:"maxUnavailable,omitempty"`
}

// EntitlementStatus is what the shared cluster has of it.
type EntitlementStatus struct {
	// observedGeneration is the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// objectsUID is what the objects in the shared cluster have in their label ingot.dev/entitlement: the uid under which this Entitlement was first made.
	// +optional
	ObjectsUID types.UID `json:"objectsUID,omitempty"`
	// written is true once something of this Entitlement may be in the shared cluster: it is written before the first object is.
	// +optional
	Written bool `json:"written,omitempty"`
	// namespaces of the tenant that exist.
	// +optional
	// +default=0
	Namespaces int32 `json:"namespaces"`
	// classes as they were found.
	// +optional
	// +listType=map
	// +listMapKey=name
	Classes []EntitledClassStatus `json:"classes,omitempty"`
	// waits are what of the tenant waits for devices.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=reason
	Waits []DeviceWait `json:"waits,omitempty"`
	// holdings are the claims of the tenant that have devices; of more than 512 the first ones. A manager that starts compares them with those that are there,
	// so that each claim is reported once.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Holdings []DeviceHolding `json:"holdings,omitempty"`
	// conditions: Enforced, WithinLimits, Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// EntitledClassStatus is a class in the shared cluster.
type EntitledClassStatus struct {
	// name of the class.
	// +required
	Name string `json:"name"`
	// deviceClass is what claims name, and resource what containers ask for; absent: the class gives none.
	// +optional
	DeviceClass string `json:"deviceClass,omitempty"`
	// resource that containers ask for.
	// +optional
	Resource string `json:"resource,omitempty"`
	// entitled is how many devices all namespaces of the tenant may have together.
	// +optional
	// +default=0
	Entitled int32 `json:"entitled"`
	// allocated devices.
	// +optional
	// +default=0
	Allocated int32 `json:"allocated"`
	// pending is how many devices are asked for by claims that have none.
	// +optional
	// +default=0
	Pending int32 `json:"pending"`
	// capacity is how many devices match, whoever has them, also those of nodes that are not admitted.
	// +optional
	// +default=0
	Capacity int32 `json:"capacity"`
	// admitted is how many devices of admitted nodes match, whoever has them.
	// +optional
	// +default=0
	Admitted int32 `json:"admitted"`
	// conditions: Available, Isolated, WithinLimits.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Entitlement says which devices a tenant of a shared cluster may ask for, and how many. Ingot has the shared cluster refuse everything else.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ent,categories=ingot
// +kubebuilder:printcolumn:name="Tenant",type=string,JSONPath=".spec.tenant"
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=".spec.tenantClusterRef.name"
// +kubebuilder:printcolumn:name="Enforced",type=string,JSONPath=".status.conditions[?(@.type=='Enforced')].status"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].reason"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].message"
type Entitlement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec EntitlementSpec `json:"spec"`
	// +optional
	Status EntitlementStatus `json:"status,omitempty"`
}

// ObjectsUID is the uid that the Entitlement's objects in the shared cluster have as a label: its own or, after a restore that created it again, the one that
// it had when they were made. It is in the status and in the annotation ingot.dev/registered-as, which the manager writes with its finalizer: a restore may
// leave out the one, and a person the other. The annotation of a manifest that was copied for another Entitlement has another name, and does not count.
func (e *Entitlement) ObjectsUID() types.UID {
	return cmp.Or(e.Status.ObjectsUID, types.UID(ownUID(e, e.Annotations[AnnotationRegisteredAs])), e.UID)
}

// EntitlementList is a list of Entitlements.
// +kubebuilder:object:root=true
type EntitlementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Entitlement `json:"items"`
}
