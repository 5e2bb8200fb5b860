package host

import (
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	plan "github.com/ingot-dev/ingot/controllers/plan/host"
)

// applyStatus sets the BareMetalHost's status to what was decided.
func applyStatus(host *metal3.BareMetalHost, obs observation, d plan.Decision) {
	before := host.Status.DeepCopy()
	s := &host.Status
	s.Provisioning.State, s.Provisioning.ID = d.Status.State, string(host.UID)
	s.OperationalStatus = d.Status.OperationalStatus
	s.ErrorType, s.ErrorMessage, s.ErrorCount = d.Status.ErrorType, d.Status.ErrorMessage, d.Status.ErrorCount
	s.PoweredOn = d.Status.PoweredOn
	switch d.Status.State {
	case metal3.StateProvisioned:
		if host.Spec.Image != nil {
			s.Provisioning.Image = *host.Spec.Image
		}
	case metal3.StateAvailable, metal3.StatePreparing:
		s.Provisioning.Image = metal3.Image{}
	}
	applyHardware(host, d)
	applyCredentials(host, obs)
	// LastUpdated is also the time at which the BMC last refused the credentials.
	refused := obs.secretVersion != "" && obs.facts.Problem != nil && obs.facts.Problem.Reason == v1alpha1.ReasonBMCUnauthorized
	if refused || !equality.Semantic.DeepEqual(before, s) {
		now := metav1.NewTime(obs.facts.Now)
		s.LastUpdated = &now
	}
}

// applyHardware sets Metal3's fields for the inventory. While an attempt runs it does not change them, so that they are written together
// with the end of the attempt.
func applyHardware(host *metal3.BareMetalHost, d plan.Decision) {
	if d.Record.Inventory != nil && (host.Status.HardwareDetails == nil || !d.Record.Wanted.IsOpen()) {
		host.Status.HardwareDetails = hardwareDetails(d.Record.Inventory, host.Spec.BootMACAddress)
	}
}

// applyCredentials sets which version of the Secret was tried last and which one the BMC accepted last.
func applyCredentials(host *metal3.BareMetalHost, obs observation) {
	if obs.secretVersion == "" {
		return
	}
	tried := metal3.CredentialsStatus{
		Reference: &corev1.SecretReference{Name: host.Spec.BMC.CredentialsName, Namespace: host.Namespace},
		Version:   obs.secretVersion,
	}
	host.Status.TriedCredentials = tried
	if obs.facts.Problem == nil {
		host.Status.GoodCredentials = tried
	}
}

// attempts has no label for the host, because a thousand servers would cause a thousand series.
var attempts = prometheus.NewHistogramVec(prometheus.HistogramOpts{
	Name:    "ingot_host_attempt_duration_seconds",
	Help:    "Duration of ended attempts on hosts, by operation, state and reason of failure.",
	Buckets: prometheus.ExponentialBuckets(1, 2, 16),
}, []string{"operation", "state", "reason"})

func init() { metrics.Registry.MustRegister(attempts) }

// countAttempt adds an attempt to the metric when its end is recorded.
func countAttempt(before, after *v1alpha1.WantedAttempt) {
	if after == nil || after.EndedAt == nil || before != nil && before.Number == after.Number && before.EndedAt != nil {
		return
	}
	attempts.WithLabelValues(after.Operation, string(after.Outcome), after.Reason).Observe(after.EndedAt.Sub(after.Since.Time).Seconds())
}
