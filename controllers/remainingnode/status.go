package remainingnode

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// settledNodes has no label that names a host or a tenant: their number is bounded.
var settledNodes = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "ingot_remaining_nodes_settled_total", Help: "Nodes that remained after a release and were deleted, or whose entry was removed from the HostRecord.",
}, []string{"how"})

func init() { metrics.Registry.MustRegister(settledNodes) }
