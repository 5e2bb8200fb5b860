package conformance

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// caseInstall is the case of an install of a sound server.
const caseInstall = "an install writes the image and the server boots it from the disk"

// soundCases are the tests of the outcome of one attempt on a sound server.
func soundCases() map[string]Case {
	all := maps.Clone(installCases)
	maps.Copy(all, eraseCases)
	return all
}

// installCases are the tests of an install and of inspections of a sound server.
var installCases = map[string]Case{
	caseInstall: {Leaves: installed, Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{})
		attempt := f.newAttempt(1)
		var progress []int64
		status := f.callUntil(attempt, f.install, func(s hardware.AttemptStatus) bool {
			if s.Step == hardware.StepWriting {
				progress = append(progress, s.DoneBytes)
			}
			return s.State != hardware.AttemptRunning
		})
		f.expectSucceeded(status)
		f.expectInstalled()
		if f.Installer().Capabilities().ByteProgress && len(slices.Compact(progress)) < 2 {
			t.Errorf("bytes written were observed as %v, expected them to grow", progress)
		}
		f.expectUnchanged(attempt, f.install)
		f.expectInstalled()
		if f.Writes() != 1 {
			t.Errorf("the image was written %d times", f.Writes())
		}
	}},
	"an inspection by the agent yields its inventory and ends with the server off": {Leaves: inspected, Needs: []Feature{FeatureOwnAgent}, Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{})
		f.CutPower()
		attempt := f.newAttempt(1)
		f.expectSucceeded(f.callUntilEnded(attempt, f.inspectBy(hardware.InspectByAgent)))
		f.expectPowerOff()
		seen, err := f.Installer().Observe(t.Context(), f.Host())
		if err != nil || seen.Inventory == nil || seen.Inventory.SystemUUID == "" {
			t.Errorf("inventory is %+v (%v), expected one with the system UUID, which only an agent reads", seen.Inventory, err)
		}
		if f.Disk() != DiskForeign {
			t.Errorf("the disk is %s, expected it untouched", f.Disk())
		}
		f.expectUnchanged(attempt, f.inspectBy(hardware.InspectByAgent))
		f.expectPowerOff()
	}},
	"an inspection yields an inventory and leaves the disk alone": {Leaves: inspectedOn, Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{})
		f.expectSucceeded(f.callUntilEnded(f.newAttempt(1), f.inspectBy(hardware.InspectByBMC)))
		seen, err := f.Installer().Observe(t.Context(), f.Host())
		if err != nil || seen.Inventory == nil || seen.Inventory.SerialNumber == "" {
			t.Errorf("inventory is %+v (%v), expected one with a serial number", seen.Inventory, err)
		}
		if f.Disk() != DiskForeign {
			t.Errorf("the disk is %s, expected it untouched", f.Disk())
		}
	}},
}

// outcomeCases are the tests of the outcome of one attempt on a server with defects.
var outcomeCases = map[string]Case{
	"an erase whose power-off is ignored at the end has not succeeded": {Leaves: failedOn([]string{DiskErased}, failedBy(hardware.ReasonPowerOffIgnored)), Needs: []Feature{FeatureBMC}, Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{IgnorePowerOff: -1})
		f.CutPower() // so that the first power-off holds already
		f.expectFailed(f.callUntilEnded(f.newAttempt(1), f.eraseWith(hardware.EraseMetadata)), hardware.ReasonPowerOffIgnored)
	}},
	"power-ons that are ignored at first are asked for again": {Leaves: installed, Needs: []Feature{FeatureBMC}, Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{IgnorePowerOn: 2})
		f.expectSucceeded(f.callUntilEnded(f.newAttempt(1), f.install))
		f.expectInstalled()
	}},
}

// attemptCases are the tests that calls belong to attempts by their number.
var attemptCases = map[string]Case{
	"an attempt that is over is a conflict": {Leaves: installed, Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{})
		f.expectSucceeded(f.callUntilEnded(f.newAttempt(2), f.install))
		for name, do := range map[string]operation{
			"install": f.install,
			"erase":   f.eraseWith(hardware.EraseMetadata),
			"inspect": f.inspectBy(hardware.InspectByBMC), "inspect by the agent": f.inspectBy(hardware.InspectByAgent),
			"cancel": func(a hardware.Attempt) error { return f.Installer().Cancel(t.Context(), f.Host(), a) },
		} {
			if err := do(f.newAttempt(1)); hardware.KindOf(err) != hardware.Conflict {
				t.Errorf("%s of attempt 1 after attempt 2: %v, expected Conflict", name, err)
			}
		}
		f.expectInstalled()
	}},
	"another piece of work under the same number is a conflict": {Leaves: installed, Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{})
		attempt := f.newAttempt(1)
		f.callUntil(attempt, f.install, f.isWorkingOnDisk)
		if err := f.eraseWith(hardware.EraseFull)(attempt); hardware.KindOf(err) != hardware.Conflict {
			t.Errorf("an erase as attempt 1 while it installs: %v, expected Conflict", err)
		}
		f.expectSucceeded(f.callUntilEnded(attempt, f.install))
		f.expectInstalled()
	}},
	"a new attempt starts over after a failed one": {Leaves: Condition{[]Outcome{{State: hardware.AttemptRunning}}, hardware.PowerOff, "", []string{DiskForeign}, holdsNotYet}, Needs: []Feature{FeatureBMC}, Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{IgnorePowerOn: 100})
		f.expectFailed(f.callUntilEnded(hardware.Attempt{Number: 1, Deadline: f.Now().Add(3 * time.Minute)}, f.install), hardware.ReasonPowerOnIgnored)
		f.CutPower()
		status := f.callOnce(f.newAttempt(2), f.install)
		if status.Number != 2 || status.State != hardware.AttemptRunning || status.Reason != "" || status.Boots != 0 {
			t.Errorf("the second attempt begins as %+v", status)
		}
	}},
	"a new attempt takes over from one under way": {Leaves: erased, Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{})
		f.callUntil(f.newAttempt(1), f.install, f.isWorkingOnDisk)
		f.expectSucceeded(f.callUntilEnded(f.newAttempt(2), f.eraseWith(hardware.EraseMetadata)))
		f.expectPowerOff()
		if f.Disk() != DiskErased {
			t.Errorf("the disk is %s, expected it erased", f.Disk())
		}
	}},
	"requests that make no sense have no effect": {Leaves: untouched, Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{})
		install := func(change func(*hardware.Image)) error {
			bad := f.Image()
			change(&bad)
			return f.Installer().Install(t.Context(), f.Host(), f.newAttempt(1), hardware.InstallSpec{Image: bad})
		}
		for name, err := range map[string]error{
			"no number":   f.install(f.newAttempt(0)),
			"no deadline": f.install(hardware.Attempt{Number: 1}),
			"no URL":      install(func(i *hardware.Image) { i.URL = "" }),
			"no digest":   install(func(i *hardware.Image) { i.Checksum = "http://images.example/SHA256SUMS" }),
			"format":      install(func(i *hardware.Image) { i.Format = "vmdk" }),
			"erase mode":  f.eraseWith("Gently")(f.newAttempt(1)),
		} {
			if kind := hardware.KindOf(err); kind != hardware.Invalid && kind != hardware.Unsupported {
				t.Errorf("%s: %v, expected Invalid or Unsupported", name, err)
			}
		}
		if status := f.attemptStatus(); status.Number != 0 || f.Running() != DiskForeign {
			t.Errorf("something happened: %+v, the server runs %q", status, f.Running())
		}
	}},
}

// interruptionCases are the tests of cancellation and of losing power, the BMC or the process.
var interruptionCases = map[string]Case{
	"a cancelled attempt ends with the power off and does not come back": {Leaves: failedOff([]string{DiskPartial}, cancelled), Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{AgentHangs: true}) // so that the cancel meets the work, however late it is
		attempt := f.newAttempt(1)
		f.callUntil(attempt, f.install, f.isWorkingOnDisk)
		f.expectFailed(f.cancelUntilOff(attempt), hardware.ReasonCancelled)
		f.expectPowerOff()
		f.expectUnchanged(attempt, f.install)
		f.expectPowerOff()
	}},
	"an attempt cancelled before it began does not begin": {Leaves: failedOff([]string{DiskForeign}, cancelled), Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{})
		attempt := f.newAttempt(3)
		f.expectFailed(f.cancelUntilOff(attempt), hardware.ReasonCancelled)
		f.expectPowerOff()
		f.expectUnchanged(attempt, f.install)
		f.expectPowerOff()
	}},
	"cancelling what has succeeded powers off and keeps the outcome": {Leaves: Condition{[]Outcome{succeeded}, hardware.PowerOff, "", []string{diskImage}, holdsImage}, Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{})
		attempt := f.newAttempt(1)
		f.expectSucceeded(f.callUntilEnded(attempt, f.install))
		f.expectInstalled()
		f.expectSucceeded(f.cancelUntilOff(attempt))
		f.expectPowerOff()
	}},
	"power lost under way is restored within the attempt": {Leaves: installed, Needs: []Feature{FeatureBMC, FeatureHops}, Run: func(t *testing.T, r *rigs) {
		for _, step := range []hardware.Step{hardware.StepBooting, hardware.StepLoading, hardware.StepWriting, hardware.StepVerifying} {
			f := newFixture(t, r, Faults{})
			attempt := f.newAttempt(1)
			f.callUntil(attempt, f.install, func(s hardware.AttemptStatus) bool { return s.Step == step })
			f.CutPower()
			f.expectSucceeded(f.callUntilEnded(attempt, f.install))
			f.expectInstalled()
		}
	}},
	"a BMC that is silent for a while changes nothing": {Leaves: installed, Needs: []Feature{FeatureOwnProgress, FeatureBMC}, Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{IgnorePowerOn: 1}) // so that the power-on takes a while
		attempt := f.newAttempt(1)
		for _, reached := range []func(hardware.AttemptStatus) bool{
			func(s hardware.AttemptStatus) bool { return s.Number == 1 },
			func(s hardware.AttemptStatus) bool { return s.Step == hardware.StepPoweringOn },
			func(s hardware.AttemptStatus) bool { return s.Step == hardware.StepBooting },
		} {
			f.callUntil(attempt, f.install, reached)
			before := f.attemptStatus()
			f.SilenceBMC(true)
			f.Advance(5 * time.Second) // a power that was read just now may be relied on
			if err := f.install(attempt); hardware.KindOf(err) != hardware.Unreachable {
				t.Errorf("with a silent BMC at %s: %v, expected Unreachable", before.Step, err)
			}
			if after := f.attemptStatus(); after != before {
				t.Errorf("a failed call changed the attempt from %+v to %+v", before, after)
			}
			f.SilenceBMC(false)
		}
		f.expectSucceeded(f.callUntilEnded(attempt, f.install))
		f.expectInstalled()
	}},
	"a BMC that stays silent ends with the deadline": {Leaves: Condition{[]Outcome{failedBy(hardware.ReasonDeadlineExceeded)}, hardware.PowerOn, DiskForeign, []string{DiskForeign}, holdsUnproven}, Needs: []Feature{FeatureOwnProgress}, Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{})
		f.SilenceBMC(true)
		f.expectFailed(f.callUntilEnded(hardware.Attempt{Number: 1, Deadline: f.Now().Add(10 * time.Minute)}, f.install), hardware.ReasonDeadlineExceeded)
	}},
	"the process may be killed after every call": {Leaves: erased, Run: killedAfterEveryCall(Faults{})},
	"the process may be killed after every call, and a power-on is ignored at first": {Leaves: erased, Needs: []Feature{FeatureBMC},
		Run: killedAfterEveryCall(Faults{IgnorePowerOn: 1})},
}

// powerCases are the tests of changes of power on a host where no attempt runs.
var powerCases = map[string]Case{
	"the power becomes what is wanted, and stays": {Leaves: poweredOff, Run: powerBecomes(Faults{})},
	"the power becomes what is wanted although the first requests are ignored": {Leaves: poweredOff, Needs: []Feature{FeatureBMC},
		Run: powerBecomes(Faults{IgnorePowerOn: 2, IgnorePowerOff: 2})},
	"an operating system that does not stop loses its power": {Leaves: poweredOff, Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{})
		if err := f.changePower(hardware.PowerChange{Desired: hardware.PowerOff, Graceful: true, Since: f.Now()}); err != nil || f.Power() != hardware.PowerOff {
			t.Errorf("power %s (%v), expected Off", f.Power(), err)
		}
	}},
	"a change of power that is ignored is named": {Leaves: poweredOff, Needs: []Feature{FeatureBMC}, Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{IgnorePowerOff: -1, IgnorePowerOn: -1})
		f.expectPowerIgnored(hardware.PowerOff, hardware.ReasonPowerOffIgnored)
		f.CutPower()
		f.expectPowerIgnored(hardware.PowerOn, hardware.ReasonPowerOnIgnored)
	}},
	"a change of power that is refused until its time is over is ignored": {Leaves: untouched, Needs: []Feature{FeatureBMC}, Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{RefusePower: true})
		change := hardware.PowerChange{Desired: hardware.PowerOff, Graceful: true, Since: f.Now()}
		for _, c := range []struct {
			after time.Duration
			kind  hardware.Kind
		}{{0, hardware.Busy}, {time.Hour, hardware.Ignored}, {callInterval, hardware.Ignored}} {
			f.Advance(c.after)
			if err := f.Installer().SetPower(t.Context(), f.Host(), change); hardware.KindOf(err) != c.kind {
				t.Errorf("%s later: %v, expected %s", c.after, err, c.kind)
			}
		}
	}},
	"a change of power survives its process": {Leaves: poweredOff, Needs: []Feature{FeatureBMC}, Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{IgnorePowerOff: 2})
		change := hardware.PowerChange{Desired: hardware.PowerOff, Graceful: true, Since: f.Now()}
		for range 60 {
			f.Restart()
			if err := f.Installer().SetPower(t.Context(), f.Host(), change); err != nil {
				t.Fatal(err)
			}
			f.Advance(callInterval)
		}
		f.expectPowerOff()
	}},
	"a silent BMC is unreachable, and nothing is ignored": {Leaves: untouched, Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{})
		change := hardware.PowerChange{Desired: hardware.PowerOff, Since: f.Now()}
		f.SilenceBMC(true)
		f.Advance(time.Hour)
		if err := f.Installer().SetPower(t.Context(), f.Host(), change); hardware.KindOf(err) != hardware.Unreachable {
			t.Errorf("with a silent BMC: %v, expected Unreachable", err)
		}
	}},
	"a change to what is no state of power is refused": {Leaves: untouched, Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{})
		for _, change := range []hardware.PowerChange{{Desired: hardware.PowerTurningOff, Since: f.Now()}, {Desired: hardware.PowerOff}} {
			if err := f.Installer().SetPower(t.Context(), f.Host(), change); hardware.KindOf(err) != hardware.Invalid {
				t.Errorf("%+v: %v, expected Invalid", change, err)
			}
		}
	}},
}

func killedAfterEveryCall(faults Faults) func(*testing.T, *rigs) {
	return func(t *testing.T, r *rigs) {
		f := newFixture(t, r, faults)
		f.expectSucceeded(f.callUntilEnded(f.newAttempt(1), func(a hardware.Attempt) error { defer f.Restart(); return f.install(a) }))
		f.expectInstalled()
		f.expectSucceeded(f.callUntilEnded(f.newAttempt(2), func(a hardware.Attempt) error { defer f.Restart(); return f.eraseWith(hardware.EraseMetadata)(a) }))
		f.expectPowerOff()
	}
}

func powerBecomes(faults Faults) func(*testing.T, *rigs) {
	return func(t *testing.T, r *rigs) {
		f := newFixture(t, r, faults)
		for _, want := range []hardware.PowerState{hardware.PowerOff, hardware.PowerOn, hardware.PowerOff} {
			if err := f.changePower(hardware.PowerChange{Desired: want, Since: f.Now()}); err != nil || f.Power() != want {
				t.Errorf("power %s (%v), expected %s", f.Power(), err, want)
			}
		}
	}
}
