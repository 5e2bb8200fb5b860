package host

import (
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// duplicate gives the host another one that is the same server.
func duplicate(f *Facts) {
	f.Problem, f.Observed = &Problem{Reason: v1alpha1.ReasonSameServer, Message: "BareMetalHost hall-2/b has the same BMC"}, nil
}

// discovered is duplicate where the inventory that was just observed tells it.
func discovered(f *Facts) {
	seen := f.Observed
	duplicate(f)
	f.Observed = seen
}

func TestNothingIsDoneWithAServerThatTwoHostsHave(t *testing.T) {
	const message = "SameServer: BareMetalHost hall-2/b has the same BMC"
	keepsRecord := func(t *testing.T, d Decision) {
		if d.Record.Error == nil || d.Record.Error.Reason != v1alpha1.ReasonSameServer || d.Status.OperationalStatus != metal3.OperationalStatusError {
			t.Errorf("error %+v, %s", d.Record.Error, d.Status.OperationalStatus)
		}
	}
	erase := func(f *Facts) { f.Host.Erase = "Full" }
	reboot := func(f *Facts) { f.Host.Reboot, f.Host.RebootHard = true, true }
	offline := func(f *Facts) { f.Host.Online = false }
	released := func(f *Facts) { f.Host.HasImage, f.Host.Online = false, false }
	checkDecisions(t, []decisionCase{
		{name: "a new host is not inspected", facts: facts(metal3.StateNone, off).with(duplicate), state: metal3.StateRegistering, error: metal3.RegistrationError, message: message, check: keepsRecord},
		{name: "a host does not become available with the serial number of another one", facts: facts(metal3.StateInspecting, off).attempted(1, hardware.OpInspect, succeeded, "").with(discovered),
			state: metal3.StateInspecting, error: metal3.RegistrationError, message: message, check: func(t *testing.T, d Decision) {
				if d.Record.Inventory == nil {
					t.Error("the inventory is not kept")
				}
			}},
		{name: "an available host is not erased", facts: facts(metal3.StateAvailable, off).with(erase).with(duplicate), state: metal3.StateAvailable, error: metal3.RegistrationError, message: message, check: keepsRecord},
		{name: "a claimed host is not installed", facts: facts(metal3.StateAvailable, off).claimed().with(duplicate), state: metal3.StateAvailable, error: metal3.ProvisionedRegistrationError, message: message},
		{name: "an installation does not go on", facts: facts(metal3.StateProvisioning, on).claimed().attempted(2, hardware.OpInstall, running, "").with(discovered),
			state: metal3.StateProvisioning, error: metal3.ProvisionedRegistrationError, message: message},
		{name: "an erase does not go on", facts: facts(metal3.StateDeprovisioning, on).attempted(2, hardware.OpErase, running, "").with(discovered),
			state: metal3.StateDeprovisioning, error: metal3.RegistrationError, message: message},
		{name: "a node goes on", facts: facts(metal3.StateProvisioned, on).claimed().installed().with(duplicate), state: metal3.StateProvisioned, error: metal3.ProvisionedRegistrationError, message: message},
		{name: "a node is not powered off", facts: facts(metal3.StateProvisioned, on).claimed().installed().with(offline).with(duplicate),
			state: metal3.StateProvisioned, error: metal3.ProvisionedRegistrationError, check: func(t *testing.T, d Decision) {
				if d.Record.Power.State != string(hardware.PowerUnknown) || !d.Status.PoweredOn {
					t.Errorf("power %+v, poweredOn %t: a power state of a BMC that two hosts have proves nothing", d.Record.Power, d.Status.PoweredOn)
				}
			}},
		{name: "a node is not rebooted", facts: facts(metal3.StateProvisioned, on).claimed().installed().with(reboot).with(duplicate), state: metal3.StateProvisioned, error: metal3.ProvisionedRegistrationError},
		{name: "a released host is not erased", facts: facts(metal3.StateProvisioned, on).claimed().installed().with(released).with(duplicate), state: metal3.StateProvisioned, error: metal3.ProvisionedRegistrationError},
		{name: "the error ends with the conflict", facts: facts(metal3.StateProvisioned, on).claimed().installed().with(func(f *Facts) {
			f.Host.Status.ErrorType, f.Record.Error = metal3.ProvisionedRegistrationError, &v1alpha1.HostError{Reason: v1alpha1.ReasonSameServer}
		}), state: metal3.StateProvisioned},
	})
}

func TestADuplicateIsDeletedWithoutAPowerOff(t *testing.T) {
	isGone := func(t *testing.T, d Decision) {
		next := facts(d.Status.State, on).with(duplicate).with(deleting)
		next.Record = d.Record
		if d = Plan(next); !d.RemoveFinalizer || d.Action.Kind != ActionNone {
			t.Errorf("then: %+v", d)
		}
	}
	waits := func(t *testing.T, d Decision) {
		if d.RemoveFinalizer || d.Action.Kind != ActionNone {
			t.Errorf("%+v", d)
		}
	}
	const waiting = "SameServer: BareMetalHost hall-2/b has the same BMC; the disks may have data of a tenant"
	checkDecisions(t, []decisionCase{
		{name: "one that was never used", facts: facts(metal3.StateRegistering, on).with(duplicate).with(deleting), state: metal3.StateDeleting, check: isGone},
		{name: "one that is being inspected", facts: facts(metal3.StateInspecting, on).attempted(1, hardware.OpInspect, running, "").with(duplicate).with(deleting), state: metal3.StateDeleting, check: isGone},
		{name: "one that is available after an erase", facts: facts(metal3.StateAvailable, on).attempted(2, hardware.OpErase, succeeded, "").ended(0).
			with(func(f *Facts) {
				f.Record.Wanted.Outcome, f.Record.Erased = v1alpha1.AttemptSucceeded, &v1alpha1.EraseProof{Mode: v1alpha1.EraseFull, Attempt: 2}
			}).with(duplicate).with(deleting), state: metal3.StateDeleting, check: isGone},
		{name: "one with data of a tenant waits", facts: facts(metal3.StateAvailable, on).installed().with(duplicate).with(deleting), state: metal3.StateDeprovisioning, error: metal3.RegistrationError, message: waiting, check: waits},
		{name: "one whose erase is unfinished waits", facts: facts(metal3.StateDeprovisioning, on).attempted(2, hardware.OpErase, running, "").with(duplicate).with(deleting),
			state: metal3.StateDeprovisioning, error: metal3.RegistrationError, message: waiting, check: waits},
		{name: "one that a Machine has waits", facts: facts(metal3.StateProvisioned, on).claimed().installed().with(duplicate).with(deleting), state: metal3.StateProvisioned, error: metal3.ProvisionedRegistrationError, check: waits},
		{name: "one that is detached is abandoned", facts: facts(metal3.StateAvailable, on).installed().with(duplicate).with(deleting).with(func(f *Facts) { f.Host.Detached = true }), state: metal3.StateDeleting, check: func(t *testing.T, d Decision) {
			if d.Action.Kind != ActionNone {
				t.Errorf("action %s", d.Action.Kind)
			}
		}},
	})
}

// tenantElsewhere is duplicate where the other host has data of a tenant.
func tenantElsewhere(f *Facts) {
	duplicate(f)
	f.Problem.HasData = true
}

func TestAHostThatWasTheServerOfATenantsHostIsErasedBeforeItIsAvailable(t *testing.T) {
	proven := func(f *Facts) {
		f.Record.LastTenant, f.Record.Erased = "team/research", &v1alpha1.EraseProof{Mode: v1alpha1.EraseFull, Attempt: 2}
	}
	for name, c := range map[string]struct {
		during, after Facts
	}{
		"a new one":                    {facts(metal3.StateNone, off), facts(metal3.StateRegistering, off)},
		"an inspected one":             {facts(metal3.StateInspecting, off).attempted(1, hardware.OpInspect, succeeded, "").ended(0), facts(metal3.StateInspecting, off)},
		"an available one":             {facts(metal3.StateAvailable, off), facts(metal3.StateAvailable, off)},
		"one with a proof of an erase": {facts(metal3.StateAvailable, off).with(proven), facts(metal3.StateAvailable, off)},
	} {
		clean := Plan(c.during.with(duplicate)).Record
		if !(planner{d: Decision{Record: clean}}).isClean() {
			t.Errorf("%s: the conflict with a clean host made it unclean: %+v", name, clean)
		}
		d := Plan(c.during.with(tenantElsewhere))
		if d.Record.LastTenant != sharedTenant || d.Record.Erased != nil {
			t.Fatalf("%s: lastTenant %q, erased %+v", name, d.Record.LastTenant, d.Record.Erased)
		}
		// The other host was given up without an erase, and the policy requests none.
		c.after.Record, c.after.Host.InspectionDisabled, c.after.ErasePolicy = d.Record, true, v1alpha1.EraseNone
		d = Plan(c.after)
		if w := d.Record.Wanted; d.Status.State != metal3.StateDeprovisioning || w == nil || w.Operation != string(hardware.OpErase) || w.Erase != v1alpha1.EraseMetadata {
			t.Errorf("%s then is %s, wanted %+v", name, d.Status.State, w)
		}
	}
	// It goes at once when it is the one that is deleted, and after an erase when the other one has gone before.
	shared := facts(metal3.StateRegistering, on).with(deleting).with(func(f *Facts) { f.Record.LastTenant = sharedTenant })
	if d := Plan(shared.with(tenantElsewhere)); d.Status.State != metal3.StateDeleting {
		t.Errorf("deleted as a duplicate: %s", d.Status.State)
	}
	for name, f := range map[string]Facts{"alone": shared, "with a duplicate that knows of no data": shared.with(duplicate)} {
		if d := Plan(f); d.Status.State != metal3.StateDeprovisioning {
			t.Errorf("deleted %s: %s", name, d.Status.State)
		}
	}
	// What somebody else has installed is not erased when the host is deleted.
	for _, f := range []Facts{facts(metal3.StateExternallyProvisioned, on), facts(metal3.StateRegistering, on)} {
		f.Host.ExternallyProvisioned = true
		if d := Plan(f.with(tenantElsewhere)); d.Record.LastTenant != "" {
			t.Errorf("externally provisioned: %q", d.Record.LastTenant)
		}
	}
}

func TestTheHintOfADeletionSaysWhatBecomesOfTheOtherHost(t *testing.T) {
	d := Plan(facts(metal3.StateAvailable, on).installed().with(duplicate).with(deleting))
	if text := d.Status.ErrorMessage; !strings.HasSuffix(text, metal3.DetachedAnnotation+": then the other host is erased before it is available") {
		t.Error(text)
	}
}

func TestAConflictIsOneEvent(t *testing.T) {
	f := facts(metal3.StateProvisioned, on).claimed().installed().with(duplicate)
	for i, want := range []int{1, 0, 0} {
		d := Plan(f)
		if len(d.Events) != want {
			t.Errorf("reconcile %d: %+v", i, d.Events)
		}
		f.Record, f.Host.Status, f.Now = d.Record, d.Status, f.Now.Add(time.Minute)
	}
}
