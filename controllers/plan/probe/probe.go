package probe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

// Prefix begins the names of the checks that probes make: probe/nvidia.com/gpu.
const Prefix = "probe/"

// RetryInterval is how long after a probe failed the next one is made.
const RetryInterval = 10 * time.Minute

// DefaultTimeout is the time-out of a pod where the NodeType sets none and its kind has no other.
const DefaultTimeout = 5 * time.Minute

// diagTimeouts are those of dcgmi diag by level, each with the time to pull its image. NVIDIA says seconds, 2 minutes, 15 minutes and one to two hours.
var diagTimeouts = map[int32]time.Duration{1: DefaultTimeout, 2: 15 * time.Minute, 3: 45 * time.Minute, 4: 4 * time.Hour}

// MaxPods is how many probes run at the same time in one tenant's cluster. Each may pull a large image.
const MaxPods = 4

// Run is the pod of a probe that exists in the tenant's cluster.
type Run struct {
	// Target and BootID are those that the pod was made for.
	Target, BootID string
	// Phase of the pod, and the message and exit code of its container.
	Phase    corev1.PodPhase
	Message  string
	ExitCode int32
	// Waiting is why the pod does not run yet; empty: it runs, or it is not known.
	Waiting string
	// Created is when the pod was made.
	Created time.Time
	// IsDeleted is true while the pod is being deleted.
	IsDeleted bool
}

// isOver reports whether the pod has ended.
func (r Run) isOver() bool { return r.Phase == corev1.PodSucceeded || r.Phase == corev1.PodFailed }

// Input is everything that a Decision depends on.
type Input struct {
	// Clock is the time of the decision.
	watched.Clock
	// Spec is validation.probe; nil: there is no probe.
	Spec *v1alpha1.ProbeSpec
	// Expectation of the node.
	Expectation v1alpha1.NodeExpectation
	// BootID of the node.
	BootID string
	// Previous is the verdict about the same Node object, boot, revision and rendering; nil: none.
	Previous *v1alpha1.Verdict
	// IsReady is true if every other check passes and the gate is on.
	IsReady bool
	// Run is the node's pod; nil: there is none.
	Run *Run
	// Holders are the pods of others that hold devices of the node, as NAMESPACE/NAME.
	Holders []string
	// Others is how many probes run on other nodes of the tenant.
	Others int
}

// Action is what is done to the node's pod.
type Action string

// The actions on the pod.
const (
	// Keep leaves it as it is.
	Keep Action = "Keep"
	// Create makes the pod of Target.
	Create Action = "Create"
	// Delete deletes the pod and its claim.
	Delete Action = "Delete"
)

// Decision is what is done, and the checks of the verdict.
type Decision struct {
	// Action on the pod. Delete is carried out after the checks are written.
	Action Action
	// Target of a pod that is made.
	Target Target
	// Checks of the verdict, in the order of the targets.
	Checks []v1alpha1.Check
	// ProbedAt is written with the checks; nil: no probe has ended.
	ProbedAt *time.Time
}

// Decide decides about the pod of a node, and which checks the verdict has.
func Decide(in Input) Decision {
	d := Decision{Action: Keep}
	if in.Previous != nil && in.Previous.ProbedAt != nil {
		d.ProbedAt = &in.Previous.ProbedAt.Time
	}
	switch {
	case in.Previous != nil && in.Previous.Admitted:
		if in.Spec != nil {
			d.Checks = keptChecks(in.Previous)
		}
	case in.Spec != nil:
		d.addTargets(in)
	}
	if in.Run != nil && !d.isOfRun(in) {
		d.removePod(in)
	}
	return d
}

// addTargets adds the checks of all targets, unless the node is judged without the probe.
func (d *Decision) addTargets(in Input) {
	switch {
	case in.Run == nil && !in.IsReady && len(heldChecks(in.Previous)) > 0:
		// The gate was lifted, and the verdict that admits the node comes next.
		d.Checks = keptChecks(in.Previous)
	case len(in.Holders) > 0 && in.Run == nil:
		d.Checks = append(knownChecks(in.Previous), newHeldCheck(in.Holders))
	default:
		for _, t := range Targets(in.Expectation, *in.Spec) {
			d.addTarget(in, t)
		}
	}
}

// Denied returns the decision about a node whose pods may not be read: its verdict waits, and what is known is kept.
func Denied(previous *v1alpha1.Verdict, message string) Decision {
	d := Decision{Action: Keep, Checks: append(knownChecks(previous), v1alpha1.Check{
		Name: CheckRights, Result: v1alpha1.CheckWait, Expected: "validation.probe may make pods", Observed: input.Line(message, maxText), Hint: rightsHint,
	})}
	if previous != nil && previous.ProbedAt != nil {
		d.ProbedAt = &previous.ProbedAt.Time
	}
	return d
}

// rightsHint says what the tenant must allow.
const rightsHint = "the user of the TenantCluster's kubeconfig must be allowed to get, list, create and delete pods, and to create and delete resourceclaims, in the namespace default: see validation.probe in the README"

// removePod deletes the pod, and lets the verdict wait until it is gone. Without it: the pod cannot be deleted, the node is admitted, and nobody looks for the pod again,
// which keeps devices that the tenant may use now.
func (d *Decision) removePod(in Input) {
	d.Action = Keep
	if !in.Run.IsDeleted {
		d.Action = Delete
	}
	d.Checks = append(d.Checks, v1alpha1.Check{
		Name: CheckLeft, Result: v1alpha1.CheckWait, Expected: "no pod of a probe is left", Observed: "one is being deleted", Hint: "kubectl get pods -A -l " + v1alpha1.LabelProbe,
	})
}

// isOfRun reports whether a target still waits for the pod that runs.
func (d *Decision) isOfRun(in Input) bool {
	return in.Spec != nil && in.IsReady && !in.Run.isOver() && !in.Run.IsDeleted && in.Run.BootID == in.BootID && !isOverdue(in) &&
		slices.ContainsFunc(d.Checks, func(c v1alpha1.Check) bool {
			return c.Name == Prefix+in.Run.Target && c.Result == v1alpha1.CheckWait
		})
}

// addTarget adds the checks of a target, and decides about its pod unless a target before it has one.
func (d *Decision) addTarget(in Input, t Target) {
	if known := checksOf(in, t); known != nil {
		d.Checks = append(d.Checks, known...)
		return
	}
	if hasEnded(in, t) {
		now := in.Now
		d.Checks, d.ProbedAt = append(d.Checks, resultChecks(in, t)...), &now
		return
	}
	check := v1alpha1.Check{Name: Prefix + t.Name, Result: v1alpha1.CheckWait, Expected: t.text(), Observed: "not made yet", Hint: "the pod is made when every other check passes"}
	switch {
	case in.Run != nil && in.Run.Target == t.Name:
		check.Observed = strings.TrimSuffix("the pod is "+strings.ToLower(string(in.Run.Phase))+": "+input.Line(in.Run.Waiting, maxText), ": ")
		check.Hint = "kubectl describe pod -A -l " + v1alpha1.LabelProbe
	case !in.IsReady || in.Run != nil || d.Action == Create:
	case in.Others >= MaxPods:
		check.Hint = fmt.Sprintf("%d probes run on other nodes of the cluster, and no more run at the same time", in.Others)
	default:
		d.Action, d.Target, check.Observed, check.Hint = Create, t, "the pod is made", "if it is refused, the manager's log says why; "+rightsHint
	}
	d.Checks = append(d.Checks, check)
}

// hasEnded reports whether the pod of the target has ended in this boot, or has had its time.
func hasEnded(in Input, t Target) bool {
	r := in.Run
	return r != nil && r.Target == t.Name && r.BootID == in.BootID && !r.IsDeleted && (r.isOver() || isOverdue(in))
}

// isOverdue reports whether the pod has had its time. A pod that nobody schedules, because another scheduler or a quota is in the way, ends only so.
func isOverdue(in Input) bool { return in.Ago(in.Run.Created) >= Timeout(*in.Spec) }

// Timeout returns the time-out of one pod.
func Timeout(s v1alpha1.ProbeSpec) time.Duration {
	if s.Timeout != nil && s.Timeout.Duration > 0 {
		return s.Timeout.Duration
	}
	if s.Kind == v1alpha1.ProbeDCGMDiag {
		return cmp.Or(diagTimeouts[s.Level], DefaultTimeout)
	}
	return DefaultTimeout
}

// checksOf returns what is known of a target: the checks of its probe in the previous verdict. Those of a probe that failed are forgotten after RetryInterval.
func checksOf(in Input, t Target) []v1alpha1.Check {
	var out []v1alpha1.Check
	failed := false
	for _, c := range knownChecks(in.Previous) {
		if c.Name == Prefix+t.Name || strings.HasPrefix(c.Name, Prefix+t.Name+"/") {
			out, failed = append(out, c), failed || c.Result == v1alpha1.CheckFail
		}
	}
	if failed && (in.Previous.ProbedAt == nil || in.Ago(in.Previous.ProbedAt.Time) >= RetryInterval) {
		return nil
	}
	return out
}

// knownChecks returns the checks of probes that ended.
func knownChecks(previous *v1alpha1.Verdict) []v1alpha1.Check {
	var out []v1alpha1.Check
	if previous == nil {
		return nil
	}
	for _, c := range previous.Checks {
		if strings.HasPrefix(c.Name, Prefix) && !slices.Contains([]string{CheckHeld, CheckLeft, CheckRights}, c.Name) && c.Result != v1alpha1.CheckWait {
			out = append(out, c)
		}
	}
	return out
}

// CheckHeld is the check of a node that is judged without the probe, CheckLeft that of a pod that has not gone yet, and CheckRights that of rights that are missing.
const (
	CheckRights = Prefix + "rights"
	CheckHeld   = Prefix + "not-made"
	CheckLeft   = Prefix + "pod"
)

// keptChecks returns what the previous verdict says of the probes.
func keptChecks(previous *v1alpha1.Verdict) []v1alpha1.Check {
	return append(knownChecks(previous), heldChecks(previous)...)
}

// heldChecks returns the check of the previous verdict that says why there was no probe.
func heldChecks(previous *v1alpha1.Verdict) []v1alpha1.Check {
	if previous == nil {
		return nil
	}
	at := slices.IndexFunc(previous.Checks, func(c v1alpha1.Check) bool { return c.Name == CheckHeld })
	if at < 0 {
		return nil
	}
	return previous.Checks[at : at+1]
}

func newHeldCheck(holders []string) v1alpha1.Check {
	return v1alpha1.Check{
		Name: CheckHeld, Result: v1alpha1.CheckPass, Expected: "no pod holds a device",
		Observed: input.Line(fmt.Sprintf("judged without the probe: %d pods hold devices of the node, the first %s", len(holders), holders[0]), maxText),
	}
}
