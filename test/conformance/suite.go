package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/require"
)

const (
	// callInterval is the time between two calls of a controller.
	callInterval = 10 * time.Second
	// attemptTimeout is longer than any attempt on a sound server takes.
	attemptTimeout = 2 * time.Hour
)

// Run runs the cases that apply to the subject.
func Run(t *testing.T, subject Subject, harness Harness) {
	t.Helper()
	for name, c := range cases() {
		if subject.lacked(c) != "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if subject.IsParallel { // a real service, which takes its time
				require.OneOf(t, 8)
				t.Parallel()
			}
			c.check(t, &rigs{subject: subject, harness: harness})
		})
	}
}

// rigs are the Rigs of one case.
type rigs struct {
	subject Subject
	harness Harness
	made    []*fixture
}

// check runs the case, and checks the condition in which it leaves each of its Rigs.
func (c Case) check(t *testing.T, r *rigs) {
	t.Helper()
	c.Run(t, r)
	if len(r.made) == 0 {
		t.Error("the case has made no Rig")
	}
	for _, f := range r.made {
		f.expectLeft(c.Leaves)
	}
}

// RunSound runs only the cases of a sound server: an install, each kind of erase, and an inspection. It is for many kinds of servers.
func RunSound(t *testing.T, subject Subject, harness Harness) {
	t.Helper()
	for name, c := range soundCases() {
		if subject.lacked(c) != "" {
			continue
		}
		t.Run(name, func(t *testing.T) { c.check(t, &rigs{harness: harness}) })
	}
}

// RunInstall runs only the case of an install of a sound server. It is for more kinds of servers than RunSound.
func RunInstall(t *testing.T, harness Harness) {
	t.Helper()
	t.Run(caseInstall, func(t *testing.T) { installCases[caseInstall].check(t, &rigs{harness: harness}) })
}

// fixture is a Rig with the actions and the checks that the cases share.
type fixture struct {
	Rig
	t *testing.T
	// works has what was asked for first of each attempt, by its number.
	works map[int64]work
}

// work is what an attempt does: an operation, and for an erase its mode.
type work struct {
	operation hardware.Operation
	mode      hardware.EraseMode
}

// newFixture makes a fixture with the faults.
func newFixture(t *testing.T, r *rigs, faults Faults) *fixture {
	t.Helper()
	f := &fixture{Rig: r.harness(t, faults), t: t, works: map[int64]work{}}
	r.made = append(r.made, f)
	return f
}

// noteWork keeps what an attempt does. What is asked for later under its number is refused.
func (f *fixture) noteWork(attempt hardware.Attempt, w work) {
	if _, isNoted := f.works[attempt.Number]; !isNoted {
		f.works[attempt.Number] = w
	}
}

func (f *fixture) newAttempt(number int64) hardware.Attempt {
	return hardware.Attempt{Number: number, Deadline: f.Now().Add(attemptTimeout)}
}

// operation is one call of the Installer for an attempt.
type operation func(hardware.Attempt) error

func (f *fixture) install(attempt hardware.Attempt) error {
	f.noteWork(attempt, work{operation: hardware.OpInstall})
	return f.Installer().Install(f.t.Context(), f.Host(), attempt, hardware.InstallSpec{Image: f.Image(), ReadConfigDrive: readConfigDrive})
}

func readConfigDrive(context.Context) (hardware.ConfigDrive, error) {
	return hardware.ConfigDrive{UserData: []byte("#cloud-config\n")}, nil
}

func (f *fixture) eraseWith(mode hardware.EraseMode) operation {
	return func(attempt hardware.Attempt) error {
		f.noteWork(attempt, work{hardware.OpErase, mode})
		return f.Installer().Erase(f.t.Context(), f.Host(), attempt, mode)
	}
}

func (f *fixture) inspectBy(inspector hardware.Inspector) operation {
	return func(attempt hardware.Attempt) error {
		f.noteWork(attempt, work{operation: hardware.OpInspect})
		return f.Installer().Inspect(f.t.Context(), f.Host(), attempt, inspector)
	}
}

// attemptStatus returns the status of the current attempt, which an Installer must report even while the BMC is
// unreachable.
func (f *fixture) attemptStatus() hardware.AttemptStatus {
	f.t.Helper()
	observation, err := f.Installer().Observe(f.t.Context(), f.Host())
	for range 30 { // a service that is at work on the host may ask for patience
		if hardware.KindOf(err) != hardware.Busy {
			break
		}
		f.Advance(callInterval)
		observation, err = f.Installer().Observe(f.t.Context(), f.Host())
	}
	if err != nil && hardware.KindOf(err) != hardware.Unreachable {
		f.t.Fatalf("observe: %v", err)
	}
	if observation.Attempt == nil {
		return hardware.AttemptStatus{}
	}
	return *observation.Attempt
}

// callOnce calls the Installer once, lets a call interval pass, and returns the status of the attempt. It fails the test
// when the server has booted a disk that must not boot.
func (f *fixture) callOnce(attempt hardware.Attempt, call operation) hardware.AttemptStatus {
	f.t.Helper()
	f.expectNoFailure(call(attempt))
	return f.letPass()
}

// expectNoFailure fails the test by an error that is none of those that pass.
func (f *fixture) expectNoFailure(err error) {
	f.t.Helper()
	switch hardware.KindOf(err) {
	case "":
		if err != nil {
			f.t.Fatalf("an error without a kind: %v", err)
		}
	case hardware.Unreachable, hardware.Busy:
	default:
		f.t.Fatal(err)
	}
}

// letPass lets a call interval pass, and returns the status of the attempt.
func (f *fixture) letPass() hardware.AttemptStatus {
	f.t.Helper()
	f.Advance(callInterval)
	if f.Running() == DiskPartial || f.Running() == DiskErased {
		f.t.Fatalf("the server booted a disk that is %s", f.Running())
	}
	return f.attemptStatus()
}

// callUntilEnded calls the Installer until the attempt has succeeded or failed, which it must soon after its deadline.
func (f *fixture) callUntilEnded(attempt hardware.Attempt, call operation) hardware.AttemptStatus {
	f.t.Helper()
	return f.callUntil(attempt, call, func(s hardware.AttemptStatus) bool { return s.State != hardware.AttemptRunning })
}

// callUntil calls the Installer until the attempt's status satisfies reached.
func (f *fixture) callUntil(attempt hardware.Attempt, call operation, reached func(hardware.AttemptStatus) bool) hardware.AttemptStatus {
	f.t.Helper()
	for f.Now().Before(attempt.Deadline.Add(2 * callInterval)) {
		status := f.callOnce(attempt, call)
		if status.Number > attempt.Number {
			f.t.Fatalf("attempt %d is observed, expected %d", status.Number, attempt.Number)
		}
		// The work of an earlier attempt may have to be ended first.
		if status.Number == attempt.Number && reached(status) {
			return status
		}
	}
	f.t.Fatalf("not reached by the deadline: %+v", f.attemptStatus())
	return hardware.AttemptStatus{}
}

// isWorkingOnDisk reports whether the attempt has begun to write or erase the disk.
func (f *fixture) isWorkingOnDisk(s hardware.AttemptStatus) bool {
	return s.Step == hardware.StepWriting && (s.DoneBytes > 0 || !f.Installer().Capabilities().ByteProgress) || s.Step == hardware.StepErasing
}

// cancelUntilOff cancels the attempt until the server is off, and returns the status of the attempt.
func (f *fixture) cancelUntilOff(attempt hardware.Attempt) hardware.AttemptStatus {
	f.t.Helper()
	cancel := func(a hardware.Attempt) error { return f.Installer().Cancel(f.t.Context(), f.Host(), a) }
	return f.callUntil(attempt, cancel, func(s hardware.AttemptStatus) bool {
		return s.State != hardware.AttemptRunning && f.Power() == hardware.PowerOff
	})
}

func (f *fixture) expectSucceeded(status hardware.AttemptStatus) {
	f.t.Helper()
	if status.State != hardware.AttemptSucceeded || status.Reason != "" {
		f.t.Fatalf("expected success, the attempt is %s at %s: %s: %s", status.State, status.Step, status.Reason, status.Message)
	}
}

func (f *fixture) expectFailed(status hardware.AttemptStatus, reason hardware.Reason) {
	f.t.Helper()
	if status.State != hardware.AttemptFailed || status.Reason != reason {
		f.t.Fatalf("expected failure by %s, the attempt is %s at %s: %q: %s", reason, status.State, status.Step, status.Reason, status.Message)
	}
	if status.Message == "" {
		f.t.Error("the failure says nothing to the operator")
	}
}

// expectInstalled checks that the server runs the image from its disk within some minutes.
func (f *fixture) expectInstalled() {
	f.t.Helper()
	for range 60 {
		if f.Running() == f.Image().Checksum {
			return
		}
		f.Advance(callInterval)
	}
	f.t.Errorf("the disk holds %q and the server runs %q, expected the image", f.Disk(), f.Running())
}

// expectEvidence checks that the erase has left evidence that a disk is erased. An Installer without Ingot's agent may have none.
func (f *fixture) expectEvidence() {
	f.t.Helper()
	evidence := f.attemptStatus().Evidence
	if evidence == nil || len(evidence.Disks) == 0 {
		f.t.Fatal("an erase has succeeded without evidence")
	}
	for _, disk := range evidence.Disks {
		if disk.Result != hardware.DiskErased || disk.SerialNumber == "" || disk.SizeBytes == 0 || disk.Method == "" || disk.Bytes == 0 {
			f.t.Errorf("evidence %+v", disk)
		}
	}
}

func (f *fixture) expectPowerOff() {
	f.t.Helper()
	observation, err := f.Installer().Observe(f.t.Context(), f.Host())
	if err != nil || observation.Power != hardware.PowerOff || f.Power() != hardware.PowerOff {
		f.t.Errorf("observed power %s (%v), real power %s, expected Off", observation.Power, err, f.Power())
	}
}

// expectUnchanged checks that further calls for an attempt that has ended change neither its status nor the disk.
func (f *fixture) expectUnchanged(attempt hardware.Attempt, call operation) {
	f.t.Helper()
	before, disk := f.attemptStatus(), f.Disk()
	for range 5 {
		f.callOnce(attempt, call)
	}
	if diff := cmp.Diff(before, f.attemptStatus()); diff != "" || f.Disk() != disk {
		f.t.Errorf("a settled attempt changed (-before +after), disk %q to %q:\n%s", disk, f.Disk(), diff)
	}
}

// changePower calls SetPower until the power is as desired, the change has failed, or an hour has passed.
func (f *fixture) changePower(change hardware.PowerChange) error {
	f.t.Helper()
	for f.Now().Before(change.Since.Add(time.Hour)) {
		if err := f.Installer().SetPower(f.t.Context(), f.Host(), change); err != nil {
			return err
		}
		f.Advance(callInterval)
		if observation, err := f.Installer().Observe(f.t.Context(), f.Host()); err != nil || observation.Power == change.Desired {
			return err
		}
	}
	return nil
}

// expectPowerIgnored checks that a change of power is reported as ignored, and that further calls report the same.
func (f *fixture) expectPowerIgnored(want hardware.PowerState, reason hardware.Reason) {
	f.t.Helper()
	change := hardware.PowerChange{Desired: want, Since: f.Now()}
	err := f.changePower(change)
	for range 2 {
		if hardware.KindOf(err) != hardware.Ignored || hardware.ReasonOf(err) != reason {
			f.t.Fatalf("power %s that is ignored: %v, expected Ignored by %s", want, err, reason)
		}
		f.Advance(callInterval)
		err = f.Installer().SetPower(f.t.Context(), f.Host(), change)
	}
}
