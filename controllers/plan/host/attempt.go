package host

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/event"
	"github.com/ingot-dev/ingot/controllers/plan/inventory"
)

// eraseAttempt and installationAttempt return an attempt without a number and times.
func eraseAttempt(mode v1alpha1.EraseMode) v1alpha1.WantedAttempt {
	return v1alpha1.WantedAttempt{Operation: string(hardware.OpErase), Erase: mode}
}

// installationAttempt is what the Machine that has the host requests. It may be called only when isImageRequested holds.
func (p *planner) installationAttempt() v1alpha1.WantedAttempt {
	image := *p.Spec.Image
	return v1alpha1.WantedAttempt{Operation: string(hardware.OpInstall), MachineUID: p.Spec.Machine.UID, MachineAttempt: p.Spec.Attempt, Image: &image, GPUs: p.Spec.GPUs, Hardware: p.Spec.Hardware.DeepCopy()}
}

// attemptOfState returns the attempt that the state of the host requires.
func (p *planner) attemptOfState() v1alpha1.WantedAttempt {
	switch p.tableState() {
	case metal3.StateInspecting:
		return p.inspectionOfState()
	case metal3.StatePreparing:
		return eraseAttempt(p.d.Record.Wanted.Erase)
	case metal3.StateProvisioning:
		return p.installationAttempt()
	default:
		return eraseAttempt(p.eraseMode())
	}
}

// failureTypes are the error types of the states whose attempt can fail.
var failureTypes = map[metal3.ProvisioningState]metal3.ErrorType{
	metal3.StateInspecting: metal3.InspectionError, metal3.StatePreparing: metal3.PreparationError, metal3.StateProvisioning: metal3.ProvisioningError, metal3.StateDeprovisioning: metal3.ProvisioningError,
}

// eraseStrength orders the erase modes.
var eraseStrength = map[v1alpha1.EraseMode]int{v1alpha1.EraseNone: 0, v1alpha1.EraseMetadata: 1, v1alpha1.EraseFull: 2}

// eraseMode returns the mode that the Machine requests, else that of the NodeProvider. It is never weaker than that of an erase that was
// begun. Without it: a full erase fails half-way, the mode is changed to Metadata, and the next tenant reads the other half. It is also never None for
// unknown content.
func (p *planner) eraseMode() v1alpha1.EraseMode {
	mode := p.Spec.Erase
	if mode == "" {
		mode = p.ErasePolicy
	}
	if mode == "" || (p.d.Record.LastTenant == unknownTenant || p.hasSharedDataOnly()) && mode == v1alpha1.EraseNone {
		mode = v1alpha1.EraseMetadata
	}
	if asked := v1alpha1.EraseMode(p.Host.Erase); p.d.Record.LastTenant == unknownTenant && eraseStrength[asked] > eraseStrength[mode] {
		mode = asked
	}
	if p.hasUnfinishedErase() && eraseStrength[p.d.Record.Wanted.Erase] > eraseStrength[mode] {
		mode = p.d.Record.Wanted.Erase
	}
	return mode
}

// isRecordedAttempt reports whether the attempt in the record is the given one.
func (p planner) isRecordedAttempt(a v1alpha1.WantedAttempt) bool {
	w := p.d.Record.Wanted
	if w == nil || w.Operation != a.Operation || w.Outcome == v1alpha1.AttemptSucceeded && !p.isOutcomeValid() {
		return false
	}
	switch hardware.Operation(w.Operation) {
	case hardware.OpInstall:
		return w.MachineUID == a.MachineUID && w.MachineAttempt == a.MachineAttempt && w.Image != nil && *w.Image == *a.Image
	case hardware.OpErase:
		return eraseStrength[w.Erase] >= eraseStrength[a.Erase]
	}
	return w.IsAgentInspection() == a.IsAgentInspection()
}

// isOutcomeValid reports whether the result of the recorded attempt is still there. Its success alone does not tell: a release without an
// erase, for example, leaves the attempt in the record and removes status.installed.
func (p planner) isOutcomeValid() bool {
	w, erased, in := p.d.Record.Wanted, p.d.Record.Erased, p.d.Record.Installed
	switch hardware.Operation(w.Operation) {
	case hardware.OpInstall:
		return in != nil && w.Image != nil && in.MachineUID == w.MachineUID && in.Attempt == w.MachineAttempt && in.Checksum == w.Image.Checksum
	case hardware.OpErase:
		return erased != nil && erased.Attempt == w.Number
	}
	return true
}

func (p planner) hasSucceeded(a v1alpha1.WantedAttempt) bool {
	return p.isRecordedAttempt(a) && p.d.Record.Wanted.Outcome == v1alpha1.AttemptSucceeded
}

// waitForRecord ends the steps of a Decision that begins an attempt. The next Decision finds the attempt in the record and calls the installer.
func (p *planner) waitForRecord() result {
	w, before := p.d.Record.Wanted, p.Record.Wanted
	if w == nil || before != nil && before.Number == w.Number {
		return done
	}
	return waitResult("", atOnce)
}

func (p *planner) cancelOtherAttempt() result {
	if p.isIdle() || p.isRecordedAttempt(p.attemptOfState()) {
		return done
	}
	return p.cancel()
}

func (p *planner) beginFirstAttempt() result {
	a := p.attemptOfState()
	if p.isRecordedAttempt(a) {
		return done
	}
	if r := p.waitForStart(a); r.isFinal {
		return r
	}
	p.d.Record.Failures = 0
	p.begin(a)
	return waitResult("", atOnce)
}

// waitForStart waits until the attempt can begin. The erase of nothing boots no server.
func (p *planner) waitForStart(a v1alpha1.WantedAttempt) result {
	if isReleaseOnly := a.Operation == string(hardware.OpErase) && a.Erase == v1alpha1.EraseNone; !isReleaseOnly {
		if r := p.waitForBootService(); r.isFinal {
			return r
		}
	}
	if r := p.waitForPowerOff(a); r.isFinal {
		return r
	}
	return p.waitForTurn(a)
}

func (p *planner) powerOffAfterErase() result {
	if !p.mustConfirmPowerOff(&p.d.Record) {
		return done
	}
	return p.powerOff()
}

// attempt returns the attempt as the installer knows it.
func (p planner) attempt(w *v1alpha1.WantedAttempt) hardware.Attempt {
	return hardware.Attempt{Number: w.Number, Deadline: p.Deadline(w.Since.Time, w.Deadline.Time)}
}

// callInstaller requests the next part of the attempt. An installation is requested only after the state provisioning is written, because
// that write fails when the claim was changed meanwhile. Without it: the Machine releases the host, another one claims it, and the
// installer writes the image of the first.
func (p *planner) callInstaller() result {
	if p.isIdle() {
		return done
	}
	w := p.d.Record.Wanted
	if w.Operation == string(hardware.OpInstall) && !p.isStayingIn(metal3.StateProvisioning) {
		return waitResult("the state to be written", atOnce)
	}
	action := Action{Kind: ActionKind(w.Operation), Attempt: p.attempt(w), Erase: hardware.EraseMode(w.Erase)}
	if w.IsAgentInspection() {
		action.Inspector = hardware.InspectByAgent
	}
	if w.Image != nil {
		action.Image = hardware.Image{URL: w.Image.URL, Checksum: w.Image.Checksum, Format: string(w.Image.Format)}
		action.GPUs, action.Requirements = inventory.RequiredGPUs(w.GPUs), inventory.Requirements(w.Hardware, w.Image)
		action.PreviousRootDisk, action.AcceptedRootDisk = inventory.HardwareDisk(w.PreviousRootDisk), w.AcceptedRootDisk
	}
	return actionResult(action, p.pollInterval())
}

// stepParts is how often in the time that a step has taken its server is looked at.
const stepParts = 4

// pollInterval returns how long the attempt is left alone: a quarter of the time that its step has taken, so that what takes minutes is asked about rarely and
// found to have ended hardly later. The agent's own reports come at once. Without it: a thousand servers are in their self-test for minutes, and five hundred
// BMCs are asked each second whether they still have power.
func (p *planner) pollInterval() time.Duration {
	shortest := p.Timeouts.PollInterval
	a := p.d.Record.Progress()
	if a == nil || a.StepAt.IsZero() {
		return shortest
	}
	return min(max(shortest, p.Ago(a.StepAt.Time)/stepParts), queuePollIntervals*shortest)
}

// begin writes the intent to make an attempt into the record. For an installation it also records the tenant and removes the proof of the
// last erase, before the first byte is written. Without it: the manager is stopped during the installation, and its record says that the
// host is erased while a tenant's data is on it.
func (p *planner) begin(a v1alpha1.WantedAttempt) {
	r := &p.d.Record
	a.Number, a.Since, a.Deadline = p.nextAttemptNumber(), microTime(p.Now), microTime(p.Now.Add(p.timeLimit(a)))
	if a.Operation == string(hardware.OpInstall) {
		if a.PreviousRootDisk = p.previousRootDisk(a.MachineUID); a.PreviousRootDisk != nil {
			a.AcceptedRootDisk = input.Truncate(p.Host.RootDisk, maxDiskName)
		}
		if p.NeedsConfigDrive {
			since := a.Since
			a.ConfigDriveAwaitedAt = &since
		}
		// One that has failed has brought no tenant to the disks.
		isAgain := r.Wanted != nil && r.Wanted.FirstInstallation && r.Wanted.Outcome == v1alpha1.AttemptFailed && r.Installed == nil
		a.FirstInstallation = r.LastTenant == "" || isAgain
		r.Erased, r.Installed = nil, nil
		setLastTenant(r, cmp.Or(p.Spec.Tenant, unknownTenant), p.Spec.TenantClusterUID, p.Spec.TenantUID)
	}
	if a.Operation == string(hardware.OpErase) {
		p.reportRemainingNode()
	}
	r.Wanted = &a
	p.d.Events = append(p.d.Events, event.Normal(a.Operation+"Started", a.Operation,
		fmt.Sprintf("attempt %d, until %s", a.Number, a.Deadline.UTC().Format(time.RFC3339))))
}

// nextAttemptNumber returns a number that no earlier attempt had. After the record was lost it counts from the seconds since 1970, which is
// more than any number before. It is also above every number for which an installer has a status. Without it: the record of attempt 7 is lost,
// the next attempt is number 1 again, and when it later becomes number 7, the installer answers with the success of the old one: a disk
// counts as erased that was not.
func (p *planner) nextAttemptNumber() int64 {
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

// timeLimit returns how long the attempt may take. The time of an inspection is that of a boot wherever one may be needed. Without it: Ironic boots its agent on a server that takes a
// quarter of an hour for its self-test, and the inspection is called off before the agent is there.
func (p *planner) timeLimit(a v1alpha1.WantedAttempt) time.Duration {
	switch {
	case a.IsAgentInspection(), a.Operation == string(hardware.OpInspect) && p.BootsToInspect:
		return p.Timeouts.InspectAgent
	case a.Operation == string(hardware.OpInspect):
		return p.Timeouts.Inspect
	case a.Operation == string(hardware.OpInstall):
		return p.Timeouts.Install
	case a.Erase == v1alpha1.EraseFull, p.hasOverwrittenDisks():
		return p.Timeouts.EraseFull
	}
	return p.Timeouts.EraseMetadata
}

// permanentFailures are failures that another attempt would meet again.
var permanentFailures = []hardware.Reason{hardware.ReasonDigestMismatch, hardware.ReasonImageInvalid, hardware.ReasonNoRootDevice, hardware.ReasonHardwareInsufficient}

// needsManualRetry reports whether the failed attempt is not tried again automatically.
func (p planner) needsManualRetry() bool {
	failures := p.d.Record.Failures
	return failures >= maxFailures || failures > 0 && slices.Contains(permanentFailures, hardware.Reason(p.d.Record.Wanted.Reason))
}

// retryAt returns when the failed attempt is tried again: at once when it was cancelled, else after a pause that doubles with each failure.
func (p *planner) retryAt() time.Time {
	failures := p.d.Record.Failures
	if failures == 0 {
		return p.Now
	}
	return p.Now.Add(max(p.Timeouts.RetryBase<<(failures-1)-p.Ago(p.d.Record.Wanted.EndedAt.Time), 0))
}

func (p *planner) reportFailure() result {
	w, failures := p.d.Record.Wanted, p.d.Record.Failures
	what := fmt.Sprintf("attempt %d failed at %s: %s", w.Number, w.Step, w.Message)
	switch {
	case p.needsManualRetry():
		p.setError(failureTypes[p.tableState()], w.Reason, fmt.Sprintf("%s; it is not tried again by itself: mend the cause, then give the annotation %s of this BareMetalHost a new value, or %s", what, v1alpha1.AnnotationRetry, p.wayWithoutAttempt()))
	case p.Now.Before(p.retryAt()):
		p.setError(failureTypes[p.tableState()], w.Reason, fmt.Sprintf("%s; failure %d of %d, the next attempt is at %s", what, failures, maxFailures, p.retryAt().UTC().Format(time.RFC3339)))
	}
	return done
}

// wayWithoutAttempt returns what a person can do who does not want the failed attempt any more.
func (p *planner) wayWithoutAttempt() string {
	if p.tableState() == metal3.StateInspecting {
		return wayWithoutInspection
	}
	return "release the host"
}

// powerOffAfterFailure keeps the server off until the next attempt. Without it: an installation fails before its first byte, the server boots
// the system of the attempt before, and that node runs again although its Machine was fenced and its pods run elsewhere.
func (p *planner) powerOffAfterFailure() result {
	if !p.hasPoweredServerOn() {
		return done
	}
	return p.powerOff()
}

func (p *planner) waitForManualRetry() result {
	if !p.needsManualRetry() {
		return done
	}
	return waitResult("", p.idleInterval())
}

func (p *planner) waitForRetryPause() result {
	if left := p.retryAt().Sub(p.Now); left > 0 {
		return waitResult("", left)
	}
	return done
}

func (p *planner) beginNextAttempt() result {
	a := p.attemptOfState()
	if r := p.waitForStart(a); r.isFinal {
		return r
	}
	p.begin(a)
	return waitResult("", atOnce)
}

// acceptRetryAnnotation resets the failures when the retry annotation has a new value.
func (p *planner) acceptRetryAnnotation() result {
	r := &p.d.Record
	value := retryValue(p.Host.Retry)
	if value != "" && value != r.RetrySeen && p.isIdle() {
		r.RetrySeen, r.Failures = value, 0
	}
	return done
}

// acceptOtherRequirements resets the failures of an installation on a server that lacked hardware, when something else is required now.
func (p *planner) acceptOtherRequirements() result {
	w := p.d.Record.Wanted
	if w != nil && p.isIdle() && w.Reason == string(hardware.ReasonHardwareInsufficient) && !equality.Semantic.DeepEqual(w.Hardware, p.Spec.Hardware) {
		p.d.Record.Failures = 0
	}
	return done
}

// retryValue returns what status.retrySeen keeps of a retry annotation: as many whole characters as fit. The value is compared, so it
// has no ellipsis, which would make a kept value differ from the annotation that it was read from.
func retryValue(annotation string) string {
	return strings.ToValidUTF8(annotation[:min(len(annotation), v1alpha1.MaxRetrySeen)], "")
}

func microTime(t time.Time) metav1.MicroTime { return metav1.NewMicroTime(t) }
