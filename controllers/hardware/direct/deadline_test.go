package direct_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
	"github.com/ingot-dev/ingot/test/conformance"
)

// TestEveryStepHasItsDeadline follows an installation: each step has a deadline from the moment it is stored, and no write is made for it alone.
func TestEveryStepHasItsDeadline(t *testing.T) {
	r := newRig(t, conformance.Faults{})
	timeouts := hardware.DefaultTimeouts()
	observed := map[hardware.Step]bool{}
	for range 200 {
		s := r.store.session
		if s.State == hardware.AttemptSucceeded {
			break
		}
		if err := r.installer.Install(t.Context(), r.Host(), attempt, spec); err != nil {
			t.Fatal(err)
		}
		r.Advance(10 * time.Second)
		if s = r.store.session; s.State != hardware.AttemptRunning || s.Step == hardware.StepPoweringOff || observed[s.Step] {
			continue
		}
		observed[s.Step] = true
		if left := s.StepDeadline.Sub(s.StepAt).Truncate(time.Second); left != timeouts.OfStep(s.Step) {
			t.Errorf("step %s ends %s after it began, expected %s", s.Step, left, timeouts.OfStep(s.Step))
		}
		seen, err := r.installer.Observe(t.Context(), r.Host())
		if err != nil || !seen.Attempt.StepDeadline.Equal(s.StepDeadline) {
			t.Errorf("step %s: %v, observed deadline %s, expected %s", s.Step, err, seen.Attempt.StepDeadline, s.StepDeadline)
		}
	}
	for _, step := range []hardware.Step{hardware.StepBooting, hardware.StepLoading, hardware.StepWriting} {
		if !observed[step] {
			t.Errorf("step %s was not reached", step)
		}
	}
}

func TestAServerThatHasItsBootDocumentAndAsksForNoKernelIsAFinding(t *testing.T) {
	for name, c := range map[string]struct {
		faults conformance.Faults
		want   bool
	}{"no kernel": {conformance.Faults{NoAgent: true}, true}, "no boot document": {conformance.Faults{DeadBootNIC: true}, false}} {
		r := newRig(t, c.faults)
		var found netboot.Finding
		for range 300 {
			if err := r.installer.Install(t.Context(), r.Host(), attempt, spec); err != nil {
				t.Fatal(err)
			}
			r.Advance(2 * time.Second)
			s := r.store.session
			if found = s.Findings.KernelNotRequested; found.Count > 0 {
				if waited := found.At.Sub(s.KernelAwaited.At); waited < time.Minute || waited > 2*time.Minute {
					t.Errorf("%s: noticed after %s", name, waited)
				}
				break
			}
		}
		if (found.Count > 0) != c.want {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// The boot service hears nothing of an agent without a network. That its server has booted, how often, and where the reason can be read, is told while the
// attempt runs and in its end.
func TestAServerThatHasItsKernelAndRegistersNoAgentIsAFinding(t *testing.T) {
	r := newRig(t, conformance.Faults{NoAgent: true})
	var found netboot.Finding
	for range 600 {
		if err := r.installer.Install(t.Context(), r.Host(), attempt, spec); err != nil {
			t.Fatal(err)
		}
		if s := r.store.session; !s.KernelAwaited.At.IsZero() {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/files/kernel?mac="+bootMAC+"&boot="+strconv.Itoa(s.Boots), nil)
			r.service.ServeHTTP(httptest.NewRecorder(), request)
		}
		s := r.store.session
		if now := s.Findings.NoAgentRegistered; now != found {
			if found = now; found.Count != 1 || found.At.Sub(s.KernelFetchedAt) < 3*time.Minute || !strings.Contains(found.Message, "has booted the agent 1 times in attempt") || !strings.Contains(found.Message, "console") {
				t.Errorf("%+v", found)
			}
		}
		if s.State == hardware.AttemptFailed {
			if found.Count != 1 || s.Findings.KernelNotRequested.Count != 0 || s.Reason != hardware.ReasonAgentMissing ||
				!strings.Contains(s.Message, "has booted the agent 1 times in this attempt and fetched the kernel last at "+s.KernelFetchedAt.UTC().Format(time.RFC3339)) {
				t.Errorf("%s: %s; %+v", s.Reason, s.Message, s.Findings)
			}
			return
		}
		r.Advance(2 * time.Second)
	}
	t.Errorf("the attempt does not end: %+v", r.store.session)
}
