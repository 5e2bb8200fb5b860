package v1alpha1

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// NodeType's conditions: Ready, RenderingCurrent, HardwareMatches, GateKeyUnmanaged.

// ConditionGateKeyUnmanaged of a NodeType that an earlier version of Ingot accepted: it is False with the reason GateKeyManaged when
// gate.taintKey is a key that programs of Kubernetes, a cloud provider or a vendor remove. A NodeType with a key of its own has no such
// condition.
const ConditionGateKeyUnmanaged = "GateKeyUnmanaged"

// ReasonGateKeyManaged is the reason of NodeType's GateKeyUnmanaged condition.
const ReasonGateKeyManaged = "GateKeyManaged"

// ConditionRenderingCurrent of a NodeType: the version of Ingot that runs would make of the target revision what its rendering
// says. False gates no node and stops nothing: the message says what differs, and ingot rollout refresh brings it to the Machines.
const ConditionRenderingCurrent = "RenderingCurrent"

// Reasons of NodeType's RenderingCurrent condition.
const (
	// ReasonRenderingCurrent: nothing differs.
	ReasonRenderingCurrent = "RenderingCurrent"
	// ReasonRenderingDiffers: this version would tell the operating system, or expect of the node, something else.
	ReasonRenderingDiffers = "RenderingDiffers"
	// ReasonRenderingRefused: this version refuses what an earlier one accepted; nodes are made as that one said.
	ReasonRenderingRefused = "RenderingRefused"
	// ReasonRenderingUnknown: spec.rendering names what neither exists nor would be made; it is ignored.
	ReasonRenderingUnknown = "RenderingUnknown"
)

// ConditionHardwareMatches of a NodeType with GPUs or spec.hardware: the selected hosts have the GPUs that spec.gpu promises, and what spec.hardware
// requires. False stops nothing but the claim of the hosts that differ, which the message names.
const ConditionHardwareMatches = "HardwareMatches"

// Reasons of NodeType's HardwareMatches condition.
const (
	// ReasonHardwareMatches: no selected host is known to differ or to lack something, and at least one is known.
	ReasonHardwareMatches = "HardwareMatches"
	// ReasonHardwareDiffers: inspection found another number or another model of GPUs in selected hosts.
	ReasonHardwareDiffers = "HardwareDiffers"
	// ReasonHardwareInsufficient: selected hosts lack what spec.hardware requires. It is also the reason of a Machine whose server the
	// agent refused for that, before the first byte was written; the message says what is missing.
	ReasonHardwareInsufficient = "HardwareInsufficient"
	// ReasonHardwareUnknown: of no selected host the GPUs or, for a NodeType without GPUs, the hardware is known.
	ReasonHardwareUnknown = "HardwareUnknown"
)

// Reasons of NodeType's Ready condition.
const (
	// ReasonOSImageNotFound: spec.osImageRef names no OSImage.
	ReasonOSImageNotFound = "OSImageNotFound"
	// ReasonOSImageNotReady: the OSImage exists, but its URL or checksum does not hold.
	ReasonOSImageNotReady = "OSImageNotReady"
	// ReasonProviderNotFound: spec.providerRef names no NodeProvider.
	ReasonProviderNotFound = "ProviderNotFound"
	// ReasonProviderUnsupported: the kind of the provider cannot do what the NodeType asks for.
	ReasonProviderUnsupported = "ProviderUnsupported"
	// ReasonEraseNotProven: the provider is to erase disks fully, and its installer has no evidence for each disk. An event on a BareMetalHost of a metal3
	// provider has it too, when the host is returned without the erase that its NodeProvider asks for.
	ReasonEraseNotProven = "EraseNotProven"
	// ReasonHostNamespaceUnclaimed: the NodeProvider has not claimed its host namespace yet.
	ReasonHostNamespaceUnclaimed = "HostNamespaceUnclaimed"
	// ReasonFormatUnsupported: the provider cannot write the image's format.
	ReasonFormatUnsupported = "FormatUnsupported"
	// ReasonPresentationInvalid: the presentation is impossible on that GPU, with that image; the message names the rule.
	ReasonPresentationInvalid = "PresentationInvalid"
	// ReasonDriverMissing: the presentation needs a driver in the image, and the image has none.
	ReasonDriverMissing = "DriverMissing"
	// ReasonDriverTooOld: the image's driver is older than the GPU model needs.
	ReasonDriverTooOld = "DriverTooOld"
	// ReasonKernelArgumentMissing: the presentation needs a kernel argument that the image does not have.
	ReasonKernelArgumentMissing = "KernelArgumentMissing"
	// ReasonUserDataInvalid: the user data is not what the image reads, or fights what Ingot needs; the message names the path.
	ReasonUserDataInvalid = "UserDataInvalid"
	// ReasonKubeletInvalid: spec.kubelet has what the image's kubelet does not know, or what Ingot sets; the message names the member.
	ReasonKubeletInvalid = "KubeletInvalid"
	// ReasonResourcesDisagree: spec.resources contradicts what follows from spec.gpu.
	ReasonResourcesDisagree = "ResourcesDisagree"
)

// Reasons of NodeType's Ready condition that are about its rendering.
const (
	// ReasonRenderingLost: the NodeTypeRendering that nodes are judged by was deleted.
	ReasonRenderingLost = "RenderingLost"
	// ReasonRenderingUnreadable: a newer version of Ingot wrote the NodeTypeRendering.
	ReasonRenderingUnreadable = "RenderingUnreadable"
	// ReasonOlderShape: the object was written by a version of Ingot that kept less than this one needs; nothing is done with it.
	ReasonOlderShape = "OlderShape"
	// ReasonNewerShape: the object has a value that this version of Ingot does not know, so a newer one wrote it. Nothing is done until that runs again.
	ReasonNewerShape = "NewerShape"
)

// NodeTypeSpec is a class of nodes.
// +kubebuilder:validation:XValidation:rule="!has(self.node) || !has(self.node.taints) || !has(self.gate.taintKey) || self.node.taints.all(t, t.key != self.gate.taintKey)",message="node.taints must not have the key of gate.taintKey: the gate would never be lifted for good"
// +kubebuilder:validation:XValidation:rule="!has(self.validation) || !has(self.validation.probe) || has(self.gpu) || (has(self.resources) && self.resources.exists(k, k.contains('/')))",message="validation.probe needs a device to ask for, and this NodeType promises none: set gpu or an extended resource in resources, or remove the probe"
// +kubebuilder:validation:XValidation:rule="!has(self.validation) || !has(self.validation.probe) || self.validation.probe.kind == 'Command' || (has(self.gpu) && self.gpu.vendor == 'nvidia' && !(has(self.gpu.presentation.passthrough) && has(self.gpu.presentation.passthrough.workload) && self.gpu.presentation.passthrough.workload == 'VM') && !(has(self.gpu.presentation.vgpu) && self.gpu.presentation.vgpu.role == 'Host') && !(has(self.gpu.presentation.dra) && has(self.gpu.presentation.dra.devices) && self.gpu.presentation.dra.devices == 'VFIO'))",message="validation.probe.kind: NvidiaSMI, DCGMDiag and HealthValidation are for NVIDIA GPUs that containers use: for GPUs of virtual machines and of other vendors use kind: Command"
// +kubebuilder:validation:XValidation:rule="!has(self.validation) || !has(self.validation.probe) || self.validation.probe.kind != 'DCGMDiag' || !has(self.gpu) || !(has(self.gpu.presentation.mig) || (has(self.gpu.presentation.dra) && has(self.gpu.presentation.dra.devices) && self.gpu.presentation.dra.devices == 'MIG'))",message="validation.probe.kind: DCGMDiag tests whole GPUs, and these are partitioned: use kind: NvidiaSMI or Command"
// +kubebuilder:validation:XValidation:rule="!has(self.validation) || !has(self.validation.probe) || !has(self.validation.onFailure) || self.validation.onFailure != 'Observe'",message="validation.probe is not possible with onFailure: Observe, which lifts the gate before a pod could use the devices: remove one of them"
type NodeTypeSpec struct {
	// displayName is for people.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	DisplayName string `json:"displayName,omitempty"`
	// providerRef names the NodeProvider.
	// +required
	ProviderRef LocalReference `json:"providerRef"`
	// hostSelector selects BareMetalHosts by their labels. Where a host lacks gpu.ingot.dev/count or gpu.ingot.dev/model because its BMC cannot tell
	// its GPUs, a requirement on them counts as met: the agent counts the GPUs before it writes. That is not so for metal3.
	// +required
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && self.matchLabels.size() > 0) || (has(self.matchExpressions) && self.matchExpressions.size() > 0)",message="hostSelector must select by at least one label: an empty selector would take every host of the provider"
	HostSelector metav1.LabelSelector `json:"hostSelector"`
	// zone selects hosts by their label topology.kubernetes.io/zone, and becomes the Node's.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Zone string `json:"zone,omitempty"`
	// osImageRef names the OSImage.
	// +required
	OSImageRef LocalReference `json:"osImageRef"`
	// resources promised. Extended resources and hugepages: allocatable == capacity == promised. cpu: capacity == promised.
	// memory: capacity within 95% to 100% of promised. ephemeral-storage: capacity >= promised. GPU resources follow
	// from gpu; when written they must agree with it.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// gpu is the GPUs and how they are presented; absent: nodes without GPUs.
	// +optional
	GPU *GPUSpec `json:"gpu,omitempty"`
	// hardware is what a server must have beside the GPUs of gpu to be given to a Machine. A Machine that has its host is not disturbed by a change;
	// the next installation is checked again. It is not possible with metal3, whose own agent installs.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.minMemory) || (type(self.minMemory) == int ? self.minMemory > 0 : quantity(self.minMemory).isGreaterThan(quantity('0')))",message="minMemory must be more than 0, such as 2Ti"
	// +kubebuilder:validation:XValidation:rule="!has(self.firmware) || self.firmware.all(f, (f.component in ['NIC', 'Disk']) == (size(f.name) > 0))",message="firmware: name says which NICs (PCI ids such as 15b3:1021, or the driver) or disks (part of the model) are meant: set it for component NIC and Disk, and for no other"
	Hardware *HardwareRequirements `json:"hardware,omitempty"`
	// kubelet has members of KubeletConfiguration (kubelet.config.k8s.io/v1beta1), such as maxPods and kubeReserved. They win over the defaults, which
	// follow from the size of the server, and over those of a cluster that kubeadm made. What the image's kubelet does not know, what Ingot sets, and a
	// join script that does not apply them are refused. The verdict judges allocatable by them. A change makes a new revision and rolls the nodes.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=256
	Kubelet *runtime.RawExtension `json:"kubelet,omitempty"`
	// sshKeys are authorized on every node.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=8192
	SSHKeys []string `json:"sshKeys,omitempty"`
	// userData is the team's own layer, a #cloud-config document. Its runcmd runs before Ingot's.
	// +optional
	// +kubebuilder:validation:MaxLength=131072
	UserData string `json:"userData,omitempty"`
	// properties win over those of the NodeProvider, key by key; see there. They shape the node: a change makes a revision.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Properties map[string]string `json:"properties,omitempty"`
	// node is what Ingot sets on the Node object, in place, without a roll.
	// +optional
	Node *NodeMetadata `json:"node,omitempty"`
	// gate keeps tenants' pods off until the verdict passes.
	// +optional
	// +default={}
	Gate GateSpec `json:"gate,omitempty"`
	// validation is how a node is judged.
	// +optional
	// +default={}
	Validation ValidationSpec `json:"validation,omitempty"`
	// rollout is how a change reaches the fleet.
	// +optional
	Rollout *RolloutPolicy `json:"rollout,omitempty"`
	// rendering asks for one NodeTypeRendering of the revision that this spec makes; ingot rollout refresh and undo set it. It is
	// ignored when it is of another revision. Absent: the revision keeps the rendering that it has.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Rendering string `json:"rendering,omitempty"`
}

// NodeMetadata is what Ingot sets on the Node object.
type NodeMetadata struct {
	// labels of the Node. A label that is removed here stays on the Nodes that have it, until they are installed again.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('ingot.dev/') && !k.startsWith('node-restriction.kubernetes.io/'))",message="labels must not begin with ingot.dev/ or node-restriction.kubernetes.io/"
	Labels map[string]string `json:"labels,omitempty"`
	// taints of the Node, beside the gate. A taint that is removed here stays on the Nodes that have it, until they are
	// installed again.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(t, !t.key.startsWith('node.kubernetes.io/') && !t.key.startsWith('node.cloudprovider.kubernetes.io/') && !t.key.startsWith('node.cilium.io/') && !(t.key in ['ToBeDeletedByClusterAutoscaler', 'DeletionCandidateOfClusterAutoscaler']))",message="taints must not have keys that Kubernetes, an autoscaler or Cilium removes, such as node.kubernetes.io/not-ready: Ingot would place them again for ever"
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.effect in ['NoSchedule', 'PreferNoSchedule', 'NoExecute'])",message="the effect of taints must be NoSchedule, PreferNoSchedule or NoExecute: with another one the kubelet would never start"
	Taints []corev1.Taint `json:"taints,omitempty"`
}

// GateSpec is the taint that keeps tenants' pods off.
type GateSpec struct {
	// taintKey of the gate; its effect is NoSchedule. Nodes are born with it, so it cannot change while they live. It must not be a key
	// whose taints Kubernetes, a cloud provider or a vendor places and removes. A NodeType that has such a key already keeps it, and says so in
	// its condition GateKeyUnmanaged.
	// +optional
	// +default="ingot.dev/unvalidated"
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="taintKey must be a qualified name such as ingot.dev/unvalidated"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([a-z0-9.-]+[.])?(kubernetes[.]io|(x-)?k8s[.]io|k8s[.]aws|amazonaws[.]com|aws[.]com|azure[.]com|google[.]com|oraclecloud[.]com|digitalocean[.]com|openshift[.]io|gardener[.]cloud|karpenter[.]sh|virtual-kubelet[.]io|medik8s[.]io|cilium[.]io|istio[.]io|projectcalico[.]org|antrea[.]io|kubevirt[.]io|nvidia[.]com|mellanox[.]com|amd[.]com|intel[.]com|habana[.]ai|aws-node-termination-handler)/') && !(self in ['ToBeDeletedByClusterAutoscaler', 'DeletionCandidateOfClusterAutoscaler', 'CriticalAddonsOnly', 'amd-dcm', 'amd-gpu-unhealthy'])",message="taintKey must not be a key that Kubernetes, a cloud provider or a vendor manages, because their programs would remove the gate: use ingot.dev/unvalidated, or a key of a domain of your own"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="taintKey is immutable, because Nodes that have the old taint would keep it: create a new NodeType"
	TaintKey string `json:"taintKey,omitempty"`
}

// Key is the key of the gate's taint.
func (g GateSpec) Key() string {
	return cmp.Or(g.TaintKey, DefaultGateTaintKey)
}

// RolloutPolicy is how a change reaches the fleet.
type RolloutPolicy struct {
	// maxUnavailable Machines of the NodeType that have a host, as a number or a percentage rounded down, at least 1; default 10%.
	// Whatever made such a Machine unavailable, it counts. A Machine without a host is neither unavailable nor part of the percentage.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : self.matches('^([1-9][0-9]?|100)%$')",message="maxUnavailable must be a number of at least 1, or a percentage from 1% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// canary goes first; default: 1 Machine, baked for 10 minutes. A failure in the canary stops the rollout whatever the
	// failure budget is.
	// +optional
	Canary *CanarySpec `json:"canary,omitempty"`
	// failureBudget is how many Machines may fail and the rollout still goes on; one more stops it. Default 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	FailureBudget *int32 `json:"failureBudget,omitempty"`
	// drain of a Machine before it is rolled.
	// +optional
	Drain *DrainSpec `json:"drain,omitempty"`
}

// CanarySpec is the Machines that go first.
type CanarySpec struct {
	// machines in the canary.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Machines int32 `json:"machines"`
	// bake is how long the canary must stay Ready before the rest follows; default 10m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:MaxLength=32
	Bake *metav1.Duration `json:"bake,omitempty"`
}

// DrainSpec is how pods are evicted.
type DrainSpec struct {
	// timeout after which a release goes on, and a rollout stops; default 30m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:MaxLength=32
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// NodeTypeStatus is capacity and progress.
type NodeTypeStatus struct {
	// observedGeneration is the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// stableRevision is what new Machines get.
	// +optional
	StableRevision string `json:"stableRevision,omitempty"`
	// stableRendering of stableRevision is what new Machines get.
	// +optional
	StableRendering string `json:"stableRendering,omitempty"`
	// targetRevision is what the spec asks for.
	// +optional
	TargetRevision string `json:"targetRevision,omitempty"`
	// targetRendering of targetRevision is what the Machines are moved to.
	// +optional
	TargetRendering string `json:"targetRendering,omitempty"`
	// refreshedRendering names what the version of Ingot that runs would make of targetRevision, where that differs from
	// targetRendering; ingot rollout refresh asks for it.
	// +optional
	RefreshedRendering string `json:"refreshedRendering,omitempty"`
	// hosts that match.
	// +optional
	Hosts HostCounts `json:"hosts,omitempty"`
	// machines of this NodeType.
	// +optional
	Machines MachineCounts `json:"machines,omitempty"`
	// usedBy says what depends on it. It cannot be deleted before that is gone; see config/policy/README.md.
	// +optional
	UsedBy *UsedBy `json:"usedBy,omitempty"`
	// conditions: Ready, RenderingCurrent, with spec.gpu or spec.hardware HardwareMatches and, where gate.taintKey is another program's, GateKeyUnmanaged.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Stable is what new Machines get.
func (s NodeTypeStatus) Stable() RenderedRevision {
	return RenderedRevision{Revision: s.StableRevision, Rendering: s.StableRendering}
}

// Target is what the Machines are moved to.
func (s NodeTypeStatus) Target() RenderedRevision {
	return RenderedRevision{Revision: s.TargetRevision, Rendering: s.TargetRendering}
}

// HostCounts counts the BareMetalHosts that match a NodeType.
type HostCounts struct {
	// matching the selector and the zone, whatever inspection found in them.
	// +optional
	// +default=0
	Matching int32 `json:"matching"`
	// available: a Machine could claim them now.
	// +optional
	// +default=0
	Available int32 `json:"available"`
	// claimed by any Machine.
	// +optional
	// +default=0
	Claimed int32 `json:"claimed"`
	// error: the host itself reports an error.
	// +optional
	// +default=0
	Error int32 `json:"error"`
}

// MachineCounts counts the Machines of a NodeType.
type MachineCounts struct {
	// total of Machines.
	// +optional
	// +default=0
	Total int32 `json:"total"`
	// ready Machines.
	// +optional
	// +default=0
	Ready int32 `json:"ready"`
	// upToDate Machines have the target revision and its target rendering.
	// +optional
	// +default=0
	UpToDate int32 `json:"upToDate"`
}

// NodeType is a class of nodes: which hosts, which image, how the GPUs are presented, what is promised.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=nt,categories=ingot
// +kubebuilder:printcolumn:name="Model",type=string,JSONPath=".spec.gpu.model"
// +kubebuilder:printcolumn:name="GPUs",type=integer,JSONPath=".spec.gpu.count"
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=".spec.gpu.presentation.mode"
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=".spec.osImageRef.name"
// +kubebuilder:printcolumn:name="Free",type=integer,JSONPath=".status.hosts.available"
// +kubebuilder:printcolumn:name="Machines",type=integer,JSONPath=".status.machines.total"
// +kubebuilder:printcolumn:name="Up",type=integer,JSONPath=".status.machines.ready"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].reason"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type NodeType struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec NodeTypeSpec `json:"spec"`
	// +optional
	Status NodeTypeStatus `json:"status,omitempty"`
}

// NodeTypeList is a list of NodeTypes.
// +kubebuilder:object:root=true
type NodeTypeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeType `json:"items"`
}

// KubeletMembers returns spec.kubelet as JSON; nil: there is none.
func (s NodeTypeSpec) KubeletMembers() []byte { return KubeletMembers(s.Kubelet) }

// KubeletMembers returns members of KubeletConfiguration as JSON; nil: there are none.
func KubeletMembers(kubelet *runtime.RawExtension) []byte {
	if kubelet == nil {
		return nil
	}
	return kubelet.Raw
}
