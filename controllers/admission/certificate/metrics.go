package certificate

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var steps = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "ingot_webhook_certificate_steps_total",
	Help: "What was done about the webhook's certificate, and whether it succeeded; rest stands for looking alone.",
}, []string{"action", "succeeded"})

func init() { metrics.Registry.MustRegister(steps) }

func count(done Decision, err error) {
	steps.WithLabelValues(done.Action.String(), strconv.FormatBool(err == nil)).Inc()
}
