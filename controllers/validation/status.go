package validation

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/verdict"
	"github.com/ingot-dev/ingot/controllers/step"
)

// writeVerdict writes the verdict and the condition Validated, and publishes the events.
func (r *Reconciler) writeVerdict(ctx context.Context, m *v1alpha1.Machine, d verdict.Decision) (reconcile.Result, error) {
	after := m.DeepCopy()
	after.Status.Verdict = &d.Verdict
	step.SetCondition(&after.Status.Conditions, m.Generation, r.Clock.Now(), v1alpha1.ConditionValidated, d.Status, d.Reason, d.Message)
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

// writeFinding reports why the node cannot be judged. The verdict stays, unless its Node is not this Machine's any more.
func (r *Reconciler) writeFinding(ctx context.Context, m *v1alpha1.Machine, f finding) (reconcile.Result, error) {
	after := m.DeepCopy()
	if f.noNode {
		after.Status.Verdict = nil
	}
	step.SetCondition(&after.Status.Conditions, m.Generation, r.Clock.Now(), v1alpha1.ConditionValidated, f.status, f.reason, f.message)
	outcome := step.Stuck(f.message)
	if f.again > 0 {
		outcome = step.Wait(f.reason, f.again)
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
