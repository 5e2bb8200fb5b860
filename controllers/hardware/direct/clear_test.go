package direct_test

import (
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/bmc"
	"github.com/ingot-dev/ingot/test/conformance"
)

// withoutNetworkBoot are the personalities whose boot override for the network cannot be used.
var withoutNetworkBoot = map[string]bool{"supermicro-as-1015cs": true, "uefi-http-only": true}

func TestEveryProductsBMCInstallsErasesAndIsInspected(t *testing.T) {
	personalities, err := bmc.Personalities()
	if err != nil {
		t.Fatal(err)
	}
	for name, personality := range personalities {
		t.Run(name, func(t *testing.T) {
			if withoutNetworkBoot[name] {
				r := newRigWith(t, conformance.Faults{}, personality)
				r.CutPower()
				if _, err := r.callInstall(t, time.Hour); hardware.KindOf(err) != hardware.Unsupported {
					t.Errorf("an install: %v, expected Unsupported", err)
				}
				return
			}
			conformance.RunSound(t, conformance.Direct(), func(t *testing.T, faults conformance.Faults) conformance.Rig {
				r := newRigWith(t, faults, personality)
				t.Cleanup(func() {
					if r.Disk() != conformance.DiskForeign && r.bmc.TakeBoot() == hardware.BootNetwork {
						t.Error("an override for the network is left")
					}
				})
				return r
			})
		})
	}
}

// callInstall begins an install, or goes on with it, and returns how it stands.
func (r *rig) callInstall(t *testing.T, duration time.Duration) (hardware.AttemptState, error) {
	t.Helper()
	deadline := time.Date(2026, 6, 1, 8, 0, 0, 0, time.UTC).Add(duration)
	err := r.installer.Install(t.Context(), r.Host(), hardware.Attempt{Number: 1, Deadline: deadline}, spec)
	observation, _ := r.installer.Observe(t.Context(), r.Host()) // fails with the BMC, beside the attempt
	if observation.Attempt == nil {
		return "", err
	}
	return observation.Attempt.State, err
}

// TestAnOverrideThatStaysIsClearedBeforeTheInstallSucceeds has a BMC that knows only continuous overrides and is silent while the agent works.
func TestAnOverrideThatStaysIsClearedBeforeTheInstallSucceeds(t *testing.T) {
	const deadline = time.Hour
	install := func(t *testing.T) *rig {
		r := newRigWith(t, conformance.Faults{}, bmc.Personality{Boot: bmc.BootRules{AlwaysContinuous: true, Targets: []string{"Pxe", "Hdd"}}})
		for r.Running() != spec.Image.Checksum {
			r.SilenceBMC(r.store.copy().Step != hardware.StepPoweringOff && r.store.copy().Step != hardware.StepBooting && r.store.copy().Step != "")
			if _, err := r.callInstall(t, deadline); err != nil && hardware.KindOf(err) != hardware.Unreachable {
				t.Fatal(err)
			}
			r.Advance(10 * time.Second)
		}
		if _, target := r.bmc.Override(); target != "Pxe" {
			t.Fatalf("the override is %s, expected Pxe", target)
		}
		return r
	}
	t.Run("when the BMC answers again", func(t *testing.T) {
		r := install(t)
		if state, err := r.callInstall(t, deadline); state != hardware.AttemptRunning || hardware.KindOf(err) != hardware.Unreachable {
			t.Errorf("with an override that is not cleared the attempt is %s (%v), expected Running and Unreachable", state, err)
		}
		r.Restart()
		r.SilenceBMC(false)
		if state, err := r.callInstall(t, deadline); state != hardware.AttemptSucceeded || err != nil {
			t.Errorf("the attempt is %s (%v), expected Succeeded", state, err)
		}
		if _, target := r.bmc.Override(); target != "Hdd" {
			t.Errorf("the override is %s, expected Hdd", target)
		}
	})
	t.Run("the image counts at the deadline", func(t *testing.T) {
		r := install(t)
		r.Advance(deadline)
		if state, _ := r.callInstall(t, deadline); state != hardware.AttemptSucceeded {
			t.Errorf("the attempt is %s, expected Succeeded", state)
		}
	})
}
