package sessions

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// bootEvents has no label for the host: anybody on the provisioning network can cause these events for every host.
var bootEvents = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "ingot_boot_events_total",
	Help: "What the boot service was asked: boot documents by their kind, requests of strangers, requests over a limit, and refused agents.",
}, []string{"event"})

func init() { metrics.Registry.MustRegister(bootEvents) }

// CountBootEvent adds an event of netboot.Options.Count to the metric.
func CountBootEvent(event string) { bootEvents.WithLabelValues(event).Inc() }
