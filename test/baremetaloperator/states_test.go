package baremetaloperator_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/test/baremetaloperator"
)

// forEachRelease runs the test with the operator that writes conditions, and with the one that does not.
func forEachRelease(t *testing.T, run func(t *testing.T, conditions bool)) {
	for _, conditions := range []bool{false, true} {
		t.Run(fmt.Sprintf("conditions=%t", conditions), func(t *testing.T) { run(t, conditions) })
	}
}

// course lets the operator look until the condition holds, and returns the states that the host went through, without the one that it was in.
func (s *site) course(what string, holds func() bool) string {
	s.t.Helper()
	var states []string
	last := s.state()
	s.until(what, func() bool {
		if h := s.host(); h.UID != "" && h.Status.Provisioning.State != last {
			last = h.Status.Provisioning.State
			states = append(states, string(last))
		}
		return holds()
	})
	return strings.Join(states, " > ")
}

func TestAHostGoesThroughTheStatesOfItsLife(t *testing.T) {
	forEachRelease(t, func(t *testing.T, conditions bool) {
		s := newSite(t, conditions)
		isIn := func(state metal3.ProvisioningState) func() bool { return func() bool { return s.state() == state } }
		if got := s.course("the host is available", isIn(metal3.StateAvailable)); got != "registering > inspecting > preparing > available" {
			t.Errorf("a new host went through %s", got)
		}
		s.settle()
		s.install(imageURL)
		if got := s.course("the host is provisioned", isIn(metal3.StateProvisioned)); got != "provisioning > provisioned" {
			t.Errorf("an installation went through %s", got)
		}
		if h := s.host(); h.Status.PoweredOn || !s.server.IsRunning() || h.Status.Provisioning.Image.URL != imageURL {
			t.Errorf("at first the host is provisioned with poweredOn %t while its server runs, it is %t; image %q", h.Status.PoweredOn, s.server.IsRunning(), h.Status.Provisioning.Image.URL)
		}
		s.settle()
		if h := s.host(); !h.Status.PoweredOn || h.Status.OperationHistory.Provision.End.IsZero() {
			t.Errorf("the settled host is on: %t, its history %+v", h.Status.PoweredOn, h.Status.OperationHistory)
		}
		s.uninstall()
		if got := s.course("the host is available", isIn(metal3.StateAvailable)); got != "deprovisioning > available" {
			t.Errorf("a release went through %s", got)
		}
		if got, want := s.server.History(), []string{"deploy " + imageURL, "clean metadata"}; !slices.Equal(got, want) {
			t.Errorf("the disk went through %v, expected %v", got, want)
		}
		if h := s.host(); h.Status.Provisioning.Image.URL != "" || h.Status.ErrorType != "" {
			t.Errorf("the host that is available again has the status %s", s.describe())
		}
	})
}

// held are the operations that keep a host in a state while they do not end.
var held = map[metal3.ProvisioningState]baremetaloperator.Operation{
	metal3.StateRegistering: baremetaloperator.Registering, metal3.StateInspecting: baremetaloperator.Inspecting, metal3.StatePreparing: baremetaloperator.Preparing,
	metal3.StateProvisioning: baremetaloperator.Deploying, metal3.StateDeprovisioning: baremetaloperator.Cleaning,
	metal3.StatePoweringOffBeforeDelete: baremetaloperator.Powering, metal3.StateDeleting: baremetaloperator.Deleting,
}

// reach brings a new host into the state, with the work of the state under way. The server is on in the states of a deletion.
func (s *site) reach(state metal3.ProvisioningState) {
	s.t.Helper()
	op, isHeld := held[state]
	if isHeld && state != metal3.StatePoweringOffBeforeDelete {
		s.server.Delay(op, -1)
	}
	switch state {
	case metal3.StateExternallyProvisioned:
		s.edit(func(h *metal3.BareMetalHost) { h.Spec.ExternallyProvisioned, h.Spec.Online = true, true })
	case metal3.StateProvisioning, metal3.StateProvisioned, metal3.StateDeprovisioning:
		s.untilState(metal3.StateAvailable)
		s.settle()
		s.install(imageURL)
	case metal3.StatePoweringOffBeforeDelete, metal3.StateDeleting:
		s.untilState(metal3.StateAvailable)
		s.settle()
		s.edit(func(h *metal3.BareMetalHost) { h.Spec.Online = true })
		s.settle()
		s.server.Delay(op, -1)
		s.delete()
	}
	if state == metal3.StateDeprovisioning {
		s.untilState(metal3.StateProvisioned)
		s.settle()
		s.uninstall()
	}
	s.untilState(state)
	if !isHeld {
		s.settle()
	}
	for isHeld && s.step() && s.state() == state && s.due.Sub(s.now) < pollInterval {
		continue
	}
}

func TestADeletionTakesTheWayOfTheStateOfItsHost(t *testing.T) {
	const whole = "deprovisioning > powering off before delete > deleting"
	for state, want := range map[metal3.ProvisioningState]string{
		metal3.StateRegistering:           "deleting",
		metal3.StateInspecting:            "powering off before delete > deleting",
		metal3.StatePreparing:             "powering off before delete > deleting",
		metal3.StateAvailable:             "powering off before delete > deleting",
		metal3.StateProvisioning:          whole,
		metal3.StateProvisioned:           whole,
		metal3.StateDeprovisioning:        "powering off before delete > deleting",
		metal3.StateExternallyProvisioned: "powering off before delete > deleting",
	} {
		t.Run(string(state), func(t *testing.T) {
			s := newSite(t, true)
			s.reach(state)
			for _, op := range held {
				s.server.Delay(op, 0)
			}
			s.delete()
			if got := s.course("the host is gone", func() bool { return s.host().UID == "" }); got != want {
				t.Errorf("a host that was %s went through %s, expected %s", state, got, want)
			}
			if s.server.IsRunning() {
				t.Error("the server of a host that is gone runs")
			}
			if !slices.Contains(s.server.Log(), string(baremetaloperator.Deleting)) {
				t.Errorf("the service still knows the server: %v", s.server.Log())
			}
			if got := s.secret("bmc").Finalizers; len(got) > 0 {
				t.Errorf("the Secret of the BMC still has the finalizers %v", got)
			}
		})
	}
}

func TestAHostWithoutBMCIsUnmanagedUntilItHasOne(t *testing.T) {
	bmc := metal3.BMCDetails{}
	s := newSite(t, true, func(h *metal3.BareMetalHost) { bmc, h.Spec.BMC = h.Spec.BMC, bmc })
	s.untilState(metal3.StateUnmanaged)
	s.settle()
	if h := s.host(); h.Status.OperationalStatus != metal3.OperationalStatusDiscovered {
		t.Errorf("a host without BMC is %s", h.Status.OperationalStatus)
	}
	s.edit(func(h *metal3.BareMetalHost) { h.Spec.BMC = bmc })
	s.untilState(metal3.StateAvailable)
}

// TestADeletionGivesUpAfterFourErrors has a server whose disk cannot be cleaned, and that cannot be powered off.
func TestADeletionGivesUpAfterFourErrors(t *testing.T) {
	s := newSite(t, true)
	s.reach(metal3.StateProvisioned)
	s.server.Fail(baremetaloperator.Cleaning, -1)
	s.server.Fail(baremetaloperator.Powering, -1)
	s.server.Switch(true)
	began := s.now
	s.delete()
	s.untilState(metal3.StateDeprovisioning)
	s.until("the cleaning has failed", func() bool { return s.host().Status.ErrorCount == 1 })
	if h := s.host(); h.Status.ErrorType != metal3.ProvisioningError {
		t.Errorf("a cleaning that fails is a %s", h.Status.ErrorType)
	}
	s.untilState(metal3.StatePoweringOffBeforeDelete)
	if waited := s.now.Sub(began); waited < 14*minute {
		t.Errorf("the operator gave the cleaning up after %s", waited)
	}
	s.until("the host is gone", func() bool { return s.host().UID == "" })
}

// TestADetachedHostIsDeletedAsItIs deletes at once after the annotation was set. Only the release that looks at the annotation itself lets it go as it is.
func TestADetachedHostIsDeletedAsItIs(t *testing.T) {
	for conditions, want := range map[bool]string{true: "deleting", false: "deprovisioning > powering off before delete > deleting"} {
		s := newSite(t, conditions)
		s.reach(metal3.StateProvisioned)
		s.edit(func(h *metal3.BareMetalHost) { h.Annotations = map[string]string{metal3.DetachedAnnotation: ""} })
		s.delete()
		if got := s.course("the host is gone", func() bool { return s.host().UID == "" }); got != want {
			t.Errorf("conditions=%t: a host that is detached and deleted went through %s", conditions, got)
		}
		if isKept := s.server.IsRunning(); isKept != conditions {
			t.Errorf("conditions=%t: the server runs afterwards: %t", conditions, isKept)
		}
	}
}
