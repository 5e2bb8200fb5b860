package host

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// task is a piece of work that is wanted of a host.
type task struct {
	operation hardware.Operation
	// failure is the error type while it fails.
	failure ErrorType
	// erase mode of an erase.
	erase v1alpha1.EraseMode
	// for whom an installation is, and of what.
	machine *v1alpha1.MachineReference
	attempt int64
	image   *v1alpha1.ExactImage
}

var inspection = task{operation: hardware.OpInspect, failure: InspectionError}

func erasure(failure ErrorType, mode v1alpha1.EraseMode) task {
	return task{operation: hardware.OpErase, failure: failure, erase: mode}
}

func (p *planner) installation() task {
	return task{operation: hardware.OpInstall, failure: ProvisioningError, machine: p.Spec.Machine, attempt: p.Spec.Attempt, image: p.Spec.Image}
}

// is says whether the attempt is this piece of work.
func (t task) is(a *v1alpha1.HostAttempt, r v1alpha1.HostRecordStatus) bool {
	if a == nil || a.Operation != string(t.operation) {
		return false
	}
	switch t.operation {
	case hardware.OpInstall:
		return a.MachineUID == t.machine.UID && a.MachineAttempt == t.attempt && a.Image != nil && *a.Image == *t.image
	case hardware.OpErase:
		// A success counts only with its proof: an older one says nothing about what came later.
		if a.State == string(hardware.AttemptSucceeded) && a.EndedAt != nil && (r.Erased == nil || r.Erased.Attempt != a.Number) {
			return false
		}
		return strength[a.Erase] >= strength[t.erase]
	}
	return true
}

func (p *planner) running() bool {
	a := p.d.Record.Attempt
	return a != nil && a.State == string(hardware.AttemptRunning)
}

// work brings a task to its end and says whether it has succeeded.
func (p *planner) work(t task) bool {
	a := p.d.Record.Attempt
	p.retryAsked()
	switch {
	case !t.is(a, p.d.Record) && p.running():
		p.cancel()
	case !t.is(a, p.d.Record):
		p.d.Record.Failures = 0
		p.begin(t)
	case p.running():
		p.d.Action = p.call(a)
		p.d.Requeue = p.Timeouts.Poll
	case a.State == string(hardware.AttemptSucceeded):
		if a.EndedAt != nil {
			return true
		}
		// An erase is proven only with the power off.
		p.power(hardware.PowerOff, false)
	default:
		p.tryAgain(t, a)
	}
	return false
}

func (p *planner) call(a *v1alpha1.HostAttempt) Action {
	action := Action{Kind: ActionKind(a.Operation), Attempt: hardware.Attempt{Number: a.Number, Deadline: a.Deadline.Time}, Erase: hardware.EraseMode(a.Erase)}
	if a.Image != nil {
		action.Image = hardware.Image{URL: a.Image.URL, Checksum: a.Image.Checksum, Format: string(a.Image.Format)}
	}
	return action
}

func (p *planner) cancel() {
	a := p.d.Record.Attempt
	p.d.Action = Action{Kind: ActionCancel, Attempt: hardware.Attempt{Number: a.Number, Deadline: a.Deadline.Time}}
	p.d.Requeue = p.Timeouts.Poll
}

// begin records the intent. The next Plan that finds it asks for the action.
func (p *planner) begin(t task) {
	r := &p.d.Record
	now := metav1.NewMicroTime(p.Now)
	a := &v1alpha1.HostAttempt{
		Number: p.nextNumber(), Operation: string(t.operation), State: string(hardware.AttemptRunning), Step: string(hardware.StepPoweringOff),
		StartedAt: now, StepAt: &now, Deadline: metav1.NewMicroTime(p.Now.Add(p.deadline(t))), Erase: t.erase,
	}
	if t.operation == hardware.OpInstall {
		image := *t.image
		a.MachineUID, a.MachineAttempt, a.Image = t.machine.UID, t.attempt, &image
		r.LastTenant, r.Erased, r.Installed = p.Spec.Tenant, nil, nil
		if r.LastTenant == "" {
			r.LastTenant = UnknownTenant
		}
	}
	r.Attempt = a
	p.d.Requeue = time.Millisecond
	p.d.Events = append(p.d.Events, Event{Reason: string(t.operation) + "Started", Action: string(t.operation),
		Message: fmt.Sprintf("attempt %d, until %s", a.Number, a.Deadline.UTC().Format(time.RFC3339))})
}

// nextNumber never repeats: after a record was lost it begins above all that can have been counted.
func (p *planner) nextNumber() int64 {
	last := int64(0)
	if a := p.d.Record.Attempt; a != nil {
		last = a.Number
	} else if p.d.Record.LastTenant != "" {
		last = p.Now.Unix()
	}
	if p.Observed != nil && p.Observed.Attempt != nil {
		last = max(last, p.Observed.Attempt.Number)
	}
	return last + 1
}

func (p *planner) deadline(t task) time.Duration {
	switch {
	case t.operation == hardware.OpInspect:
		return p.Timeouts.Inspect
	case t.operation == hardware.OpInstall:
		return p.Timeouts.Install
	case t.erase == v1alpha1.EraseFull:
		return p.Timeouts.EraseFull
	}
	return p.Timeouts.EraseMetadata
}

// notRetried are failures that the same attempt would meet again.
var notRetried = []hardware.Reason{hardware.ReasonDigestMismatch, hardware.ReasonImageInvalid, hardware.ReasonNoRootDevice}

// tryAgain decides about a failed attempt. Until it is tried again the server is off: what an earlier installation left on
// the disk may still boot, and a Machine's old node must not come back behind its fence.
func (p *planner) tryAgain(t task, a *v1alpha1.HostAttempt) {
	off := t.operation == hardware.OpInspect || p.power(hardware.PowerOff, false)
	failures := p.d.Record.Failures
	due := a.EndedAt.Add(p.Timeouts.RetryBase << max(failures-1, 0))
	what := fmt.Sprintf("attempt %d failed at %s: %s", a.Number, a.Step, a.Message)
	switch {
	case failures >= maxFailures || failures > 0 && slices.Contains(notRetried, hardware.Reason(a.Reason)):
		p.fail(t.failure, a.Reason, fmt.Sprintf("%s; it is not tried again by itself: mend the cause, then give the annotation %s of this BareMetalHost a new value, or release the host", what, v1alpha1.AnnotationRetry))
		p.lookAgain(off, p.steady())
	case failures > 0 && p.Now.Before(due):
		p.fail(t.failure, a.Reason, fmt.Sprintf("%s; failure %d of %d, the next attempt is at %s", what, failures, maxFailures, due.UTC().Format(time.RFC3339)))
		p.lookAgain(off, due.Sub(p.Now))
	case off:
		p.begin(t)
	}
}

// lookAgain after a time, or sooner while a change of power is under way.
func (p *planner) lookAgain(settled bool, after time.Duration) {
	if settled || after < p.d.Requeue {
		p.d.Requeue = after
	}
}

// retryAsked takes note of a new value of the retry annotation.
func (p *planner) retryAsked() {
	r := &p.d.Record
	value := cut(p.Host.Retry, maxRetry)
	if value != "" && value != r.RetrySeen && !p.running() {
		r.RetrySeen, r.Failures = value, 0
	}
}

// overdue ends an attempt that its installer has not ended: it cannot be asked, or refuses to begin.
func (p *planner) overdue() {
	a := p.d.Record.Attempt
	if p.running() && p.Now.After(a.Deadline.Add(p.Timeouts.BMCGrace)) {
		a.State, a.Reason = string(hardware.AttemptFailed), string(hardware.ReasonDeadlineExceeded)
		a.Message = fmt.Sprintf("the deadline passed at step %s and the installer did not say why", a.Step)
		if p.Problem != nil {
			a.Message = fmt.Sprintf("the deadline passed at step %s; %s: %s", a.Step, p.Problem.Reason, p.Problem.Message)
		}
		p.account(a)
	}
}
