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

// NewGateReason returns what the Node must say about its gate, given what is done to it; nil: what it says stays.
//
// A node that waits is written once, and one that passes is not: most nodes pass soon after they joined, and their one write is the one that lifts the gate.
func NewGateReason(node *corev1.Node, gate string, g GateAction, result v1alpha1.CheckResult, reason, message string) *GateReason {
	said, isSaid := node.Annotations[v1alpha1.AnnotationGate]
	if g == LiftGate || g == KeepGate && !HasGate(node, gate) {
		if !isSaid {
			return nil
		}
		return &GateReason{}
	}
	out := &GateReason{Reason: reason, Message: input.Line(message, maxGateMessage), IsWarning: g == PlaceGate || result == v1alpha1.CheckFail}
	_, text, _ := strings.Cut(said, " ")
	out.IsNew = !strings.HasPrefix(text, reason+": ")
	isStale := result == v1alpha1.CheckFail && !strings.HasPrefix(text, reason+": "+out.Message)
	if g == PlaceGate || result != v1alpha1.CheckPass && (!isSaid || isStale) {
		return out
	}
	return nil
}
