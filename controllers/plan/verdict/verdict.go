package verdict

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/event"
	"github.com/ingot-dev/ingot/controllers/plan/nodeidentity"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

// DefaultSettle is the settle time of a NodeType that sets none.
const DefaultSettle = 30 * time.Second

// waitInterval and failInterval are how often a node that waits, or fails, is judged without an event, because the tenant's
// DaemonSets may have changed.
const (
	waitInterval = 10 * time.Second
	failInterval = time.Minute
)

// Input is everything that a Decision depends on.
type Input struct {
	// Clock is the time of the decision.
	watched.Clock
	// Expectation is what the node must show.
	Expectation v1alpha1.NodeExpectation
	// Identity of the installation that the node must be.
	Identity Identity
	// Node is the Node object of the tenant's API server.
	Node *corev1.Node
	// SlicesServed is true if the tenant's API server serves resource.k8s.io/v1.
	SlicesServed bool
	// Slices are the ResourceSlices of all drivers that name the node, and those in the same pools, in any order. Judge does not
	// change them.
	Slices []resourcev1.ResourceSlice
	// DeviceClasses are the tenant's, by name. A name that is missing was not read.
	DeviceClasses map[string]DeviceClass
	// DaemonSets of the tenant; nil if they were not read.
	DaemonSets []appsv1.DaemonSet
	// HasBeenReady says that the node was admitted in its present installation. Its tenant's claims may hold devices since.
	HasBeenReady bool
	// Previous is the verdict that is written in the Machine's status; nil: none.
	Previous *v1alpha1.Verdict
	// Gate is the key of the gate's taint.
	Gate string
	// PlacedGate is what the Machine's status says of the gate that was placed; nil: nothing.
	PlacedGate *v1alpha1.GateStatus
	// TaintWriter is the field manager that wrote the Node's taints last, as LastTaintWriter returns it; empty: it was not read or is not known.
	TaintWriter string
	// Settle is how long every check must pass before the gate is lifted.
	Settle time.Duration
	// Deadline is when checks that wait begin to fail; zero: never.
	Deadline time.Time
	// OnFailure is validation.onFailure. With Observe the gate is lifted whatever the checks say.
	OnFailure v1alpha1.FailurePolicy
	// GPUModeReport is validation.gpuModeReport.
	GPUModeReport v1alpha1.ReportPolicy
	// Kubelet has the members of KubeletConfiguration that the node was installed with, a JSON object: spec.kubelet of its revision; empty: there are none.
	Kubelet []byte
	// ProbeChecks are the checks of package probe, and ProbedAt is when a probe ended last; nil: none has.
	ProbeChecks []v1alpha1.Check
	ProbedAt    *time.Time

	// pools are the pools of Slices. runChecks sets them.
	pools devicePools
}

// Identity identifies the installation that a node must be.
type Identity struct {
	// Claim is what the Node must be known by. Its SystemUUID is compared unless it is empty: then the agent did not inspect the host.
	Claim nodeidentity.Claim
	// Revision and Rendering are those that the node was installed with.
	Revision, Rendering string
}

// GateAction is what is done to the gate.
type GateAction string

// The actions on the gate.
const (
	// KeepGate leaves the node as it is, with or without the gate.
	KeepGate GateAction = "Keep"
	// LiftGate removes the taint.
	LiftGate GateAction = "Lift"
	// PlaceGate adds the taint.
	PlaceGate GateAction = "Place"
)

// Decision is the verdict and what follows from it.
type Decision struct {
	// Verdict is written to the Machine's status.
	Verdict v1alpha1.Verdict
	// Gate is carried out before the verdict is written.
	Gate GateAction
	// Cordon is carried out with Gate, in one request.
	Cordon CordonAction
	// GateReason is what the Node says about its gate, in the same request; nil: that stays.
	GateReason *GateReason
	// PlacedGate is written to the Machine's status with the verdict.
	PlacedGate *v1alpha1.GateStatus
	// Status, Reason and Message are those of the condition Validated.
	Status  metav1.ConditionStatus
	Reason  string
	Message string
	// RequeueAfter is when to judge again without an event; 0: only at an event.
	RequeueAfter time.Duration
	// Events are emitted after the verdict is written.
	Events []event.Event
}

// Judge makes the checks and decides about the gate.
func Judge(in Input) Decision {
	v := newVerdict(in)
	v.Checks = runChecks(in)
	if in.ProbedAt != nil {
		at := metav1.NewMicroTime(*in.ProbedAt)
		v.ProbedAt = &at
	}
	v.Result = overallResult(v.Checks)
	d := &gateDecider{input: in, verdict: &v, isGated: HasGate(in.Node, in.Gate), isSameSubject: isSameSubject(in.Previous, v), removals: newRemovals(in)}
	d.setSince()
	var out Decision
	out.Gate = d.gateActionNow()
	out.Cordon, out.PlacedGate = d.removals.cordon(out.Gate, d.mustBeGated), d.removals.status(out.Gate, d.mustBeGated)
	v.Admitted = d.isAdmitted(out.Gate)
	out.Verdict = v
	out.Status, out.Reason, out.Message = d.condition(out.Gate)
	out.GateReason = d.gateReason(out)
	out.RequeueAfter = d.requeueAfter(out.Gate)
	out.Events = d.events(out)
	return out
}

// newVerdict returns a verdict without a result: it says only which Node object, boot, revision and rendering it is about.
func newVerdict(in Input) v1alpha1.Verdict {
	return v1alpha1.Verdict{NodeUID: in.Node.UID, BootID: in.Node.Status.NodeInfo.BootID, Revision: in.Identity.Revision, Rendering: in.Identity.Rendering}
}

// HasGate reports whether the gate is on the node.
func HasGate(node *corev1.Node, gate string) bool {
	for _, t := range node.Spec.Taints {
		if t.Key == gate && t.Effect == corev1.TaintEffectNoSchedule {
			return true
		}
	}
	return false
}

// PreviousOf returns the previous verdict if it is about the same Node object, boot, revision and rendering; nil: it is not.
func PreviousOf(in Input) *v1alpha1.Verdict {
	if !isSameSubject(in.Previous, newVerdict(in)) {
		return nil
	}
	return in.Previous
}

// isSameSubject reports whether the previous verdict is about the same Node object, boot, revision and rendering.
func isSameSubject(previous *v1alpha1.Verdict, v v1alpha1.Verdict) bool {
	return previous != nil && previous.NodeUID == v.NodeUID && previous.BootID == v.BootID && previous.Revision == v.Revision && previous.Rendering == v.Rendering
}

// overallResult is Fail if a check fails, else Wait if one waits, else Pass.
func overallResult(checks []v1alpha1.Check) v1alpha1.CheckResult {
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
