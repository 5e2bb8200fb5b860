package verdict

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/event"
)

// gateDecider decides what is done to the gate, once the checks have results. In the examples the settle time is 30 seconds.
type gateDecider struct {
	input   Input
	verdict *v1alpha1.Verdict
	// isGated is true if the gate is on the node.
	isGated bool
	// isSameSubject is true if the previous verdict is about the same Node object, boot, revision and rendering.
	isSameSubject bool
	// removals counts how often somebody else has removed the gate.
	removals removals
	// mustBeGated is true if the gate must be on the node. pause is how long it is not placed yet. gateActionNow sets them.
	mustBeGated bool
	pause       time.Duration
}

// gateActionNow decides what is done to the gate now: a gate that others keep removing is placed again after a pause.
func (d *gateDecider) gateActionNow() GateAction {
	g := d.gateAction()
	d.mustBeGated = g == PlaceGate || g == KeepGate && d.isGated
	if d.pause = d.removals.PauseLeft(); g == PlaceGate && d.pause > 0 {
		return KeepGate
	}
	d.pause = 0
	return g
}

// isContested reports whether the gate must be on the node and others keep removing it.
func (d *gateDecider) isContested() bool { return d.mustBeGated && d.removals.isContested() }

// setSince sets the time since which the verdict has its result. It begins again if an admitted node has the gate: somebody has
// put it back, and if the old time counted, the gate would be lifted within a second, before anybody could see why.
func (d *gateDecider) setSince() {
	p := d.input.Previous
	if d.isSameSubject && p.Since != nil && p.Result == d.verdict.Result && !(p.Admitted && d.isGated) {
		d.verdict.Since = p.Since.DeepCopy()
		return
	}
	now := metav1.NewMicroTime(d.input.Now)
	d.verdict.Since = &now
}

func (d *gateDecider) isPassing() bool { return d.verdict.Result == v1alpha1.CheckPass }

// isSettled reports whether every check has passed for the settle time, and the previous verdict, which is written, says so too.
//
// If the gate were lifted by a verdict that is not written: the checks pass at 12:00:00. At 12:00:30 the gate is lifted, and the
// manager is killed before it writes any verdict. The next manager finds a node without the gate that nobody has judged: it
// puts the gate back and warns that it was missed.
func (d *gateDecider) isSettled() bool {
	return d.isSameSubject && d.isPassing() && d.input.Previous.Result == v1alpha1.CheckPass && d.settleRemaining() <= 0
}

func (d *gateDecider) settleRemaining() time.Duration {
	return d.input.Left(d.verdict.Since.Time, d.input.Settle)
}

// isStillAdmitted reports whether the previous verdict admitted the node and every check still passes. The settle time does not
// matter then. If it did: somebody raises it from 30 seconds to an hour, and every node of the NodeType that was admitted less
// than an hour ago is closed to new pods, although none of them has changed.
func (d *gateDecider) isStillAdmitted() bool {
	return d.isSameSubject && d.input.Previous.Admitted && d.isPassing()
}

// gateAction decides what is done to the gate. It is placed on every node that has not earned its absence.
//
// If only the absence of failures counted: an admitted node boots at 12:05 with a GPU that has fallen off the bus. Kubelet is
// Ready at 12:06, and the device plugin reports 7 of 8 GPUs at 12:07. In the minute between, checks wait and none fails, so
// the scheduler would bind a job to a node that cannot run it.
func (d *gateDecider) gateAction() GateAction {
	switch {
	case d.input.OnFailure == v1alpha1.OnFailureObserve:
		if d.isGated {
			return LiftGate
		}
	case d.isGated && d.isSettled():
		return LiftGate
	case !d.isGated && !d.isSettled() && !d.isStillAdmitted():
		return PlaceGate
	}
	return KeepGate
}

// isAdmitted reports whether the node is admitted: the gate and the cordon of a contested one are observed to be off, and the checks have
// earned that.
//
// If the decision to lift the gate were enough: the request to lift it fails, and the Machine is Ready. Its rollout drains the
// next Machine, while the first one still takes no pods: 2 Machines are out of use where at most 1 may be.
func (d *gateDecider) isAdmitted(g GateAction) bool {
	_, isCordoned := d.input.Node.Annotations[v1alpha1.AnnotationGateCordoned]
	return !d.isGated && !d.mustBeGated && !isCordoned && g == KeepGate && (d.isSettled() || d.isStillAdmitted())
}

// GuardUnjudged decides about the gate of a node that cannot be judged because its expectation is not known. Of the Decision, Gate, Cordon,
// PlacedGate and RequeueAfter are set and, if others keep removing the gate, Reason and Message.
func GuardUnjudged(in Input) Decision {
	r, mustPlace := newRemovals(in), MustPlaceGate(in)
	isGated := HasGate(in.Node, in.Gate)
	mustBeGated := mustPlace || isGated || isOpenByOthers(in, r)
	out := Decision{Gate: KeepGate}
	if mustBeGated && !isGated {
		if out.RequeueAfter = r.PauseLeft(); out.RequeueAfter == 0 {
			out.Gate = PlaceGate
		}
	}
	out.Cordon, out.PlacedGate = r.cordon(out.Gate, mustBeGated), r.status(out.Gate, mustBeGated)
	if mustBeGated && r.isContested() {
		out.Reason, out.Message = v1alpha1.ReasonGateRemovedByOthers, r.message(out.Gate)
	}
	return out
}

// isOpenByOthers reports whether the node lacks the gate only because others removed it: what was placed is stored, which it is not after Ingot has
// lifted it, and no verdict has admitted this boot since. Without it: a node fails its checks, a program removes the gate, and the node is cordoned in its pause. The rendering is deleted by
// mistake. This boot was judged, so no gate would be due; the cordon would be lifted, the count forgotten, and pods bound to a node that never passed.
func isOpenByOthers(in Input, r removals) bool {
	isRemoved := !HasGate(in.Node, in.Gate) && r.Count() > 0 && in.OnFailure != v1alpha1.OnFailureObserve
	return isRemoved && !(in.Previous != nil && in.Previous.Admitted && isJudged(in))
}

// isJudged reports whether this boot of this Node was judged.
func isJudged(in Input) bool {
	p := in.Previous
	return p != nil && p.NodeUID == in.Node.UID && p.BootID == in.Node.Status.NodeInfo.BootID
}

// MustPlaceGate reports whether the gate must be placed on a node that cannot be judged because its expectation is not known. It
// must if the node has no gate and was never judged: otherwise pods would run on a node that nobody has checked. It must not
// if this boot of this Node was judged: otherwise one NodeTypeRendering that is deleted by mistake would close a hundred
// running nodes to new pods.
func MustPlaceGate(in Input) bool {
	return in.OnFailure != v1alpha1.OnFailureObserve && !HasGate(in.Node, in.Gate) && !isJudged(in)
}

// hasRebooted reports whether the Node object shows another boot than the one that was judged. For example: the server of an
// admitted node loses power at 12:00 and is up again at 12:05. Its Node object is the same and has no gate, but another boot id.
// The gate is placed, and the reason is NodeRebooted. If it were GateMissed, people would look for somebody who removed the gate.
func (d *gateDecider) hasRebooted() bool {
	p := d.input.Previous
	return p != nil && p.NodeUID == d.verdict.NodeUID && p.Revision == d.verdict.Revision && p.Rendering == d.verdict.Rendering && p.BootID != "" && p.BootID != d.verdict.BootID && d.verdict.BootID != ""
}

// isLiftExplained reports whether the previous verdict explains why the gate is off: it admitted the node or had settled. For
// example: the checks have passed since 12:00:00. At 12:00:30 the gate is lifted, and the manager is killed before it writes that
// the node is admitted. At 12:00:40 a GPU fails. The next manager places the gate again and reports the failed check. If the
// settled verdict did not count, it would warn that the node was open before anybody judged it, which is not true.
func (d *gateDecider) isLiftExplained() bool {
	p := d.input.Previous
	return d.isSameSubject && (p.Admitted || p.Result == v1alpha1.CheckPass && p.Since != nil && d.input.Ago(p.Since.Time) >= d.input.Settle)
}

// isGateUnexpectedlyOff reports whether the gate is placed on a node that was without it, and neither a verdict nor a reboot explains
// why. For example: the node registers at 12:00 without the taint, because its kubelet was configured by hand. The scheduler binds
// pods to it until the gate is placed at 12:01. GateMissed warns that these pods run on a node that nobody has checked.
func (d *gateDecider) isGateUnexpectedlyOff(g GateAction) bool {
	return g == PlaceGate && !d.isLiftExplained() && !d.hasRebooted()
}

// condition returns the condition Validated.
func (d *gateDecider) condition(g GateAction) (status metav1.ConditionStatus, reason, message string) {
	status = metav1.ConditionFalse
	switch {
	case d.verdict.Admitted:
		return metav1.ConditionTrue, v1alpha1.ReasonValidated, "every check passes; the gate is lifted"
	case d.isContested():
		return status, v1alpha1.ReasonGateRemovedByOthers, d.removals.message(g)
	case d.isGateUnexpectedlyOff(g):
		return status, v1alpha1.ReasonGateMissed, "the Node was there without the gate " + d.input.Gate + ", which was put on it now; pods that were bound meanwhile stay"
	case d.hasRebooted():
		return status, v1alpha1.ReasonNodeRebooted, "the node booted again since it was judged"
	case d.isPassing() && d.input.OnFailure == v1alpha1.OnFailureObserve:
		return status, v1alpha1.ReasonSettling, "every check passes; the gate is lifted already, because validation.onFailure is Observe, and the node is admitted when that lasted for " + d.input.Settle.String()
	case d.isPassing():
		return status, v1alpha1.ReasonSettling, "every check passes; the gate is lifted when that lasted for " + d.input.Settle.String()
	case d.input.OnFailure == v1alpha1.OnFailureObserve:
		return status, v1alpha1.ReasonObserveOnly, "the gate is lifted whatever the checks say, because validation.onFailure is Observe; " + d.problemText()
	}
	return status, d.problemReason(), d.problemText()
}

func (d *gateDecider) problemReason() string {
	c := decidingCheck(*d.verdict)
	switch {
	case isUnserved(d.input, c):
		return v1alpha1.ReasonDRANotServed
	case c.Result == v1alpha1.CheckFail && isOverdue(d.input):
		return v1alpha1.ReasonValidationTimedOut
	case c.Result == v1alpha1.CheckFail:
		return v1alpha1.ReasonChecksFailed
	case strings.HasPrefix(c.Name, PrefixResource), strings.HasPrefix(c.Name, PrefixSlices):
		return v1alpha1.ReasonResourcesMissing
	default:
		return v1alpha1.ReasonChecksWaiting
	}
}

// decidingCheck returns the first check that has the result of the verdict.
func decidingCheck(v v1alpha1.Verdict) v1alpha1.Check {
	for _, c := range v.Checks {
		if c.Result == v.Result {
			return c
		}
	}
	return v1alpha1.Check{}
}

func (d *gateDecider) problemText() string {
	c := decidingCheck(*d.verdict)
	observed := c.Observed
	if observed == "" {
		observed = "nothing"
	}
	text := fmt.Sprintf("%s: expected %s, observed %s", c.Name, c.Expected, observed)
	if c.Hint != "" {
		text += "; " + c.Hint
	}
	return text
}

// requeueAfter returns when to judge again without an event: when time alone changes the decision, or when something may have
// changed that is not watched, such as the tenant's DaemonSets.
func (d *gateDecider) requeueAfter(g GateAction) time.Duration {
	var after time.Duration
	switch {
	case d.pause > 0:
		after = d.pause
	case d.isContested() && g == KeepGate:
		after = min(d.resultInterval(), max(d.removals.WindowLeft(), time.Second))
	case g != KeepGate:
		// The change of the Node causes an event. This is for the case that it is lost.
		after = waitInterval
	case d.verdict.Admitted:
	default:
		after = d.resultInterval()
	}
	if left := d.input.Deadline.Sub(d.input.Now); !d.input.Deadline.IsZero() && left > 0 && after > left {
		after = left
	}
	return after
}

// resultInterval returns when the result of the checks asks for another look.
func (d *gateDecider) resultInterval() time.Duration {
	switch {
	case d.isPassing():
		return max(d.settleRemaining(), time.Millisecond)
	case d.verdict.Result == v1alpha1.CheckWait:
		return waitInterval
	}
	return failInterval
}

// events returns an event if the node's gate was missed, if it has rebooted, if it begins to fail, or if it is no longer admitted. A result that lasts causes
// no further event. That a node is admitted is published by the machine controller, as Ready.
func (d *gateDecider) events(out Decision) []event.Event {
	p := d.input.Previous
	var events []event.Event
	add := func() { events = append(events, event.Warning(out.Reason, "Validate", out.Message)) }
	switch {
	case out.Verdict.Admitted:
	case d.isContested():
		if out.Gate == PlaceGate {
			add()
		}
	case out.Reason == v1alpha1.ReasonGateMissed, out.Reason == v1alpha1.ReasonNodeRebooted:
		add()
	case out.Verdict.Result == v1alpha1.CheckFail && (!d.isSameSubject || p.Result != v1alpha1.CheckFail):
		add()
	case d.isSameSubject && p.Admitted && !d.isPassing():
		add()
	}
	return events
}
