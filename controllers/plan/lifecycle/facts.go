package lifecycle

import (
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/nodeidentity"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

// Facts is everything that a Decision depends on.
type Facts struct {
	// Clock is the time of the decision.
	watched.Clock
	// Timeouts limit the phases.
	Timeouts Timeouts
	// Machine is the object whose life is planned.
	Machine Machine
	// NodeType, Provider and Tenant are the objects that the Machine refers to.
	NodeType NodeType
	Provider Provider
	Tenant   Tenant
	// Revision is what the Machine is installed with or, before its claim, will be installed with: see CurrentRevision.
	Revision Revision
	// NextRevision is what the Machine is to be rolled to: see the function NextRevision. It has no Name when there is no roll.
	NextRevision Revision
	// Placement is the host that placement chose. It is observed only while the Machine has no host.
	Placement Placement
	// Host is the BareMetalHost that status.hostRef names or, without a hostRef, one whose consumerRef already has this
	// Machine's uid. It is nil when there is none.
	Host *Host
	// Secret is the claim Secret in the host's namespace.
	Secret Secret
	// Node is the object of the Machine's name in the tenant's cluster. It is unknown while the tenant is not Reachable.
	Node Node
	// Token is the Machine's bootstrap token in the tenant's cluster. It is nil when there is none.
	Token *Token

	// findOwner is the guard of that name. Plan sets it; nil is the rule itself.
	findOwner func(nodeidentity.Claim, nodeidentity.Node) nodeidentity.Finding
	// isPowerCurrent is the guard of that name, in the same way.
	isPowerCurrent func(*Host) bool
}

// Machine is the object whose life is planned.
type Machine struct {
	Namespace, Name string
	UID             types.UID
	Generation      int64
	// Created is the time at which the object was created.
	Created time.Time
	// Deleting is true when a deletion timestamp is set.
	Deleting bool
	// Finalizer is true when v1alpha1.MachineFinalizer is set.
	Finalizer bool
	// NodePool is the name of the NodePool that controls the Machine, and makes it again when it is deleted. It is empty where a person made it.
	NodePool string
	Spec     v1alpha1.MachineSpec
	Status   v1alpha1.MachineStatus
}

// RemovalAdvice says how a person gets rid of a Machine that cannot become a node. Without the NodePool: a Machine that waits for what does not
// exist is deleted, its NodePool makes another one, which waits for the same and advises the same. A Machine with a host is another matter: its
// successor gets another host and the NodeType's stable revision.
func (m Machine) RemovalAdvice() string {
	if m.NodePool == "" || m.Status.HostRef != nil {
		return "delete this Machine"
	}
	return "scale NodePool " + m.NodePool + " down: it would make a deleted Machine again"
}

// NodeType is the NodeType of the Machine.
type NodeType struct {
	// Found is true when the object exists. Ready is true when its condition Ready is True; otherwise Reason and Message are those of
	// the condition, and are empty while there is no condition.
	Found, Ready    bool
	Reason, Message string
	// Generation is that of its spec.
	Generation int64
	// Hardware is what a server must have beside its GPUs, as spec.hardware says now.
	Hardware *v1alpha1.HardwareRequirements
	// Stable is the revision that new Machines are installed with, Target the one that Machines are rolled to.
	Stable, Target v1alpha1.RenderedRevision
}

// Revision is a revision that a Machine can be installed with.
type Revision struct {
	// Name is that of the NodeTypeRevision, Rendering that of its NodeTypeRendering.
	Name, Rendering string
	// Problem says why the revision cannot be installed now: it or its image is missing, or it cannot be rendered. It is empty when the
	// revision can be installed.
	Problem string
	// ImageReason and ImageProblem say why its OSImage cannot be used now; empty: it can, or that is not known.
	ImageReason, ImageProblem string
	// JoinProblem says why a node with it cannot join as the TenantCluster says; empty: it can.
	JoinProblem string
	// Image is the image to be written.
	Image v1alpha1.ExactImage
	// GPUs are what a server must have to be installed with it; nil where nothing is required.
	GPUs *v1alpha1.ExpectedGPUs
	// Kubelet is the version of kubelet in the image, without a leading v.
	Kubelet string
	// DRA is true when a DRA driver advertises the GPUs, so that the tenant's API server must serve resource.k8s.io/v1.
	DRA bool
}

// rendered returns the names of the revision and of its rendering.
func (r Revision) rendered() v1alpha1.RenderedRevision {
	return v1alpha1.RenderedRevision{Revision: r.Name, Rendering: r.Rendering}
}

// Provider is the NodeProvider that the host comes from.
type Provider struct {
	// Found is true when the object exists.
	Found bool
	// HostNamespace is the namespace of its hosts.
	HostNamespace string
	// HasRecords is true when its hosts have HostRecords. It is false for metal3, and while the object does not exist.
	HasRecords bool
	// Erase is the erase mode that is requested on release.
	Erase v1alpha1.EraseMode
	// BootProblem says that something else than the boot service answers at its address; empty: that is not so, or not known.
	BootProblem string
}

// Tenant is the TenantCluster that the Machine joins.
type Tenant struct {
	// Found is true when the object exists. Deleting is true when it is being deleted; it then takes no further nodes.
	Found, Deleting bool
	// Reachable is true when its API server answered and its Nodes are known. Otherwise Reason and Message say why not.
	Reachable       bool
	Reason, Message string
	// JoinProblem says why no further node can join in the way that the TenantCluster says; empty: they can. Nodes that have joined are not concerned.
	JoinProblem string
	// ClusterUID identifies the cluster. It is empty while that is not known.
	ClusterUID types.UID
	// UID is that of the object.
	UID types.UID
	// Version is the version of its API server, as in v1.37.0.
	Version string
	// ProviderID says who sets the providerIDs of nodes that are installed from now on; empty: Ingot.
	ProviderID v1alpha1.ProviderIDSource
	// Join is how nodes join.
	Join v1alpha1.JoinMethod
	// ServesDRA is true when its API server serves resource.k8s.io/v1.
	ServesDRA bool
}

// Placement is the result of choosing a host.
type Placement struct {
	// Host is the chosen host. It is empty when none can be claimed.
	Host types.NamespacedName
	// Reason is v1alpha1.ReasonNoHostAvailable or v1alpha1.ReasonHostNotFound when no host was chosen. It is v1alpha1.ReasonClaiming or
	// v1alpha1.ReasonQuotaExceeded when there is a host, and no place in the NodeQuota.
	Reason string
	// Message lists the hosts that were considered and why each was passed over.
	Message string
}

// Consumer says whom the consumerRef of a host names.
type Consumer string

// Consumers of a host.
const (
	// ConsumerNone means that the host has no consumerRef.
	ConsumerNone Consumer = ""
	// ConsumerMine means that the consumerRef has this Machine's uid.
	ConsumerMine Consumer = "Mine"
	// ConsumerOther means that the consumerRef names something else.
	ConsumerOther Consumer = "Other"
)

// Host is a BareMetalHost and its HostRecord.
type Host struct {
	Namespace, Name string
	// Generation is that of the BareMetalHost.
	Generation int64
	// Consumer says whom the consumerRef names.
	Consumer Consumer
	// LacksClusterUID is true for a metal3 host whose annotations name the Machine's tenant as the last one, and not that it was its cluster.
	LacksClusterUID bool
	// Online is spec.online.
	Online bool
	// ImageURL is the URL of spec.image. It is empty when there is no image.
	ImageURL string
	// State is status.provisioning.state.
	State metal3.ProvisioningState
	// InstalledURL is status.provisioning.image.url.
	InstalledURL string
	// Error is status.errorType. ErrorReason is HostRecord.status.error.reason, when there is one. Their messages are not facts: they are
	// for those who may read hosts.
	Error, ErrorReason string
	// Paused and Detached are true when the host has Metal3's annotation of that name.
	Paused, Detached bool
	// Deleting is true when the host has a deletion timestamp. It is kept for the Machine that has it.
	Deleting bool
	// PoweredOn is status.poweredOn. It is used only for hosts without a HostRecord, as are the fields up to ClaimProblem.
	PoweredOn bool
	// CleaningChanged is true when somebody has enabled the cleaning that a roll had set aside.
	CleaningChanged bool
	// NeverPoweredOff is spec.disablePowerOff.
	NeverPoweredOff bool
	// OperationalStatus is status.operationalStatus.
	OperationalStatus metal3.OperationalStatus
	// ErrorCount is status.errorCount.
	ErrorCount int
	// ObservedGeneration is the generation that the condition Manageable of the status has observed or, without it, the highest one that a condition has. It is
	// nil where the host has no conditions.
	ObservedGeneration *int64
	// Manageable is whether the condition Manageable is True: the operator then knows the power. It is nil where the host has no such condition.
	Manageable *bool
	// PowerOffRequested is true when Ingot has requested the power-off and not the power-on since. RebootRequested is true while the host has the
	// annotation by which Metal3 reboots it once.
	PowerOffRequested, RebootRequested bool
	// SecretAttempt is the last attempt that may have a claim Secret, as the host says. It is 0 where it says none.
	SecretAttempt int64
	// PowerOffOfRunning is true when the status said that the server was on in the version of the host in which the power-off was requested.
	PowerOffOfRunning bool
	// ClaimProblem says why the host cannot be claimed now, in the words of placement or quota. It is empty when the host can be claimed.
	ClaimProblem string
	// Installation is what the host says of its Machine in its annotation ingot.dev/installation. It is nil when it says nothing, or nothing
	// that can be read.
	Installation *v1alpha1.Installation
	// Record is the HostRecord. It is nil when there is none.
	Record *HostRecord
}

// HostRecord is the HostRecord of a host.
type HostRecord struct {
	Spec   v1alpha1.HostRecordSpec
	Status v1alpha1.HostRecordStatus
}

// Secret is the claim Secret of a host, as its annotations describe it.
type Secret struct {
	// Found is true when it exists and was written for this Machine.
	Found bool
	// Attempt is the attempt that it was written for.
	Attempt int64
	// HostAttempt is the number of the installation in the HostRecord that it was written for. It is 0 for a host without one, and
	// in a Secret of a manager that did not write it.
	HostAttempt int64
	// TokenID is the id of the bootstrap token in its user data. It is empty after the token was removed from it.
	TokenID string
}

// Node is the Node of the Machine's name.
type Node struct {
	// Found is true when it exists.
	Found bool
	UID   types.UID
	// ProviderID is spec.providerID, SystemUUID status.nodeInfo.systemUUID, and Installation the label of that name.
	ProviderID, SystemUUID, Installation string
	// BootID is status.nodeInfo.bootID.
	BootID string
	// Unschedulable is true when the Node is cordoned by anyone, CordonedByIngot when Ingot cordoned it and may uncordon it.
	Unschedulable, CordonedByIngot bool
	// Undeletable says why the tenant's cluster does not remove the Node; empty: it does, or it may be asked
	// for that again.
	Undeletable string
	// Missing are the labels and taints that the Node lacks of those that its NodeType defines.
	Missing NodeMetadata
	// Pods are namespace/name of the pods that must still be evicted. They are listed only in the phases that evict, and only on a Node
	// that is cordoned.
	Pods []string
	// Budgets are namespace/name of the PodDisruptionBudgets that allow none of Pods to be evicted now. They are listed only after
	// the drain time-out of a roll.
	Budgets []string
}

// NodeMetadata is labels and taints of a Node.
type NodeMetadata struct {
	// Labels and Taints are their keys, in order.
	Labels, Taints []string
	// Writer is the program in the tenant's cluster that wrote them last; empty: it is not known.
	Writer string
}

func (m NodeMetadata) isEmpty() bool { return len(m.Labels)+len(m.Taints) == 0 }

// Token is a bootstrap token.
type Token struct {
	// ID is the public part of the token.
	ID string
	// Expires is the time at which the token expires.
	Expires time.Time
	// Undeletable says why the tenant's cluster does not remove the token, as that of a Node.
	Undeletable string
}

// Timeouts limit the phases.
type Timeouts struct {
	Claiming, Provisioning, Joining, Validating, Releasing time.Duration
	// Draining limits the eviction of a roll and, within Releasing, the eviction of a release.
	Draining time.Duration
}

// DefaultTimeouts returns the time-outs that apply where neither the NodeType nor the configuration sets others.
func DefaultTimeouts() Timeouts {
	return Timeouts{
		Claiming: time.Minute, Provisioning: time.Hour, Joining: 20 * time.Minute, Validating: 15 * time.Minute,
		Releasing: time.Hour, Draining: 30 * time.Minute,
	}
}

// ofPhase returns the longest time that the phase may last. 0 means that it has no limit.
func (t Timeouts) ofPhase(phase v1alpha1.MachinePhase) time.Duration {
	return map[v1alpha1.MachinePhase]time.Duration{
		v1alpha1.MachineClaiming: t.Claiming, v1alpha1.MachineProvisioning: t.Provisioning, v1alpha1.MachineJoining: t.Joining,
		v1alpha1.MachineValidating: t.Validating, v1alpha1.MachineDraining: t.Draining, v1alpha1.MachineReleasing: t.Releasing,
	}[phase]
}

// CurrentRevision returns the names for Facts.Revision: what is installed or is being installed or, before a claim, what spec names or
// what is stable for the NodeType. The rendering is empty where spec names a revision alone.
func CurrentRevision(m Machine, t NodeType) v1alpha1.RenderedRevision {
	switch {
	case m.Status.Revision != "":
		return m.Status.Installed()
	case m.Spec.Revision != "":
		return m.Spec.Asked()
	default:
		return t.Stable
	}
}

// NextRevision returns the names for Facts.NextRevision: what spec names when that differs from what is installed, else the zero value. A
// Machine without spec.revision keeps what it has, and so does one whose spec names its revision without a rendering.
func NextRevision(m Machine) v1alpha1.RenderedRevision {
	desired, installed := m.Spec.Asked(), m.Status.Installed()
	if installed.Revision == "" || desired == installed || desired.Revision == installed.Revision && desired.Rendering == "" {
		return v1alpha1.RenderedRevision{}
	}
	return desired
}
