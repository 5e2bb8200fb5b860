package rollout

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/event"
	plan "github.com/ingot-dev/ingot/controllers/plan/rollout"
	"github.com/ingot-dev/ingot/controllers/step"
)

// refuse settles a Rollout that this controller did not create, so a person did. Two Rollouts that move the same Machines would
// each have a budget of their own.
func (r *Reconciler) refuse(ctx context.Context, obs observation) (reconcile.Result, error) {
	after := obs.rollout.DeepCopy()
	message := fmt.Sprintf("NodeType %s did not make this Rollout, so it moves nothing: delete it, and change the NodeType's spec, which makes one", obs.nodeType.Name)
	after.Status.Phase = v1alpha1.RolloutSuperseded
	step.SetCondition(&after.Status.Conditions, after.Generation, r.Clock.Now(), v1alpha1.ConditionReady, metav1.ConditionFalse, string(v1alpha1.RolloutSuperseded), message)
	events := []event.Event{event.Warning(string(v1alpha1.RolloutSuperseded), plan.EventAction, message)}
	return step.Finish(ctx, step.Writer{Client: r.Client, Recorder: r.Recorder}, obs.rollout, after, events, step.Stuck(message))
}

// No label names a Rollout or a NodeType: their number is not bounded by the code.
var (
	phases = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ingot_rollout_phases_total", Help: "Times that a Rollout entered a phase, by phase.",
	}, []string{"phase"})
	starts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ingot_rollout_starts_total", Help: "Machines that Rollouts started, by result: started, conflict or error.",
	}, []string{"result"})
)

func init() { metrics.Registry.MustRegister(phases, starts) }

func countPhase(before, after v1alpha1.RolloutPhase) {
	if before != after {
		phases.WithLabelValues(string(after)).Inc()
	}
}

func countStart(err error) {
	result := "started"
	switch {
	case step.IsConflict(err):
		result = "conflict"
	case err != nil:
		result = "error"
	}
	starts.WithLabelValues(result).Inc()
}
