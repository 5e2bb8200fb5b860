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

// dhcpAnswers and tftpAnswers have no label for the host for the same reason. Stage, answer and result have the values of the packages dhcp and tftp.
var (
	dhcpAnswers = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ingot_boot_dhcp_requests_total",
		Help: "DHCP requests on the provisioning network, by who asked and by how they were answered.",
	}, []string{"stage", "answer"})
	tftpAnswers = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ingot_boot_tftp_requests_total",
		Help: "TFTP requests on the provisioning network, by their result.",
	}, []string{"result"})
)

func init() { metrics.Registry.MustRegister(bootEvents, dhcpAnswers, tftpAnswers) }

// CountDHCP adds a request of dhcp.Options.Count to the metric.
func CountDHCP(stage, answer string) { dhcpAnswers.WithLabelValues(stage, answer).Inc() }

// CountTFTP adds a result of tftp.Serve to the metric.
func CountTFTP(result string) { tftpAnswers.WithLabelValues(result).Inc() }

// CountBootEvent adds an event of netboot.Options.Count to the metric.
func CountBootEvent(event string) { bootEvents.WithLabelValues(event).Inc() }
