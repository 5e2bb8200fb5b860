package host

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// attempts has no label per host: a series for each of a thousand servers helps nobody.
var attempts = prometheus.NewHistogramVec(prometheus.HistogramOpts{
	Name:    "ingot_host_attempt_duration_seconds",
	Help:    "Duration of ended attempts on hosts, by operation, state and reason of failure.",
	Buckets: prometheus.ExponentialBuckets(1, 2, 16),
}, []string{"operation", "state", "reason"})

func init() { metrics.Registry.MustRegister(attempts) }

// count counts an attempt when its end is accounted.
func count(before, after *v1alpha1.WantedAttempt) {
	if after == nil || after.EndedAt == nil || before != nil && before.Number == after.Number && before.EndedAt != nil {
		return
	}
	attempts.WithLabelValues(after.Operation, string(after.Outcome), after.Reason).Observe(after.EndedAt.Sub(after.Since.Time).Seconds())
}
