package validation

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

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
