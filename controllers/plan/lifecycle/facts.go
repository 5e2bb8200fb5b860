package lifecycle

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Facts is all that a Decision depends on.
type Facts struct {
	// Now is the time of the decision.
	Now time.Time
	// Timeouts bound the phases.
	Timeouts Timeouts
	// Machine is the object itself.
	Machine Machine
	// NodeType, Provider and Tenant are what the Machine refers to.
	NodeType NodeType
	Provider Provider
	Tenant   Tenant
	// Revision is what the Machine is, or is being, installed with, or before its claim will be: see CurrentRevision.
	Revision Revision
	// Next is what it is to be rolled to, see NextRevision; without a Name it stays as it is.
	Next Revision
	// Choice is placement's answer; looked for only while the Machine has no host.
	Choice Choice
	// Host is the BareMetalHost that status.hostRef names or, without a hostRef, one whose consumerRef already names this
	// Machine's uid. Nil when there is none.
	Host *Host
	// Secret is the claim Secret in the host's namespace.
	Secret Secret
	// Node is the object of the Machine's name in the tenant's cluster; unknown while the tenant is not Reachable.
	Node Node
	// Token is the Machine's bootstrap token in the tenant's cluster; nil when there is none.
	Token *Token
}

// Machine is the object whose life is planned.
type Machine struct {
	Namespace, Name string
	UID             types.UID
	Generation      int64
	// Created is when the object was created.
	Created time.Time
	// Deleting: a deletion timestamp is set.
	Deleting bool
	// Finalizer: v1alpha1.MachineFinalizer is set.
	Finalizer bool
	Spec      v1alpha1.MachineSpec
	Status    v1alpha1.MachineStatus
}

// NodeType is the class that the Machine belongs to.
type NodeType struct {
	// Found: the object exists. Ready: its condition Ready is True; else Reason and Message are that condition's, empty while
	// there is none.
	Found, Ready    bool
	Reason, Message string
	// Stable is what new Machines get, Target what they are moved to.
	Stable, Target v1alpha1.RenderedRevision
}

// Revision is what a Machine can be installed with.
type Revision struct {
	// Name of the NodeTypeRevision, and of the NodeTypeRendering of it.
	Name, Rendering string
	// Problem says why it cannot be installed now: it or its image is missing, or cannot be rendered. Empty: it can.
	Problem string
	// Image to be written.
	Image v1alpha1.ExactImage
	// Kubelet version in the image, without a leading v.
	Kubelet string
	// DRA: a DRA driver advertises its GPUs, so that the tenant's API must serve them.
	DRA bool
}

// Provider is where the host comes from.
type Provider struct {
	// Found: the object exists.
	Found bool
	// HostNamespace holds its hosts.
	HostNamespace string
	// Records: its hosts have HostRecords; false for metal3, and while the object does not exist.
	Records bool
	// Erase asked for on release.
	Erase v1alpha1.EraseMode
}

// Tenant is the cluster that the Machine joins.
type Tenant struct {
	// Found: the object exists. Deleting: it is on its way out, and takes no further nodes.
	Found, Deleting bool
	// Reachable: its API server answered and its Nodes are known; else Reason and Message say why not.
	Reachable       bool
	Reason, Message string
	// Version of the API server: v1.37.0.
	Version string
	// ServesDRA: it serves resource.k8s.io/v1.
	ServesDRA bool
}

// Choice is placement's answer.
type Choice struct {
	// Host chosen; empty when none can be claimed.
	Host types.NamespacedName
	// Reason is v1alpha1.ReasonNoHostAvailable or v1alpha1.ReasonHostNotFound when no host was chosen.
	Reason string
	// Message says which hosts were looked at and why each was passed over.
	Message string
}

// Consumer says whose a host is.
type Consumer string

// Consumers of a host.
const (
	// ConsumerNone: no consumerRef.
	ConsumerNone Consumer = ""
	// ConsumerMine: consumerRef has this Machine's uid.
	ConsumerMine Consumer = "Mine"
	// ConsumerOther: consumerRef names something else.
	ConsumerOther Consumer = "Other"
)

// Host is a BareMetalHost and its HostRecord.
type Host struct {
	Namespace, Name string
	// Generation of the BareMetalHost.
	Generation int64
	// Consumer, and ConsumerName for people when it is another's.
	Consumer     Consumer
	ConsumerName string
	// Online is spec.online.
	Online bool
	// ImageURL is of spec.image; empty without one.
	ImageURL string
	// State is status.provisioning.state, as Metal3 names it.
	State string
	// InstalledURL is status.provisioning.image.url.
	InstalledURL string
	// Error is status.errorType; ErrorReason is HostRecord.status.error.reason, when there is one.
	Error, ErrorReason, ErrorMessage string
	// Paused and Detached are Metal3's annotations.
	Paused, Detached bool
	// PoweredOn is status.poweredOn; it counts only for hosts without a record.
	PoweredOn bool
	// Unfit says why the host cannot be claimed now, in placement's words; empty when it can.
	Unfit string
	// Record is the HostRecord; nil when there is none.
	Record *Record
}

// Record is a HostRecord.
type Record struct {
	Spec   v1alpha1.HostRecordSpec
	Status v1alpha1.HostRecordStatus
}

// Secret is the claim Secret of a host, as its annotations describe it.
type Secret struct {
	// Found: it exists, and was written for this Machine.
	Found bool
	// Attempt it was written for.
	Attempt int64
	// TokenID of the bootstrap token in its user data; empty once it was scrubbed.
	TokenID string
}

// Node is the Node of the Machine's name.
type Node struct {
	// Found: it exists.
	Found bool
	UID   types.UID
	// ProviderID is spec.providerID.
	ProviderID string
	// BootID is status.nodeInfo.bootID.
	BootID string
	// Unschedulable: it is cordoned, by whomever. Cordoned: by Ingot, which may then lift that again.
	Unschedulable, Cordoned bool
	// Furnished: it has the labels and taints that its NodeType gives it.
	Furnished bool
	// Pods are namespace/name of those that an eviction must still remove; looked for only in the phases that evict.
	Pods []string
	// Budgets are namespace/name of the PodDisruptionBudgets that let none of Pods go now; looked for only when a roll's
	// eviction has had its time.
	Budgets []string
}

// Token is a bootstrap token.
type Token struct {
	// ID is the public part of the token.
	ID string
	// Expires is when it stops working.
	Expires time.Time
}

// Timeouts bound the phases.
type Timeouts struct {
	Claiming, Provisioning, Joining, Validating, Releasing time.Duration
	// Draining bounds the eviction of a roll, and within Releasing that of a release.
	Draining time.Duration
	// Token is how long a bootstrap token lives; it is renewed when less than TokenRenew of that is left.
	Token, TokenRenew time.Duration
}

// DefaultTimeouts are what holds where neither the NodeType nor the configuration says otherwise.
func DefaultTimeouts() Timeouts {
	return Timeouts{
		Claiming: time.Minute, Provisioning: time.Hour, Joining: 20 * time.Minute, Validating: 15 * time.Minute,
		Releasing: time.Hour, Draining: 30 * time.Minute, Token: 15 * time.Minute, TokenRenew: 5 * time.Minute,
	}
}

// Of is how long the phase may last; 0: for ever.
func (t Timeouts) Of(phase v1alpha1.MachinePhase) time.Duration {
	return map[v1alpha1.MachinePhase]time.Duration{
		v1alpha1.MachineClaiming: t.Claiming, v1alpha1.MachineProvisioning: t.Provisioning, v1alpha1.MachineJoining: t.Joining,
		v1alpha1.MachineValidating: t.Validating, v1alpha1.MachineDraining: t.Draining, v1alpha1.MachineReleasing: t.Releasing,
	}[phase]
}

// CurrentRevision names Facts.Revision: what is or is being installed or, before a claim, what is asked for or what is stable for
// the NodeType. The rendering is empty where spec names a revision alone.
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

// NextRevision names Facts.Next: what is asked for when it is another than the current one; zero: none is. A Machine without
// spec.revision keeps what it has, and so does one whose spec names its revision without a rendering.
func NextRevision(m Machine) v1alpha1.RenderedRevision {
	asked, has := m.Spec.Asked(), m.Status.Installed()
	if has.Revision == "" || asked == has || asked.Revision == has.Revision && asked.Rendering == "" {
		return v1alpha1.RenderedRevision{}
	}
	return asked
}

// Rendered names the revision and its rendering.
func (r Revision) Rendered() v1alpha1.RenderedRevision {
	return v1alpha1.RenderedRevision{Revision: r.Name, Rendering: r.Rendering}
}
