package machine

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
)

var (
	phaseSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "ingot_machine_phase_seconds",
		Help:    "How long Machines stayed in a phase before they left it.",
		Buckets: prometheus.ExponentialBuckets(0.5, 2, 16),
	}, []string{"phase"})
	actions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ingot_machine_actions_total",
		Help: "Side effects of Machines' lives, by kind and whether they succeeded.",
	}, []string{"action", "succeeded"})
)

func init() { metrics.Registry.MustRegister(phaseSeconds, actions) }

func countAction(kind lifecycle.ActionKind, err error) {
	succeeded := "true"
	if err != nil {
		succeeded = "false"
	}
	actions.WithLabelValues(string(kind), succeeded).Inc()
}

// observePhase records how long the phase that is left had lasted.
func observePhase(left v1alpha1.MachineStatus, now time.Time) {
	if n := len(left.Timeline); n > 0 {
		phaseSeconds.WithLabelValues(string(left.Phase)).Observe(now.Sub(left.Timeline[n-1].At.Time).Seconds())
	}
}
