package baremetaloperator_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/test/baremetaloperator"
)

// conditions returns those of the host in short: Type=Status(Reason), in order.
func (s *site) conditions() string {
	s.t.Helper()
	var out []string
	for _, kind := range []string{"Manageable", "AvailableForProvisioning", "Provisioned", "Ready", "Progressing"} {
		c := s.condition(kind)
		out = append(out, fmt.Sprintf("%s=%s(%s)", kind, c.Status, c.Reason))
	}
	return strings.Join(out, " ")
}

// underWay are the conditions of a host in a state in which work is under way.
func underWay(reason string) string {
	return "Manageable=True(Manageable) AvailableForProvisioning=False(NotAvailable) Provisioned=False(NotProvisioned) Ready=False(NotProvisioned) Progressing=True(" + reason + ")"
}

const provisioned = "Manageable=True(Manageable) AvailableForProvisioning=False(NotAvailable) Provisioned=True(Provisioned) Ready=True(Provisioned) Progressing=False(NotProgressing)"

func TestTheConditionsSayTheState(t *testing.T) {
	for state, want := range map[metal3.ProvisioningState]string{
		metal3.StateRegistering:             strings.Replace(underWay("Registering"), "Manageable=True(Manageable)", "Manageable=False(Registering)", 1),
		metal3.StateInspecting:              underWay("Inspecting"),
		metal3.StatePreparing:               underWay("Preparing"),
		metal3.StateAvailable:               "Manageable=True(Manageable) AvailableForProvisioning=True(Available) Provisioned=False(NotProvisioned) Ready=False(NotProvisioned) Progressing=False(NotProgressing)",
		metal3.StateProvisioning:            underWay("Provisioning"),
		metal3.StateProvisioned:             provisioned,
		metal3.StateExternallyProvisioned:   provisioned,
		metal3.StateDeprovisioning:          underWay("Deprovisioning"),
		metal3.StatePoweringOffBeforeDelete: underWay("PoweringOffBeforeDelete"),
		metal3.StateDeleting:                underWay("Deleting"),
	} {
		t.Run(string(state), func(t *testing.T) {
			s := newSite(t, true)
			s.reach(state)
			if got := s.conditions(); got != want {
				t.Errorf("a host that is %s has\n%s, expected\n%s", state, got, want)
			}
			if c := s.condition("Healthy"); c.Status != metav1.ConditionTrue || c.Reason != "Healthy" {
				t.Errorf("a host whose BMC reports OK has %+v", c)
			}
			s.server.SetPowerFailure(true)
			if err := s.look(); err != nil {
				t.Fatal(err)
			}
			isSeen := !slices.Contains([]metal3.ProvisioningState{metal3.StateRegistering, metal3.StateDeleting}, state)
			if c := s.condition("Manageable"); (c.Reason == "PowerFailure") != isSeen {
				t.Errorf("a host that is %s and whose power cannot be seen has %+v", state, c)
			}
		})
	}
}

// TestTheConditionHealthyKeepsItsGenerationWhereTheBMCReportsNothing changes the spec, which the other conditions observe at the next look.
func TestTheConditionHealthyKeepsItsGenerationWhereTheBMCReportsNothing(t *testing.T) {
	s := newSite(t, true)
	s.server.SetHealth("")
	s.reach(metal3.StateAvailable)
	first := s.condition("Healthy")
	if first.Status != metav1.ConditionUnknown || first.Reason != "Unknown" {
		t.Errorf("at first the condition is %+v", first)
	}
	s.edit(func(h *metal3.BareMetalHost) { h.Spec.Description = "row 4" })
	s.settle()
	generation := s.host().Generation
	if ready := s.condition("Ready"); ready.ObservedGeneration != generation {
		t.Errorf("Ready has observed generation %d of %d", ready.ObservedGeneration, generation)
	}
	if now := s.condition("Healthy"); now != first || now.ObservedGeneration >= generation {
		t.Errorf("Healthy was %+v and is %+v at generation %d", first, now, generation)
	}
	for health, want := range map[baremetaloperator.Health]string{baremetaloperator.HealthWarning: "False(Warning)", baremetaloperator.HealthCritical: "False(CriticalError)", "Odd": "Unknown(Unknown)"} {
		s.server.SetHealth(health)
		if err := s.look(); err != nil {
			t.Fatal(err)
		}
		if c := s.condition("Healthy"); fmt.Sprintf("%s(%s)", c.Status, c.Reason) != want || c.ObservedGeneration != generation {
			t.Errorf("the BMC reports %s: %+v", health, c)
		}
	}
}

// TestAnErrorOfTheCredentialsLeavesTheConditions as they were: Ready stays true while the status has the error.
func TestAnErrorOfTheCredentialsLeavesTheConditions(t *testing.T) {
	s := newSite(t, true)
	s.reach(metal3.StateProvisioned)
	giveBack := s.take("bmc")
	if err := s.look(); err != nil {
		t.Fatal(err)
	}
	h := s.host()
	if h.Status.OperationalStatus != metal3.OperationalStatusError || h.Status.ErrorType != metal3.RegistrationError || s.due.Sub(s.now) != pollInterval {
		t.Errorf("without the Secret of its BMC the host has %s, and is looked at after %s", s.describe(), s.due.Sub(s.now))
	}
	if got := s.conditions(); got != provisioned {
		t.Errorf("without the Secret of its BMC the conditions are\n%s", got)
	}
	giveBack()
	s.settle()
	if h := s.host(); h.Status.ErrorType != "" || h.Status.OperationalStatus != metal3.OperationalStatusOK {
		t.Errorf("with the Secret again the host has %s", s.describe())
	}
}

func TestAnErrorMakesReadyFalse(t *testing.T) {
	s := newSite(t, true)
	s.reach(metal3.StateProvisioned)
	s.server.Fail(baremetaloperator.Adopting, 1)
	if err := s.look(); err != nil {
		t.Fatal(err)
	}
	if c := s.condition("Ready"); c.Status != metav1.ConditionFalse || c.Reason != "Error" {
		t.Errorf("a host that the service cannot adopt has %+v", c)
	}
	if h := s.host(); h.Status.ErrorType != metal3.ProvisionedRegistrationError {
		t.Errorf("the error is %q", h.Status.ErrorType)
	}
}
