package baremetaloperator_test

import (
	"slices"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/test/baremetaloperator"
)

// course is the state that a host is in, and what it comes to when the work of the state ends.
type course struct {
	state metal3.ProvisioningState
	// op is what is done with the server in the state, and error the type of its failure.
	op    baremetaloperator.Operation
	error metal3.ErrorType
	// next is the state after the work, and settled the one in which the host stays; empty: it is gone.
	next, settled metal3.ProvisioningState
	// afterError is the state to which a failure leads; empty: the host stays where it is.
	afterError metal3.ProvisioningState
}

var courses = []course{
	{state: metal3.StateRegistering, op: baremetaloperator.Registering, error: metal3.RegistrationError, next: metal3.StateInspecting, settled: metal3.StateAvailable},
	{state: metal3.StateInspecting, op: baremetaloperator.Inspecting, error: metal3.InspectionError, next: metal3.StatePreparing, settled: metal3.StateAvailable},
	{state: metal3.StatePreparing, op: baremetaloperator.Preparing, error: metal3.PreparationError, next: metal3.StateAvailable, settled: metal3.StateAvailable},
	{state: metal3.StateAvailable, op: baremetaloperator.Registering, error: metal3.RegistrationError, settled: metal3.StateAvailable},
	{state: metal3.StateProvisioning, op: baremetaloperator.Deploying, error: metal3.ProvisioningError, next: metal3.StateProvisioned, settled: metal3.StateProvisioned, afterError: metal3.StateDeprovisioning},
	{state: metal3.StateProvisioned, op: baremetaloperator.Adopting, error: metal3.ProvisionedRegistrationError, settled: metal3.StateProvisioned},
	{state: metal3.StateExternallyProvisioned, op: baremetaloperator.Adopting, error: metal3.ProvisionedRegistrationError, settled: metal3.StateExternallyProvisioned},
	{state: metal3.StateDeprovisioning, op: baremetaloperator.Cleaning, error: metal3.ProvisioningError, next: metal3.StateAvailable, settled: metal3.StateAvailable},
	{state: metal3.StatePoweringOffBeforeDelete, op: baremetaloperator.Powering, error: metal3.PowerManagementError, next: metal3.StateDeleting},
	{state: metal3.StateDeleting, op: baremetaloperator.Deleting},
}

// disturbances are what happens to a host in a state. Each leaves the host at what it comes to undisturbed, but a deletion.
var disturbances = map[string]func(*site, course){
	"the operator is stopped and another one started": func(s *site, c course) {
		s.now = s.now.Add(10 * minute)
		s.restart()
		s.release(c)
		s.due = s.now
	},
	"another operator is started before every look": func(s *site, c course) {
		s.release(c)
		s.until("the end", func() bool { s.restart(); return s.isAtEnd(c) })
	},
	"the operation fails once": failOnce,
	"the operation is slow": func(s *site, c course) {
		s.server.Delay(c.op, 5)
		s.due = s.now
	},
	"the Secret of the BMC is missing":          missBMC,
	"the Secrets of the config drive are taken": func(s *site, c course) { takeDocuments(s); s.release(c) },
	"the host is deleted": func(s *site, c course) {
		s.release(c)
		s.delete()
		s.until("the host is gone", func() bool { return s.host().UID == "" })
	},
}

// release lets the work of the state end.
func (s *site) release(c course) { s.server.Delay(c.op, 0) }

func (s *site) isAtEnd(c course) bool {
	h := s.host()
	if c.settled == "" {
		return h.UID == ""
	}
	return h.Status.Provisioning.State == c.settled && h.Status.ErrorType == "" && (s.due.IsZero() || s.due.Sub(s.now) >= minute)
}

// failOnce checks what the status says of the error and when it is retried.
func failOnce(s *site, c course) {
	s.t.Helper()
	s.release(c)
	s.server.Fail(c.op, 1)
	s.due = s.now
	if c.error == "" {
		return // the look ends with an error that the status does not say
	}
	s.until("the error is in the status", func() bool { return s.host().Status.ErrorType == c.error })
	h := s.host()
	if h.Status.OperationalStatus != metal3.OperationalStatusError || h.Status.ErrorCount != 1 || h.Status.ErrorMessage == "" || h.Status.Provisioning.State != c.state {
		s.t.Errorf("after the error the host has %s", s.describe())
	}
	if waits := s.due.Sub(s.now); waits != 2*minute {
		s.t.Errorf("the error is retried after %s", waits)
	}
	if c.afterError != "" {
		s.step()
		if state := s.state(); state != c.afterError {
			s.t.Errorf("the error leads to %s", state)
		}
	}
}

// missBMC takes the Secret of the BMC for a while. A deletion goes on without it, and nothing else does.
func missBMC(s *site, c course) {
	s.t.Helper()
	giveBack := s.take("bmc")
	s.release(c)
	s.due = s.now
	if c.settled == "" {
		return
	}
	for range 3 {
		s.step()
	}
	h := s.host()
	if h.Status.ErrorType != metal3.RegistrationError || h.Status.ErrorCount != 3 || h.Status.Provisioning.State != c.state || s.due.Sub(s.now) != pollInterval {
		s.t.Errorf("three looks without the Secret later the host has %s", s.describe())
	}
	giveBack()
}

func takeDocuments(s *site) {
	s.t.Helper()
	for _, name := range documents {
		s.take(name)
	}
}

// TestEveryDisturbanceInEveryStateEndsWhereItShould is the matrix of the states and of what can happen in them. Nothing of what was under way is lost, and
// nothing is done twice.
func TestEveryDisturbanceInEveryStateEndsWhereItShould(t *testing.T) {
	for _, c := range courses {
		for what, disturb := range disturbances {
			if what == "the operation is slow" && c.next == "" && c.settled != "" {
				continue // nothing is under way in that state
			}
			t.Run(string(c.state)+"/"+what, func(t *testing.T) {
				s := newSite(t, true)
				s.reach(c.state)
				disturb(s, c)
				if what == "the host is deleted" {
					if s.server.IsRunning() || s.secret("bmc").Finalizers != nil {
						t.Errorf("the server of a host that is gone runs: %t; the Secret has %v", s.server.IsRunning(), s.secret("bmc").Finalizers)
					}
					return
				}
				s.until("the end", func() bool { return s.isAtEnd(c) })
				if c.settled == "" {
					return
				}
				if h := s.host(); h.Status.ErrorType != "" || h.Status.OperationalStatus != metal3.OperationalStatusOK {
					t.Errorf("in the end the host has %s", s.describe())
				}
				s.checkDisk(c, what == "the operation fails once")
			})
		}
	}
}

// checkDisk compares what was done with the disk with what had to be done.
func (s *site) checkDisk(c course, isFailed bool) {
	s.t.Helper()
	deploy, clean := "deploy "+imageURL, "clean metadata"
	var want []string
	switch c.state {
	case metal3.StateProvisioning, metal3.StateProvisioned:
		want = []string{deploy}
	case metal3.StateDeprovisioning:
		want = []string{deploy, clean}
	}
	if c.state == metal3.StateProvisioning && isFailed {
		want = []string{clean, deploy}
	}
	if got := s.server.History(); !slices.Equal(got, want) {
		s.t.Errorf("the disk went through %v, expected %v", got, want)
	}
	if isRunning := c.settled == metal3.StateProvisioned; s.server.IsRunning() != isRunning {
		s.t.Errorf("the server runs its image: %t", s.server.IsRunning())
	}
}
