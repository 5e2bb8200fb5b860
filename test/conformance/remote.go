package conformance

import (
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// remoteCases are the tests of what happens to what an Installer talks to, and of other processes.
var remoteCases = map[string]Case{
	"what the Installer talks to is unreachable for ten minutes": {Leaves: installed, Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{})
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
	"the credentials are rotated": {Leaves: installed, Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{})
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
	"the host vanishes and comes back": {Leaves: installed, Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{})
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
	"the password of the BMC is rotated": {Leaves: installed, Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{})
		attempt := f.newAttempt(1)
		f.callUntil(attempt, f.install, f.isWorkingOnDisk)
		f.RotateBMC()
		if used, isRight := f.BMCPassword(); isRight {
			t.Fatalf("after the rotation the password %q is still the BMC's", used)
		}
		for range 3 {
			if err := f.install(attempt); err != nil && hardware.KindOf(err) != hardware.Unauthorized {
				t.Errorf("with the password before the rotation: %v", err)
			}
			f.Advance(callInterval)
		}
		f.TakeBMC()
		f.expectSucceeded(f.callUntilEnded(attempt, f.install))
		for range 60 {
			if _, isRight := f.BMCPassword(); isRight {
				break
			}
			f.Advance(callInterval)
			f.attemptStatus()
		}
		if used, isRight := f.BMCPassword(); !isRight {
			t.Errorf("the BMC is logged in to with the password %q, which it had before", used)
		}
	}},
	"the host is deleted in the service, and made anew": {Leaves: installed, Needs: []Feature{FeatureService}, Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{})
		attempt := f.newAttempt(1)
		f.callUntil(attempt, f.install, f.isWorkingOnDisk)
		f.Delete()
		if state := f.State(); state != "" {
			t.Fatalf("the host is still in the service, in the state %q", state)
		}
		f.expectSucceeded(f.callUntilEnded(attempt, func(a hardware.Attempt) error {
			err := f.install(a)
			if hardware.KindOf(err) == hardware.NotFound {
				return nil // by a list from before
			}
			return err
		}))
	}},
	"the host is busy with something else at first": {Leaves: erased, Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{})
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
	"two controllers at once": {Leaves: installed, Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{})
		other, attempt := f.Other(), f.newAttempt(1)
		f.expectSucceeded(f.callUntilEnded(attempt, func(a hardware.Attempt) error {
			err := f.install(a)
			spec := hardware.InstallSpec{Image: f.Image(), ReadConfigDrive: readConfigDrive}
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
	"a place in the queue is lost and found": {Leaves: installed, Needs: []Feature{FeatureLimit}, Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{HasLimit: true})
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
