package host

import (
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	plan "github.com/ingot-dev/ingot/controllers/plan/host"
)

// applyStatus makes the BareMetalHost's status what was decided.
func applyStatus(host *metal3.BareMetalHost, seen sight, d plan.Decision) {
	before := host.Status.DeepCopy()
	s := &host.Status
	s.Provisioning.State, s.Provisioning.ID = metal3.ProvisioningState(d.Status.State), string(host.UID)
	s.OperationalStatus = metal3.OperationalStatus(d.Status.OperationalStatus)
	s.ErrorType, s.ErrorMessage, s.ErrorCount = metal3.ErrorType(d.Status.ErrorType), d.Status.ErrorMessage, d.Status.ErrorCount
	s.PoweredOn = d.Status.PoweredOn
	switch d.Status.State {
	case plan.StateProvisioned:
		if host.Spec.Image != nil {
			s.Provisioning.Image = *host.Spec.Image
		}
	case plan.StateAvailable, plan.StatePreparing:
		s.Provisioning.Image = metal3.Image{}
	}
	applyHardware(host, d)
	applyCredentials(host, seen)
	// LastUpdated also says when credentials were refused last.
	refused := seen.secretVersion != "" && seen.facts.Problem != nil && seen.facts.Problem.Reason == v1alpha1.ReasonBMCUnauthorized
	if refused || !equality.Semantic.DeepEqual(before, s) {
		now := metav1.NewTime(seen.facts.Now)
		s.LastUpdated = &now
	}
}

// applyHardware shows the inventory in the fields that Metal3 has for it. While an attempt runs it waits for the status that is
// written at the end: it is worth no write of its own.
func applyHardware(host *metal3.BareMetalHost, d plan.Decision) {
	if d.Record.Inventory != nil && (host.Status.HardwareDetails == nil || !d.Record.Wanted.IsOpen()) {
		host.Status.HardwareDetails = hardwareDetails(d.Record.Inventory)
	}
}

// applyCredentials shows which version of the Secret was tried, and which worked last.
func applyCredentials(host *metal3.BareMetalHost, seen sight) {
	if seen.secretVersion == "" {
		return
	}
	tried := metal3.CredentialsStatus{
		Reference: &corev1.SecretReference{Name: host.Spec.BMC.CredentialsName, Namespace: host.Namespace},
		Version:   seen.secretVersion,
	}
	host.Status.TriedCredentials = tried
	if seen.facts.Problem == nil {
		host.Status.GoodCredentials = tried
	}
}
