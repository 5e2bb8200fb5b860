package host

import (
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

// lost is a host with a Machine whose node runs, restored without status.
func lost(state v1alpha1.InstallationState) Facts {
	machine := v1alpha1.MachineReference{Namespace: "team", Name: "one", UID: "m1"}
	image := v1alpha1.ExactImage{URL: "http://127.0.0.1/image", Checksum: "sha256:1"}
	f := Facts{
		Clock: watched.Clock{Now: at(0).Time}, Timeouts: DefaultTimeouts(), Observed: &hardware.Observation{Power: hardware.PowerOn},
		Spec: v1alpha1.HostRecordSpec{Machine: &machine, Tenant: "team/research", Attempt: 2, Image: &image},
		Host: Host{Generation: 1, Claimed: true, ConsumerUID: "m1", ConsumerName: "team/one", HasImage: true, Online: true, Restored: true, MustRegister: true,
			Installation: &v1alpha1.Installation{Machine: machine, Tenant: "team/research", State: state, Attempt: 2}},
	}
	return f
}

func TestARestoredHostWaitsForItsMachine(t *testing.T) {
	for _, state := range []v1alpha1.InstallationState{v1alpha1.InstallationComplete, v1alpha1.InstallationRequested} {
		d := Plan(lost(state))
		if d.Action.Kind != ActionNone || d.Register || errorReason(d.Record.Error) != v1alpha1.ReasonHostRestored || d.Record.Power != nil || d.Status.State != "" {
			t.Errorf("%s: %+v", state, d)
		}
	}
	f := lost(v1alpha1.InstallationComplete)
	f.Host.Release = "m1"
	if d := Plan(f); !d.Register || d.Record.LastTenant != unknownTenant {
		t.Errorf("a release that a person asks for waits, or its disks count as clean: %+v", d)
	}
}

func TestARestoredHostThatItsMachineHasIsWhatItWas(t *testing.T) {
	f := lost(v1alpha1.InstallationComplete)
	f.Host.Restored, f.Host.MustRegister = false, false
	d := Plan(f)
	if in := d.Record.Installed; d.Status.State != metal3.StateProvisioned || in == nil || in.MachineUID != "m1" || in.Attempt != 2 || d.Action.Kind != ActionNone || d.Record.LastTenant != "team/research" {
		t.Errorf("%+v", d)
	}
	f.Host.Installation.State = v1alpha1.InstallationRequested
	if d := Plan(f); d.Record.Installed != nil || d.Record.LastTenant != "team/research" || d.Status.State == metal3.StateProvisioned {
		t.Errorf("an installation that was under way counts as complete: %+v", d)
	}
	f = lost(v1alpha1.InstallationComplete)
	f.Host.Restored, f.Spec.Attempt = false, 3
	if d := Plan(f); d.Record.Installed != nil {
		t.Errorf("another attempt is installed: %+v", d.Record.Installed)
	}
}

func TestARestoredFreeHostIsNeitherFreeNorClean(t *testing.T) {
	erased := v1alpha1.HostRecordStatus{Power: &v1alpha1.HostPower{State: "Off"}, LastTenant: "team/research", Erased: &v1alpha1.EraseProof{Mode: v1alpha1.EraseFull}}
	for _, c := range []struct {
		record v1alpha1.HostRecordStatus
		state  metal3.ProvisioningState
		power  hardware.PowerState
		held   bool
	}{
		{v1alpha1.HostRecordStatus{}, "", hardware.PowerOn, true},
		{v1alpha1.HostRecordStatus{}, "", hardware.PowerUnknown, true},
		{v1alpha1.HostRecordStatus{}, "", hardware.PowerOff, false},
		{erased, metal3.StateAvailable, hardware.PowerOn, true},
		{erased, metal3.StateAvailable, hardware.PowerOff, false},
	} {
		f := Facts{Clock: watched.Clock{Now: at(0).Time}, Timeouts: DefaultTimeouts(), Record: c.record, Observed: &hardware.Observation{Power: c.power},
			Host: Host{Restored: true, MustRegister: true, Status: Status{State: c.state}}}
		d := Plan(f)
		if isHeld := errorReason(d.Record.Error) == v1alpha1.ReasonHostRestored; isHeld != c.held || d.Register == c.held {
			t.Errorf("%q, power %s: held %t, registered %t: %s", c.state, c.power, isHeld, d.Register, d.Status.ErrorMessage)
		}
		if c.held && (d.Action.Kind != ActionNone || !strings.Contains(d.Status.ErrorMessage, "power it off")) {
			t.Errorf("%q, power %s: action %s, %s", c.state, c.power, d.Action.Kind, d.Status.ErrorMessage)
		}
		if !c.held && (d.Record.Erased != nil || d.Record.LastTenant == "" || d.Status.State == metal3.StateAvailable) {
			t.Errorf("%q: an old backup's proof counts: %+v", c.state, d.Record)
		}
	}
}
