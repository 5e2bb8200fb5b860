package lifecycle

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle/facts"
)

// timelineLength is the most phase entries that are kept.
const timelineLength = 32

// planner works out one Decision.
type planner struct {
	f Facts
	g guards
	d Decision
	// entering: an edge is being taken, on facts that were gathered for the phase before.
	entering bool
	// reason and message of Ready=False.
	reason, message string
}

// Plan decides the next step of the Machine's life.
func Plan(f Facts) Decision { return plan(f, realGuards()) }

func plan(f Facts, g guards) Decision {
	p := &planner{f: f, g: g, d: Decision{Status: *f.Machine.Status.DeepCopy()}}
	p.d.Status.ObservedGeneration = f.Machine.Generation
	if f.Machine.Status.Phase == "" {
		p.enter(v1alpha1.MachinePending)
		p.f.Machine.Status = *p.d.Status.DeepCopy()
	}
	e := p.take()
	if e != nil && e.to != gone {
		// What the new phase waits for is told with the step into it; its work begins when that is written.
		p.f.Machine.Status, p.entering = *p.d.Status.DeepCopy(), true
		p.work(nil)
		p.d.Action, p.d.Again, p.d.Requeue = nil, true, 0
	} else {
		p.work(e)
	}
	p.report(f.Machine.Status)
	if p.d.Action != nil && p.d.Again && f.Machine.Status.Phase == p.d.Status.Phase && !f.Overdue() {
		// The action is over in a moment: what it waits for is not worth a write.
		p.d.Status, p.d.Events = *f.Machine.Status.DeepCopy(), nil
	}
	return p.d
}

// take follows the first edge that holds, and returns it.
func (p *planner) take() *edge {
	for i := range edges {
		e := &edges[i]
		if e.from != p.f.Machine.Status.Phase || !e.holds(p) {
			continue
		}
		if e.to != gone {
			p.enter(e.to)
			if e.enter != nil {
				e.enter(p)
			}
		}
		return e
	}
	return nil
}

func (p *planner) enter(phase v1alpha1.MachinePhase) {
	s := &p.d.Status
	s.Phase, s.Deadline, s.WaitingFor, s.Progress = phase, nil, "", nil
	now := metav1.NewMicroTime(p.f.Now)
	if limit := p.f.Timeouts.Of(phase); limit > 0 {
		deadline := metav1.NewMicroTime(p.f.Now.Add(limit))
		s.Deadline = &deadline
	}
	s.Timeline = append(s.Timeline, v1alpha1.PhaseEntry{Phase: phase, At: now})
	if extra := len(s.Timeline) - timelineLength; extra > 0 {
		s.Timeline = s.Timeline[extra:]
	}
}

func (p *planner) do(kind ActionKind) *Action {
	p.d.Action = &Action{Kind: kind}
	return p.d.Action
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

func (p *planner) deleting() bool { return p.f.Machine.Deleting }
func (p *planner) hostMine() bool { return p.g.hostIsMine(p.f) }
func (p *planner) rolls() bool {
	if p.f.Next.Name == "" || !p.g.hostIsMine(p.f) {
		return false
	}
	reason, _ := p.rollObstacle()
	return reason == ""
}

func (p *planner) canClaim() bool {
	if !p.f.Machine.Finalizer {
		return false
	}
	if p.f.Host != nil {
		return true // claimed before a crash: adopted, whatever placement says now
	}
	reason, _ := p.obstacle()
	return reason == "" && p.f.Choice.Host.Name != ""
}

func (p *planner) claimLost() bool {
	return p.f.Host == nil || p.f.Host.Consumer == facts.ConsumerOther || !p.g.hostIsFit(p.f)
}

func (p *planner) installed() bool {
	return p.g.hostIsMine(p.f) && p.f.Revision.Problem == "" && p.g.imageIsOnDisk(p.f)
}

func (p *planner) joined() bool { return p.g.hostIsMine(p.f) && p.f.NodeOfThisAttempt() }

func (p *planner) verdictPasses() bool {
	return p.g.hostIsMine(p.f) && p.f.NodeOfThisAttempt() && p.g.verdictHolds(p.f)
}

// verdictLost needs the tenant's word: while it cannot be reached nothing is known, and the Machine stays Ready.
func (p *planner) verdictLost() bool { return p.f.Tenant.Reachable && !p.verdictPasses() }

func (p *planner) fenced() bool {
	return p.g.hostIsMine(p.f) && p.g.powerIsOff(p.f) && p.g.nodeIsGone(p.f) && p.f.HostTakesImage()
}

// calledOff: the roll ends before it did harm; Ingot's own cordon is lifted first.
func (p *planner) calledOff() bool {
	return p.g.hostIsMine(p.f) && p.g.calledOff(p.f) && !p.f.Node.Cordoned
}

// released: nothing is left to do. While the tenant cannot be reached a token may be left there; it ends by itself within
// the time that evictions are given.
func (p *planner) released() bool {
	switch {
	case p.g.hostIsMine(p.f):
		return false
	case p.f.Machine.Status.Attempt == 0:
		return true
	case p.f.Tenant.Reachable:
		return p.f.Token == nil
	default:
		return p.f.DrainOver()
	}
}

func (p *planner) enterPending() { p.d.Status.HostRef = nil }

func (p *planner) enterClaiming() {
	host := p.f.Choice.Host
	if p.f.Host != nil {
		host.Namespace, host.Name = p.f.Host.Namespace, p.f.Host.Name
	}
	p.d.Status.HostRef = &v1alpha1.NamespacedReference{Namespace: host.Namespace, Name: host.Name}
}

func (p *planner) enterProvisioning() {
	p.d.Status.Revision, p.d.Status.Rendering, p.d.Status.Attempt = p.f.Revision.Name, p.f.Revision.Rendering, p.d.Status.Attempt+1
	p.event(false, v1alpha1.ReasonClaimed, "claimed host "+p.hostName())
}

func (p *planner) enterDraining() {
	p.event(false, v1alpha1.ReasonEvicting, fmt.Sprintf("is rolled from %s to %s: its node is being emptied", installed(p.d.Status.Installed(), p.f.Next.Rendered()), installed(p.f.Next.Rendered(), p.d.Status.Installed())))
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
	if p.f.Next.Name != "" {
		p.f.Revision, p.f.Next = p.f.Next, Revision{}
	}
	s := &p.d.Status
	s.Revision, s.Rendering, s.Attempt, s.NodeRef, s.SystemUUID = p.f.Revision.Name, p.f.Revision.Rendering, s.Attempt+1, nil, ""
	p.set(v1alpha1.ConditionJoined, metav1.ConditionFalse, v1alpha1.ReasonWaitingForNode, fmt.Sprintf("attempt %d is being installed", s.Attempt))
	p.event(false, v1alpha1.ReasonProvisioning, fmt.Sprintf("host %s is powered off and is installed again, with revision %s as attempt %d", p.hostName(), s.Revision, s.Attempt))
}

func (p *planner) enterJoining() {
	if r := p.f.Host.Record; r != nil && r.Status.Inventory != nil {
		p.d.Status.SystemUUID = r.Status.Inventory.SystemUUID
	}
	p.event(false, v1alpha1.ReasonProvisioned, "the image of revision "+p.d.Status.Revision+" is on the disk of "+p.hostName())
}

func (p *planner) enterValidating() {
	switch p.f.Machine.Status.Phase {
	case v1alpha1.MachineReady:
		reason, message := p.verdictProblem()
		p.event(true, reason, message)
	case v1alpha1.MachineDraining:
		p.event(false, v1alpha1.ReasonUpToDate, "the roll was called off; revision "+p.d.Status.Revision+" stays")
	default:
		p.event(false, v1alpha1.ReasonJoined, "Node "+p.f.Machine.Name+" joined")
	}
}

func (p *planner) enterReady() {
	p.event(false, v1alpha1.ReasonReady, "the verdict passes; the gate is lifted")
}

func (p *planner) hostName() string {
	if r := p.d.Status.HostRef; r != nil {
		return r.Namespace + "/" + r.Name
	}
	return ""
}
