package host

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/outcome"
)

// The work that is wanted, as an attempt without a number and times.

func inspection() v1alpha1.WantedAttempt {
	return v1alpha1.WantedAttempt{Operation: string(hardware.OpInspect)}
}

func erasure(mode v1alpha1.EraseMode) v1alpha1.WantedAttempt {
	return v1alpha1.WantedAttempt{Operation: string(hardware.OpErase), Erase: mode}
}

// installation is what the Machine that has the host asks for; it holds when isAsked does.
func (p *planner) installation() v1alpha1.WantedAttempt {
	image := *p.Spec.Image
	return v1alpha1.WantedAttempt{Operation: string(hardware.OpInstall), MachineUID: p.Spec.Machine.UID, MachineAttempt: p.Spec.Attempt, Image: &image}
}

// stateWork is the work of the state that the host is in.
func (p *planner) stateWork() v1alpha1.WantedAttempt {
	switch p.tableState() {
	case StateInspecting:
		return inspection()
	case StatePreparing:
		return erasure(p.d.Record.Wanted.Erase)
	case StateProvisioning:
		return p.installation()
	default:
		return erasure(p.eraseMode())
	}
}

// failureTypes are the error types of states whose work fails.
var failureTypes = map[State]ErrorType{
	StateInspecting: InspectionError, StatePreparing: PreparationError, StateProvisioning: ProvisioningError, StateDeprovisioning: ProvisioningError,
}

// strength orders erase modes.
var strength = map[v1alpha1.EraseMode]int{v1alpha1.EraseNone: 0, v1alpha1.EraseMetadata: 1, v1alpha1.EraseFull: 2}

// eraseMode is what the Machine asks for, else the provider; never weaker than what was begun, and never None
// when the content is unknown.
func (p *planner) eraseMode() v1alpha1.EraseMode {
	mode := p.Spec.Erase
	if mode == "" {
		mode = p.ErasePolicy
	}
	if mode == "" || p.d.Record.LastTenant == UnknownTenant && mode == v1alpha1.EraseNone {
		mode = v1alpha1.EraseMetadata
	}
	if p.isEraseBegun() && strength[p.d.Record.Wanted.Erase] > strength[mode] {
		mode = p.d.Record.Wanted.Erase
	}
	return mode
}

// isWanted says whether the attempt of the record is this piece of work.
func (p *planner) isWanted(work v1alpha1.WantedAttempt) bool {
	w := p.d.Record.Wanted
	if w == nil || w.Operation != work.Operation || w.Outcome == v1alpha1.AttemptSucceeded && !p.isProven() {
		return false
	}
	switch hardware.Operation(w.Operation) {
	case hardware.OpInstall:
		return w.MachineUID == work.MachineUID && w.MachineAttempt == work.MachineAttempt && w.Image != nil && *w.Image == *work.Image
	case hardware.OpErase:
		return strength[w.Erase] >= strength[work.Erase]
	}
	return true
}

// isProven says whether what the attempt of the record has done still stands. A success alone says nothing about what came later: a
// release without an erase, for one, leaves the installation in the record.
func (p *planner) isProven() bool {
	w, erased, in := p.d.Record.Wanted, p.d.Record.Erased, p.d.Record.Installed
	switch hardware.Operation(w.Operation) {
	case hardware.OpInstall:
		return in != nil && w.Image != nil && in.MachineUID == w.MachineUID && in.Attempt == w.MachineAttempt && in.Checksum == w.Image.Checksum
	case hardware.OpErase:
		return erased != nil && erased.Attempt == w.Number
	}
	return true
}

func (p *planner) hasSucceeded(work v1alpha1.WantedAttempt) bool {
	return p.isWanted(work) && p.d.Record.Wanted.Outcome == v1alpha1.AttemptSucceeded
}

// recordIntent: an attempt that this decision wants is asked of the installer by the next one, which finds it in the record.
func (p *planner) recordIntent() result {
	w, before := p.d.Record.Wanted, p.Record.Wanted
	if w == nil || before != nil && before.Number == w.Number {
		return next()
	}
	return wait("", soon)
}

func (p *planner) cancelOther() result {
	if p.isIdle() || p.isWanted(p.stateWork()) {
		return next()
	}
	return p.cancel()
}

func (p *planner) wantFirst() result {
	work := p.stateWork()
	if p.isWanted(work) {
		return next()
	}
	p.d.Record.Failures = 0
	p.begin(work)
	return wait("", soon)
}

// powerOffErased: an erase is proven only with the power off.
func (p *planner) powerOffErased() result {
	if !outcome.MustAwaitPowerOff(&p.d.Record, p.outcomeFacts()) {
		return next()
	}
	return p.powerOff()
}

// askInstaller asks for the next part of the attempt. How it goes is not looked at here. Nothing is installed before the state says
// so: its write fails when the claim was changed meanwhile.
func (p *planner) askInstaller() result {
	if p.isIdle() {
		return next()
	}
	w := p.d.Record.Wanted
	if w.Operation == string(hardware.OpInstall) && !p.isStayingIn(StateProvisioning) {
		return wait("the state to be written", soon)
	}
	action := Action{Kind: ActionKind(w.Operation), Attempt: hardware.Attempt{Number: w.Number, Deadline: w.Deadline.Time}, Erase: hardware.EraseMode(w.Erase)}
	if w.Image != nil {
		action.Image = hardware.Image{URL: w.Image.URL, Checksum: w.Image.Checksum, Format: string(w.Image.Format)}
	}
	return act(action, p.Timeouts.Poll)
}

// begin records the intent.
func (p *planner) begin(work v1alpha1.WantedAttempt) {
	r := &p.d.Record
	work.Number, work.Since, work.Deadline = p.nextNumber(), microTime(p.Now), microTime(p.Now.Add(p.timeLimit(work)))
	if work.Operation == string(hardware.OpInstall) {
		r.LastTenant, r.Erased, r.Installed = p.Spec.Tenant, nil, nil
		if r.LastTenant == "" {
			r.LastTenant = UnknownTenant
		}
	}
	r.Wanted = &work
	p.d.Events = append(p.d.Events, Event{Reason: work.Operation + "Started", Action: work.Operation,
		Message: fmt.Sprintf("attempt %d, until %s", work.Number, work.Deadline.UTC().Format(time.RFC3339))})
}

// nextNumber never repeats: after a record was lost it begins above all that can have been counted. A number that an installer keeps
// something under is not used either, since that would be taken for the new attempt's.
func (p *planner) nextNumber() int64 {
	last := int64(0)
	if w := p.d.Record.Wanted; w != nil {
		last = w.Number
	} else if p.d.Record.LastTenant != "" {
		last = p.Now.Unix()
	}
	if kept := p.d.Record.Attempt; kept != nil {
		last = max(last, kept.Number)
	}
	if p.Observed != nil && p.Observed.Attempt != nil {
		last = max(last, p.Observed.Attempt.Number)
	}
	return last + 1
}

func (p *planner) timeLimit(work v1alpha1.WantedAttempt) time.Duration {
	switch {
	case work.Operation == string(hardware.OpInspect):
		return p.Timeouts.Inspect
	case work.Operation == string(hardware.OpInstall):
		return p.Timeouts.Install
	case work.Erase == v1alpha1.EraseFull:
		return p.Timeouts.EraseFull
	}
	return p.Timeouts.EraseMetadata
}

// notRetried are failures that the same attempt would meet again.
var notRetried = []hardware.Reason{hardware.ReasonDigestMismatch, hardware.ReasonImageInvalid, hardware.ReasonNoRootDevice}

// needsPerson says whether the failed attempt is not tried again by itself.
func (p *planner) needsPerson() bool {
	failures := p.d.Record.Failures
	return failures >= maxFailures || failures > 0 && slices.Contains(notRetried, hardware.Reason(p.d.Record.Wanted.Reason))
}

// retryAt is when the failed attempt is tried again: at once when it was cancelled, else after a pause that doubles.
func (p *planner) retryAt() time.Time {
	failures := p.d.Record.Failures
	if failures == 0 {
		return p.Now
	}
	return p.d.Record.Wanted.EndedAt.Add(p.Timeouts.RetryBase << (failures - 1))
}

func (p *planner) showFailure() result {
	w, failures := p.d.Record.Wanted, p.d.Record.Failures
	what := fmt.Sprintf("attempt %d failed at %s: %s", w.Number, w.Step, w.Message)
	switch {
	case p.needsPerson():
		p.fail(failureTypes[p.tableState()], w.Reason, fmt.Sprintf("%s; it is not tried again by itself: mend the cause, then give the annotation %s of this BareMetalHost a new value, or release the host", what, v1alpha1.AnnotationRetry))
	case p.Now.Before(p.retryAt()):
		p.fail(failureTypes[p.tableState()], w.Reason, fmt.Sprintf("%s; failure %d of %d, the next attempt is at %s", what, failures, maxFailures, p.retryAt().UTC().Format(time.RFC3339)))
	}
	return next()
}

// powerOffFailed keeps the server off until the next attempt: what an earlier installation left on the disk may still boot, and a
// Machine's old node must not come back behind its fence.
func (p *planner) powerOffFailed() result {
	if p.d.Record.Wanted.Operation == string(hardware.OpInspect) {
		return next()
	}
	return p.powerOff()
}

func (p *planner) awaitPerson() result {
	if !p.needsPerson() {
		return next()
	}
	return wait("", p.steady())
}

func (p *planner) awaitPause() result {
	if left := p.retryAt().Sub(p.Now); left > 0 {
		return wait("", left)
	}
	return next()
}

func (p *planner) wantAgain() result {
	p.begin(p.stateWork())
	return wait("", soon)
}

// noteRetry takes note of a new value of the retry annotation.
func (p *planner) noteRetry() result {
	r := &p.d.Record
	value := v1alpha1.Clipped(p.Host.Retry, v1alpha1.MaxRetrySeen)
	if value != "" && value != r.RetrySeen && p.isIdle() {
		r.RetrySeen, r.Failures = value, 0
	}
	return next()
}

func microTime(t time.Time) metav1.MicroTime { return metav1.NewMicroTime(t) }
