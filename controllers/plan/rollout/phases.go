package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/event"
)

// updatePhase decides the phase. A superseded Rollout first hands over to its successor the Machines that it inherited and
// that are not settled, by adding them to status.inProgress.
func (p *planner) updatePhase() {
	r := &p.facts.Rollout
	switch {
	case r.Superseded:
		for _, m := range p.handover {
			if !p.inProgress[m.key()] {
				p.status.InProgress = append(p.status.InProgress, m.key().String())
			}
		}
		p.setPhase(v1alpha1.RolloutSuperseded, "superseded: the NodeType asks for another revision, and a newer Rollout goes on from here")
	case p.isDone():
		p.setPhase(v1alpha1.RolloutDone, "done: "+p.doneMessage())
	case r.Paused:
		p.setPhase(v1alpha1.RolloutPaused, "paused: no further Machine is started")
	case p.status.Phase == v1alpha1.RolloutStopped:
	default:
		p.updateActivePhase()
	}
}

// updateActivePhase sets the phase of a Rollout that is not paused: Stopped if too much failed, else Canary or Rolling.
func (p *planner) updateActivePhase() {
	if reason := p.guards.stopReason(p); reason != "" {
		p.status.StoppedBy = reason
		p.setPhase(v1alpha1.RolloutStopped, "stopped: "+reason)
		return
	}
	if isCanaryOver(&p.facts.Rollout, p.status) {
		p.setPhase(v1alpha1.RolloutRolling, p.rollingMessage())
		return
	}
	p.setPhase(v1alpha1.RolloutCanary, p.canaryMessage())
}

// setPhase sets the phase and, if it is another one than before, adds a line to the history and an Event.
func (p *planner) setPhase(phase v1alpha1.RolloutPhase, message string) {
	if p.status.Phase == phase {
		return
	}
	if p.isResumed() {
		message = "resumed: " + message
	}
	p.status.Phase = phase
	p.addHistory(message)
	p.decision.Events = append(p.decision.Events, event.New(phase == v1alpha1.RolloutStopped, string(phase), EventAction, message))
}

// isDone reports whether every Machine is moved, forgiven, or needs no move. A rollout that has stopped is not done even then:
// Done makes the target the stable revision, which new Machines get, so a person must first accept the failures. Nor is it done
// while a canary is named, also one that is deleted, or while all Machines were broken before and still are, because none is Ready with the target.
// Nor is it done while a Machine that it inherited is not observed with its label: it labeled them all before it began, so the cache is behind.
//
// Without the last: v2-1 starts a. The NodeType is set back, v1-2 labels a and starts it, which needs no record because a is being installed. The manager
// restarts, and its cache shows a as it was before v2-1: Ready with v1, without a label. v1-2 is Done while a is being drained.
//
// Without the first condition for a rollout that has no Machine left: v2 fails on a, the only Machine, and v2-1 stops. A person deletes a, and its pool
// makes b, which has no host yet. v2-1 is Done, v2 becomes the stable revision, and b is installed with it.
func (p *planner) isDone() bool {
	if p.status.StoppedBy != "" || p.unfinished > 0 || len(p.status.Canary) > 0 || len(p.unlabeled) > 0 {
		return false
	}
	return len(p.setAside) == 0 || p.isTargetReady || isCanaryOver(&p.facts.Rollout, p.status)
}

// isResumed reports whether spec.paused was true at the last decision, and is false now.
func (p *planner) isResumed() bool {
	return p.facts.Rollout.Status.Phase == v1alpha1.RolloutPaused && !p.facts.Rollout.Paused
}

// isActive reports whether the phase that was decided starts Machines.
func (p *planner) isActive() bool {
	return p.status.Phase == v1alpha1.RolloutCanary || p.status.Phase == v1alpha1.RolloutRolling
}

// isCanaryOver reports whether the status shows that the canary has baked: its bake time is set and its names are removed. A
// rollout back to the stable revision has no canary.
func isCanaryOver(r *Rollout, s *v1alpha1.RolloutStatus) bool {
	return r.ToStable || len(s.Canary) == 0 && s.BakedSince != nil
}

// updateCanary replaces the canary's Machines that are deleted, forgiven, set aside or cannot be started, because otherwise the
// revision would never be proven. If none of them can go, it chooses those anew that are not under way. Then it updates the bake
// time. Those that are lost stay named where nothing can replace them.
func (p *planner) updateCanary() {
	if p.facts.Rollout.ToStable {
		p.status.Canary = nil // otherwise one that is deleted would keep the Rollout from being Done for ever
	}
	if isCanaryOver(&p.facts.Rollout, p.status) {
		return
	}
	var lost []string
	p.status.Canary = slices.DeleteFunc(slices.Clone(p.status.Canary), func(name string) bool {
		m := p.named[parseName(name)]
		if p.guards.isLost(p, m) {
			lost = append(lost, name)
		}
		return m == nil || !p.canBeCanary(m)
	})
	p.fillCanary()
	if !p.canAnyGo() {
		p.status.Canary = nil
		p.fillCanary()
	}
	if !p.canAnyGo() {
		p.fillCanaryWithUnready()
	}
	p.updateBakeTime()
	if len(p.status.Canary) == 0 && p.status.BakedSince == nil && !p.isTargetReady {
		p.status.Canary, p.isCanaryLost = lost, len(lost) > 0
	}
}

// isLost implements the guard of that name: a Machine of the canary is deleted or set aside, and no person has said that the Rollout goes on in spite of it.
func (p *planner) isLost(m *Machine) bool {
	isAccepted := p.isResumed() && p.facts.Rollout.Status.StoppedBy != ""
	return !isAccepted && (m == nil || p.isSetAside(m))
}

// canAnyGo reports whether a Machine of the canary is under way, has moved, or has room in the budgets.
func (p *planner) canAnyGo() bool {
	return slices.ContainsFunc(p.status.Canary, func(name string) bool {
		m := p.named[parseName(name)]
		return p.isUnderWay(m) || p.canGo(m)
	})
}

// canBeCanary reports whether a person has not forgiven the Machine, nor is it set aside, and it is started, in progress, or Ready and
// can be started. A Machine in progress stays in the canary even while it cannot be rolled, because it holds the place in the
// budgets that its replacement would need. See fillCanaryWithUnready for one that is not Ready.
func (p *planner) canBeCanary(m *Machine) bool {
	r := &p.facts.Rollout
	if p.forgiven[m.key()] || p.isSetAside(m) || !p.guards.hasHost(m) && !p.inProgress[m.key()] {
		return false
	}
	return p.isUnderWay(m) || r.isOutdated(m) && p.guards.canRoll(m) && p.guards.canProve(m)
}

// fillCanary adds Machines to the canary until it has the size that the policy asks for, or as many as there are.
func (p *planner) fillCanary() {
	missing := p.facts.Policy.Canary - len(p.status.Canary)
	if missing <= 0 {
		return
	}
	added := firstMachines{limit: missing, compare: p.compareForCanary}
	for i := range p.facts.Machines {
		m := &p.facts.Machines[i]
		if !m.Deleting && p.canBeCanary(m) && !slices.Contains(p.status.Canary, m.key().String()) {
			added.offer(m)
		}
	}
	for _, m := range added.machines {
		p.status.Canary = append(p.status.Canary, m.key().String())
		p.named[m.key()] = m
	}
}

// isUnderWay reports whether the Machine is started, whether or not it has arrived, or will be.
func (p *planner) isUnderWay(m *Machine) bool {
	return p.facts.Rollout.isStarted(m) || p.inProgress[m.key()]
}

// compareForCanary orders Machines in progress first, then those that have moved, then those for which the budgets have room, then
// by pool and name.
func (p *planner) compareForCanary(a, b *Machine) int {
	rank := func(m *Machine) int {
		switch {
		case p.inProgress[m.key()]:
			return 0
		case p.facts.Rollout.isStarted(m):
			return 1
		case p.canGo(m):
			return 2
		default:
			return 3
		}
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), compareByName(a, b))
}

// updateBakeTime sets status.bakedSince to the time when the last Machine of the canary became Ready, and empties the canary
// when it has baked. The bake time begins again when a Machine loses Ready, also when the planner never observed that: its
// ReadySince is later than bakedSince then.
func (p *planner) updateBakeTime() {
	since, allMoved := time.Time{}, len(p.status.Canary) > 0
	if p.status.BakedSince != nil {
		since = p.status.BakedSince.Time
	}
	for _, name := range p.status.Canary {
		m := p.named[parseName(name)]
		if !p.facts.Rollout.hasMoved(m) {
			allMoved = false
			break
		}
		if m.ReadySince.After(since) {
			since = m.ReadySince
		}
	}
	if !allMoved {
		if p.status.BakedSince != nil {
			p.addHistory("the canary is no longer Ready: its bake time begins anew")
		}
		p.status.BakedSince = nil
		return
	}
	at := metav1.NewMicroTime(since)
	if p.status.BakedSince == nil {
		p.addHistory(fmt.Sprintf("the canary is Ready and bakes for %s", durationText(p.facts.Policy.Bake)))
	}
	p.status.BakedSince = &at
	if p.guards.isBaked(p.facts.Clock, since, p.facts.Policy.Bake) {
		p.status.Canary = nil
	} else {
		p.requeueAfter(p.facts.Left(since, p.facts.Policy.Bake))
	}
}
