package verdict

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

const (
	// removalWindow is how long the gate must stay on a node until its earlier removals are forgotten.
	removalWindow = 10 * time.Minute
	// quickRemovals is how many removals are answered at once. After that many the node is cordoned, and the pauses before the gate is placed
	// again grow.
	quickRemovals = 3
	// firstPause and maxPause are the limits of the pause, which doubles with every removal. maxPause is shorter than removalWindow, or a gate
	// that is removed for ever would be placed at once again.
	firstPause, maxPause = 10 * time.Second, 5 * time.Minute
	// maxRemovals is the number at which the count stays.
	maxRemovals = 1000
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
	input Input
	// placed is the state of the gate that was placed on this Node within the window; nil: it was not.
	placed *v1alpha1.GateStatus
	// isGated is true if the gate is on the node.
	isGated bool
}

func newRemovals(in Input) removals {
	r := removals{input: in, isGated: HasGate(in.Node, in.Gate)}
	if g := in.PlacedGate; g != nil && g.NodeUID == in.Node.UID && in.Now.Sub(g.PlacedAt.Time) < removalWindow {
		r.placed = g
	}
	return r
}

// count is the number of removals, with the one that is observed now.
func (r removals) count() int32 {
	switch {
	case r.placed == nil:
		return 0
	case r.isGated:
		return r.placed.Removals
	default:
		return min(r.placed.Removals+1, maxRemovals)
	}
}

// pauseLeft returns how long the gate must not be placed yet.
func (r removals) pauseLeft() time.Duration {
	n := r.count() - quickRemovals
	if n <= 0 {
		return 0
	}
	pause := maxPause
	if n < 10 {
		pause = min(firstPause<<(n-1), maxPause)
	}
	return max(r.placed.PlacedAt.Add(pause).Sub(r.input.Now), 0)
}

// isContested reports whether the gate was removed so often that the node is kept cordoned.
func (r removals) isContested() bool {
	return r.count() >= quickRemovals && r.input.OnFailure != v1alpha1.OnFailureObserve
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
		s := &v1alpha1.GateStatus{NodeUID: r.input.Node.UID, PlacedAt: metav1.NewMicroTime(r.input.Now), Removals: r.count()}
		if s.Removals > 0 {
			s.RemovedBy = v1alpha1.Truncate(r.input.TaintWriter, maxWriter)
		}
		return s
	case r.placed == nil && r.input.PlacedGate != nil && r.input.PlacedGate.Removals > 0:
		return nil
	}
	return r.input.PlacedGate
}

// maxWriter limits the name of a program that the tenant's API server reports, in bytes.
const maxWriter = 128

// message says what is going on with the gate.
func (r removals) message(g GateAction, pause time.Duration) string {
	writer, count := r.input.TaintWriter, r.count()
	if g != PlaceGate {
		writer, count = r.placed.RemovedBy, r.placed.Removals // the next placement records what is observed now
	}
	if writer == "" {
		writer = "a program that the Node's managedFields do not name: the audit log of the tenant's API server has it"
	}
	text := fmt.Sprintf("the gate %s was removed %d times from Node %s although the node is not validated, last by %s; ", r.input.Gate, count, r.input.Node.Name, v1alpha1.Truncate(writer, maxWriter))
	switch {
	case pause > 0:
		text += "it is placed again at " + r.input.Now.Add(pause).UTC().Format(time.TimeOnly+"Z")
	default:
		text += "it is on the Node again"
	}
	return text + ", and the Node is cordoned until the gate stays for " + removalWindow.String() + " or the node is validated: have that program leave the gate alone"
}

// LastTaintWriter returns the field manager that wrote the taints of a Node last; empty: the managed fields do not tell. They do not when the
// last taint was removed, because a field that does not exist has no manager.
func LastTaintWriter(fields []metav1.ManagedFieldsEntry) string {
	var last *metav1.ManagedFieldsEntry
	for i := range fields {
		e := &fields[i]
		if hasTaints(e) && (last == nil || last.Time == nil || e.Time != nil && e.Time.After(last.Time.Time)) {
			last = e
		}
	}
	if last == nil {
		return ""
	}
	return last.Manager
}

func hasTaints(e *metav1.ManagedFieldsEntry) bool {
	var owned struct {
		Spec map[string]json.RawMessage `json:"f:spec"`
	}
	if e.FieldsV1 == nil || json.Unmarshal(e.FieldsV1.GetRawBytes(), &owned) != nil {
		return false
	}
	_, owns := owned.Spec["f:taints"]
	return owns
}
