package conformance

import (
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// eraseCases are the tests of erases of a sound server, one for each mode and for what it counts as between tenants.
var eraseCases = map[string]Case{
	"an erase of mode None leaves the disk and ends with a confirmed power-off": {
		Leaves: failedOff([]string{DiskForeign}, succeeded), Run: eraseOnce(hardware.EraseNone)},
	"an erase of mode Metadata clears the disk and ends with a confirmed power-off": {Leaves: erased, Run: eraseOnce(hardware.EraseMetadata)},
	"an erase of mode Full with evidence for each disk ends with a confirmed power-off": {
		Leaves: Condition{[]Outcome{succeeded}, hardware.PowerOff, "", []string{DiskErased}, holdsAnyTenant},
		Needs:  []Feature{FeatureEvidence}, Run: eraseOnce(hardware.EraseFull)},
	"an erase of mode Full without evidence counts as one of mode Metadata": {
		Leaves: erased, Needs: []Feature{FeatureNoEvidence}, Run: eraseOnce(hardware.EraseFull)},
}

// eraseOnce erases a server, and calls for the same erase again.
func eraseOnce(mode hardware.EraseMode) func(*testing.T, *rigs) {
	return func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{})
		attempt := f.newAttempt(1)
		f.expectSucceeded(f.callUntilEnded(attempt, f.eraseWith(mode)))
		f.expectPowerOff()
		if mode != hardware.EraseNone && f.Installer().Capabilities().DiskEvidence {
			f.expectEvidence()
		}
		f.expectUnchanged(attempt, f.eraseWith(mode))
		f.expectPowerOff()
	}
}

// missedCases are the tests of erases that leave out a disk.
var missedCases = map[string]Case{
	"an erase that leaves out a disk has not succeeded": {
		Leaves: failedOff([]string{DiskErased}, failedBy(hardware.ReasonEvidenceMissing)), Needs: []Feature{FeatureEvidence}, Run: func(t *testing.T, r *rigs) {
			f := newFixture(t, r, Faults{MissesDisk: true})
			for number, mode := range []hardware.EraseMode{hardware.EraseMetadata, hardware.EraseFull} {
				attempt := f.newAttempt(int64(number + 1))
				f.expectFailed(f.callUntilEnded(attempt, f.eraseWith(mode)), hardware.ReasonEvidenceMissing)
				f.expectUnchanged(attempt, f.eraseWith(mode))
			}
			f.expectSecondDisk(DiskForeign)
		}},
	// What such an erase counts as is decided by controllers/plan/providerkind, and which host is passed over by controllers/plan/placement, whose test has the
	// cases "a full erase by Ironic".
	"an erase leaves out a disk, and nobody can tell": {Leaves: erased, Needs: []Feature{FeatureNoEvidence}, Run: func(t *testing.T, r *rigs) {
		f := newFixture(t, r, Faults{MissesDisk: true})
		f.expectSecondDisk(DiskForeign)
		status := f.callUntilEnded(f.newAttempt(1), f.eraseWith(hardware.EraseFull))
		f.expectSucceeded(status)
		f.expectSecondDisk(DiskForeign)
		if claims := f.Installer().Capabilities().DiskEvidence; status.Evidence != nil || claims {
			t.Errorf("evidence %+v, and the Installer claims it: %t", status.Evidence, claims)
		}
	}},
}

// expectSecondDisk checks what the server's second disk holds.
func (f *fixture) expectSecondDisk(want string) {
	f.t.Helper()
	if held := f.SecondDisk(); held != want {
		f.t.Errorf("the second disk holds %q, expected %q", held, want)
	}
}
