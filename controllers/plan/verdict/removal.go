package verdict

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/contest"
)

// CordonAction is what is done to the cordon of a node whose gate others remove.
type CordonAction string

// The actions on the cordon.
const (
	// KeepCordon leaves the node as it is.
	KeepCordon CordonAction = ""
	// CordonNode makes the node unschedulable and marks it with v1alpha1.AnnotationGateCordoned. A node that is cordoned already is left as it is.
	CordonNode CordonAction = "Cordon"
	// UncordonNode lifts the cordon that has the mark.
	UncordonNode CordonAction = "Uncordon"
)

// removals counts how often somebody else has removed the gate from the node.
//
// Without it: a program in the tenant's cluster removes every taint that it does not know. The gate is placed, the program removes it, and
// both write the Node as fast as they can for ever; the scheduler binds pods in between to a node that nobody has validated.
type removals struct {
	contest.Contest
	input Input
}

func newRemovals(in Input) removals {
	var last *contest.Placement
	if g := in.PlacedGate; g != nil && g.NodeUID == in.Node.UID {
		last = &contest.Placement{At: g.PlacedAt.Time, Removals: g.Removals, RemovedBy: g.RemovedBy}
	}
	return removals{Contest: contest.New(in.Clock, last, HasGate(in.Node, in.Gate)), input: in}
}

// isContested reports whether the gate was removed so often that the node is kept cordoned.
func (r removals) isContested() bool {
	return r.Contest.IsContested() && r.input.OnFailure != v1alpha1.OnFailureObserve
}

// cordon decides about the cordon, given what is done to the gate. The node is cordoned in the same request that places the gate, and at no
// other time: somebody who lifts the cordon too would otherwise cause the endless writes that the pauses prevent.
func (r removals) cordon(g GateAction, mustBeGated bool) CordonAction {
	_, isMarked := r.input.Node.Annotations[v1alpha1.AnnotationGateCordoned]
	switch {
	case mustBeGated && r.isContested():
		if g == PlaceGate && !r.input.Node.Spec.Unschedulable {
			return CordonNode
		}
	case isMarked:
		return UncordonNode
	}
	return KeepCordon
}

// status returns what is stored about the gate, given what is done to it. What is stored is removed when the node need not be gated any more,
// and when the gate was contested and has stayed since.
func (r removals) status(g GateAction, mustBeGated bool) *v1alpha1.GateStatus {
	switch {
	case !mustBeGated:
		return nil
	case g == PlaceGate:
		next := r.Next(r.input.TaintWriter)
		return &v1alpha1.GateStatus{NodeUID: r.input.Node.UID, PlacedAt: metav1.NewMicroTime(next.At), Removals: next.Removals, RemovedBy: next.RemovedBy}
	case !r.IsRecent() && r.input.PlacedGate != nil && r.input.PlacedGate.Removals > 0:
		return nil
	}
	return r.input.PlacedGate
}

// message says what is going on with the gate.
func (r removals) message(g GateAction) string {
	what := fmt.Sprintf("the gate %s of Node %s, which is not validated,", r.input.Gate, r.input.Node.Name)
	return r.Text(what, g == PlaceGate, r.input.TaintWriter) +
		", and the Node is cordoned until the gate stays for " + contest.Window.String() + " or the node is validated: have that program leave the gate alone"
}
