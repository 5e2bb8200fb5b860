package verdict

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/event"
)

// DefaultSettle holds where the NodeType does not say.
const DefaultSettle = 30 * time.Second

// waitInterval and failInterval are how often a node is looked at without an event of its own while it waits or fails:
// the tenant's DaemonSets may have changed.
const (
	waitInterval = 10 * time.Second
	failInterval = time.Minute
)

// Input is everything that a decision follows from.
type Input struct {
	// Now is the time of the decision.
	Now time.Time
	// Expectation is the promise.
	Expectation v1alpha1.NodeExpectation
	// Identity is who the node must be.
	Identity Identity
	// Node as the tenant's API server shows it.
	Node *corev1.Node
	// SlicesServed: the tenant's API serves resource.k8s.io/v1.
	SlicesServed bool
	// Slices of all drivers that name the node, or lie in a pool that a slice of the node is in, in any order. Judge does
	// not change them.
	Slices []resourcev1.ResourceSlice
	// DeviceClasses by name; those that are not there were not read.
	DeviceClasses map[string]DeviceClass
	// DaemonSets of the tenant; nil when they were not read.
	DaemonSets []appsv1.DaemonSet
	// Previous verdict as it was written; nil: none yet.
	Previous *v1alpha1.Verdict
	// Gate is the key of the gate's taint.
	Gate string
	// Settle is how long every check must pass before the gate is lifted.
	Settle time.Duration
	// Deadline after which what waits fails; zero: none.
	Deadline time.Time
	// OnFailure Observe lifts the gate whatever the checks say.
	OnFailure v1alpha1.FailurePolicy

	inventory inventory
}

// Identity is who a node must be.
type Identity struct {
	// ProviderID that its kubelet was told to register with.
	ProviderID string
	// SystemUUID that the agent read from DMI; empty: the host was not inventoried by the agent, and it is not compared.
	SystemUUID string
	// Revision of the Machine, and the Rendering of it that the node was installed with.
	Revision, Rendering string
}

// Gate is what is to be done to the gate.
type Gate string

// Actions on the gate.
const (
	// Keep leaves it as it is.
	Keep Gate = "Keep"
	// Lift takes the taint off.
	Lift Gate = "Lift"
	// Place puts the taint on.
	Place Gate = "Place"
)

// Decision is the verdict and what follows from it.
type Decision struct {
	// Verdict to be written.
	Verdict v1alpha1.Verdict
	// Gate is done before the verdict is written.
	Gate Gate
	// Status, Reason and Message of the condition Validated.
	Status  metav1.ConditionStatus
	Reason  string
	Message string
	// Requeue is when to look again without an event; zero: at the next event.
	Requeue time.Duration
	// Events to tell.
	Events []event.Event
}

// Judge compares and decides.
func Judge(in Input) Decision {
	v := blank(in)
	v.Checks = checks(in)
	v.Result = summary(v.Checks)
	d := &decider{in: in, verdict: &v, tainted: gated(in.Node, in.Gate), same: same(in.Previous, v)}
	d.since()
	out := Decision{Gate: d.gate()}
	v.Admitted = d.admitted(out.Gate)
	out.Verdict = v
	out.Status, out.Reason, out.Message = d.condition(out.Gate)
	out.Requeue = d.requeue(out.Gate)
	out.Events = d.events(out)
	return out
}

// blank is a verdict that says only what it speaks of.
func blank(in Input) v1alpha1.Verdict {
	return v1alpha1.Verdict{NodeUID: in.Node.UID, BootID: in.Node.Status.NodeInfo.BootID, Revision: in.Identity.Revision, Rendering: in.Identity.Rendering}
}

// gated says whether the gate is on the node.
func gated(node *corev1.Node, gate string) bool {
	for _, t := range node.Spec.Taints {
		if t.Key == gate && t.Effect == corev1.TaintEffectNoSchedule {
			return true
		}
	}
	return false
}

// same says whether the previous verdict speaks of the same Node object, boot and revision.
func same(previous *v1alpha1.Verdict, v v1alpha1.Verdict) bool {
	return previous != nil && previous.NodeUID == v.NodeUID && previous.BootID == v.BootID && previous.Revision == v.Revision && previous.Rendering == v.Rendering
}

func summary(checks []v1alpha1.Check) v1alpha1.CheckResult {
	result := v1alpha1.CheckPass
	for _, c := range checks {
		if c.Result == v1alpha1.CheckFail {
			return v1alpha1.CheckFail
		}
		if c.Result == v1alpha1.CheckWait {
			result = v1alpha1.CheckWait
		}
	}
	return result
}
