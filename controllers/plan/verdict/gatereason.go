package verdict

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// GateReason is what a Node says about its gate: the value of the taint, and an annotation. The zero value removes the annotation.
type GateReason struct {
	// Reason and Message are those of the condition Validated.
	Reason, Message string
	// IsNew is true if the Node did not say this reason before. An event then says it too.
	IsNew bool
	// IsWarning is true if it is more than waiting.
	IsWarning bool
}

// maxGateMessage is how much of a message an annotation and an event repeat, in bytes.
const maxGateMessage = 500

// Text returns the annotation.
func (g GateReason) Text(now time.Time, where string) string {
	return now.UTC().Format(time.RFC3339) + " " + g.Note(where)
}

// Note returns the text of the event.
func (g GateReason) Note(where string) string { return g.Reason + ": " + g.Message + "; " + where }

// NewGateReason returns what the Node says with a gate that is placed, and later with what decides.
func NewGateReason(node *corev1.Node, reason, message string, isWarning bool) *GateReason {
	_, said, _ := strings.Cut(node.Annotations[v1alpha1.AnnotationGate], " ")
	return &GateReason{Reason: reason, Message: input.Line(message, maxGateMessage), IsNew: !strings.HasPrefix(said, reason+": "), IsWarning: isWarning}
}

// gateReason returns what the Node must say about its gate; nil: what it says stays. A node that waits is written once, and one that passes is not: most nodes pass
// soon after they joined, and their one write is the one that lifts the gate.
//
// What the Node says is written when the written verdict changes, and not when the annotation differs. Without that: a program in the tenant's cluster
// removes every annotation that it does not know, and both write the Node as fast as they can for ever.
func (d *gateDecider) gateReason(out Decision) *GateReason {
	p := d.input.Previous
	_, isSaid := d.input.Node.Annotations[v1alpha1.AnnotationGate]
	isAdmittedNow := d.verdict.Admitted && !(d.isSameSubject && p.Admitted)
	switch {
	case out.Gate == PlaceGate:
		return NewGateReason(d.input.Node, out.Reason, out.Message, true)
	case out.Gate == LiftGate || isAdmittedNow:
		if isSaid {
			return &GateReason{}
		}
	case d.isGated && !d.isPassing() && d.isNews():
		return NewGateReason(d.input.Node, out.Reason, out.Message, d.verdict.Result == v1alpha1.CheckFail)
	}
	return nil
}

// isNews reports whether the written verdict has another result, or another check fails or fails otherwise.
func (d *gateDecider) isNews() bool {
	p := d.input.Previous
	if !d.isSameSubject || p.Result != d.verdict.Result {
		return true
	}
	return d.verdict.Result == v1alpha1.CheckFail && decidingCheck(*p) != decidingCheck(*d.verdict)
}
