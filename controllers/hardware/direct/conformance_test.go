package direct_test

import (
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/conformance"
)

func TestDirectPassesTheConformanceSuite(t *testing.T) {
	conformance.Run(t, conformance.Direct(), func(t *testing.T, faults conformance.Faults) conformance.Rig {
		switch hardware.Step(faults.HoldIn) {
		case hardware.StepPoweringOff:
			faults.IgnorePowerOff = 1
		case hardware.StepPoweringOn:
			faults.IgnorePowerOn = 1
		}
		return newRig(t, faults)
	})
}

// State is the step of the attempt. A server takes minutes for each, so that each is met; a change of power that is ignored at first takes a while too.
func (r *rig) State() string {
	observation, err := r.installer.Observe(r.t.Context(), r.Host())
	if err != nil || observation.Attempt == nil || observation.Attempt.State != hardware.AttemptRunning {
		return ""
	}
	return string(observation.Attempt.Step)
}

// SecondDisk is never erased: the agent reports an erase of the first disk alone.
func (r *rig) SecondDisk() string {
	if r.faults.MissesDisk {
		return conformance.DiskForeign
	}
	return ""
}

func (r *rig) Delete() { r.t.Fatal("no service keeps the server") }

// RotateBMC is RotateCredentials: the BMC is all that the Installer logs in to.
func (r *rig) RotateBMC() { r.RotateCredentials() }
func (r *rig) TakeBMC()   { r.TakeCredentials() }

func (r *rig) BMCPassword() (used string, isRight bool) {
	return r.endpoint.Password, r.endpoint.Password == r.bmc.Endpoint().Password
}
