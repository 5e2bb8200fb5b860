package direct_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/bmc"
	"github.com/ingot-dev/ingot/test/conformance"
)

func TestAPowerOnThatIsRefusedIsAnErrorOfEveryCallUntilTheServerIsOn(t *testing.T) {
	r := newRig(t, conformance.Faults{})
	r.bmc.SetPower(hardware.PowerOff)
	install := func() error {
		r.Advance(2 * time.Second)
		return r.installer.Install(t.Context(), r.Host(), attempt, spec)
	}
	if err := install(); err != nil { // the attempt begins
		t.Fatal(err)
	}
	r.bmc.SetPower(hardware.PowerOff)
	r.bmc.SetFaults(bmc.Faults{BusyResets: bmc.All})
	r.store.session.Step, r.store.session.StepAt = hardware.StepPoweringOff, r.Now()
	for n := range 40 { // longer than PowerOnRetry
		if err := install(); hardware.KindOf(err) != hardware.Busy {
			t.Fatalf("call %d succeeds while every power-on is refused: %v", n, err)
		}
	}
	for r.store.session.State == hardware.AttemptRunning {
		_ = install()
	}
	if s := r.store.session; s.Reason != hardware.ReasonPowerOnIgnored || !strings.Contains(s.Message, "503") || strings.Contains(s.Message, "accepts power-on") {
		t.Errorf("%s: %s", s.Reason, s.Message)
	}
}

func TestAPowerOnThatIsRefusedOnceIsForgottenWhenTheServerIsOn(t *testing.T) {
	r := newRig(t, conformance.Faults{})
	r.bmc.SetPower(hardware.PowerOff)
	r.bmc.SetFaults(bmc.Faults{BusyResets: 1})
	refused := 0
	for range 60 {
		err := r.installer.Install(t.Context(), r.Host(), attempt, spec)
		if err != nil {
			refused++
		}
		if r.Advance(2 * time.Second); err != nil && r.Power() == hardware.PowerOn {
			t.Fatalf("the server is on, and the call fails: %v", err)
		}
	}
	if refused == 0 || r.Power() != hardware.PowerOn {
		t.Errorf("%d calls were refused, power is %s", refused, r.Power())
	}
}

func TestAServerWhoseBootMACAddressTwoHostsHaveIsNotPoweredOn(t *testing.T) {
	r := newRig(t, conformance.Faults{})
	r.CutPower()
	r.store.isShared = true
	for range 5 {
		_, err := r.callInstall(t, time.Hour)
		if hardware.ReasonOf(err) != hardware.ReasonBootMACConflict || !strings.Contains(err.Error(), "both a and b") {
			t.Fatalf("%v", err)
		}
		if r.Advance(10 * time.Second); r.Power() != hardware.PowerOff {
			t.Fatal("the server is powered on, and the boot service serves neither host")
		}
	}
	r.store.isShared = false
	if _, err := r.callInstall(t, time.Hour); err != nil || r.Power() != hardware.PowerOn {
		t.Errorf("power %s: %v", r.Power(), err)
	}
}
