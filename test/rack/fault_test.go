package rack_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/bmc"
	"github.com/ingot-dev/ingot/test/rack"
)

// doesNotBoot powers the server on, without an override, and wants it to find nothing on its disk.
func doesNotBoot(t *testing.T, r *rig, s *rack.Server) {
	t.Helper()
	awaitPower(t, s, hardware.PowerOff)
	if err := r.bmc(s).SetPower(t.Context(), hardware.TurnOn); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the disk does not boot", func() error {
		if state := s.State(); !strings.HasPrefix(state.Activity, "no bootable device") {
			return fmt.Errorf("%+v", state)
		}
		return nil
	})
}

func TestAFaultEndsTheAttemptWithItsReason(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		faults rack.Faults
		want   hardware.Reason
	}{
		"dead boot NIC":    {rack.Faults{DeadBootNIC: true}, hardware.ReasonNoBootRequest},
		"disk write error": {rack.Faults{DiskErrorAt: 40 << 20}, hardware.ReasonDiskError},
		"wrong digest":     {rack.Faults{CorruptImage: true}, hardware.ReasonDigestMismatch},
		"boot loop":        {rack.Faults{BootLoop: true}, hardware.ReasonBootLoop},
		"silent power-on":  {rack.Faults{BMC: bmc.Faults{SilentPowerOn: bmc.All}}, hardware.ReasonPowerOnIgnored},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, 1, nil)
			s := r.rack.Servers()[0]
			s.SetFaults(test.faults)
			status := r.install(s, drive("fault", "#cloud-config\n"))
			if status.State != hardware.AttemptFailed || status.Reason != test.want {
				t.Fatalf("%+v", status)
			}
			r.erase(s, hardware.EraseNone) // brings the power off
			s.SetFaults(rack.Faults{})
			s.PowerLoss()
			doesNotBoot(t, r, s)
		})
	}
}

func TestAWrongAddressInTheBootDocumentIsSaidByTheServer(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	r.bootURL = "http://127.0.0.1:1"
	s := r.rack.Servers()[0]
	status := r.install(s, drive("astray", "#cloud-config\n"))
	if status.State != hardware.AttemptFailed || status.Reason != hardware.ReasonBootLoop || !strings.Contains(status.Message, "could not load the kernel from http://127.0.0.1:1 (iPXE's error") {
		t.Errorf("%+v", status)
	}
	session, err := r.store.ByUID(t.Context(), s.UUID())
	if err != nil || session.Findings.BootLoadFailed.Count == 0 {
		t.Errorf("%+v: %v", session.Findings, err)
	}
}

func TestABMCThatFailsNowAndThenDoesNotStopAnInstallation(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	s := r.rack.Servers()[0]
	s.SetFaults(rack.Faults{BMC: bmc.Faults{ServerErrors: 3, Busy: 3, SilentPowerOn: 1, LazyCollections: true}})
	if status := r.install(s, drive("flaky", "#cloud-config\n")); status.State != hardware.AttemptSucceeded {
		t.Fatalf("%+v", status)
	}
}

func TestADiskBootsOnlyAfterThePowerLastedLongEnough(t *testing.T) {
	t.Parallel()
	// Before the boot source is looked at, the override still holds: the next boot installs.
	installed := map[rack.Step]bool{rack.StepPOST: true, rack.StepReported: true}
	for _, step := range []rack.Step{
		rack.StepPOST, rack.StepBootDocument, rack.StepKernel, rack.StepInitrd, rack.StepAgent, rack.StepRegistered, rack.StepWriting,
		rack.StepVerifying, rack.StepReported,
	} {
		t.Run(string(step), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, 1, nil)
			s := r.rack.Servers()[0]
			s.SetFaults(rack.Faults{PowerLossAt: step})
			r.begin(s, drive("loss", "#cloud-config\n"))
			eventually(t, "the power was lost", func() error {
				if s.Faults().PowerLossAt != "" || s.Power() != hardware.PowerOff {
					return errors.New(s.State().Activity)
				}
				return nil
			})
			if !installed[step] {
				doesNotBoot(t, r, s)
				return
			}
			if err := r.bmc(s).SetPower(t.Context(), hardware.TurnOn); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the system is up", func() error {
				if s.State().OS == "" {
					return errors.New(s.State().Activity)
				}
				return nil
			})
		})
	}
}

func TestAHalfWrittenDiskDoesNotBoot(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	s := r.rack.Servers()[0]
	for _, bytes := range []int64{1, 4096, 100 << 10} {
		s.SetFaults(rack.Faults{PowerLossAfter: bytes})
		r.begin(s, drive(fmt.Sprint("half-", bytes), "#cloud-config\n"))
		eventually(t, "the power was lost", func() error {
			if s.Faults().PowerLossAfter != 0 || s.Power() != hardware.PowerOff {
				return errors.New(s.State().Activity)
			}
			return nil
		})
		doesNotBoot(t, r, s)
		s.PowerLoss()
		awaitPower(t, s, hardware.PowerOff)
	}
}

// TestAServerThatRestartsInTheMiddleOfAnInstallationBootsNothing has a BMC that restarts its server, as for an update of the firmware.
func TestAServerThatRestartsInTheMiddleOfAnInstallationBootsNothing(t *testing.T) {
	t.Parallel()
	for _, step := range []rack.Step{rack.StepKernel, rack.StepRegistered, rack.StepWriting, rack.StepVerifying} {
		t.Run(string(step), func(t *testing.T) {
			t.Parallel()
			restarted := false
			r := newRig(t, 1, func(o *rack.Options) {
				o.OnStep = func(s *rack.Server, at rack.Step) {
					if at == step && !restarted {
						restarted = true
						s.Reset(bmc.ResetForceRestart)
					}
				}
			})
			s := r.rack.Servers()[0]
			r.begin(s, drive("restart", "#cloud-config\n"))
			eventually(t, "the disk does not boot", func() error {
				if state := s.State(); !strings.HasPrefix(state.Activity, "no bootable device") {
					return fmt.Errorf("%+v", state)
				}
				return nil
			})
			s.PowerLoss()
			if status := r.install(s, drive("again", "#cloud-config\n")); status.State != hardware.AttemptSucceeded {
				t.Fatalf("%+v", status)
			}
		})
	}
}
