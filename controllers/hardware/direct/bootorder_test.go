package direct_test

import (
	"slices"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/redfish"
	"github.com/ingot-dev/ingot/test/bmc"
	"github.com/ingot-dev/ingot/test/conformance"
)

// TestABootOrderIsPutBackByTheProcessThatGoesOn kills the process after each step of an install on a server whose BMC has no boot override.
func TestABootOrderIsPutBackByTheProcessThatGoesOn(t *testing.T) {
	for _, name := range []string{"order-only", "order-at-settings"} {
		personality, err := bmc.PersonalityNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		r := newRigWith(t, conformance.Faults{}, personality)
		before, last, wasKept := r.bmc.Order(), hardware.Step(""), false
		state := hardware.AttemptRunning
		for n := 0; state != hardware.AttemptSucceeded && n < 200; n++ {
			if step := r.store.copy().Step; step != last {
				last = step
				if err := r.client.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				r.client = redfish.New(redfish.Options{Clock: r.Now, IdleTimeout: 24 * time.Hour})
				r.Restart()
			}
			if state, err = r.callInstall(t, time.Hour); err != nil && hardware.KindOf(err) != hardware.Conflict {
				t.Fatal(err)
			}
			kept := r.store.copy().BootOrder
			wasKept = wasKept || slices.Equal(kept, before)
			r.Advance(10 * time.Second)
		}
		if state != hardware.AttemptSucceeded || !wasKept || r.store.copy().BootOrder != nil {
			t.Errorf("%s: the attempt is %s; kept: %v, at the end %v", name, state, wasKept, r.store.copy().BootOrder)
		}
		if source := r.bmc.TakeBoot(); source != hardware.BootDisk || !slices.Equal(r.bmc.Order(), before) {
			t.Errorf("%s: the server boots from %q by the order %v, expected %v", name, source, r.bmc.Order(), before)
		}
	}
}

// TestAPowerOffThatIsOnlyAskedForIsNotBelieved has an operating system that ignores what a BMC without ForceOff can ask for.
func TestAPowerOffThatIsOnlyAskedForIsNotBelieved(t *testing.T) {
	personality, err := bmc.PersonalityNamed("graceful-only")
	if err != nil {
		t.Fatal(err)
	}
	r := newRigWith(t, conformance.Faults{}, personality)
	r.bmc.SetFaults(bmc.Faults{SilentPowerOff: bmc.All})
	state := hardware.AttemptRunning
	for n := 0; state == hardware.AttemptRunning && n < 60; n++ {
		if state, err = r.callInstall(t, time.Hour); err != nil {
			t.Fatal(err)
		}
		r.Advance(5 * time.Second)
	}
	if s := r.store.copy(); s.State != hardware.AttemptFailed || s.Reason != hardware.ReasonPowerOffIgnored || s.Boots != 0 || r.Disk() != conformance.DiskForeign {
		t.Errorf("the attempt is %s %s with %d boots, the disk has %s", s.State, s.Reason, s.Boots, r.Disk())
	}
}
