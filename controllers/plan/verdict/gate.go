package verdict

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/event"
)

// decider decides about the gate once the checks are judged.
type decider struct {
	in      Input
	verdict *v1alpha1.Verdict
	// tainted: the gate is on the node.
	tainted bool
	// same: the previous verdict speaks of the same Node object, boot and revision.
	same bool
}

// since keeps the time since when the result is what it is. The gate on an admitted node means that it was put back, so
// what passes must settle again.
func (d *decider) since() {
	p := d.in.Previous
	if d.same && p.Since != nil && p.Result == d.verdict.Result && !(p.Admitted && d.tainted) {
		d.verdict.Since = p.Since.DeepCopy()
		return
	}
	now := metav1.NewMicroTime(d.in.Now)
	d.verdict.Since = &now
}

func (d *decider) passes() bool { return d.verdict.Result == v1alpha1.CheckPass }

// settled: it passes for long enough, and the verdict that was written last said so of this node and boot.
func (d *decider) settled() bool {
	return d.same && d.passes() && d.in.Previous.Result == v1alpha1.CheckPass && d.remaining() <= 0
}

func (d *decider) remaining() time.Duration { return d.verdict.Since.Add(d.in.Settle).Sub(d.in.Now) }

// standing: the gate was seen to be off on the strength of the previous verdict, which still holds.
func (d *decider) standing() bool { return d.same && d.in.Previous.Admitted && d.passes() }

func (d *decider) gate() Gate {
	switch {
	case d.in.OnFailure == v1alpha1.OnFailureObserve:
		if d.tainted {
			return Lift
		}
	case d.tainted && d.settled():
		return Lift
	case !d.tainted && !d.settled() && !d.standing():
		return Place
	}
	return Keep
}

func (d *decider) admitted(g Gate) bool {
	return !d.tainted && g == Keep && (d.settled() || d.standing())
}

// MustPlaceGate says whether the gate must be put on a node that cannot be judged, because what it promises is not known: it has no
// gate, and nothing that was judged before speaks of this Node object and this boot.
func MustPlaceGate(in Input) bool {
	p := in.Previous
	isJudged := p != nil && p.NodeUID == in.Node.UID && p.BootID == in.Node.Status.NodeInfo.BootID
	return in.OnFailure != v1alpha1.OnFailureObserve && !gated(in.Node, in.Gate) && !isJudged
}

// rebooted: the same Node object shows another boot than the one that was judged.
func (d *decider) rebooted() bool {
	p := d.in.Previous
	return p != nil && p.NodeUID == d.verdict.NodeUID && p.Revision == d.verdict.Revision && p.Rendering == d.verdict.Rendering && p.BootID != "" && p.BootID != d.verdict.BootID && d.verdict.BootID != ""
}

// lifted: the gate is off because of what the previous verdict said.
func (d *decider) lifted() bool {
	p := d.in.Previous
	return d.same && (p.Admitted || p.Result == v1alpha1.CheckPass && p.Since != nil && !d.in.Now.Before(p.Since.Add(d.in.Settle)))
}

// missed: the gate is not there, and nothing that was judged took it off.
func (d *decider) missed(g Gate) bool { return g == Place && !d.lifted() && !d.rebooted() }

func (d *decider) condition(g Gate) (status metav1.ConditionStatus, reason, message string) {
	status = metav1.ConditionFalse
	switch {
	case d.verdict.Admitted:
		return metav1.ConditionTrue, v1alpha1.ReasonValidated, "every check passes; the gate is lifted"
	case d.missed(g):
		return status, v1alpha1.ReasonGateMissed, "the Node was there without the gate " + d.in.Gate + ", which was put on it now; pods that were bound meanwhile stay"
	case d.rebooted():
		return status, v1alpha1.ReasonNodeRebooted, "the node booted again since it was judged"
	case d.passes():
		return status, v1alpha1.ReasonSettling, "every check passes; the gate is lifted when that lasted for " + d.in.Settle.String()
	case d.in.OnFailure == v1alpha1.OnFailureObserve:
		return status, v1alpha1.ReasonObserveOnly, "the gate is lifted whatever the checks say, because validation.onFailure is Observe; " + d.problem()
	}
	return status, d.reason(), d.problem()
}

func (d *decider) reason() string {
	c := d.first()
	switch {
	case unserved(d.in, c):
		return v1alpha1.ReasonDRANotServed
	case c.Result == v1alpha1.CheckFail && overdue(d.in):
		return v1alpha1.ReasonValidationTimedOut
	case c.Result == v1alpha1.CheckFail:
		return v1alpha1.ReasonChecksFailed
	case strings.HasPrefix(c.Name, PrefixResource), strings.HasPrefix(c.Name, PrefixSlices):
		return v1alpha1.ReasonResourcesMissing
	default:
		return v1alpha1.ReasonChecksWaiting
	}
}

// first is the check that decides the result.
func (d *decider) first() v1alpha1.Check {
	for _, c := range d.verdict.Checks {
		if c.Result == d.verdict.Result {
			return c
		}
	}
	return v1alpha1.Check{}
}

func (d *decider) problem() string {
	c := d.first()
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

// requeue looks again when time alone changes the decision, or when what a message tells may have changed unseen.
func (d *decider) requeue(g Gate) time.Duration {
	var after time.Duration
	switch {
	case g != Keep:
		// The Node's own event follows; this is for the event that is lost.
		after = waitInterval
	case d.verdict.Admitted:
	case d.passes():
		after = max(d.remaining(), time.Millisecond)
	case d.verdict.Result == v1alpha1.CheckWait:
		after = waitInterval
	default:
		after = failInterval
	}
	if left := d.in.Deadline.Sub(d.in.Now); !d.in.Deadline.IsZero() && left > 0 && after > left {
		after = left
	}
	return after
}

func (d *decider) events(out Decision) []event.Event {
	p := d.in.Previous
	var told []event.Event
	add := func(warning bool) {
		told = append(told, event.New(warning, out.Reason, "Validate", out.Message))
	}
	switch {
	case out.Verdict.Admitted:
		if !d.standing() {
			add(false)
		}
	case out.Reason == v1alpha1.ReasonGateMissed, out.Reason == v1alpha1.ReasonNodeRebooted:
		add(true)
	case out.Verdict.Result == v1alpha1.CheckFail && (!d.same || p.Result != v1alpha1.CheckFail):
		add(true)
	case d.same && p.Admitted && !d.passes():
		add(true)
	}
	return told
}
