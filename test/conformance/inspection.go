package conformance

import (
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// inspectionCases are the tests of inspections by the agent that end otherwise than well.
var inspectionCases = map[string]Case{
	"an inspection by the agent of a server that is on fails and leaves it on": {Leaves: Condition{[]Outcome{failedBy(hardware.ReasonServerIsOn)}, hardware.PowerOn, DiskForeign, []string{DiskForeign}, holdsBefore}, Needs: []Feature{FeatureOwnAgent}, Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{})
		f.expectFailed(f.callUntilEnded(f.newAttempt(1), f.inspectBy(hardware.InspectByAgent)), hardware.ReasonServerIsOn)
		f.expectRunning(DiskForeign)
	}},
	"an inspection by the agent goes on after a restart at every step": {Leaves: inspected, Needs: []Feature{FeatureOwnAgent}, Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{})
		f.CutPower()
		attempt, inspect := f.newAttempt(1), f.inspectBy(hardware.InspectByAgent)
		seen := map[hardware.Step]bool{}
		f.expectSucceeded(f.callUntil(attempt, func(a hardware.Attempt) error {
			if step := f.attemptStatus().Step; !seen[step] {
				seen[step] = true
				f.Restart()
			}
			return inspect(a)
		}, func(s hardware.AttemptStatus) bool { return s.State != hardware.AttemptRunning }))
		f.expectPowerOff()
		if len(seen) < 3 {
			t.Errorf("the process was restarted at %v only", seen)
		}
	}},
	"a cancelled inspection by the BMC leaves the power as it is": {
		Leaves: Condition{[]Outcome{cancelled}, hardware.PowerOn, DiskForeign, []string{DiskForeign}, holdsBefore},
		Needs:  []Feature{FeatureOwnAgent, FeatureOwnProgress}, Run: func(t *testing.T, r *rigs) {
			f := newFixture(t, r, Faults{})
			f.SilenceBMC(true)
			attempt := f.newAttempt(1)
			f.callOnce(attempt, f.inspectBy(hardware.InspectByBMC))
			f.SilenceBMC(false)
			if err := f.Installer().Cancel(t.Context(), f.Host(), attempt); err != nil {
				t.Fatal(err)
			}
			f.Advance(time.Minute)
		}},
}

// inspectionHops are the failures of an inspection by the agent that name the hop, with the power that they leave.
var inspectionHops = map[hardware.Reason]struct {
	faults Faults
	power  hardware.PowerState
}{
	hardware.ReasonPowerOnIgnored: {Faults{IgnorePowerOn: -1}, hardware.PowerOff},
	hardware.ReasonNoBootRequest:  {Faults{DeadBootNIC: true}, hardware.PowerOn},
	hardware.ReasonAgentMissing:   {Faults{NoAgent: true}, hardware.PowerOn},
	hardware.ReasonAgentSilent:    {Faults{AgentHangs: true}, hardware.PowerOn},
	hardware.ReasonBootLoop:       {Faults{BootLoop: true}, hardware.PowerOff},
}

// inspectionHopCases are the tests that an inspection by the agent that fails names the hop.
func inspectionHopCases() map[string]Case {
	out := map[string]Case{}
	for reason, hop := range inspectionHops {
		out["an inspection by the agent that fails names the hop: "+string(reason)] = Case{
			Leaves: Condition{[]Outcome{failedBy(reason)}, hop.power, "", []string{DiskForeign}, holdsBefore},
			Needs:  []Feature{FeatureOwnAgent, FeatureBMC}, Run: func(t *testing.T, r *rigs) {
				f := newFixture(t, r, hop.faults)
				f.CutPower()
				attempt := f.newAttempt(1)
				f.expectFailed(f.callUntilEnded(attempt, f.inspectBy(hardware.InspectByAgent)), reason)
			}}
	}
	return out
}

// expectRunning expects the server on, with the system of its disk.
func (f *fixture) expectRunning(disk string) {
	f.t.Helper()
	if f.Power() != hardware.PowerOn || f.Running() != disk {
		f.t.Errorf("the power is %s and %q runs, expected it on with %s", f.Power(), f.Running(), disk)
	}
}
