package rollout

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/step"
)

// No label names a Rollout or a NodeType: their number is not bounded by the code.
var (
	phases = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ingot_rollout_phases_total", Help: "Times that a Rollout entered a phase, by phase.",
	}, []string{"phase"})
	starts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ingot_rollout_starts_total", Help: "Machines that Rollouts told to move, by result: told, conflict or error.",
	}, []string{"result"})
)

func init() { metrics.Registry.MustRegister(phases, starts) }

func countPhase(before, after v1alpha1.RolloutPhase) {
	if before != after {
		phases.WithLabelValues(string(after)).Inc()
	}
}

func countStart(err error) {
	result := "told"
	switch {
	case step.IsConflict(err):
		result = "conflict"
	case err != nil:
		result = "error"
	}
	starts.WithLabelValues(result).Inc()
}
