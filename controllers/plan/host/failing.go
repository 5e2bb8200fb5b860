package host

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// Problem is why a call to the hardware failed, or why it must not be made.
type Problem struct {
	// Reason is in UpperCamelCase: BMCUnauthorized, BMCUnreachable, CredentialsMissing, SameServer.
	Reason string
	// Message says what was expected, what was observed and where to look.
	Message string
	// RetryAfter is for how long the BMC asks not to be tried again; 0 when it does not ask.
	RetryAfter time.Duration
	// Since is since when it is known to have lasted, where that is before its first call; zero: since that call.
	Since time.Time
	// HasData is for SameServer. It is true when the disks may have data of a tenant by what is known of the other host.
	HasData bool
}

// NewProblem returns the problem of a failed call to the hardware.
func NewProblem(err error, message string) Problem {
	return Problem{Reason: ErrorReasonText(err), Message: message, RetryAfter: hardware.RetryAfterOf(err)}
}

// kindReasons are the reasons of failed calls whose error has no reason of its own.
var kindReasons = map[hardware.Kind]string{
	hardware.Unreachable: v1alpha1.ReasonBMCUnreachable, hardware.Unauthorized: v1alpha1.ReasonBMCUnauthorized, hardware.Busy: v1alpha1.ReasonBMCBusy,
	hardware.SessionsExhausted: v1alpha1.ReasonBMCSessionsExhausted, hardware.NotFound: v1alpha1.ReasonBMCNotFound, hardware.Conflict: v1alpha1.ReasonBMCConflict,
	hardware.Unsupported: v1alpha1.ReasonBMCUnsupported, hardware.Invalid: v1alpha1.ReasonBMCInvalid,
}

// ErrorReasonText returns the reason for a failed call to the hardware as status.error has it: the reason of the error or, for an error without one,
// that of its kind, as in BMCUnreachable.
func ErrorReasonText(err error) string {
	return cmp.Or(string(hardware.ReasonOf(err)), kindReasons[hardware.KindOf(err)], v1alpha1.ReasonBMCUnreachable)
}

// transientReasons are the reasons of failures that often end without a person. They are reported when they last for Timeouts.BMCGrace. All
// others are reported at once.
var transientReasons = []string{
	v1alpha1.ReasonBMCUnreachable, v1alpha1.ReasonBMCBusy, v1alpha1.ReasonBMCSessionsExhausted, v1alpha1.ReasonBMCNotFound, v1alpha1.ReasonBMCConflict,
	string(hardware.ReasonHostRecordUnavailable), string(hardware.ReasonAttemptConflict), string(hardware.ReasonBootImageNotFetched),
	v1alpha1.ReasonInstallerUnreachable, v1alpha1.ReasonInstallerBusy, v1alpha1.ReasonInstallerNotFound, v1alpha1.ReasonInstallerConflict,
	string(hardware.ReasonNoConfigDrive),
}

func isTransient(reason string) bool { return slices.Contains(transientReasons, reason) }

// findFailingCall returns the call if it fails, else nil.
func findFailingCall(calls []v1alpha1.FailingCall, call v1alpha1.HostCall) *v1alpha1.FailingCall {
	if i := slices.IndexFunc(calls, func(c v1alpha1.FailingCall) bool { return c.Call == call }); i >= 0 {
		return &calls[i]
	}
	return nil
}

// withoutCalls returns the failing calls without those that match.
func withoutCalls(calls []v1alpha1.FailingCall, match func(v1alpha1.HostCall) bool) []v1alpha1.FailingCall {
	return slices.DeleteFunc(slices.Clone(calls), func(c v1alpha1.FailingCall) bool { return match(c.Call) })
}

// recordFailure adds a failure of the call to the record and returns what the record has of it. The time of the first failure is kept until
// the call succeeds, whatever the reasons are. Without it: a BMC that answers Busy and breaks the connection in turns fails for hours, and no
// reason ever lasts long enough to be reported.
//
// Reason and message are replaced when they differ by more than numbers, and at most once within Timeouts.BMCGrace, because every replacement
// is a write. A reason that a person must correct replaces another, and is replaced, at once. Without it: a login is refused while the
// record says BMCBusy, nobody knows that it was refused, and it is tried again until the BMC locks the account.
func (p *planner) recordFailure(call v1alpha1.HostCall, problem Problem) v1alpha1.FailingCall {
	now := microTime(p.Now)
	failing := v1alpha1.FailingCall{
		Call: call, Reason: problem.Reason, Message: input.Line(problem.Message, v1alpha1.MaxHostError), Since: now, ReasonSince: now,
	}
	if !problem.Since.IsZero() {
		failing.Since = microTime(problem.Since)
	}
	calls := slices.Clone(p.d.Record.FailingCalls)
	p.d.Record.FailingCalls = calls
	before := findFailingCall(calls, call)
	if before == nil {
		p.d.Record.FailingCalls = append(calls, failing)
		return failing
	}
	failing.Since = before.Since
	isOther := before.Reason != failing.Reason || !hardware.IsSameText(before.Message, failing.Message)
	isOld := p.Ago(before.ReasonSince.Time) >= p.Timeouts.BMCGrace
	mustReplace := before.Reason != failing.Reason && !(isTransient(before.Reason) && isTransient(failing.Reason))
	if isOther && isOld || mustReplace {
		*before = failing
	}
	return *before
}

// recordObservedCall records whether the observation of the hardware failed.
func (p *planner) recordObservedCall() {
	switch {
	case p.Problem != nil && !p.isSameServer():
		p.recordFailure(v1alpha1.CallObserve, *p.Problem)
	case p.Problem != nil || p.Observed != nil:
		p.d.Record.FailingCalls = withoutCalls(p.d.Record.FailingCalls, func(c v1alpha1.HostCall) bool { return c == v1alpha1.CallObserve })
	}
}

// removeUnneededCalls removes the failures of calls that this Decision does not make. Without it: an installation whose calls fail is
// cancelled, and its failure stays in the record of a host that is installed for somebody else.
func (p *planner) removeUnneededCalls() {
	p.d.Record.FailingCalls = withoutCalls(p.d.Record.FailingCalls, func(c v1alpha1.HostCall) bool {
		return c != v1alpha1.HostCall(p.d.Action.Kind) && (c != v1alpha1.CallObserve || !p.Host.CanBeObserved())
	})
}

// graceLeft returns how long a failure is not reported yet. It is 0 for one that a person must correct.
func (p planner) graceLeft(failing v1alpha1.FailingCall) time.Duration {
	if !isTransient(failing.Reason) {
		return 0
	}
	return max(p.Timeouts.BMCGrace-p.Ago(failing.Since.Time), 0)
}

// retryPause returns when to make a failed call again. The pauses grow with the time for which the call has failed, because some BMCs freeze
// under repeated requests, and because one that does not answer occupies a worker until its time-out. They stay short while work is
// wanted. What a person must correct is looked at again after Timeouts.RetryBase. Every pause is spread. A BMC that names a pause is not tried before its end, except
// that the failure is reported when it has lasted for Timeouts.BMCGrace: the client sends nothing then.
func (p planner) retryPause(failing v1alpha1.FailingCall, named time.Duration) time.Duration {
	if !isTransient(failing.Reason) {
		return p.spread(p.Timeouts.RetryBase)
	}
	shortest, longest := 5*p.Timeouts.PollInterval, p.Timeouts.RetryBase
	if p.isIdle() && !p.isWorkWanted() {
		longest = p.Timeouts.IdleInterval
	}
	pause := p.spread(max(min(p.Ago(failing.Since.Time), longest), shortest))
	if named > pause {
		pause = named + p.delay(shortest)
	}
	if left := p.graceLeft(failing); left > 0 {
		return min(pause, left+p.delay(shortest))
	}
	return pause
}

// spread returns a pause between half and one and a half times the given one, which is the mean. Without it: Ironic, which serves every host of a
// NodeProvider, is restarted; the calls for all of them fail in one moment, all come back in one moment, and it refuses them again.
func (p planner) spread(pause time.Duration) time.Duration { return pause/2 + p.delay(pause) }

// delay returns a time below the given one that differs from host to host. It is added to a moment that many hosts may have in common.
func (p planner) delay(longest time.Duration) time.Duration {
	return time.Duration(p.Random * float64(longest))
}

// reportProblem reports that the BMC cannot be read. For a registered host it reports a transient problem after the grace period.
func (p *planner) reportProblem() {
	failing := v1alpha1.FailingCall{Reason: p.Problem.Reason, Message: p.Problem.Message}
	if kept := findFailingCall(p.d.Record.FailingCalls, v1alpha1.CallObserve); kept != nil {
		failing = *kept
	}
	p.d.RequeueAfter, p.d.WaitingFor = p.retryPause(failing, p.Problem.RetryAfter), failing.Reason
	kind := metal3.PowerManagementError
	switch p.d.Status.State {
	case metal3.StateNone, metal3.StateRegistering:
		p.d.Status.State = metal3.StateRegistering
		p.setError(metal3.RegistrationError, failing.Reason, failing.Message)
		return
	case metal3.StateInspecting:
		kind = metal3.InspectionError
	}
	if p.isSameServer() {
		p.reportSameServer()
		return
	}
	if p.graceLeft(failing) > 0 {
		before := p.Host.Status
		p.d.Status.OperationalStatus, p.d.Status.ErrorType, p.d.Status.ErrorMessage = before.OperationalStatus, before.ErrorType, before.ErrorMessage
		p.d.Record.Error = p.Record.Error
		return
	}
	p.setError(kind, failing.Reason, failing.Message)
}

// WithActionDone returns the Decision after its Action succeeded.
func (d Decision) WithActionDone() Decision {
	d.Record.FailingCalls = withoutCalls(d.Record.FailingCalls, func(c v1alpha1.HostCall) bool { return c == v1alpha1.HostCall(d.Action.Kind) })
	return d
}

// WithActionError returns the Decision after its Action returned an error. An error that an administrator must correct or look at is reported
// at once, and any other when it has lasted for Timeouts.BMCGrace. That an installer works on as many hosts as it may is none, and neither is that the
// documents of a node are still being written. The Action is tried again, until the deadline of its attempt has passed.
func (d Decision) WithActionError(f Facts, err error) Decision {
	p := &planner{Facts: f, d: d}
	if hardware.ReasonOf(err) == hardware.ReasonInstallerFull {
		p.d.RequeueAfter = p.spread(queuePollIntervals * p.Timeouts.PollInterval)
		return p.d.WithActionDone()
	}
	problem := NewProblem(err, actionErrorMessage(err))
	if hardware.ReasonOf(err) == hardware.ReasonNoConfigDrive {
		problem.Since = p.documentsAwaitedSince()
		if p.Ago(problem.Since) < p.Timeouts.BMCGrace {
			p.d.RequeueAfter = p.spread(p.Timeouts.PollInterval)
			return p.d.WithActionDone()
		}
	}
	failing := p.recordFailure(v1alpha1.HostCall(d.Action.Kind), problem)
	p.d.RequeueAfter = p.retryPause(failing, problem.RetryAfter)
	if p.graceLeft(failing) > 0 {
		return p.d
	}
	if e := d.Record.Error; e != nil && failing.Reason != v1alpha1.ReasonBMCUnauthorized {
		// The Decision has reported an error already. If the new one replaced it, the reason would change with every observation, each change
		// with an event, and nobody could read why an attempt failed. During the grace period of a BMC it is the error of the record.
		// A refused login is the exception: the next observation must find it as the reason, or it logs in again until the BMC locks
		// the account.
		if first, _, _ := strings.Cut(e.Message, secondErrorPrefix); e.Reason != failing.Reason || !strings.HasPrefix(first, failing.Message) {
			p.setError(d.Status.ErrorType, e.Reason, first+secondErrorPrefix+failing.Reason+": "+failing.Message)
		}
		return p.d
	}
	p.setError(p.actionErrorType(), failing.Reason, failing.Message)
	p.countError()
	return p.d
}

// documentsAwaitedSince returns since when the attempt waits for the documents of its node; zero: it does not wait since a known time.
func (p *planner) documentsAwaitedSince() (since time.Time) {
	if w := p.Record.Wanted; w != nil && w.ConfigDriveAwaitedAt != nil {
		since = w.ConfigDriveAwaitedAt.Time
	}
	return since
}

// secondErrorPrefix precedes the second error in a message.
const secondErrorPrefix = "; besides, "

// actionErrorMessage returns the cause alone where the reason says already which call failed.
func actionErrorMessage(err error) string {
	var e *hardware.Error
	if errors.As(err, &e) && e.Reason != "" && e.Err != nil {
		return e.Err.Error()
	}
	return err.Error()
}

// actionErrorType returns Metal3's type for an error of the Action.
func (p *planner) actionErrorType() metal3.ErrorType {
	switch p.d.Action.Kind {
	case ActionInspect, ActionInstall, ActionErase:
		return cmp.Or(failureTypes[p.tableState()], metal3.ProvisioningError)
	}
	return metal3.PowerManagementError
}
