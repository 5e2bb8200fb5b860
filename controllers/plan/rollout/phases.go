package rollout

import (
	"fmt"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// turn decides the phase.
func (p *planner) turn() {
	r := &p.f.Rollout
	switch {
	case r.Superseded:
		for _, m := range p.handOn {
			if !p.next[m.key()] {
				p.s.InProgress = append(p.s.InProgress, m.key().String())
			}
		}
		p.enter(v1alpha1.RolloutSuperseded, "superseded: the NodeType asks for another revision, and a newer Rollout goes on from here")
	case p.finished():
		p.enter(v1alpha1.RolloutDone, "done: "+p.summary())
	case r.Paused:
		p.enter(v1alpha1.RolloutPaused, "paused: no further Machine is started")
	case p.s.Phase == v1alpha1.RolloutStopped:
	default:
		p.goOn()
	}
}

func (p *planner) goOn() {
	if why := p.g.stops(p); why != "" {
		p.s.StoppedBy = why
		p.enter(v1alpha1.RolloutStopped, "stopped: "+why)
		return
	}
	if canaryOver(&p.f.Rollout, p.s) {
		p.enter(v1alpha1.RolloutRolling, p.rolling())
		return
	}
	p.enter(v1alpha1.RolloutCanary, p.canaryFirst())
}

func (p *planner) canaryFirst() string {
	left := count(int(p.s.Targets.Total - p.s.Targets.Done))
	if len(p.s.Canary) == 0 {
		return fmt.Sprintf("%s to move to %s; none can be the canary now", left, p.f.Rollout.target())
	}
	return fmt.Sprintf("%s to move to %s; the canary goes first: %s", left, p.f.Rollout.target(), some(p.s.Canary))
}

// finished: every Machine is where it belongs. A rollout that stopped waits for a person even so, because it becoming Done is
// what gives the revision to new Machines; only without any Machine there is nothing left to ask.
func (p *planner) finished() bool {
	if p.all.size == 0 {
		return true
	}
	return p.s.StoppedBy == "" && p.unsettled == 0 && len(p.s.Canary) == 0
}

func (p *planner) summary() string {
	t := p.s.Targets
	switch {
	case t.Total == 0:
		return "no Machine has to move"
	case len(p.s.Forgiven) > 0:
		return fmt.Sprintf("%d of %s are Ready with %s; given up: %s", t.Done, count(int(t.Total)), p.f.Rollout.target(), some(p.s.Forgiven))
	default:
		return fmt.Sprintf("%s Ready with %s", are(int(t.Total)), p.f.Rollout.target())
	}
}

func (p *planner) rolling() string {
	left := int(p.s.Targets.Total - p.s.Targets.Done)
	if p.f.Rollout.ToStable && p.f.Rollout.Status.Phase != v1alpha1.RolloutPaused {
		return fmt.Sprintf("%s to move back to %s, at most %d at once", count(left), p.f.Rollout.target(), p.all.limit)
	}
	return fmt.Sprintf("the others follow: %d more, at most %d at once", left, p.all.limit)
}

// enter goes to a phase, if it is another one, and tells so.
func (p *planner) enter(phase v1alpha1.RolloutPhase, message string) {
	if p.s.Phase == phase {
		return
	}
	if p.resumes() {
		message = "resumed: " + message
	}
	p.s.Phase = phase
	p.tell(message)
	p.d.Events = append(p.d.Events, Event{Warning: phase == v1alpha1.RolloutStopped, Reason: string(phase), Message: message})
}
