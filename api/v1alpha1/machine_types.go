package v1alpha1

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MachinePhase is where a Machine is in its life. Every phase except Pending and Ready has a deadline, and Draining has none while the
// server is off because spec.powerOff is set. There is no failed phase: what went wrong is the reason of Ready=False, and the Machine stays where it was.
// +kubebuilder:validation:Enum=Pending;Claiming;Provisioning;Joining;Validating;Ready;Draining;Releasing
type MachinePhase string

// Machine phases.
const (
	// MachinePending: waits for what it refers to (NodeType, image, tenant) and for a host.
	MachinePending MachinePhase = "Pending"
	// MachineClaiming: a host was chosen and is being claimed.
	MachineClaiming MachinePhase = "Claiming"
	// MachineProvisioning: the image is being installed.
	MachineProvisioning MachinePhase = "Provisioning"
	// MachineJoining: the image was installed and verified; the Node object is awaited.
	MachineJoining MachinePhase = "Joining"
	// MachineValidating: the Node exists behind its gate; the verdict has not passed.
	MachineValidating MachinePhase = "Validating"
	// MachineReady: the verdict passed for this Node, this boot and this revision; the gate is lifted.
	MachineReady MachinePhase = "Ready"
	// MachineDraining: pods are being evicted before a roll or a power-off, or the server is off because spec.powerOff is set.
	MachineDraining MachinePhase = "Draining"
	// MachineReleasing: on its way back: evict, power off, delete the Node, erase, return the host.
	MachineReleasing MachinePhase = "Releasing"
)

// Machine's condition types, in the order of its life. All are positive. Ready is the summary.
const (
	// ConditionClaimed: a host is this Machine's.
	ConditionClaimed = "Claimed"
	// ConditionProvisioned: the image is on the host's disk, verified.
	ConditionProvisioned = "Provisioned"
	// ConditionJoined: the Node of this Machine exists in the tenant's cluster.
	ConditionJoined = "Joined"
	// ConditionValidated: the verdict passes. The validation controller writes it, and status.verdict.
	ConditionValidated = "Validated"
	// ConditionNodeMetadataKept: the Node keeps the NodeType's labels and taints. It exists once something else kept removing them; Ready does not depend on it.
	ConditionNodeMetadataKept = "NodeMetadataKept"
	// ConditionUpToDate: the Machine has its NodeType's target revision, and that one's target rendering.
	ConditionUpToDate = "UpToDate"
)

// MachineSpec is one host given to one NodeType.
// +kubebuilder:validation:XValidation:rule="!has(self.rendering) || has(self.revision)",message="rendering needs revision: it is a rendering of that one"
// +kubebuilder:validation:XValidation:rule="self.nodeTypeRef == oldSelf.nodeTypeRef && self.tenantClusterRef == oldSelf.tenantClusterRef",message="nodeTypeRef and tenantClusterRef are immutable: delete the Machine and create another"
type MachineSpec struct {
	// nodeTypeRef names the NodeType.
	// +required
	NodeTypeRef LocalReference `json:"nodeTypeRef"`
	// tenantClusterRef names the TenantCluster in this namespace.
	// +required
	TenantClusterRef LocalReference `json:"tenantClusterRef"`
	// revision names the NodeTypeRevision; absent: the NodeType's stable one at the time of the claim.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision,omitempty"`
	// rendering names the NodeTypeRendering of revision; absent: the one that the NodeType has for it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Rendering string `json:"rendering,omitempty"`
	// hostName pins one BareMetalHost; absent: any that fits.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	HostName string `json:"hostName,omitempty"`
	// powerOff asks for the server to be off, for work on its hardware. The Node is cordoned and its pods are evicted, then the host is
	// powered off, and the Machine stays in Draining with the reason PoweredOff. Node and disks are kept. When the field is cleared the
	// server is powered on, and the Node takes pods again when the verdict about the new boot passes. A Machine that had not joined is
	// installed again instead. No roll begins while the field is set. A deletion does not wait for it.
	// +optional
	PowerOff bool `json:"powerOff,omitempty"`
	// properties win over those of NodeType and NodeProvider, key by key; see NodeProvider. They may be neither
	// templates nor the network, and take effect with the Machine's next installation.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['ingot.dev/user-data-template', 'ingot.dev/network-data-template']))",message="a Machine's properties must be values, and no templates: set ingot.dev/user-data-template and ingot.dev/network-data-template on the NodeType"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['metal3.vcluster.com/network-data', 'metal3.vcluster.com/network-cidr', 'metal3.vcluster.com/network-ip-range']))",message="a Machine's properties must not say what the network is: whoever runs the hosts sets metal3.vcluster.com/network-data, network-cidr and network-ip-range on the NodeType or the NodeProvider, and a host's own address as ingot.dev/ip-address on its BareMetalHost"
	Properties map[string]string `json:"properties,omitempty"`
}

// NodeReference binds a Machine to a Node object.
type NodeReference struct {
	// name of the Node.
	// +required
	Name string `json:"name"`
	// uid of the Node object.
	// +required
	UID types.UID `json:"uid"`
}

// Progress is how far an installation is.
type Progress struct {
	// step that the installation is at.
	// +optional
	Step string `json:"step,omitempty"`
	// doneBytes of the image file.
	// +optional
	DoneBytes int64 `json:"doneBytes,omitempty"`
	// totalBytes of the image file; 0 while unknown.
	// +optional
	TotalBytes int64 `json:"totalBytes,omitempty"`
}

// MachinePowerOff is a power-off that spec.powerOff asks for, or asked for until a moment ago.
type MachinePowerOff struct {
	// requestedAt is when it was begun. It is written before the host is requested to power off.
	// +required
	RequestedAt metav1.MicroTime `json:"requestedAt"`
	// confirmedAt is when the BMC had confirmed it. Absent until then.
	// +optional
	ConfirmedAt *metav1.MicroTime `json:"confirmedAt,omitempty"`
	// bootID of the Node's boot that it ended. It is written with confirmedAt, where the tenant's API server answers then, and a verdict
	// about that boot does not count any more.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	BootID string `json:"bootID,omitempty"`
}

// PhaseEntry is when a phase was entered.
type PhaseEntry struct {
	// phase that was entered:
	//   - Pending: the Machine waits for what it refers to, which is its NodeType, image and tenant, and for a host.
	//   - Claiming: a host was chosen and is being claimed.
	//   - Provisioning: the image is being installed.
	//   - Joining: the image was installed and verified; the Node object is awaited.
	//   - Validating: the Node exists behind its gate; the verdict has not passed.
	//   - Ready: the verdict passed for this Node, this boot and this revision; the gate is lifted.
	//   - Draining: pods are being evicted before the Machine is installed anew or powered off, or the server is off because spec.powerOff is set.
	//   - Releasing: the Machine is being deleted: pods are evicted, the host is powered off, the Node is deleted, the disks are erased and the host is returned.
	//
	// +required
	Phase MachinePhase `json:"phase"`
	// at what time.
	// +required
	At metav1.MicroTime `json:"at"`
}

// MachineStatus is where a Machine is in its life.
type MachineStatus struct {
	// observedGeneration is the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase of its life:
	//   - Pending: the Machine waits for what it refers to, which is its NodeType, image and tenant, and for a host.
	//   - Claiming: a host was chosen and is being claimed.
	//   - Provisioning: the image is being installed.
	//   - Joining: the image was installed and verified; the Node object is awaited.
	//   - Validating: the Node exists behind its gate; the verdict has not passed.
	//   - Ready: the verdict passed for this Node, this boot and this revision; the gate is lifted.
	//   - Draining: pods are being evicted before the Machine is installed anew or powered off, or the server is off because spec.powerOff is set.
	//   - Releasing: the Machine is being deleted: pods are evicted, the host is powered off, the Node is deleted, the disks are erased and the host is returned.
	//
	// +optional
	Phase MachinePhase `json:"phase,omitempty"`
	// waitingFor is one line for people: what it waits for.
	// +optional
	WaitingFor string `json:"waitingFor,omitempty"`
	// deadline of the phase. It is absent in Pending and Ready, and in Draining while the server is off because spec.powerOff is set.
	// +optional
	Deadline *metav1.MicroTime `json:"deadline,omitempty"`
	// hostRef names the claimed BareMetalHost.
	// +optional
	HostRef *NamespacedReference `json:"hostRef,omitempty"`
	// installationUID is the uid that the Machine claimed its host under, where that is not its own: the objects were restored from a backup
	// and got new uids. The Node's providerID has it.
	// +optional
	InstallationUID types.UID `json:"installationUID,omitempty"`
	// nodeRef names the Node in the tenant's cluster.
	// +optional
	NodeRef *NodeReference `json:"nodeRef,omitempty"`
	// revision that the Machine is being, or was, installed with.
	// +optional
	Revision string `json:"revision,omitempty"`
	// rendering of revision that the Machine is being, or was, installed with: its promise.
	// +optional
	Rendering string `json:"rendering,omitempty"`
	// attempt counts this Machine's installations; part of the Node's providerID.
	// +optional
	Attempt int64 `json:"attempt,omitempty"`
	// systemUUID is what the agent read from DMI in this attempt.
	// +optional
	SystemUUID string `json:"systemUUID,omitempty"`
	// providerID says who sets the Node's providerID, as spec.join.providerID of the TenantCluster said when this attempt was begun; absent: Ingot.
	//   - Ingot: kubelet registers with the providerID of this attempt.
	//   - Cluster: the tenant's cluster sets it.
	//
	// +optional
	// +kubebuilder:validation:Enum=Ingot;Cluster
	ProviderID ProviderIDSource `json:"providerID,omitempty"`
	// progress of the installation.
	// +optional
	Progress *Progress `json:"progress,omitempty"`
	// powerOffRequestedAt is when the power-off of the host was begun for a roll or a release. It is written before the host is
	// requested to power off, and from then on a roll cannot be called off. Absent again with the next attempt.
	// +optional
	PowerOffRequestedAt *metav1.MicroTime `json:"powerOffRequestedAt,omitempty"`
	// powerOff is the power-off that spec.powerOff asks for. It is kept until the Machine is Ready again or is installed again.
	// +optional
	PowerOff *MachinePowerOff `json:"powerOff,omitempty"`
	// nodeRemainsReportedAt is when it was reported that the Node object may remain in the tenant's cluster. The Machine can be gone
	// only after that.
	// +optional
	NodeRemainsReportedAt *metav1.MicroTime `json:"nodeRemainsReportedAt,omitempty"`
	// verdict on the node; written by the validation controller.
	// +optional
	Verdict *Verdict `json:"verdict,omitempty"`
	// gate is what the validation controller knows of the gate that it placed on the Node. It is absent while the Node has the gate that it
	// was born with, and once the verdict passes.
	// +optional
	Gate *GateStatus `json:"gate,omitempty"`
	// nodeMetadata is what is known of the NodeType's labels and taints that were added to the Node after its join; absent: it was born with them all.
	// +optional
	NodeMetadata *NodeMetadataStatus `json:"nodeMetadata,omitempty"`
	// timeline of the last 32 phases entered.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Timeline []PhaseEntry `json:"timeline,omitempty"`
	// conditions: Claimed, Provisioned, Joined, Validated, UpToDate, Ready; NodeMetadataKept and ServingCertificateApproved where they have something to say.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Asked is what the Machine is to be installed with; a part that the spec leaves open is empty.
func (s MachineSpec) Asked() RenderedRevision {
	return RenderedRevision{Revision: s.Revision, Rendering: s.Rendering}
}

// PhaseStart returns when the current phase began. created is when the Machine was.
func (s MachineStatus) PhaseStart(created time.Time) time.Time {
	if n := len(s.Timeline); n > 0 {
		return s.Timeline[n-1].At.Time
	}
	return created
}

// HasBeenReady reports whether the node was admitted in its present installation, as far as timeline remembers: where the installation is older than that,
// because the Machine took it over after a restore, it may have been.
func (s MachineStatus) HasBeenReady() bool {
	for _, entry := range slices.Backward(s.Timeline) {
		switch entry.Phase {
		case MachineReady:
			return true
		case MachinePending, MachineClaiming, MachineProvisioning:
			return false
		}
	}
	return len(s.Timeline) > 0
}

// Installed is what the Machine is being, or was, installed with.
func (s MachineStatus) Installed() RenderedRevision {
	return RenderedRevision{Revision: s.Revision, Rendering: s.Rendering}
}

// Machine is one host given to one NodeType: claimed, installed, joined, validated, admitted, released.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=mach,categories=ingot
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63 && !self.metadata.name.contains('.')",message="metadata.name must be at most 63 characters without dots: the Node and its host name are named after the Machine"
// +kubebuilder:validation:XValidation:rule="!(self.metadata.name in ['localhost', 'ip6-localhost', 'ip6-loopback', 'kubernetes'])",message="metadata.name must not be a name of the system: a node of that name would get a certificate for it"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.hostRef) || (has(self.spec.hostName) == has(oldSelf.spec.hostName) && (!has(self.spec.hostName) || self.spec.hostName == oldSelf.spec.hostName))",message="spec.hostName cannot change once a host is claimed: delete the Machine and create another"
// +kubebuilder:printcolumn:name="NodeType",type=string,JSONPath=".spec.nodeTypeRef.name"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=".status.hostRef.name"
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=".status.nodeRef.name"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=".status.conditions[?(@.type=='Ready')].reason"
// +kubebuilder:printcolumn:name="Waiting For",type=string,JSONPath=".status.waitingFor"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type Machine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec MachineSpec `json:"spec"`
	// +optional
	Status MachineStatus `json:"status,omitempty"`
}

// MachineList is a list of Machines.
// +kubebuilder:object:root=true
type MachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Machine `json:"items"`
}

// IsMachineRef reports whether a consumerRef names a Machine of Ingot.
func IsMachineRef(ref *corev1.ObjectReference) bool {
	return ref != nil && ref.Kind == "Machine" && ref.APIVersion == GroupVersion.String()
}
