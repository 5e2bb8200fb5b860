package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// HostRecordSpec is what the machine controller asks of a host beyond what a BareMetalHost can say. All but remainingNodes is absent while no Machine has it.
type HostRecordSpec struct {
	// machine that has the host.
	// +optional
	Machine *MachineReference `json:"machine,omitempty"`
	// tenant is namespace/name of the TenantCluster.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	Tenant string `json:"tenant,omitempty"`
	// tenantClusterUID identifies the cluster of the TenantCluster, as its status.clusterUID. It is absent while that is not known.
	// +optional
	TenantClusterUID types.UID `json:"tenantClusterUID,omitempty"`
	// tenantUID is the uid of the TenantCluster.
	// +optional
	TenantUID types.UID `json:"tenantUID,omitempty"`
	// revision to be installed.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Revision string `json:"revision,omitempty"`
	// attempt of the Machine; another number asks for another installation.
	// +optional
	Attempt int64 `json:"attempt,omitempty"`
	// image to be installed, exactly.
	// +optional
	Image *ExactImage `json:"image,omitempty"`
	// gpus that the server must have. Absent for a NodeType without GPUs, and for GPUs that Ingot's catalogue does not have.
	// +optional
	GPUs *ExpectedGPUs `json:"gpus,omitempty"`
	// hardware that the server must have beside that, as spec.hardware of the NodeType says.
	// +optional
	Hardware *HardwareRequirements `json:"hardware,omitempty"`
	// erase says how much of the disks is erased when the host is released:
	//   - None: the disks are left as they are.
	//   - Metadata: partition tables and file-system signatures are removed.
	//   - Full: every byte is cleared.
	//
	// +optional
	Erase EraseMode `json:"erase,omitempty"`
	// machineGone is there while spec.consumerRef of the host names a Machine that does not exist any more and that did not release the host.
	// +optional
	MachineGone *MachineGone `json:"machineGone,omitempty"`
	// nodeRemains names the Node that may be left in the tenant's cluster although the host is released: that cluster did not answer in time.
	// +optional
	NodeRemains *RemainingNode `json:"nodeRemains,omitempty"`
	// remainingNodes may be left in the clusters of earlier tenants, which did not delete them when the host was released. Each is
	// deleted, and removed from this list, when its TenantCluster can be used again. The list stays when the host gets another Machine.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	RemainingNodes []ReleasedNode `json:"remainingNodes,omitempty"`
}

// HostPower is the power state as the BMC said.
type HostPower struct {
	// state: On, Off, PoweringOn, PoweringOff, Unknown.
	// +required
	State string `json:"state"`
	// observedGeneration of the BareMetalHost when the state was read.
	// +required
	ObservedGeneration int64 `json:"observedGeneration"`
	// observedAt is when this state was seen first for that generation.
	// +required
	ObservedAt metav1.MicroTime `json:"observedAt"`
}

// AttemptOutcome is how an attempt ended.
type AttemptOutcome string

// Outcomes of attempts.
const (
	AttemptSucceeded AttemptOutcome = "Succeeded"
	AttemptFailed    AttemptOutcome = "Failed"
)

// WantedAttempt is one piece of work that is wanted of a host: an inspection, an installation, an erase. How it goes is its
// installer's to know; what it came to is written here, for every installer.
type WantedAttempt struct {
	// number of the attempt; grows by one and is never used again on this host.
	// +required
	Number int64 `json:"number"`
	// operation: Inspect, Install, Erase.
	// +required
	Operation string `json:"operation"`
	// inspector says who looks at the hardware in an inspection; absent is the BMC:
	//   - BMC: the BMC is asked.
	//   - Agent: the agent is booted on the server, which is off before and afterwards.
	//
	// +optional
	// +kubebuilder:validation:Enum=BMC;Agent
	Inspector InventorySource `json:"inspector,omitempty"`
	// machineUID and machineAttempt say for whom.
	// +optional
	MachineUID types.UID `json:"machineUID,omitempty"`
	// machineAttempt is spec.attempt when it was wanted first.
	// +optional
	MachineAttempt int64 `json:"machineAttempt,omitempty"`
	// image that is to be installed.
	// +optional
	Image *ExactImage `json:"image,omitempty"`
	// gpus that the server must have before the image is written.
	// +optional
	GPUs *ExpectedGPUs `json:"gpus,omitempty"`
	// hardware that the server must have beside that before the image is written.
	// +optional
	Hardware *HardwareRequirements `json:"hardware,omitempty"`
	// erase says how much of the disks is erased:
	//   - None: the disks are left as they are.
	//   - Metadata: partition tables and file-system signatures are removed.
	//   - Full: every byte is cleared.
	//
	// +optional
	Erase EraseMode `json:"erase,omitempty"`
	// previousRootDisk is the disk that the last installation for the same Machine was written to; this one is written to no other.
	// +optional
	PreviousRootDisk *DiskInventory `json:"previousRootDisk,omitempty"`
	// acceptedRootDisk is the serial number, the WWN or the path of the disk that the annotation ingot.dev/root-disk accepts in place of
	// previousRootDisk.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	AcceptedRootDisk string `json:"acceptedRootDisk,omitempty"`
	// since is when it was wanted first.
	// +required
	Since metav1.MicroTime `json:"since"`
	// deadline by which it fails, whatever it does then.
	// +required
	Deadline metav1.MicroTime `json:"deadline"`
	// configDriveAwaitedAt is when the installation was begun with an installer that must have the config drive to begin with, as with an ironic provider.
	// The machine controller makes the bootstrap token and writes the documents from then on. It is absent where an agent asks for them, which
	// status.attempt.configDriveAwaitedAt tells.
	// +optional
	ConfigDriveAwaitedAt *metav1.MicroTime `json:"configDriveAwaitedAt,omitempty"`
	// firstInstallation says that no tenant had the host before this installation, so that its disks have nothing of one.
	// +optional
	FirstInstallation bool `json:"firstInstallation,omitempty"`
	// outcome of the attempt; absent until it has ended:
	//   - Succeeded: the image is installed, the disks are erased, or the hardware is read, as was asked.
	//   - Failed: reason and message say why.
	//
	// +optional
	// +kubebuilder:validation:Enum=Succeeded;Failed
	Outcome AttemptOutcome `json:"outcome,omitempty"`
	// endedAt is when it was seen to have ended.
	// +optional
	EndedAt *metav1.MicroTime `json:"endedAt,omitempty"`
	// step at which it failed.
	// +optional
	Step string `json:"step,omitempty"`
	// reason why it failed.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message for people.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`
}

// HostAttempt is what Ingot's own installer keeps of the attempt that is wanted. It is absent until there is something to keep, and
// with an installer that keeps its state elsewhere; identity and outcome are those of status.wanted.
type HostAttempt struct {
	// number of the attempt; while it differs from that of status.wanted, nothing is kept of that one yet.
	// +required
	Number int64 `json:"number"`
	// state: Running, Succeeded, Failed.
	// +required
	State string `json:"state"`
	// step that it is at, or failed at.
	// +optional
	Step string `json:"step,omitempty"`
	// stepAt is when the step was entered.
	// +optional
	StepAt *metav1.MicroTime `json:"stepAt,omitempty"`
	// stepDeadline is when the step fails, where it has a time-out of its own. The deadline of the attempt is in status.wanted. While the
	// agent works, it is the time by which the agent must report progress.
	// +optional
	StepDeadline *metav1.MicroTime `json:"stepDeadline,omitempty"`
	// openedAt is when the host was powered on for this attempt; the boot service answers from then until the deadline.
	// +optional
	OpenedAt *metav1.MicroTime `json:"openedAt,omitempty"`
	// boots counts how often the boot document was served, or the host was powered on with an image of its own: a boot medium or a pinned program.
	// +optional
	Boots int32 `json:"boots,omitempty"`
	// bootWay is how the host was powered on for its current boot: VirtualMedia, PinnedHTTP, or absent for the network.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	BootWay string `json:"bootWay,omitempty"`
	// channel is how the agent of the current boot is reached; absent where no server was booted:
	//   - VirtualMedia: a CD image for the boot, inserted by a BMC whose certificate was verified; the agent spoke by HTTPS.
	//   - PinnedHTTPS: a URL for the boot, pinned by a BMC whose certificate was verified; firmware and agent spoke by HTTPS.
	//   - VirtualMediaHTTP: VirtualMedia with an agent that spoke by HTTP.
	//   - PinnedHTTP: PinnedHTTPS with firmware or an agent that spoke by HTTP.
	//   - IronicVirtualMedia: a CD image with the token of Ironic's agent, inserted by a BMC whose certificate Ironic verifies.
	//   - UnverifiedBMC: one of those by a BMC whose certificate was not verified.
	//   - IronicNetwork: Ironic's agent after a boot over the network.
	//   - Network: PXE or HTTP boot for whoever has the MAC address.
	//
	// +optional
	Channel AgentChannel `json:"channel,omitempty"`
	// tpm is what the last agent has reported of its server's TPM; absent until one has.
	// +optional
	TPM *HostTPM `json:"tpm,omitempty"`
	// imageBoots is how many of boots were with an image of the host's own.
	// +optional
	ImageBoots int32 `json:"imageBoots,omitempty"`
	// silentBoots are the last boots in a row by one way in which no agent came up; absent: there are none. An attempt that follows a failed one goes on
	// with them, and one that follows a success begins with the first way of the NodeProvider.
	// +optional
	SilentBoots *SilentBoots `json:"silentBoots,omitempty"`
	// bootOrder is the server's boot order before it was changed for the agent's boot, until it is put back. An attempt goes on with that of the one before.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=256
	BootOrder []string `json:"bootOrder,omitempty"`
	// agent that has registered in the current boot; absent until one has.
	// +optional
	Agent *HostAgent `json:"agent,omitempty"`
	// configDriveAwaitedAt is when an agent asked for the config drive of this installation first and was told that it is not written yet.
	// The machine controller makes the bootstrap token and writes the documents from then on, and not before.
	// +optional
	ConfigDriveAwaitedAt *metav1.MicroTime `json:"configDriveAwaitedAt,omitempty"`
	// kernelAwaited is the boot document of the current boot, until the server asks for the kernel that it names.
	// +optional
	KernelAwaited *KernelAwaited `json:"kernelAwaited,omitempty"`
	// kernelFetchedAt is when the server asked for the kernel of its current boot.
	// +optional
	KernelFetchedAt *metav1.MicroTime `json:"kernelFetchedAt,omitempty"`
	// inventory is what the agent of this attempt has found, or the BMC when it was inspected; absent where it is that of status.inventory, which it becomes
	// when the attempt ends.
	// +optional
	Inventory *HostInventory `json:"inventory,omitempty"`
	// earlierDisks are those that an agent of an earlier boot of this attempt has found, and the one of inventory has not: they must be erased too.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	EarlierDisks []DiskInventory `json:"earlierDisks,omitempty"`
	// findings are what the boot service noticed in this attempt that a person should know; they decide nothing.
	// +optional
	// +listType=map
	// +listMapKey=reason
	// +kubebuilder:validation:MaxItems=16
	Findings []HostFinding `json:"findings,omitempty"`
	// doneBytes of the image file, or of the disks that are erased.
	// +optional
	DoneBytes int64 `json:"doneBytes,omitempty"`
	// totalBytes; 0 while unknown.
	// +optional
	TotalBytes int64 `json:"totalBytes,omitempty"`
	// rootDisk that the image was written to.
	// +optional
	RootDisk *DiskInventory `json:"rootDisk,omitempty"`
	// disks says what an erase has done to each disk.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Disks []DiskEvidence `json:"disks,omitempty"`
	// reason why it failed.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message for people.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`
}

// HostRecordStatus is what was wanted of a host and seen of it. The host controller writes it, but for attempt: that is its
// installer's, and nobody else writes it.
type HostRecordStatus struct {
	// error that the host is in; absent while it is well. BareMetalHost.status.errorMessage shows the same as "reason: message".
	// +optional
	Error *HostError `json:"error,omitempty"`
	// failingCalls are the calls to the hardware that the host needs and that have failed every time since they failed first. One that
	// lasts becomes the error; one that succeeds is removed.
	// +optional
	// +listType=map
	// +listMapKey=call
	// +kubebuilder:validation:MaxItems=8
	FailingCalls []FailingCall `json:"failingCalls,omitempty"`
	// power as the BMC said.
	// +optional
	Power *HostPower `json:"power,omitempty"`
	// wanted is the attempt that is wanted, or was last.
	// +optional
	Wanted *WantedAttempt `json:"wanted,omitempty"`
	// queue is the host's place in the queue of its NodeProvider; absent: it waits in none.
	// +optional
	Queue *HostQueue `json:"queue,omitempty"`
	// attempt is what Ingot's own installer keeps of it.
	// +optional
	Attempt *HostAttempt `json:"attempt,omitempty"`
	// conditions:
	//   - AgentUndisputed: False while the boot service has noticed something in the attempt that a person should know, such as a second
	//     agent with the token of the same boot. The reason is that of the finding. It is absent while nothing was ever noticed.
	//   - Undeleted: False while the host is being deleted and kept for its Machine, which the message names. Otherwise it is absent.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// reportedFindings are the findings of status.attempt that an event was published for.
	// +optional
	ReportedFindings *ReportedFindings `json:"reportedFindings,omitempty"`
	// failures of attempts in a row; a success, another Machine or a retry sets it to 0.
	// +optional
	Failures int32 `json:"failures,omitempty"`
	// installed is what is on the disk; absent once it was erased.
	// +optional
	Installed *HostInstalled `json:"installed,omitempty"`
	// lastTenant is namespace/name of the TenantCluster that had the disks last; kept over erases.
	// +optional
	LastTenant string `json:"lastTenant,omitempty"`
	// lastTenantClusterUID identifies the cluster that lastTenant was then. Absent: unknown, and lastTenantUID decides whether a TenantCluster is the same tenant.
	// +optional
	LastTenantClusterUID types.UID `json:"lastTenantClusterUID,omitempty"`
	// lastTenantUID is the uid that the TenantCluster lastTenant had then; kept over erases. Absent: it is not known.
	// +optional
	LastTenantUID types.UID `json:"lastTenantUID,omitempty"`
	// erased is the proof of the last erase; absent once something was installed.
	// +optional
	Erased *EraseProof `json:"erased,omitempty"`
	// disks are those that an agent or the BMC has ever found in the host and that have a serial number or WWN. An erase fails while one
	// of them is missing and not declared gone by the annotation ingot.dev/disk-gone.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Disks []KnownDisk `json:"disks,omitempty"`
	// tpm is what the agents of the host must prove that they run on its server by: the key that was trusted at its first use or that is listed, or that the server has no
	// TPM 2.0. Absent: nothing is known.
	// +optional
	TPM *HostTPM `json:"tpm,omitempty"`
	// inventory of the hardware.
	// +optional
	Inventory *HostInventory `json:"inventory,omitempty"`
	// retrySeen is the value of the retry annotation that was served last.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	RetrySeen string `json:"retrySeen,omitempty"`
}

// HostRecord carries what BareMetalHost has no field for, under the same name and namespace. spec is the machine
// controller's, status the host controller's and its installer's.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=hr,categories=ingot
// +kubebuilder:printcolumn:name="Machine",type=string,JSONPath=".spec.machine.name"
// +kubebuilder:printcolumn:name="Power",type=string,JSONPath=".status.power.state"
// +kubebuilder:printcolumn:name="Attempt",type=integer,JSONPath=".status.wanted.number"
// +kubebuilder:printcolumn:name="Operation",type=string,JSONPath=".status.wanted.operation"
// +kubebuilder:printcolumn:name="Outcome",type=string,JSONPath=".status.wanted.outcome"
// +kubebuilder:printcolumn:name="Step",type=string,JSONPath=".status.attempt.step"
// +kubebuilder:printcolumn:name="Erased",type=string,priority=1,JSONPath=".status.erased.mode"
// +kubebuilder:printcolumn:name="Erased-Through",type=string,priority=1,JSONPath=".status.erased.channel"
// +kubebuilder:printcolumn:name="TPM",type=string,priority=1,JSONPath=".status.tpm.proof"
// +kubebuilder:printcolumn:name="Place",type=integer,priority=1,JSONPath=".status.queue.place"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=".status.error.reason"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type HostRecord struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec HostRecordSpec `json:"spec,omitempty"`
	// +optional
	Status HostRecordStatus `json:"status,omitempty"`
}

// HostRecordList is a list of HostRecords.
// +kubebuilder:object:root=true
type HostRecordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HostRecord `json:"items"`
}
