package host

import (
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

func TestThePowerThatAnInstallerSwitchesCausesNoWrite(t *testing.T) {
	f := facts(metal3.StateProvisioning, hardware.PowerOff).claimed().attempted(1, hardware.OpInstall, hardware.AttemptRunning, "")
	f.Observed.Power = hardware.PowerOn
	d := Plan(f)
	if !equality.Semantic.DeepEqual(d.Record, f.Record) || d.Status != f.Host.Status || d.Action.Kind != ActionInstall {
		t.Errorf("the power alone: %+v, %+v", d.Record.Power, d.Status)
	}
	f.Host.Online = false
	if d := Plan(f); d.Record.Power.State != "On" {
		t.Errorf("it is wanted off, and is not: %+v", d.Record.Power)
	}
	f.Host.Online = true
	f.Host.Generation++
	if d := Plan(f); d.Record.Power.State != "On" || d.Record.Power.ObservedGeneration != 4 || !d.Status.PoweredOn {
		t.Errorf("somebody may want it off: %+v", d.Record.Power)
	}
	f.Host.Generation--
	f.Observed.Attempt = &hardware.AttemptStatus{Number: 1, State: hardware.AttemptSucceeded, Step: hardware.StepFinishing}
	d = Plan(f)
	if d.Record.Installed == nil || d.Record.Wanted.EndedAt == nil || d.Record.Power.State != "On" || d.Status.State != metal3.StateProvisioned || !d.Status.PoweredOn {
		t.Errorf("the end is one write with all of it: %+v, %+v", d.Record, d.Status)
	}
}

func TestAClaimThatIsFollowedByItsImageCausesNoWriteOfThePower(t *testing.T) {
	f := facts(metal3.StateAvailable, hardware.PowerOff).claimed()
	f.Host.Generation, f.Host.HasImage, f.Host.Online, f.GenerationObservedAt = 4, false, false, noon
	if d := Plan(f); d.Record.Power.ObservedGeneration != 3 || d.RequeueAfter != claimPeriod {
		t.Errorf("at once: generation %d, again in %s", d.Record.Power.ObservedGeneration, d.RequeueAfter)
	}
	f.Now = noon.Add(claimPeriod)
	if d := Plan(f); d.Record.Power.ObservedGeneration != 4 {
		t.Error("a power-off may be waited for, and is not confirmed")
	}
	f.Now, f.Host.Generation, f.Host.HasImage, f.Host.Online = noon.Add(time.Second), 5, true, true
	d := Plan(f)
	if a := d.Record.Wanted; a == nil || d.Record.Power.ObservedGeneration != 5 || d.Status.State != metal3.StateProvisioning || d.Action.Kind != ActionNone || d.Record.LastTenant == "" {
		t.Errorf("the intent is one write: %+v, state %s, action %s", d.Record, d.Status.State, d.Action.Kind)
	}
	// The state's write was lost.
	f.Record = d.Record
	if d = Plan(f); d.Status.State != metal3.StateProvisioning || d.Action.Kind != ActionNone || d.Record.Wanted.Number != f.Record.Wanted.Number {
		t.Errorf("state %s, action %s", d.Status.State, d.Action.Kind)
	}
	f.Host.HasImage = false
	if d = Plan(f); d.Action.Kind != ActionCancel {
		t.Errorf("the image is wanted no more: action %s", d.Action.Kind)
	}
}

// TestAPowerThatAServiceRemembersIsConfirmedWhereASystemMayRun: an Ironic is asked to power off what has been installed, also where the host is available again
// in a release or its status is out of date, and not what was just claimed.
func TestAPowerThatAServiceRemembersIsConfirmedWhereASystemMayRun(t *testing.T) {
	released := func(f *Facts) { f.Host.Installation = &v1alpha1.Installation{State: v1alpha1.InstallationReleasing} }
	for _, c := range []struct {
		name   string
		state  metal3.ProvisioningState
		change func(*Facts)
		want   ActionKind
	}{
		{"just claimed", metal3.StateAvailable, func(*Facts) {}, ActionNone},
		{"available again in a release", metal3.StateAvailable, released, ActionSetPower},
		{"installed, and the status does not say so yet", metal3.StateAvailable, func(f *Facts) { *f = f.installed() }, ActionSetPower},
		{"provisioned", metal3.StateProvisioned, func(f *Facts) { *f = f.installed(); f.Host.HasImage = true }, ActionSetPower},
	} {
		f := facts(c.state, hardware.PowerOff).claimed()
		f.Host.Generation, f.Host.HasImage, f.Host.Online = 4, false, false
		f.Observed.IsPowerRemembered = true
		c.change(&f)
		if d := Plan(f); d.Action.Kind != c.want {
			t.Errorf("%s: action %q of power %+v, expected %q", c.name, d.Action.Kind, d.Action.Power, c.want)
		}
	}
}
