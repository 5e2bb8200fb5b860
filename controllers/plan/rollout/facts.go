package rollout

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/breaker"
	"github.com/ingot-dev/ingot/controllers/plan/event"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

// Facts are everything that a Decision depends on.
type Facts struct {
	// Clock is the time of the decision.
	watched.Clock
	// Rollout is the Rollout whose next step is decided.
	Rollout Rollout
	// Previous is the newest of the older Rollouts of the NodeType; nil if there is none.
	Previous *PreviousRollout
	// Policy is the rollout policy of the NodeType.
	Policy Policy
	// Machines are the Machines of the NodeType, in any order.
	Machines []Machine
	// Pools are the NodePools of the NodeType.
	Pools map[types.NamespacedName]Pool
	// Tenants are those that share the clusters of the Machines.
	Tenants Tenants
	// CommonCause says what broken Machines that may not be moved have in common; nil: there are none.
	CommonCause *breaker.Cause
	// AskAgain is when to ask for grants again; 0: nothing is asked for.
	AskAgain time.Duration
}

// Rollout is the Rollout whose next step is decided.
type Rollout struct {
	// Name of the Rollout: the value of v1alpha1.LabelRollout on the Machines that it started or labeled.
	Name string
	// From is the revision that Machines are moved from, To the target that they are moved to.
	From, To v1alpha1.RenderedRevision
	// Paused is spec.paused.
	Paused bool
	// ToStable is true if To is the stable revision of the NodeType. Such a rollout goes back, and needs no canary.
	ToStable bool
	// Superseded is true if a newer Rollout of the NodeType exists, or if the NodeType has another target.
	Superseded bool
	// Status is the status as read.
	Status v1alpha1.RolloutStatus
}

// PreviousRollout is the newest of the older Rollouts of the NodeType.
type PreviousRollout struct {
	// Name of that Rollout.
	Name string
	// Settled is true if its phase is Done or Superseded: it starts no more Machines.
	Settled bool
	// InProgress are its status.inProgress and, once it is settled, its status.handedOver, as namespace/name: the Machines that
	// its successor must label. A Rollout that an earlier version of Ingot settled left them in status.inProgress.
	InProgress []string
	// BrokenBefore is its status.brokenBefore.
	BrokenBefore []string
	// InUse is its status.inUse.
	InUse []v1alpha1.DevicesInUse
	// Done is true if its phase is Done: its target was proven, so a Machine that is down is not down because of that target.
	Done bool
}

// Policy is the rollout policy of a NodeType, with defaults for what it leaves empty.
type Policy struct {
	// MaxUnavailable is how many Machines of the NodeType may be unavailable: a number, or a percentage of its Machines with a
	// host, rounded down; at least 1.
	MaxUnavailable intstr.IntOrString
	// Canary is how many Machines go first. Bake is how long all of them must then stay Ready.
	Canary int
	Bake   time.Duration
	// FailureBudget is how many Machines may fail before the rollout stops.
	FailureBudget int
}

// Pool is the rollout policy of a NodePool.
type Pool struct {
	// MaxUnavailable is how many Machines of the pool may be unavailable, as in Policy; nil: 10%, at least 1.
	MaxUnavailable *intstr.IntOrString
}

// Machine is what the planner needs to know of one Machine.
type Machine struct {
	// Namespace and Name of the Machine.
	Namespace, Name string
	// Pool is the NodePool that made the Machine; zero: none.
	Pool types.NamespacedName
	// Labeled is true if the label v1alpha1.LabelRollout of the Machine names this Rollout.
	Labeled bool
	// Desired is the revision in the Machine's spec. If it is zero, the Machine keeps the installed revision or, before it
	// has a host, gets the stable revision of the NodeType.
	Desired v1alpha1.RenderedRevision
	// Installed is the revision that the Machine was installed with, or is being installed with.
	Installed v1alpha1.RenderedRevision
	// Phase is status.phase.
	Phase v1alpha1.MachinePhase
	// Ready is true if the condition Ready is True. ReadySince is when it became True.
	Ready      bool
	ReadySince time.Time
	// Deleting is true if the Machine has a deletion timestamp.
	Deleting bool
	// Claimed is true if the Machine has a host, or it is not known whether it has one.
	Claimed bool
	// HasServed is true if its node may be at work although it is not Ready. Moving it needs a grant.
	HasServed bool
	// IsGranted is true if it may be moved without regard to the budgets. The caller sets it.
	IsGranted bool
	// FailureReason is the reason of the condition Ready if a person must act; empty: nobody must. See failureReason.
	FailureReason string
	// WaitingFor is status.waitingFor.
	WaitingFor string
	// BlockedBy says why the Machine may not be rolled now: its TenantCluster or its NodeType is not Ready, it is powered off, or it has no grant. Empty: it may.
	// The caller sets it.
	BlockedBy string
	// Cluster identifies the shared cluster that the Machine is for, and Node is the name of its node there; empty: none. The caller sets Cluster.
	Cluster, Node string
}

// EventAction is the action of all events about Rollouts.
const EventAction = "Roll"

// Decision is the next step of a Rollout.
type Decision struct {
	// Status is the next status of the Rollout. It is written under the resource version of the Rollout in Facts.
	Status v1alpha1.RolloutStatus
	// Start names the Machines to start now, one at most. Starting sets spec.revision and spec.rendering to Rollout.To and
	// the label v1alpha1.LabelRollout to Rollout.Name, in one request under the resource version of the Machine in
	// Facts. It depends on the status as read, so Start and the write of Status may be done in either order.
	Start []types.NamespacedName
	// Label names the Machines to label without starting them, one at most. It sets the label v1alpha1.LabelRollout to
	// Rollout.Name, under the resource version of the Machine in Facts. These Machines were in progress in the
	// previous Rollout.
	Label []types.NamespacedName
	// Events are emitted after the status is written.
	Events []event.Event
	// Requeue is true if the next Machine can be started or labeled as soon as this decision is carried out.
	Requeue bool
	// RequeueAfter is when to plan again although no object changes; 0: only when an object changes.
	RequeueAfter time.Duration
	// Done is true if the Rollout is settled, by this decision or before it.
	Done bool
}

// targetName is what Machines are moved to, for messages: the revision or, if they have that revision, the rendering.
func (r *Rollout) targetName() string {
	if r.From.Revision == r.To.Revision && r.To.Rendering != "" {
		return "rendering " + r.To.Rendering
	}
	return r.To.Revision
}

func (m *Machine) key() types.NamespacedName {
	return types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
}

// The defaults of a NodeType without spec.rollout.
const (
	defaultMaxUnavailable = "10%"
	defaultCanary         = 1
	defaultBake           = 10 * time.Minute
	defaultFailureBudget  = 1
)

// NewPolicy returns the Policy of a NodeType's spec.rollout, which may be nil. The defaults are: 10% unavailable, a canary
// of one Machine that bakes for ten minutes, a failure budget of one.
func NewPolicy(p *v1alpha1.RolloutPolicy) Policy {
	policy := Policy{MaxUnavailable: intstr.FromString(defaultMaxUnavailable), Canary: defaultCanary, Bake: defaultBake, FailureBudget: defaultFailureBudget}
	if p == nil {
		return policy
	}
	if p.MaxUnavailable != nil {
		policy.MaxUnavailable = *p.MaxUnavailable
	}
	if p.FailureBudget != nil {
		policy.FailureBudget = int(*p.FailureBudget)
	}
	if c := p.Canary; c != nil {
		policy.Canary = max(1, int(c.Machines))
		if c.Bake != nil {
			policy.Bake = c.Bake.Duration
		}
	}
	return policy
}

// NewPreviousRollout returns what the planner needs to know of the previous Rollout; nil for nil.
func NewPreviousRollout(r *v1alpha1.Rollout) *PreviousRollout {
	if r == nil {
		return nil
	}
	return &PreviousRollout{
		Name: r.Name, Settled: r.Status.Phase.IsFinal(), InProgress: slices.Concat(r.Status.InProgress, r.Status.HandedOver), BrokenBefore: r.Status.BrokenBefore,
		InUse: r.Status.InUse, Done: r.Status.Phase == v1alpha1.RolloutDone,
	}
}

// NewPools returns those of the NodePools that belong to the NodeType.
func NewPools(nodeType string, nodePools []v1alpha1.NodePool) map[types.NamespacedName]Pool {
	pools := make(map[types.NamespacedName]Pool, len(nodePools))
	for i := range nodePools {
		p := &nodePools[i]
		if p.Spec.NodeTypeRef.Name != nodeType {
			continue
		}
		var pool Pool
		if p.Spec.Rollout != nil {
			pool.MaxUnavailable = p.Spec.Rollout.MaxUnavailable
		}
		pools[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = pool
	}
	return pools
}

// DesiredRevision returns the revision in the Machine's spec. If the spec names a revision without a rendering, the
// rendering is the installed one of that revision or, if that has another revision, the target's.
func DesiredRevision(m *v1alpha1.Machine, target v1alpha1.RenderedRevision) v1alpha1.RenderedRevision {
	asked := m.Spec.Asked()
	if asked.Rendering != "" || asked.Revision == "" {
		return asked
	}
	for _, rendered := range []v1alpha1.RenderedRevision{m.Status.Installed(), target} {
		if rendered.Revision == asked.Revision {
			return rendered
		}
	}
	return asked
}

// NewMachine returns what the planner of the Rollout with that name and target needs to know of a Machine. It leaves
// BlockedBy and Cluster empty.
func NewMachine(rollout string, target v1alpha1.RenderedRevision, m *v1alpha1.Machine, clock watched.Clock) Machine {
	out := Machine{
		Namespace: m.Namespace, Name: m.Name, Labeled: m.Labels[v1alpha1.LabelRollout] == rollout,
		Desired: DesiredRevision(m, target), Installed: m.Status.Installed(), Phase: m.Status.Phase,
		Deleting: m.DeletionTimestamp != nil, Claimed: m.Status.HostRef != nil || m.IsHostUnknown(),
		FailureReason: failureReason(m, clock), WaitingFor: m.Status.WaitingFor, HasServed: HasServed(m),
	}
	if pool := v1alpha1.NodePoolOf(m); pool != "" {
		out.Pool = types.NamespacedName{Namespace: m.Namespace, Name: pool}
	}
	if m.Status.NodeRef != nil {
		out.Node = m.Status.NodeRef.Name
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady); c != nil && c.Status == metav1.ConditionTrue {
		out.Ready, out.ReadySince = true, c.LastTransitionTime.Time
	}
	return out
}

// permanentReasons are the reasons of the condition Ready that do not pass without a person, even before the deadline. ImageUnreachable is none
// of them: the host tries again by itself. Without that: the image server is restarted for two minutes, the attempt of the canary ends, and the
// rollout stops although the next attempt would succeed.
var permanentReasons = map[string]bool{
	v1alpha1.ReasonHostLost: true, v1alpha1.ReasonNodeConflict: true, v1alpha1.ReasonServerUnidentified: true, v1alpha1.ReasonDrainTimedOut: true,
	v1alpha1.ReasonProvisioningTimedOut: true, v1alpha1.ReasonJoinTimedOut: true, v1alpha1.ReasonValidationTimedOut: true,
	string(hardware.ReasonPowerOnIgnored): true, string(hardware.ReasonPowerOffIgnored): true,
	string(hardware.ReasonNoBootRequest): true, string(hardware.ReasonAgentMissing): true, string(hardware.ReasonAgentSilent): true,
	string(hardware.ReasonBootLoop): true, string(hardware.ReasonDigestMismatch): true,
	string(hardware.ReasonImageInvalid): true, string(hardware.ReasonNoRootDevice): true, string(hardware.ReasonDiskError): true,
	string(hardware.ReasonDeadlineExceeded): true, string(hardware.ReasonHardwareDiffers): true, string(hardware.ReasonHardwareInsufficient): true, string(hardware.ReasonRootDiskDiffers): true,
}

// failureReason returns the reason of the Machine's condition Ready if a person must act: the reason is permanent, or the
// phase is past its deadline. It is empty while the Machine is Ready or still in time, and while its status is about an
// earlier generation, because a roll may repair what failed then.
func failureReason(m *v1alpha1.Machine, clock watched.Clock) string {
	ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue || m.Status.ObservedGeneration < m.Generation {
		return ""
	}
	if permanentReasons[ready.Reason] || isOverdue(m, clock) {
		return ready.Reason
	}
	return ""
}

// isOverdue reports whether the phase is past its deadline.
func isOverdue(m *v1alpha1.Machine, clock watched.Clock) bool {
	d := m.Status.Deadline
	return d != nil && clock.IsOver(m.Status.PhaseStart(m.CreationTimestamp.Time), d.Time)
}

// HasServed reports whether the Machine's node may be at work: it was admitted in its present installation, its gate is off although it was not, or the
// installation is older than what the status remembers, because the Machine took it over after a restore.
func HasServed(m *v1alpha1.Machine) bool {
	if validated := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionValidated); validated != nil && m.Status.Phase == v1alpha1.MachineValidating && openReasons[validated.Reason] {
		return true
	}
	return m.Status.HasBeenReady()
}

// openReasons are the reasons of the condition Validated of a node that has, or had, no gate although it was not admitted.
var openReasons = map[string]bool{v1alpha1.ReasonObserveOnly: true, v1alpha1.ReasonGateMissed: true, v1alpha1.ReasonGateRemovedByOthers: true}
