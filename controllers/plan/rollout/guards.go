package rollout

import (
	"slices"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

// guards are the questions that the safety of a rollout depends on, each in one place. They are fields of a struct so that a test
// can replace each of them in turn by one that guards nothing, and expect the harm that its comment describes. Three of them,
// mustCountInProgress, mustRecheckBudget and mustKeepUse, are always true in production and exist only so that the test can remove them. In
// the examples the NodeType has the Machines a to j, v1 is the revision that they have, v2 the target, and at most 2 may be
// unavailable.
type guards struct {
	// isUnavailable reports whether the Machine counts as unavailable, whatever the cause.
	//
	// Without it: Rollout v2-1 starts a and b by setting their desired revision. Their own controller
	// has not run yet, so both are still Ready and count as available. c and d are started as well, and a moment later
	// four Machines are drained, of at most 2.
	isUnavailable func(*Machine) bool
	// hasHost reports whether the Machine has a host. Only such Machines count in the budgets.
	//
	// Without it: 98 of 100 Machines wait for hosts that are not racked yet. They are not Ready, and at 10% only 10 may be unavailable, so
	// a and b never get v2. Counted as available they would make the base 100: both Machines that run are drained at once.
	hasHost func(*Machine) bool
	// isUncounted reports whether the budgets leave out the Machine, which is broken, because this Rollout is an undo and cannot bring it back.
	//
	// Without it: at most 1 may be unavailable, and the disk of a has failed. v2 is bad, and the person sets the NodeType back. v1-2 moves a, which
	// fails again and takes the only place. b to j keep v2 until somebody mends a.
	isUncounted func(p *planner, m *Machine) bool
	// isBroken reports whether the Machine waits for a person; see the function of that name. Such a Machine is moved at once.
	isBroken func(*Machine) bool
	// hasGrant reports whether a broken Machine may be moved without regard to the budgets: it was never admitted in this installation, or it has a grant.
	//
	// Without it: the switch of a rack fails while v2-1 is under way. Its 18 Machines count as broken after twenty minutes, and are drained and installed at once
	// although they work behind the switch.
	hasGrant func(p *planner, m *Machine) bool
	// wasBroken reports whether the Machine was broken when this Rollout moved it, and has not been Ready since.
	//
	// Without it: the disks of c and d have failed. v2-1 moves both, and both fail again. These are 2 failures of at most 1, so v2-1
	// stops, although v2 is good. The person sets the NodeType back: v1-2 moves c and d, both fail, and the undo stops too.
	wasBroken func(p *planner, m *Machine) bool
	// mustStayInProgress reports whether the Machine stays in status.inProgress: until it has moved.
	//
	// Without it, a Machine leaves the list when it is observed as started: v2-1 starts a, observes that, and ends with an empty list when the
	// NodeType is set back to v1. So v1-2 does not label a. The manager restarts, and its cache is filled by an API server
	// that is behind: it shows a as Ready with v1, and v1-2 is Done. But the desired revision of a is v2: a is drained and
	// installed with v2 after the Rollout that should have prevented it has ended.
	mustStayInProgress func(r *Rollout, m *Machine) bool
	// mustCountInProgress reports whether a Machine in status.inProgress counts as unavailable even if it is observed as
	// available.
	//
	// Without it: v2-1 has started a and b. The manager restarts, and its new cache is filled by an API server
	// that is behind: it shows a and b as Ready with v1. So c and d are started too, and four Machines are drained.
	mustCountInProgress func(*Machine) bool
	// hasNodeTypeRoom and hasPoolRoom report whether that many more Machines of the NodeType, of the NodePool, may become
	// unavailable.
	//
	// Without it: c is started while a and b are being installed, 3 of at most 2. Without the pool's: both Machines of a
	// pool that allows 1 are drained at once, because the NodeType allows 2, and what runs only in that pool is down.
	hasNodeTypeRoom, hasPoolRoom func(b budget, more int) bool
	// mustRecheckBudget reports whether the budgets are checked again before a start, and not only when the Machine is added
	// to status.inProgress.
	//
	// Without it: a is being installed, and b is added, which makes 2. Before b is started, the node of c crashes. b is
	// started, and 3 Machines are unavailable. With it, b waits until a or c is Ready.
	mustRecheckBudget func() bool
	// isRecorded reports whether the status as read names the Machine in status.inProgress or, if it is broken, in
	// status.brokenBefore. It is started only then, unless nothing has to be remembered of it.
	//
	// Without it, a start and the status that names it are sent together: the start of a succeeds, and the manager is killed before it
	// writes the status. The next manager has a cache that is older than the start. It does not know of a, so it starts b
	// and c: 3 Machines are drained.
	isRecorded func(p *planner, m *Machine) bool
	// hasTenantRoom reports whether no more devices of a tenant's class than its maxUnavailable would be unavailable if the Machine were moved: those that
	// claims hold on its node, and those on the nodes that Rollouts have taken away. A node on which no claim holds one is free.
	//
	// Without it: a tenant may lose 4 devices at once, and its claims hold 4 on a and 4 on b. The NodeType allows 2 Machines, so both are drained.
	hasTenantRoom func(p *planner, m *Machine) bool
	// isUseRecorded reports whether the status as read counts the devices that claims hold on the Machine's node.
	//
	// Without it, a start and the counts are sent together: the start of a succeeds, and the manager is killed before it writes the status. When the next
	// one looks, the claims are gone with the pods. It counts nothing on a, so it starts b: 8 devices of at most 4 are unavailable.
	isUseRecorded func(p *planner, m *Machine) bool
	// mustKeepUse reports whether the counts of a Machine that is not back yet stay.
	//
	// Without it, they follow the claims: a is drained, its claims are gone, and nothing on it counts. So b is started while a is being installed.
	mustKeepUse func(p *planner, m *Machine) bool
	// isInStage reports whether the Machine may be started in the stage of the status as read. A Rollout has two stages: until
	// the canary has baked only a Machine of the canary may be started, then every Machine may.
	//
	// Without it: v2 has a kernel that does not boot. a, the canary, fails and stops the rollout, but b was
	// started beside it and is lost too. The stage is that of the status as read, because a decision that ends the canary may
	// fail to be written: a loses Ready, and b has been moved to a revision that is not proven.
	isInStage func(p *planner, m *Machine) bool
	// canProve reports whether the Machine can be chosen as the canary: whether it is Ready.
	//
	// Without it: the disk of c has failed. c goes first, because moving it takes nothing away, and fails. v2-1 stops, although v2 is
	// good, and says that the canary failed.
	canProve func(*Machine) bool
	// canProveUnready reports whether the Machine, which is down, can be chosen as the canary although others are Ready and only wait for room: whether it has
	// a revision that is not proven.
	//
	// Without it, any can: at most 1 may be unavailable, and the disk of c has failed. There is no room for a, so c is the canary of v2-1. It fails again,
	// and v2-1 waits for another canary that cannot come. Nobody is told that c takes the only place.
	// If none could: v2 breaks a, the canary, and the person mends the NodeType. a takes the only place, so v3 reaches neither a nor b. If only one could
	// that was not broken before: v3 is bad too, and v3-2 has written a to its status.brokenBefore. v4 is good, and reaches nobody.
	canProveUnready func(p *planner, m *Machine) bool
	// isBaked reports whether the canary has been Ready for the bake time.
	//
	// Without it, the canary is over as soon as it is Ready: a is Ready at 12:00, and its GPU driver crashes at 12:05 under load. Between the two, b and c
	// have been drained and are installed with the same driver. With a bake time of 10 minutes only a is lost.
	isBaked func(clock watched.Clock, since time.Time, bake time.Duration) bool
	// isLost reports whether the Machine of the canary, nil if it is deleted, stays named in the canary where no other can take its place.
	//
	// Without it: v2 does not boot on a, the only Machine, which is the canary. Before its deadline a person deletes a, and its pool makes b, which has no
	// host yet. Nothing is left to move, so v2-1 is Done, v2 becomes the stable revision, and b is installed with it. With it, b is installed with v1 when
	// it gets a host, and is the canary then.
	isLost func(p *planner, m *Machine) bool
	// stopReason says why no further Machine may be started; empty: one may.
	//
	// Without it: with v2 every Machine fails its checks. a fails as the canary and is replaced by b, which fails too.
	// Only the budgets then end it, when every Machine that may be unavailable is broken: 10 of 100 at 10%.
	stopReason func(p *planner) string
	// canStartMachines reports whether a Machine may be started in a Rollout with that spec and that phase as read.
	//
	// Without it, the phase that is only decided is enough: v2-1 has stopped, and a person resumes it. The decision sets the phase
	// Rolling and starts c. The person has second thoughts and pauses it again, so the write of the status fails with a
	// conflict. c is drained in a Rollout that has never left Paused.
	canStartMachines func(r *Rollout, asRead v1alpha1.RolloutPhase) bool
	// isPreviousSettled reports whether the previous Rollout starts no more Machines.
	//
	// Without it: v2-1 moves a to v2. v3-2 observes v2 as outdated and moves a to v3, which v2-1 observes as
	// outdated. Machine a is drained and installed again and again, and each Rollout has a budget of its own.
	isPreviousSettled func(*PreviousRollout) bool
	// inheritedNames returns the Machines that the previous Rollout left in status.inProgress, which must be labeled first.
	//
	// Without it: v2-1 names a and sends the request to start it, which is delayed on its way. The NodeType is set
	// back, and v2-1 is superseded. v1-2 observes a as Ready with v1 and is Done. Now the request arrives: a has the resource
	// version that it names, so a is drained and installed with v2. If v1-2 has labeled a, the request fails with a conflict.
	inheritedNames func(*PreviousRollout) []string
	// canRoll reports whether the Machine's tenant and its NodeType can take a roll now. A Machine without a host needs neither.
	//
	// Without it: the API server of the tenant does not answer. a cannot be drained, or is installed and cannot join.
	// The tenant loses its node, and the next one, up to the budget, in a time when nobody can repair its cluster.
	canRoll func(*Machine) bool
	// isFinished reports whether the Machine no longer keeps the Rollout from being Done.
	//
	// Without it, a Machine that is only started is finished: the last Machines a and b are still being installed when the Rollout is
	// Done. v2 becomes the stable revision. a and b fail, which stops nothing any more, and new Machines are installed with v2.
	isFinished func(p *planner, m *Machine) bool
}

// realGuards returns the guards that Plan uses.
func realGuards() guards {
	return guards{
		isUnavailable:       isUnavailable,
		hasHost:             hasHost,
		isUncounted:         (*planner).isUncounted,
		isBroken:            isBroken,
		hasGrant:            (*planner).hasGrant,
		wasBroken:           func(p *planner, m *Machine) bool { return p.brokenBefore[m.key()] },
		mustStayInProgress:  func(r *Rollout, m *Machine) bool { return !r.hasMoved(m) },
		mustCountInProgress: func(*Machine) bool { return true },
		hasNodeTypeRoom:     budget.hasRoom,
		hasPoolRoom:         budget.hasRoom,
		mustRecheckBudget:   func() bool { return true },
		isRecorded:          (*planner).isRecorded,
		hasTenantRoom:       (*planner).hasTenantRoom,
		isUseRecorded:       (*planner).isUseRecorded,
		mustKeepUse:         func(*planner, *Machine) bool { return true },
		isInStage:           (*planner).isInStage,
		canProve:            func(m *Machine) bool { return !isUnavailable(m) },
		canProveUnready:     (*planner).hasUnproven,
		isBaked:             isBaked,
		isLost:              (*planner).isLost,
		stopReason:          (*planner).stopReason,
		canStartMachines:    (*Rollout).canStartMachines,
		isPreviousSettled:   isPreviousSettled,
		inheritedNames:      inheritedNames,
		canRoll:             func(m *Machine) bool { return m.BlockedBy == "" || !hasHost(m) },
		isFinished:          (*planner).isFinished,
	}
}

// isUnavailable reports whether the Machine is not Ready, or will soon not be because its desired revision is not installed.
func isUnavailable(m *Machine) bool {
	return !m.Ready || isRequested(m)
}

// isStarted reports whether this Rollout has set the Machine's desired revision to the target. The label is checked too: if an
// earlier Rollout had the same target, an old cache may show its request, which a later Rollout has reversed.
func (r *Rollout) isStarted(m *Machine) bool { return m.Labeled && m.Desired == r.To }

// hasMoved reports whether the Machine is started and Ready with the target. A Machine without a host has moved once it is
// started, because it will be installed with the target.
func (r *Rollout) hasMoved(m *Machine) bool {
	if !r.isStarted(m) {
		return false
	}
	return m.Installed == r.To && m.Ready || !hasHost(m)
}

// isOutdated reports whether the Machine has, or will be installed with, another revision than the target. A Machine without a
// host and without a desired revision is not outdated: which revision it gets is known only when it has a host.
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

// hasFailed reports whether this Rollout moved the Machine and a person must act on it: its drain or its installation with the
// target failed. Otherwise the reason is about an earlier move: the Machine does not drain yet, or it has the target and still
// drains for another one.
func (r *Rollout) hasFailed(m *Machine) bool {
	if m.FailureReason == "" || !r.isStarted(m) || r.hasMoved(m) {
		return false
	}
	return (m.Installed == r.To) != (m.Phase == v1alpha1.MachineDraining)
}

// canStartMachines implements the guard of that name.
func (r *Rollout) canStartMachines(asRead v1alpha1.RolloutPhase) bool {
	return (asRead == v1alpha1.RolloutCanary || asRead == v1alpha1.RolloutRolling) && !r.Paused && !r.Superseded
}

func isPreviousSettled(previous *PreviousRollout) bool { return previous == nil || previous.Settled }

func inheritedNames(previous *PreviousRollout) []string {
	if previous == nil {
		return nil
	}
	return previous.InProgress
}

func isBaked(clock watched.Clock, since time.Time, bake time.Duration) bool {
	return clock.Left(since, bake) == 0
}

// isInStage implements the guard of that name. The lists of the status as read belong together: a Machine in its inProgress was
// added in the stage that its canary shows.
//
// A Machine without a host may also be started when no Machine with a host has to be moved: then there is nothing to prove the revision on.
func (p *planner) isInStage(m *Machine) bool {
	asRead := &p.facts.Rollout.Status
	return isCanaryOver(&p.facts.Rollout, asRead) || !p.guards.hasHost(m) && p.hasNothingToProve(asRead) || slices.Contains(asRead.Canary, m.key().String())
}

// hasNothingToProve reports whether there is no canary and no Machine with a host has to be moved.
func (p *planner) hasNothingToProve(status *v1alpha1.RolloutStatus) bool {
	return p.unfinishedHosts == 0 && len(status.Canary) == 0
}

// isFinished reports whether the Machine needs no move, has moved, is forgiven, or is set aside.
func (p *planner) isFinished(m *Machine) bool {
	r := &p.facts.Rollout
	switch {
	case r.isOutdated(m):
		return false
	case r.isStarted(m):
		return r.hasMoved(m) || p.forgiven[m.key()] || p.isSetAside(m)
	case p.inProgress[m.key()]:
		return false
	default:
		// A Machine with a host that has another revision installed was given the target by a person, and is on its way.
		return m.Installed == r.To || !m.Claimed || m.Installed.IsZero()
	}
}

// stopReason names a failure in the canary, or the failures if they are more than the failure budget; empty: neither.
func (p *planner) stopReason() string {
	for _, m := range p.failed {
		if slices.Contains(p.status.Canary, m.key().String()) {
			return m.key().String() + ", in the canary, failed: " + failureText(m)
		}
	}
	if len(p.failed) > p.facts.Policy.FailureBudget {
		return failuresText(p.failed, p.facts.Policy.FailureBudget)
	}
	return ""
}
