package conformance

import (
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// remoteCases are the tests of what happens to what an Installer talks to, and of other processes.
var remoteCases = map[string]Case{
	"what the Installer talks to is unreachable for ten minutes": {Leaves: "Succeeded; on, runs the image; the image", Run: func(t *testing.T, h Harness) {
		f := newFixture(t, h, Faults{})
		attempt := f.newAttempt(1)
		f.callUntil(attempt, f.install, f.isWorkingOnDisk)
		f.SilenceBMC(true)
		for until := f.Now().Add(10 * time.Minute); f.Now().Before(until); f.Advance(callInterval) {
			if err := f.install(attempt); err != nil && hardware.KindOf(err) != hardware.Unreachable {
				t.Errorf("while it is unreachable: %v", err)
			}
		}
		f.SilenceBMC(false)
		f.expectSucceeded(f.callUntilEnded(attempt, f.install))
		f.expectInstalled()
	}},
	"the credentials are rotated": {Leaves: "Succeeded; on, runs the image; the image", Run: func(t *testing.T, h Harness) {
		f := newFixture(t, h, Faults{})
		attempt := f.newAttempt(1)
		f.callUntil(attempt, f.install, f.isWorkingOnDisk)
		f.RotateCredentials()
		for range 3 {
			if err := f.install(attempt); err != nil && hardware.KindOf(err) != hardware.Unauthorized {
				t.Errorf("with the credentials before the rotation: %v", err)
			}
			f.Advance(callInterval)
		}
		f.TakeCredentials()
		f.expectSucceeded(f.callUntilEnded(attempt, f.install))
		f.expectInstalled()
	}},
	"the host vanishes and comes back": {Leaves: "Succeeded; on, runs the image; the image", Run: func(t *testing.T, h Harness) {
		f := newFixture(t, h, Faults{})
		attempt := f.newAttempt(1)
		f.callUntil(attempt, f.install, f.isWorkingOnDisk)
		f.Vanish(true)
		for range 12 {
			if err := f.install(attempt); err != nil && hardware.KindOf(err) == "" {
				t.Errorf("an error without a kind: %v", err)
			}
			f.Advance(callInterval)
		}
		f.Vanish(false)
		for f.attemptStatus().Number != attempt.Number && f.Now().Before(attempt.Deadline) {
			_ = f.install(attempt)
			f.Advance(callInterval)
		}
		f.expectSucceeded(f.callUntilEnded(attempt, f.install))
		f.expectInstalled()
	}},
	"the host is busy with something else at first": {Leaves: "Succeeded; off; erased", Run: func(t *testing.T, h Harness) {
		f := newFixture(t, h, Faults{})
		attempt, erase := f.newAttempt(1), f.eraseWith(hardware.EraseMetadata)
		f.callOnce(attempt, erase)
		f.Occupy(true)
		for range 6 {
			if status := f.callOnce(attempt, erase); status.State == hardware.AttemptFailed {
				t.Fatalf("the attempt has failed while the host was busy: %+v", status)
			}
		}
		f.Occupy(false)
		f.expectSucceeded(f.callUntilEnded(attempt, erase))
		f.expectPowerOff()
	}},
	"two controllers at once": {Leaves: "Succeeded; on, runs the image; the image, written once", Run: func(t *testing.T, h Harness) {
		f := newFixture(t, h, Faults{})
		other, attempt := f.Other(), f.newAttempt(1)
		f.expectSucceeded(f.callUntilEnded(attempt, func(a hardware.Attempt) error {
			err := f.install(a)
			spec := hardware.InstallSpec{Image: f.Image(), ConfigDrive: hardware.ConfigDrive{UserData: []byte("#cloud-config\n")}}
			switch otherErr := other.Install(t.Context(), f.Host(), a, spec); hardware.KindOf(otherErr) {
			case "", hardware.Conflict, hardware.Busy, hardware.Unreachable:
			default:
				t.Errorf("the second controller: %v", otherErr)
			}
			if hardware.KindOf(err) == hardware.Conflict {
				return nil
			}
			return err
		}))
		f.expectInstalled()
		if f.Writes() != 1 {
			t.Errorf("the image was written %d times", f.Writes())
		}
	}},
	"an attempt is cancelled at each step": {Leaves: "Failed, Cancelled; off; partial or as it was, and never boots", Run: func(t *testing.T, h Harness) {
		for name, do := range map[string]func(*fixture) operation{
			"install": func(f *fixture) operation { return f.install },
			"erase":   func(f *fixture) operation { return f.eraseWith(hardware.EraseMetadata) },
		} {
			f := newFixture(t, h, Faults{})
			steps := map[hardware.Step]bool{}
			f.callUntil(f.newAttempt(1), do(f), func(s hardware.AttemptStatus) bool {
				if s.State == hardware.AttemptRunning {
					steps[s.Step] = true
				}
				return s.State != hardware.AttemptRunning
			})
			cancelled := 0
			for step := range steps {
				if cancelAt(newFixture(t, h, Faults{}), do, step) {
					cancelled++
				}
			}
			if cancelled < 2 {
				t.Errorf("%s: cancelled at %d of the steps %v", name, cancelled, steps)
			}
		}
	}},
	"an erase leaves out a disk, and nobody can tell": {Leaves: "Succeeded, which counts as Metadata between tenants; off; a disk may have been left out",
		Needs: []Feature{FeatureNoEvidence}, Run: func(t *testing.T, h Harness) {
			f := newFixture(t, h, Faults{MissesDisk: true})
			status := f.callUntilEnded(f.newAttempt(1), f.eraseWith(hardware.EraseFull))
			f.expectSucceeded(status)
			if claims := f.Installer().Capabilities().DiskEvidence; status.Evidence != nil || claims {
				t.Errorf("evidence %+v, and the Installer claims it: %t", status.Evidence, claims)
			}
			f.expectPowerOff()
		}},
	"a place in the queue is lost and found": {Leaves: "Succeeded; on, runs the image; the image", Needs: []Feature{FeatureLimit}, Run: func(t *testing.T, h Harness) {
		f := newFixture(t, h, Faults{HasLimit: true})
		f.FillLimit(true)
		attempt := f.newAttempt(1)
		isRefused := func(s hardware.AttemptStatus) bool { return s.IsRefusedByLimit || s.State != hardware.AttemptRunning }
		for range 2 {
			if status := f.callUntil(attempt, f.install, isRefused); status.State != hardware.AttemptRunning {
				t.Fatalf("above the limit the attempt is %+v", status)
			}
			f.Restart()
		}
		f.FillLimit(false)
		f.expectSucceeded(f.callUntilEnded(attempt, f.install))
		f.expectInstalled()
	}},
}

// cancelAt cancels an attempt at the step, and reports whether it was seen at that step.
func cancelAt(f *fixture, do func(*fixture) operation, step hardware.Step) bool {
	f.t.Helper()
	attempt := f.newAttempt(1)
	status := f.callUntil(attempt, do(f), func(s hardware.AttemptStatus) bool { return s.Step == step || s.State != hardware.AttemptRunning })
	if status.State != hardware.AttemptRunning {
		return false
	}
	if status = f.cancelUntilOff(attempt); status.State == hardware.AttemptSucceeded {
		return false // it was done before it was cancelled
	}
	f.expectFailed(status, hardware.ReasonCancelled)
	f.expectPowerOff()
	f.expectUnchanged(attempt, do(f))
	f.expectPowerOff()
	return true
}
