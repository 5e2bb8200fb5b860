package baremetaloperator_test

import (
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/test/baremetaloperator"
)

// exhaust lets the installation fail as often as it is tried, with another operator at each look.
func (s *site) exhaust() {
	s.t.Helper()
	s.reach(metal3.StateAvailable)
	s.server.Fail(baremetaloperator.Deploying, -1)
	s.install(imageURL)
	s.until("the operator has given up", func() bool {
		s.restart()
		return s.state() == metal3.StateAvailable && strings.Contains(s.host().Status.ErrorMessage, "retry limit (3) reached")
	})
	s.server.Fail(baremetaloperator.Deploying, 0)
}

// TestFailedInstallationsAreCountedInTheStatus restarts the operator before every look: the count is in the host, and nowhere else.
func TestFailedInstallationsAreCountedInTheStatus(t *testing.T) {
	s := newSite(t, true)
	s.exhaust()
	if count, image := s.raw("provisioningFailCount"), s.raw("lastAttemptedImage", "url"); count != int64(3) || image != imageURL {
		t.Errorf("the status counts %v failures of %v", count, image)
	}
	if h := s.host(); h.Status.ErrorType != metal3.ProvisioningError || h.Status.OperationalStatus != metal3.OperationalStatusError {
		t.Errorf("the operator has given up with %s", s.describe())
	}
	before := len(s.server.History())
	for range 3 {
		s.restart()
		if !s.step() {
			t.Fatal("the operator does not look again")
		}
	}
	if h := s.host(); s.state() != metal3.StateAvailable || len(s.server.History()) != before || h.Status.ErrorCount != 4 {
		t.Errorf("three looks later the host is %s with %d errors, and its disk went through %v", s.state(), h.Status.ErrorCount, s.server.History())
	}
}

func TestAnotherImageOrNoneBeginsTheCountAgain(t *testing.T) {
	for what, change := range map[string]func(*site){
		"another image":       func(s *site) { s.install("http://127.0.0.1/image-2.raw.zst") },
		"the same image anew": func(s *site) { s.uninstall(); s.settle(); s.install(imageURL) },
		"another checksum": func(s *site) {
			s.edit(func(h *metal3.BareMetalHost) { h.Spec.Image.Checksum = "11" })
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := newSite(t, true)
			s.exhaust()
			change(s)
			s.untilState(metal3.StateProvisioned)
			s.settle()
			if h := s.host(); s.raw("provisioningFailCount") != int64(0) || h.Status.ErrorType != "" || h.Status.ErrorCount != 0 {
				t.Errorf("the installed host counts %v failures: %s", s.raw("provisioningFailCount"), s.describe())
			}
		})
	}
}

// TestAnErrorStaysUntilThePowerIsChanged takes the image away from a host whose installations failed.
func TestAnErrorStaysUntilThePowerIsChanged(t *testing.T) {
	s := newSite(t, true)
	s.exhaust()
	s.uninstall()
	s.settle()
	if h := s.host(); h.Status.ErrorType != metal3.ProvisioningError {
		t.Errorf("without image the host has %s", s.describe())
	}
	s.edit(func(h *metal3.BareMetalHost) { h.Spec.Online = true })
	s.settle()
	if h := s.host(); h.Status.ErrorType != "" {
		t.Errorf("powered on the host has %s", s.describe())
	}
}

func TestTheReleaseWithoutConditionsTriesForEver(t *testing.T) {
	s := newSite(t, false)
	s.reach(metal3.StateAvailable)
	s.server.Fail(baremetaloperator.Deploying, 12)
	s.install(imageURL)
	s.untilState(metal3.StateProvisioned)
	if got := len(s.server.History()); got != 13 {
		t.Errorf("the disk went through %v", s.server.History())
	}
}
