package rollout

import (
	"fmt"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// turn decides the phase.
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
		p.setPhase(v1alpha1.RolloutDone, "done: "+p.summary())
	case r.Paused:
		p.setPhase(v1alpha1.RolloutPaused, "paused: no further Machine is started")
	case p.status.Phase == v1alpha1.RolloutStopped:
	default:
		p.continueRollout()
	}
}

func (p *planner) continueRollout() {
	if why := p.guards.stopReason(p); why != "" {
		p.status.StoppedBy = why
		p.setPhase(v1alpha1.RolloutStopped, "stopped: "+why)
		return
	}
	if isCanaryOver(&p.facts.Rollout, p.status) {
		p.setPhase(v1alpha1.RolloutRolling, p.rollingMessage())
		return
	}
	p.setPhase(v1alpha1.RolloutCanary, p.canaryMessage())
}

func (p *planner) canaryMessage() string {
	left := machinesText(int(p.status.Targets.Total - p.status.Targets.Done))
	if len(p.status.Canary) == 0 {
		return fmt.Sprintf("%s to move to %s; none can be the canary now", left, p.facts.Rollout.targetName())
	}
	return fmt.Sprintf("%s to move to %s; the canary goes first: %s", left, p.facts.Rollout.targetName(), joinNames(p.status.Canary))
}

// finished: every Machine is where it belongs. A rollout that stopped waits for a person even so, because it becoming Done is
// what gives the revision to new Machines; only without any Machine there is nothing left to ask.
func (p *planner) isDone() bool {
	if p.typeBudget.machines == 0 {
		return true
	}
	return p.status.StoppedBy == "" && p.unfinished == 0 && len(p.status.Canary) == 0
}

func (p *planner) summary() string {
	t := p.status.Targets
	switch {
	case t.Total == 0:
		return "no Machine has to move"
	case len(p.status.Forgiven) > 0:
		return fmt.Sprintf("%d of %s are Ready with %s; given up: %s", t.Done, machinesText(int(t.Total)), p.facts.Rollout.targetName(), joinNames(p.status.Forgiven))
	default:
		return fmt.Sprintf("%s Ready with %s", machinesAreText(int(t.Total)), p.facts.Rollout.targetName())
	}
}

func (p *planner) rollingMessage() string {
	left := int(p.status.Targets.Total - p.status.Targets.Done)
	if p.facts.Rollout.ToStable && p.facts.Rollout.Status.Phase != v1alpha1.RolloutPaused {
		return fmt.Sprintf("%s to move back to %s, at most %d at once", machinesText(left), p.facts.Rollout.targetName(), p.typeBudget.limit)
	}
	return fmt.Sprintf("the others follow: %d more, at most %d at once", left, p.typeBudget.limit)
}

// enter goes to a phase, if it is another one, and tells so.
func (p *planner) setPhase(phase v1alpha1.RolloutPhase, message string) {
	if p.status.Phase == phase {
		return
	}
	if p.isResumed() {
		message = "resumed: " + message
	}
	p.status.Phase = phase
	p.addHistory(message)
	p.decision.Events = append(p.decision.Events, Event{Warning: phase == v1alpha1.RolloutStopped, Reason: string(phase), Message: message})
}
