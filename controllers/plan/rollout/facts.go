package rollout

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Facts is all that a Decision depends on.
type Facts struct {
	// Now is the time of the decision.
	Now time.Time
	// Rollout is the object itself.
	Rollout Rollout
	// Before is the newest of the older Rollouts of the NodeType; nil: there is none.
	Previous *PreviousRollout
	// Policy of the NodeType.
	Policy Policy
	// Machines of the NodeType, in any order.
	Machines []Machine
	// Pools are the NodePools of the NodeType.
	Pools map[types.NamespacedName]Pool
}

// Rollout is the object whose next step is planned.
type Rollout struct {
	// Name of the Rollout: the value of v1alpha1.LabelRollout on the Machines that it started.
	Name string
	// From and To are what Machines are moved between.
	From, To v1alpha1.RenderedRevision
	// Paused is spec.paused.
	Paused bool
	// ToStable: To is what is stable for the NodeType, so this is a way back and needs no canary.
	ToStable bool
	// Superseded: a newer Rollout of the NodeType exists, or its target is another revision.
	Superseded bool
	// Status as read.
	Status v1alpha1.RolloutStatus
}

// Before is the Rollout that came before.
type PreviousRollout struct {
	// Name of that Rollout.
	Name string
	// Settled: it is Done or Superseded and starts nothing more.
	Settled bool
	// InProgress are the Machines on their way when it settled, namespace/name.
	InProgress []string
}

// Policy is a NodeType's rollout policy with its defaults filled in.
type Policy struct {
	// MaxUnavailable Machines of the NodeType: a number, or a percentage of its Machines rounded down; at least 1.
	MaxUnavailable intstr.IntOrString
	// Canary is how many Machines go first, Bake how long they must then stay Ready.
	Canary int
	Bake   time.Duration
	// FailureBudget is how many Machines may fail and the rollout still goes on.
	FailureBudget int
}

// Pool is what a NodePool allows.
type Pool struct {
	// MaxUnavailable Machines of the pool, as in Policy; nil: the larger of 1 and 10%.
	MaxUnavailable *intstr.IntOrString
}

// Machine is what counts of one Machine.
type Machine struct {
	// Namespace and Name of the Machine.
	Namespace, Name string
	// Pool that made it; zero: none.
	Pool types.NamespacedName
	// Marked: its label v1alpha1.LabelRollout names this Rollout.
	Marked bool
	// Wanted is what the spec asks for; zero: what is installed or, before the claim, what is stable for the NodeType.
	Desired v1alpha1.RenderedRevision
	// Installed is what it was, or is being, installed with.
	Installed v1alpha1.RenderedRevision
	// Phase of its life.
	Phase v1alpha1.MachinePhase
	// Ready is its condition, ReadySince when that became true.
	Ready      bool
	ReadySince time.Time
	// Deleting: a deletion timestamp is set.
	Deleting bool
	// Claimed: it has a host.
	Claimed bool
	// Failed is why a person has to look at it, a reason of its conditions; see Failure. Empty: nobody has to.
	FailureReason string
	// WaitingFor is its own line for people.
	WaitingFor string
	// TenantTrouble is why no roll may start in its tenant's cluster now (not reachable, version skew). Empty: it may.
	BlockedBy string
}

// target is what Machines are moved to, for people: the revision or, where they have that already, its rendering.
func (r *Rollout) targetName() string {
	if r.From.Revision == r.To.Revision && r.To.Rendering != "" {
		return "rendering " + r.To.Rendering
	}
	return r.To.Revision
}

func (m *Machine) key() types.NamespacedName {
	return types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
}
