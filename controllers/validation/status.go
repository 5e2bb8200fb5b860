package validation

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/verdict"
	"github.com/ingot-dev/ingot/controllers/step"
)

// writeVerdict writes the verdict and the condition Validated, and publishes the events.
func (r *Reconciler) writeVerdict(ctx context.Context, m *v1alpha1.Machine, d verdict.Decision) (reconcile.Result, error) {
	after := m.DeepCopy()
	after.Status.Verdict, after.Status.Gate = &d.Verdict, d.PlacedGate
	if !isWritten(m.Status, d) {
		step.SetCondition(&after.Status.Conditions, m.Generation, r.Clock.Now(), v1alpha1.ConditionValidated, d.Status, d.Reason, d.Message)
	}
	outcome := step.Done()
	if d.RequeueAfter > 0 {
		outcome = step.Wait(d.Reason, d.RequeueAfter)
	}
	result, err := step.Finish(ctx, step.Writer{Client: r.Client, Recorder: r.Recorder}, m, after, d.Events, outcome)
	if before := m.Status.Verdict; err == nil && (before == nil || before.Result != d.Verdict.Result) {
		verdicts.WithLabelValues(string(d.Verdict.Result)).Inc()
	}
	return result, err
}

// isWritten reports whether the status says the same already, of whatever generation: the spec of a Machine that is to be rolled names another revision, and
// what is judged is the one that it has. Without it the validation writes at the same time as what begins the roll.
func isWritten(s v1alpha1.MachineStatus, d verdict.Decision) bool {
	is := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionValidated)
	return is != nil && is.Status == d.Status && is.Reason == d.Reason && is.Message == d.Message && equality.Semantic.DeepEqual(s.Verdict, &d.Verdict)
}

// writeUnjudgedReason writes to the condition Validated why the node cannot be judged and, if others remove its gate meanwhile, that.
func (r *Reconciler) writeUnjudgedReason(ctx context.Context, m *v1alpha1.Machine, u unjudgedReason, guard verdict.Decision) (reconcile.Result, error) {
	after := m.DeepCopy()
	after.Status.Gate = guard.PlacedGate
	if guard.Message != "" {
		u.reason, u.message = guard.Reason, guard.Message+"; "+u.message
	}
	if guard.RequeueAfter > 0 && (u.requeueAfter == 0 || guard.RequeueAfter < u.requeueAfter) {
		u.requeueAfter = guard.RequeueAfter
	}
	if u.clearVerdict {
		after.Status.Verdict = nil
	}
	step.SetCondition(&after.Status.Conditions, m.Generation, r.Clock.Now(), v1alpha1.ConditionValidated, u.status, u.reason, u.message)
	outcome := step.Stuck(u.message)
	if u.requeueAfter > 0 {
		outcome = step.Wait(u.reason, u.requeueAfter)
	}
	return step.Finish(ctx, step.Writer{Client: r.Client, Recorder: r.Recorder}, m, after, nil, outcome)
}

// No label names a machine: their number is bounded.
var (
	verdicts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ingot_verdicts_total", Help: "Verdicts whose result changed, by result.",
	}, []string{"result"})
	gateActions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ingot_gate_actions_total", Help: "Times that a gate was lifted or placed, by action and reason.",
	}, []string{"action", "reason"})
)

func init() { metrics.Registry.MustRegister(verdicts, gateActions) }
