package conformance

import (
	"slices"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// WorkName names what is cancelled.
type WorkName string

// What is cancelled.
const (
	// WorkInspection is one by the agent.
	WorkInspection WorkName = "an inspection"
	WorkInstall    WorkName = "an install"
	WorkErase      WorkName = "an erase"
	// WorkRelease is an erase of mode None after an install.
	WorkRelease WorkName = "a release"
)

// cancelled is the outcome of an attempt that Cancel has ended.
var cancelled = failedBy(hardware.ReasonCancelled)

// diskStates are the states in which the disk is being written, so that a cancel leaves it partial.
var diskStates = []string{"write_image", "erase_devices_metadata", string(hardware.StepWriting), string(hardware.StepErasing), string(hardware.StepVerifying)}

// busyStates are those that a service does not let itself be cancelled in: the work goes on to the next state, where it waits for the agent or is done.
var busyStates = []string{"verifying", "deploying", "cleaning", "deleting", "inspecting"}

// cancelCases are the tests of a cancel in each state in which the Rig of a Subject can hold its server.
func cancelCases() map[string]Case {
	out := map[string]Case{}
	for _, subject := range []Subject{Direct(), Ironic()} {
		for w, states := range subject.States {
			for _, state := range states {
				out[string(w)+" is cancelled in the state "+state] = Case{
					Leaves: cancelCondition(w, state), Cancels: Cancel{w, state},
					Run: func(t *testing.T, r *rigs) { cancelIn(t, r, w, state) },
				}
			}
		}
	}
	return out
}

// Cancel is a state in which work is cancelled.
type Cancel struct {
	Work  WorkName
	State string
}

// cancelCondition is what a cancel leaves. Where all of the work is in a state that cannot be ended, it may have succeeded.
func cancelCondition(w WorkName, state string) Condition {
	switch isBusy := slices.Contains(busyStates, state); {
	case w == WorkInspection && isBusy:
		return Condition{[]Outcome{succeeded, cancelled}, hardware.PowerOff, "", []string{DiskForeign}, holdsBefore}
	case w == WorkInspection:
		return Condition{[]Outcome{cancelled}, hardware.PowerOff, "", []string{DiskForeign}, holdsBefore}
	case w == WorkRelease:
		return failedOff([]string{diskImage}, succeeded, cancelled)
	case w == WorkErase && state == string(hardware.StepFinishing):
		return failedOff([]string{DiskErased}, cancelled)
	case slices.Contains(diskStates, state):
		return failedOff([]string{DiskPartial}, cancelled)
	default:
		return failedOff([]string{DiskForeign}, cancelled)
	}
}

// maxTries is how many servers may pass a state unseen: on a busy machine the state of a real service may be over when it is looked at.
const maxTries = 3

// cancelIn cancels the work in the state. A state that is never met fails the test.
func cancelIn(t *testing.T, r *rigs, w WorkName, state string) {
	t.Helper()
	var met []string
	for range maxTries {
		f := newFixture(t, r, Faults{HoldIn: state})
		do, number := f.begin(w)
		attempt := f.newAttempt(number)
		if met = f.statesUntil(attempt, do, state); !slices.Contains(met, state) {
			r.made = nil // it has done its work, which other cases check
			continue
		}
		f.cancelUntilOff(attempt)
		f.expectUnchanged(attempt, do)
		if w != WorkInspection { // one may have ended before anybody has asked for the power of a new host
			f.expectPowerOff()
		}
		return
	}
	t.Fatalf("the state %q was never met, only %q", state, met)
}

// begin does what precedes the work, and returns the call for it and the number of its attempt.
func (f *fixture) begin(w WorkName) (do operation, number int64) {
	f.t.Helper()
	switch w {
	case WorkInspection:
		f.CutPower()
		return f.inspectBy(hardware.InspectByAgent), 1
	case WorkErase:
		return f.eraseWith(hardware.EraseMetadata), 1
	case WorkRelease:
		f.expectSucceeded(f.callUntilEnded(f.newAttempt(1), f.install))
		return f.eraseWith(hardware.EraseNone), 2
	default:
		return f.install, 1
	}
}

// statesUntil calls for the work until the state is met or the attempt has ended, and returns the states that were met. It looks right after the call too: a service
// has begun to do what it has accepted.
func (f *fixture) statesUntil(attempt hardware.Attempt, call operation, state string) (met []string) {
	f.t.Helper()
	isMet := func() bool {
		if now := f.State(); !slices.Contains(met, now) {
			met = append(met, now)
		}
		return slices.Contains(met, state)
	}
	for end := f.Now().Add(time.Hour); f.Now().Before(end); {
		f.expectNoFailure(call(attempt))
		if isMet() {
			break
		}
		if status := f.letPass(); isMet() || status.Number == attempt.Number && status.State != hardware.AttemptRunning {
			break
		}
	}
	return met
}
