package host

import (
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/breaker"
	"github.com/ingot-dev/ingot/controllers/plan/event"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

// unknownTenant is the lastTenant of disks whose history is not known. It is no namespace/name, so it equals no TenantCluster.
const unknownTenant = "unknown"

// sharedTenant is the lastTenant of a host without data of its own that was the same server as one with data of a tenant. It equals no
// TenantCluster either. It is another one than unknownTenant, so that the host can be deleted as a duplicate.
const sharedTenant = "unknown (of another host that was this server)"

// maxFailures is how many attempts may fail in a row before an administrator has to request another one.
const maxFailures = 3

// Timeouts are how long attempts may take and how often hosts are observed. The time-outs within an attempt, and of a power change, are
// in hardware.Timeouts.
type Timeouts struct {
	// Inspect, InspectAgent, Install, EraseMetadata and EraseFull are the deadlines of attempts. InspectAgent is for an inspection that may boot the server.
	Inspect, InspectAgent, Install, EraseMetadata, EraseFull time.Duration
	// BMCGrace is how long a call to the hardware of a registered host may fail before the status shows an error that often ends by itself.
	BMCGrace time.Duration
	// RetryBase is the pause after the first failure. It doubles with each further one.
	RetryBase time.Duration
	// PollInterval is how often a host is observed while an attempt runs, until a step of it takes long.
	PollInterval time.Duration
	// IdleInterval is how often a host is observed while no attempt runs. Up to a tenth of it is subtracted as jitter.
	IdleInterval time.Duration
}

// DefaultTimeouts returns the time-outs for real servers.
func DefaultTimeouts() Timeouts {
	return Timeouts{
		Inspect: 10 * time.Minute, InspectAgent: 40 * time.Minute, Install: 45 * time.Minute, EraseMetadata: 20 * time.Minute, EraseFull: 24 * time.Hour,
		BMCGrace: time.Minute, RetryBase: time.Minute, PollInterval: 2 * time.Second, IdleInterval: 5 * time.Minute,
	}
}

// Facts is everything that a Decision depends on.
type Facts struct {
	// Clock is the time of the observation.
	watched.Clock
	// Random is a number in [0, 1).
	Random float64
	// Timeouts are those in force.
	Timeouts Timeouts
	// Host is the BareMetalHost.
	Host Host
	// Joined is true when the Machine that has the host has a Node, so that the host is not expected to boot any more.
	Joined bool
	// GenerationObservedAt is when Host.Generation was first observed. It is zero when that is not known.
	GenerationObservedAt time.Time
	// Spec and Record are the spec and the status of the HostRecord.
	Spec   v1alpha1.HostRecordSpec
	Record v1alpha1.HostRecordStatus
	// ErasePolicy is the erase mode of the NodeProvider, for a Spec that has none.
	ErasePolicy v1alpha1.EraseMode
	// Inspector is who looks at the hardware of a host before it is available; SourceBMC or empty: the BMC alone.
	Inspector v1alpha1.InventorySource
	// SupportedHints are the root device hints that the installer follows.
	SupportedHints []hardware.Hint
	// NeedsConfigDrive is true when the installer must have the config drive to begin an installation.
	NeedsConfigDrive bool
	// NeedsRelease is true when the installer must be told of a release without an erase.
	NeedsRelease bool
	// BootsToInspect is true when the installer may boot the server for any inspection.
	BootsToInspect bool
	// Places are the places of the host in the queues of its installer, for each operation that it limits; 0: it is the host's turn.
	Places map[hardware.Operation]int
	// BootProblem says that something else than the boot service answers at the address that servers boot from; empty: that is not so, or not
	// known.
	BootProblem string
	// BootReason is the reason of BootProblem; empty: BootAddressWrong.
	BootReason string
	// Grant answers what Decision.NeedsGrant asks for; nil: it was not asked for.
	Grant *breaker.Answer
	// PowerOnWait is how long until it is the turn of a host with Decision.IsFoundOff; 0: it is.
	PowerOnWait time.Duration
	// Observed is the installer's observation. It is nil when the installer was not or could not be asked.
	Observed *hardware.Observation
	// Problem is why the BMC could not be read or, with the reason SameServer, why it must not be used: another host is the same server. It is
	// nil when the BMC was read, and when it was not asked.
	Problem *Problem
}

// observedPower returns the power state that the BMC reports now.
func (f Facts) observedPower() hardware.PowerState {
	if f.Problem != nil || f.Observed == nil || f.Observed.Power == "" {
		return hardware.PowerUnknown
	}
	return f.Observed.Power
}

// isSameServer reports whether another host is the same server.
func (f Facts) isSameServer() bool {
	return f.Problem != nil && f.Problem.Reason == v1alpha1.ReasonSameServer
}

// Host is the part of a BareMetalHost that a Decision depends on.
type Host struct {
	Generation int64
	// Deleting is true when it has a deletion timestamp. Paused and Detached are true when it has Metal3's annotation of that name.
	Deleting, Paused, Detached bool
	// Online is spec.online, ExternallyProvisioned spec.externallyProvisioned.
	Online, ExternallyProvisioned bool
	// InspectionDisabled is true by annotation or by spec.inspectionMode, InspectionRequested by the annotation with an empty value.
	InspectionDisabled, InspectionRequested bool
	// Claimed is true when spec.consumerRef is set. ConsumerUID is its uid. MachineNamespace and MachineName are those of the Machine that it
	// names; they are empty for another kind.
	Claimed                       bool
	ConsumerUID                   string
	MachineNamespace, MachineName string
	// ConsumerName is namespace/name of the consumerRef.
	ConsumerName string
	// Restored is true when the object was created again from a backup and is not known yet. MustRegister is true when its annotation
	// ingot.dev/registered-as is missing, or is of another host.
	Restored, MustRegister bool
	// Installation is what the annotation ingot.dev/installation says; nil: nothing, or nothing that can be read.
	Installation *v1alpha1.Installation
	// HasImage is true when spec.image is set.
	HasImage bool
	// Reboot is true when there is a reboot annotation of any kind, RebootHard when one of them requests a hard power-off, RebootOnce when
	// the one without suffix is there, which is removed after the power-off.
	Reboot, RebootHard, RebootOnce bool
	// UnsupportedHints are the root device hints that the installer does not support.
	UnsupportedHints []string
	// Erase and Retry are the values of the annotations ingot.dev/erase and ingot.dev/retry.
	Erase, Retry string
	// Release is the value of the annotation ingot.dev/release.
	Release string
	// DisksGone are the names in the annotation ingot.dev/disk-gone. DisksGoneBy is the field manager that wrote it, and DisksGoneAt when.
	DisksGone   []string
	DisksGoneBy string
	DisksGoneAt time.Time
	// RootDisk is the value of the annotation ingot.dev/root-disk.
	RootDisk string
	// TPMKey is the value of the annotation ingot.dev/tpm-key.
	TPMKey string
	// Status is its current status.
	Status Status
}

// CanBeObserved reports whether Plan needs an observation of the hardware. It does not while an administrator has paused or detached the host.
func (h Host) CanBeObserved() bool { return !h.Paused && !h.Detached }

// Status is the part of BareMetalHost.status that a Decision depends on.
type Status struct {
	State             metal3.ProvisioningState
	OperationalStatus metal3.OperationalStatus
	ErrorType         metal3.ErrorType
	ErrorMessage      string
	ErrorCount        int
	PoweredOn         bool
}

// Decision says what to write and what to do. Record is written first: it is the intent, and BareMetalHost.status can be derived
// from it again. The Action follows, then the annotations, then Status, then the events.
type Decision struct {
	// Status is the next status of the BareMetalHost.
	Status Status
	// Record is the next status of the HostRecord.
	Record v1alpha1.HostRecordStatus
	// Action is at most one call to the hardware.
	Action Action
	// RemoveAnnotations are the annotations whose request is fulfilled.
	RemoveAnnotations []Annotation
	// Register writes the annotation ingot.dev/registered-as, after the record: the object is known from then on.
	Register bool
	// NeedsGrant says that the host is of unknown content and nobody asked for its erase: the caller asks for a grant and decides again with the answer.
	NeedsGrant bool
	// IsFoundOff says that the host is off although nobody asked for that, and is to be powered on: the caller takes a turn and decides again with PowerOnWait.
	IsFoundOff bool
	// RemoveFinalizer lets a deleted host be removed from the cluster.
	RemoveFinalizer bool
	// WaitingFor says in words what the host waits for until RequeueAfter. It is for logs.
	WaitingFor string
	// RequeueAfter is when to plan again. 0 means that only an event changes anything.
	RequeueAfter time.Duration
	// Events are to be emitted after the writes.
	Events []event.Event

	// followed are the edges that were followed.
	followed []*edge
}

// Annotation is an annotation that requests something.
type Annotation string

// Annotations that a Decision may remove.
const (
	AnnotationReboot   Annotation = "reboot.metal3.io"
	AnnotationInspect  Annotation = "inspect.metal3.io"
	AnnotationErase    Annotation = v1alpha1.AnnotationErase
	AnnotationDiskGone Annotation = v1alpha1.AnnotationDiskGone
	AnnotationRootDisk Annotation = v1alpha1.AnnotationRootDisk
)

// ActionKind names a call to the hardware.
type ActionKind string

// Action kinds.
const (
	ActionNone     ActionKind = ""
	ActionInspect  ActionKind = ActionKind(hardware.OpInspect)
	ActionInstall  ActionKind = ActionKind(hardware.OpInstall)
	ActionErase    ActionKind = ActionKind(hardware.OpErase)
	ActionCancel   ActionKind = "Cancel"
	ActionSetPower ActionKind = "SetPower"
)

// Action is one call to the hardware.
type Action struct {
	Kind ActionKind
	// Attempt is for Inspect, Install, Erase and Cancel.
	Attempt hardware.Attempt
	// Inspector is for Inspect.
	Inspector hardware.Inspector
	// Image, GPUs, PreviousRootDisk and AcceptedRootDisk are for Install.
	Image            hardware.Image
	GPUs             hardware.RequiredGPUs
	Requirements     hardware.Requirements
	PreviousRootDisk hardware.Disk
	AcceptedRootDisk string
	// Erase is the mode for Erase.
	Erase hardware.EraseMode
	// Power is for SetPower.
	Power hardware.PowerChange
}
