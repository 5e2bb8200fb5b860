package rollout

import (
	"slices"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// guards are the questions that safety hangs on, each in one place. Tests take one away and see the harm.
type guards struct {
	// down: the Machine is unavailable, whatever made it so.
	isUnavailable func(*Machine) bool
	// held: a Machine stays on the status's list until it has arrived.
	mustStayInProgress func(r *Rollout, m *Machine) bool
	// counted: a Machine on that list counts as unavailable, whatever a cache shows of it.
	mustCountInProgress func(*Machine) bool
	// typeRoom and poolRoom: so many more Machines of the NodeType, of the pool, may become unavailable.
	hasTypeRoom, hasPoolRoom func(t budget, more int) bool
	// again: the budgets are looked at before the start too, not only when the Machine is named.
	mustRecheckBudget func() bool
	// named: a Machine that serves is started only when the status as read names it.
	isRecorded func(p *planner, m *Machine) bool
	// turn: in the canary stage only the canary is started.
	isInStage func(p *planner, m *Machine) bool
	// baked: the canary has been Ready for the bake time.
	isBaked func(since, now time.Time, bake time.Duration) bool
	// stops is why no further Machine may be started; empty: go on.
	stopReason func(p *planner) string
	// moves: a Machine may be started in a rollout whose status as read has that phase, and whose spec is such.
	canStartMachines func(r *Rollout, read v1alpha1.RolloutPhase) bool
	// letGo: the Rollout before this one starts nothing more.
	isPreviousSettled func(*PreviousRollout) bool
	// inherits are the Machines that the Rollout before this one had named.
	inheritedNames func(*PreviousRollout) []string
	// tenantTakes: the Machine's tenant can take a roll now.
	canRoll func(*Machine) bool
	// settled: the Machine does not keep the rollout from being Done.
	isFinished func(p *planner, m *Machine) bool
}

func realGuards() guards {
	return guards{
		isUnavailable: isUnavailable, mustStayInProgress: func(r *Rollout, m *Machine) bool { return !r.hasMoved(m) },
		mustCountInProgress: func(*Machine) bool { return true },
		hasTypeRoom:         budget.hasRoom, hasPoolRoom: budget.hasRoom, mustRecheckBudget: func() bool { return true },
		isRecorded: func(p *planner, m *Machine) bool { return p.recorded[m.key()] },
		isInStage:  (*planner).isInStage, isBaked: isBaked, stopReason: (*planner).stopReason, canStartMachines: (*Rollout).canStartMachines,
		isPreviousSettled: isPreviousSettled, inheritedNames: inheritedNames,
		canRoll:    func(m *Machine) bool { return m.BlockedBy == "" },
		isFinished: (*planner).isFinished,
	}
}

// down: not Ready, or about to be: its wanted revision is not the installed one.
func isUnavailable(m *Machine) bool {
	return !m.Ready || !m.Desired.IsZero() && m.Desired != m.Installed
}

// started: the Machine was told to move, by this Rollout and no other. Its mark matters as much as its revision: a cache that
// has not seen what an older Rollout did may show the right revision for the wrong reason.
func (r *Rollout) isStarted(m *Machine) bool { return m.Marked && m.Desired == r.To }

// arrived: started, and it has become what was wanted. Without a host nothing is awaited: it will be installed with To.
func (r *Rollout) hasMoved(m *Machine) bool {
	if !r.isStarted(m) {
		return false
	}
	return m.Installed == r.To && m.Ready || m.Installed.IsZero() && !m.Claimed
}

// outdated: the Machine has, or will be given, another revision. One without a host and without a wish of its own is not: it
// gets the NodeType's stable revision at its claim, and is looked at again then.
func (r *Rollout) isOutdated(m *Machine) bool {
	switch {
	case !m.Desired.IsZero():
		return m.Desired != r.To
	case !m.Installed.IsZero():
		return m.Installed != r.To
	default:
		return m.Claimed && !r.ToStable
	}
}

// failed: the Machine was moved by this Rollout, and a person has to look at it. Until the roll has reached its next step the
// reason is still that of what was there before.
func (r *Rollout) hasFailed(m *Machine) bool {
	if m.FailureReason == "" || !r.isStarted(m) || r.hasMoved(m) {
		return false
	}
	return (m.Installed == r.To) != (m.Phase == v1alpha1.MachineDraining)
}

func (r *Rollout) canStartMachines(read v1alpha1.RolloutPhase) bool {
	return (read == v1alpha1.RolloutCanary || read == v1alpha1.RolloutRolling) && !r.Paused && !r.Superseded
}

func isPreviousSettled(b *PreviousRollout) bool { return b == nil || b.Settled }

func inheritedNames(b *PreviousRollout) []string {
	if b == nil {
		return nil
	}
	return b.InProgress
}

func isBaked(since, now time.Time, bake time.Duration) bool { return !now.Before(since.Add(bake)) }

// itsTurn goes by the status as read: whom it names, it named in the stage that it names.
func (p *planner) isInStage(m *Machine) bool {
	read := &p.facts.Rollout.Status
	return isCanaryOver(&p.facts.Rollout, read) || slices.Contains(read.Canary, m.key().String())
}

// settled: nothing is to be done with it, or what was begun has ended, or a person has let it be.
func (p *planner) isFinished(m *Machine) bool {
	r := &p.facts.Rollout
	switch {
	case r.isOutdated(m):
		return false
	case r.isStarted(m):
		return r.hasMoved(m) || p.forgiven[m.key()]
	case p.inProgress[m.key()]:
		return false
	default:
		return m.Installed == r.To || !m.Claimed || m.Installed.IsZero() // else somebody has sent it there, and it is on its way
	}
}

// stopReason: a failure in the canary, or more failures than the failure budget.
func (p *planner) stopReason() string {
	for _, m := range p.failed {
		if slices.Contains(p.status.Canary, m.key().String()) {
			return m.key().String() + ", in the canary, failed: " + failureText(m)
		}
	}
	if n := len(p.failed); n > p.facts.Policy.FailureBudget {
		return failuresText(p.failed, p.facts.Policy.FailureBudget)
	}
	return ""
}
