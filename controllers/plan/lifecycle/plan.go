package lifecycle

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// timelineLength is the most phase entries that are kept.
const timelineLength = 32

// planner works out one Decision.
type planner struct {
	situation
	d Decision
	// reason and message of Ready=False.
	reason, message string
}

// Plan decides the next step of the Machine's life.
func Plan(f Facts) Decision { return plan(f, realGuards()) }

func plan(f Facts, g guards) Decision {
	p := &planner{situation: situation{Facts: f, guards: g}, d: Decision{Status: *f.Machine.Status.DeepCopy()}}
	p.d.Status.ObservedGeneration = f.Machine.Generation
	if f.Machine.Status.Phase == "" {
		p.enter(v1alpha1.MachinePending)
		p.Machine.Status = *p.d.Status.DeepCopy()
	}
	switch e := p.openEdge(); {
	case e == nil:
		p.apply(combined(phases[p.Machine.Status.Phase], p.situation))
	case e.to == gone:
		p.apply(combined(phases[gone], p.situation))
	default:
		p.take(e)
		// What the new phase waits for is told with the step into it; its work begins when that is written.
		p.Machine.Status, p.entering = *p.d.Status.DeepCopy(), true
		p.apply(combined(phases[p.Machine.Status.Phase], p.situation))
		p.d.Action, p.d.Again, p.d.Requeue = nil, true, 0
	}
	p.report(f.Machine.Status)
	if p.d.Action != nil && p.d.Again && f.Machine.Status.Phase == p.d.Status.Phase && !f.IsOverdue() {
		// The action is over in a moment: what it waits for is not worth a write.
		p.d.Status, p.d.Events = *f.Machine.Status.DeepCopy(), nil
	}
	return p.d
}

// openEdge is the first edge out of the phase that holds; nil: none does.
func (s situation) openEdge() *edge {
	for i := range edges {
		if e := &edges[i]; e.from == s.Machine.Status.Phase && e.holds(s) {
			return e
		}
	}
	return nil
}

// take follows the edge.
func (p *planner) take(e *edge) {
	p.enter(e.to)
	if e.enter != nil {
		e.enter(p)
	}
}

// apply makes the Decision do and tell what the steps came to.
func (p *planner) apply(r result) {
	p.d.Action, p.d.Again = r.action, r.again
	if r.requeue > 0 {
		p.after(r.requeue)
	}
	switch {
	case r.progress == nil:
	case *r.progress == v1alpha1.Progress{}:
		p.d.Status.Progress = nil
	default:
		p.d.Status.Progress = r.progress.DeepCopy()
	}
	if r.isFinal() {
		p.tell(r.notice)
	}
	now := metav1.NewMicroTime(p.Now)
	switch r.mark {
	case powerOffRequested:
		p.d.Status.PowerOffRequestedAt = &now
	case nodeRemainsReported:
		p.d.Status.NodeRemainsReportedAt = &now
		p.event(true, r.notice.reason, r.notice.message)
	}
}

func (p *planner) enter(phase v1alpha1.MachinePhase) {
	s := &p.d.Status
	s.Phase, s.Deadline, s.WaitingFor, s.Progress = phase, nil, "", nil
	if phase != v1alpha1.MachineReleasing {
		s.PowerOffRequestedAt = nil // what was begun for a roll goes on in a release
	}
	now := metav1.NewMicroTime(p.Now)
	if limit := p.Timeouts.Of(phase); limit > 0 {
		deadline := metav1.NewMicroTime(p.Now.Add(limit))
		s.Deadline = &deadline
	}
	s.Timeline = append(s.Timeline, v1alpha1.PhaseEntry{Phase: phase, At: now})
	if extra := len(s.Timeline) - timelineLength; extra > 0 {
		s.Timeline = s.Timeline[extra:]
	}
}

// after asks for another look although nothing is seen to change.
func (p *planner) after(d time.Duration) {
	if p.d.Requeue == 0 || d < p.d.Requeue {
		p.d.Requeue = max(d, time.Second)
	}
}

func (p *planner) event(warning bool, reason, message string) {
	p.d.Events = append(p.d.Events, Event{Warning: warning, Reason: reason, Message: message})
}

func (p *planner) enterPending() { p.d.Status.HostRef = nil }

func (p *planner) enterClaiming() {
	host := p.Choice.Host
	if p.Host != nil {
		host.Namespace, host.Name = p.Host.Namespace, p.Host.Name
	}
	p.d.Status.HostRef = &v1alpha1.NamespacedReference{Namespace: host.Namespace, Name: host.Name}
}

func (p *planner) enterProvisioning() {
	p.d.Status.Revision, p.d.Status.Rendering, p.d.Status.Attempt = p.Revision.Name, p.Revision.Rendering, p.d.Status.Attempt+1
	p.event(false, v1alpha1.ReasonClaimed, "claimed host "+p.hostName())
}

func (p *planner) enterDraining() {
	p.event(false, v1alpha1.ReasonEvicting, fmt.Sprintf("is rolled from %s to %s: its node is being emptied", installed(p.d.Status.Installed(), p.Next.Rendered()), installed(p.Next.Rendered(), p.d.Status.Installed())))
}

// installed names what a Machine has or gets beside the other: the revision or, where both have the same, the rendering.
func installed(this, other v1alpha1.RenderedRevision) string {
	if this.Revision == other.Revision && this.Rendering != other.Rendering {
		return "rendering " + this.Rendering
	}
	return "revision " + this.Revision
}

// enterNextAttempt installs what is wanted now, which is the same revision again when the roll was called off too late.
func (p *planner) enterNextAttempt() {
	p.Revision, p.Next = p.installedNext(), Revision{}
	s := &p.d.Status
	s.Revision, s.Rendering, s.Attempt, s.NodeRef, s.SystemUUID = p.Revision.Name, p.Revision.Rendering, s.Attempt+1, nil, ""
	p.set(v1alpha1.ConditionJoined, metav1.ConditionFalse, v1alpha1.ReasonWaitingForNode, fmt.Sprintf("attempt %d is being installed", s.Attempt))
	p.event(false, v1alpha1.ReasonProvisioning, fmt.Sprintf("host %s is powered off and is installed again, with revision %s as attempt %d", p.hostName(), s.Revision, s.Attempt))
}

func (p *planner) enterJoining() {
	if r := p.Host.Record; r != nil && r.Status.Inventory != nil {
		p.d.Status.SystemUUID = r.Status.Inventory.SystemUUID
	}
	p.event(false, v1alpha1.ReasonProvisioned, "the image of revision "+p.d.Status.Revision+" is on the disk of "+p.hostName())
}

func (p *planner) enterValidating() {
	switch p.Machine.Status.Phase {
	case v1alpha1.MachineReady:
		reason, message := p.verdictProblem()
		p.event(true, reason, message)
	case v1alpha1.MachineDraining:
		p.event(false, v1alpha1.ReasonUpToDate, "the roll was called off; revision "+p.d.Status.Revision+" stays")
	default:
		p.event(false, v1alpha1.ReasonJoined, "Node "+p.Machine.Name+" joined")
	}
}

func (p *planner) enterReady() {
	p.event(false, v1alpha1.ReasonReady, "the verdict passes; the gate is lifted")
}
