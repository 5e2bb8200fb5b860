package rollout

import (
	"slices"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// guards are the questions that safety hangs on, each in one place. Tests take one away and see the harm.
type guards struct {
	// down: the Machine is unavailable, whatever made it so.
	down func(*Machine) bool
	// held: a Machine stays on the status's list until it has arrived.
	held func(r *Rollout, m *Machine) bool
	// counted: a Machine on that list counts as unavailable, whatever a cache shows of it.
	counted func(*Machine) bool
	// typeRoom and poolRoom: so many more Machines of the NodeType, of the pool, may become unavailable.
	typeRoom, poolRoom func(t tally, more int) bool
	// again: the budgets are looked at before the start too, not only when the Machine is named.
	again func() bool
	// named: a Machine that serves is started only when the status as read names it.
	named func(p *planner, m *Machine) bool
	// turn: in the canary stage only the canary is started.
	turn func(p *planner, m *Machine) bool
	// baked: the canary has been Ready for the bake time.
	baked func(since, now time.Time, bake time.Duration) bool
	// stops is why no further Machine may be started; empty: go on.
	stops func(p *planner) string
	// moves: a Machine may be started in a rollout whose status as read has that phase, and whose spec is such.
	moves func(r *Rollout, read v1alpha1.RolloutPhase) bool
	// letGo: the Rollout before this one starts nothing more.
	letGo func(*Before) bool
	// inherits are the Machines that the Rollout before this one had named.
	inherits func(*Before) []string
	// tenantTakes: the Machine's tenant can take a roll now.
	tenantTakes func(*Machine) bool
	// settled: the Machine does not keep the rollout from being Done.
	settled func(p *planner, m *Machine) bool
}

func realGuards() guards {
	return guards{
		down: down, held: func(r *Rollout, m *Machine) bool { return !r.arrived(m) },
		counted:  func(*Machine) bool { return true },
		typeRoom: tally.room, poolRoom: tally.room, again: func() bool { return true },
		named: func(p *planner, m *Machine) bool { return p.read[m.key()] },
		turn:  (*planner).itsTurn, baked: baked, stops: (*planner).stopReason, moves: (*Rollout).moves,
		letGo: letGo, inherits: inherits,
		tenantTakes: func(m *Machine) bool { return m.TenantTrouble == "" },
		settled:     (*planner).settled,
	}
}

// down: not Ready, or about to be: its wanted revision is not the installed one.
func down(m *Machine) bool {
	return !m.Ready || !m.Wanted.IsZero() && m.Wanted != m.Installed
}

// started: the Machine was told to move, by this Rollout and no other. Its mark matters as much as its revision: a cache that
// has not seen what an older Rollout did may show the right revision for the wrong reason.
func (r *Rollout) started(m *Machine) bool { return m.Marked && m.Wanted == r.To }

// arrived: started, and it has become what was wanted. Without a host nothing is awaited: it will be installed with To.
func (r *Rollout) arrived(m *Machine) bool {
	if !r.started(m) {
		return false
	}
	return m.Installed == r.To && m.Ready || m.Installed.IsZero() && !m.Claimed
}

// outdated: the Machine has, or will be given, another revision. One without a host and without a wish of its own is not: it
// gets the NodeType's stable revision at its claim, and is looked at again then.
func (r *Rollout) outdated(m *Machine) bool {
	switch {
	case !m.Wanted.IsZero():
		return m.Wanted != r.To
	case !m.Installed.IsZero():
		return m.Installed != r.To
	default:
		return m.Claimed && !r.ToStable
	}
}

// failed: the Machine was moved by this Rollout, and a person has to look at it. Until the roll has reached its next step the
// reason is still that of what was there before.
func (r *Rollout) failed(m *Machine) bool {
	if m.Failed == "" || !r.started(m) || r.arrived(m) {
		return false
	}
	return (m.Installed == r.To) != (m.Phase == v1alpha1.MachineDraining)
}

func (r *Rollout) moves(read v1alpha1.RolloutPhase) bool {
	return (read == v1alpha1.RolloutCanary || read == v1alpha1.RolloutRolling) && !r.Paused && !r.Superseded
}

func letGo(b *Before) bool { return b == nil || b.Settled }

func inherits(b *Before) []string {
	if b == nil {
		return nil
	}
	return b.InProgress
}

func baked(since, now time.Time, bake time.Duration) bool { return !now.Before(since.Add(bake)) }

// itsTurn goes by the status as read: whom it names, it named in the stage that it names.
func (p *planner) itsTurn(m *Machine) bool {
	read := &p.f.Rollout.Status
	return canaryOver(&p.f.Rollout, read) || slices.Contains(read.Canary, m.key().String())
}

// settled: nothing is to be done with it, or what was begun has ended, or a person has let it be.
func (p *planner) settled(m *Machine) bool {
	r := &p.f.Rollout
	switch {
	case r.outdated(m):
		return false
	case r.started(m):
		return r.arrived(m) || p.forgiven[m.key()]
	case p.next[m.key()]:
		return false
	default:
		return m.Installed == r.To || !m.Claimed || m.Installed.IsZero() // else somebody has sent it there, and it is on its way
	}
}

// stopReason: a failure in the canary, or more failures than the failure budget.
func (p *planner) stopReason() string {
	for _, m := range p.failed {
		if slices.Contains(p.s.Canary, m.key().String()) {
			return m.key().String() + ", in the canary, failed: " + because(m)
		}
	}
	if n := len(p.failed); n > p.f.Policy.FailureBudget {
		return failures(p.failed, p.f.Policy.FailureBudget)
	}
	return ""
}
