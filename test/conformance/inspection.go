package conformance

import (
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// inspectionCases are the tests of inspections by the agent that end otherwise than well.
var inspectionCases = map[string]Case{
	"an inspection by the agent of a server that is on fails and leaves it on": {Leaves: "Failed, ServerIsOn; on, runs what it ran; as it was", Needs: []Feature{FeatureOwnAgent}, Run: func(t *testing.T, h Harness) {
		f := newAgentFixture(t, h, Faults{})
		f.expectFailed(f.callUntilEnded(f.newAttempt(1), f.inspectBy(hardware.InspectByAgent)), hardware.ReasonServerIsOn)
		f.expectRunning(DiskForeign)
	}},
	"an inspection by the agent that fails names the hop": {Leaves: "Failed, the hop; off or on, runs nothing; as it was", Needs: []Feature{FeatureOwnAgent, FeatureBMC}, Run: func(t *testing.T, h Harness) {
		for reason, faults := range map[hardware.Reason]Faults{
			hardware.ReasonPowerOnIgnored: {IgnorePowerOn: -1},
			hardware.ReasonNoBootRequest:  {DeadBootNIC: true},
			hardware.ReasonAgentMissing:   {NoAgent: true},
			hardware.ReasonAgentSilent:    {AgentHangs: true},
			hardware.ReasonBootLoop:       {BootLoop: true},
		} {
			t.Run(string(reason), func(t *testing.T) {
				f := newAgentFixture(t, h, faults)
				f.CutPower()
				attempt := f.newAttempt(1)
				f.expectFailed(f.callUntilEnded(attempt, f.inspectBy(hardware.InspectByAgent)), reason)
				if f.Disk() != DiskForeign || f.Running() != "" {
					t.Errorf("the disk is %s, running is %q: expected it untouched and not booted", f.Disk(), f.Running())
				}
			})
		}
	}},
	"an inspection by the agent goes on after a restart at every step": {Leaves: "Succeeded; off; as it was", Needs: []Feature{FeatureOwnAgent}, Run: func(t *testing.T, h Harness) {
		f := newAgentFixture(t, h, Faults{})
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
	"a cancelled inspection cuts the power only where it has powered the server on": {Leaves: "Failed, Cancelled; as it was, or off; as it was", Needs: []Feature{FeatureOwnAgent, FeatureOwnProgress}, Run: func(t *testing.T, h Harness) {
		f := newFixture(t, h, Faults{})
		f.SilenceBMC(true)
		attempt := f.newAttempt(1)
		f.callOnce(attempt, f.inspectBy(hardware.InspectByBMC))
		f.SilenceBMC(false)
		if err := f.Installer().Cancel(t.Context(), f.Host(), attempt); err != nil {
			t.Fatal(err)
		}
		f.Advance(time.Minute)
		f.expectRunning(DiskForeign)

		f = newAgentFixture(t, h, Faults{NoAgent: true})
		f.CutPower()
		attempt = f.newAttempt(1)
		f.callUntil(attempt, f.inspectBy(hardware.InspectByAgent), func(s hardware.AttemptStatus) bool { return s.Step == hardware.StepLoading })
		if err := f.Installer().Cancel(t.Context(), f.Host(), attempt); err != nil {
			t.Fatal(err)
		}
		f.Advance(time.Minute)
		f.expectPowerOff()
	}},
}

// newAgentFixture is newFixture for Installers whose agent inspects.
func newAgentFixture(t *testing.T, harness Harness, faults Faults) *fixture {
	t.Helper()
	return newFixture(t, harness, faults)
}

// expectRunning expects the server on, with the system of its disk.
func (f *fixture) expectRunning(disk string) {
	f.t.Helper()
	if f.Power() != hardware.PowerOn || f.Running() != disk {
		f.t.Errorf("the power is %s and %q runs, expected it on with %s", f.Power(), f.Running(), disk)
	}
}
