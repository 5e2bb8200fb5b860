package host

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/event"
)

// planner makes one Decision. Its predicates have it by value, so that they cannot change the Decision.
type planner struct {
	Facts
	d Decision
	// powerTransition is the power change that this Decision requests. It is recorded instead of the observed power state.
	powerTransition hardware.PowerState
}

// Plan decides what happens next to the host.
func Plan(f Facts) Decision {
	p := &planner{Facts: f, d: Decision{Status: f.Host.Status, Record: *f.Record.DeepCopy()}}
	switch {
	case f.Host.Paused:
		return p.d
	case f.Host.Detached:
		p.decideDetached()
	case p.hasOlderShape():
		p.refuseOlderShape()
	default:
		p.restoreLostRecord()
		p.concludeAttempt()
		p.clearError()
		p.decideAttached()
		p.recordPower()
	}
	p.countError()
	p.addStateEvent()
	return p.d
}

// decideDetached leaves the hardware alone. The status keeps what was observed last.
func (p *planner) decideDetached() {
	if p.followEdges(); p.tableState() != metal3.StateDeleting {
		p.d.Status.OperationalStatus = metal3.OperationalStatusDetached
		return
	}
	p.clearError()
	p.runSteps()
}

// hasOlderShape reports whether an earlier version of Ingot wrote the record. That version kept in status.attempt what status.wanted has now.
func (p planner) hasOlderShape() bool { return p.Record.Wanted == nil && p.Record.Attempt != nil }

// refuseOlderShape does nothing with the hardware, because the record does not tell what is on the disks and which attempt runs.
func (p *planner) refuseOlderShape() {
	p.clearError()
	p.setError(metal3.RegistrationError, v1alpha1.ReasonOlderShape, "an earlier version of Ingot wrote the HostRecord of this host: it has status.attempt and no status.wanted. "+
		"Nothing is done with the host. Delete the HostRecord and remove its finalizer: the host is then taken as one of unknown content")
	p.d.RequeueAfter, p.d.WaitingFor = p.idleInterval(), "the HostRecord to be deleted"
}

// decideAttached follows the edges, runs the steps of the state, and reports a BMC that cannot be read.
func (p *planner) decideAttached() {
	p.followEdges()
	if p.d.RemoveFinalizer {
		return
	}
	if p.canUseHardware() || p.tableState() == metal3.StateDeleting {
		p.runSteps()
	}
	if p.Problem != nil && p.tableState() != metal3.StateDeleting {
		p.reportProblem()
	}
	// During the grace period of a BMC that does not answer, the error is the one in the record, which has the hint already.
	if e := p.d.Record.Error; e != nil && p.mustBeDeleted() && !strings.Contains(e.Message, detachHint) {
		p.setError(p.d.Status.ErrorType, e.Reason, e.Message+detachHint)
	}
}

// detachHint ends the message of an error that prevents the deletion of a host.
const detachHint = "; the host is deleted when its disks are erased: to give it up as it is, annotate it with " + metal3.DetachedAnnotation

// restoreLostRecord writes into a new record what is known of a host that has a state already.
func (p *planner) restoreLostRecord() {
	r, state := &p.d.Record, p.Host.Status.State
	if r.Power == nil && isPastInspection(state) {
		r.LastTenant = unknownTenant
		if state == metal3.StateProvisioned && p.Spec.Tenant != "" {
			r.LastTenant = p.Spec.Tenant
		}
	}
	if state == metal3.StateProvisioned && r.Installed == nil && r.Wanted == nil && p.isImageRequested() {
		// The record was lost, and what the Machine says that it has is assumed to be on the disk. A record with an attempt was not
		// lost: that attempt removed status.installed, and the write of the state did not follow.
		r.Installed = &v1alpha1.HostInstalled{MachineUID: p.Spec.Machine.UID, Attempt: p.Spec.Attempt, Revision: p.Spec.Revision,
			Checksum: p.Spec.Image.Checksum, At: microTime(p.Now)}
	}
}

func isPastInspection(s metal3.ProvisioningState) bool {
	return s != metal3.StateNone && s != metal3.StateRegistering && s != metal3.StateInspecting
}

// reportProblem reports that the BMC cannot be read. For a registered host it does so after the grace period.
func (p *planner) reportProblem() {
	p.d.RequeueAfter, p.d.WaitingFor = p.Timeouts.RetryBase, p.Problem.Reason
	kind := metal3.PowerManagementError
	switch p.d.Status.State {
	case metal3.StateNone, metal3.StateRegistering:
		p.d.Status.State = metal3.StateRegistering
		p.setError(metal3.RegistrationError, p.Problem.Reason, p.Problem.Message)
		return
	case metal3.StateInspecting:
		kind = metal3.InspectionError
	}
	if !p.isIdle() {
		p.d.RequeueAfter = 5 * p.Timeouts.PollInterval
	}
	since := p.Now
	if power := p.Record.Power; power != nil && power.State != string(hardware.PowerOn) && power.State != string(hardware.PowerOff) {
		since = power.ObservedAt.Time
	}
	if left := p.Timeouts.BMCGrace - p.Now.Sub(since); left > 0 {
		before := p.Host.Status
		p.d.Status.OperationalStatus, p.d.Status.ErrorType, p.d.Status.ErrorMessage = before.OperationalStatus, before.ErrorType, before.ErrorMessage
		p.d.Record.Error = p.Record.Error
		p.d.RequeueAfter = min(p.d.RequeueAfter, left)
		return
	}
	p.setError(kind, p.Problem.Reason, p.Problem.Message)
}

func (p *planner) clearError() {
	p.d.Status.OperationalStatus = metal3.OperationalStatusOK
	p.d.Status.ErrorType, p.d.Status.ErrorMessage, p.d.Record.Error = "", "", nil
}

func (p *planner) setError(kind metal3.ErrorType, reason, message string) {
	p.d.Status.OperationalStatus = metal3.OperationalStatusError
	message = v1alpha1.Truncate(message, v1alpha1.MaxHostError)
	p.d.Status.ErrorType, p.d.Status.ErrorMessage = kind, reason+": "+message
	p.d.Record.Error = &v1alpha1.HostError{Reason: reason, Message: message}
}

// errorReason returns the reason of an error, or "" when there is none.
func errorReason(e *v1alpha1.HostError) string {
	if e == nil {
		return ""
	}
	return e.Reason
}

// countError sets the error count, and adds an event for an error of another type or reason than before. The message alone may change with
// every observation.
func (p *planner) countError() {
	before, after := p.Host.Status, &p.d.Status
	switch {
	case after.ErrorType == "":
		after.ErrorCount = 0
	case after.ErrorType != before.ErrorType || errorReason(p.d.Record.Error) != errorReason(p.Record.Error):
		after.ErrorCount = before.ErrorCount + 1
		p.d.Events = append(p.d.Events, event.Warning(errorReason(p.d.Record.Error), "Serve", after.ErrorMessage))
	default:
		after.ErrorCount = before.ErrorCount
	}
}

// addStateEvent adds an event for a new state, unless the event of an attempt reports it.
func (p *planner) addStateEvent() {
	if before, after := p.Host.Status.State, p.d.Status.State; after != before && !p.hasAttemptEvent() {
		p.d.Events = append(p.d.Events, event.Normal(stateReasons[after], "Serve",
			fmt.Sprintf("the host is %s now, it was %s", stateName(after), stateName(before))))
	}
}

// hasAttemptEvent reports whether there is an event about the beginning or the end of an installation or inspection.
func (p planner) hasAttemptEvent() bool {
	return slices.ContainsFunc(p.d.Events, func(e event.Event) bool {
		return e.Action == string(hardware.OpInstall) || e.Action == string(hardware.OpInspect)
	})
}

func stateName(s metal3.ProvisioningState) string {
	if s == metal3.StateNone {
		return "new"
	}
	return string(s)
}

var stateReasons = map[metal3.ProvisioningState]string{
	metal3.StateRegistering: "Registering", metal3.StateInspecting: "Inspecting", metal3.StateAvailable: "Available", metal3.StatePreparing: "Preparing",
	metal3.StateProvisioning: "Provisioning", metal3.StateProvisioned: "Provisioned", metal3.StateExternallyProvisioned: "ExternallyProvisioned",
	metal3.StateDeprovisioning: "Deprovisioning", metal3.StatePoweringOffBeforeDelete: "PoweringOff", metal3.StateDeleting: "Deleting",
}

// idleInterval returns when to observe a host again where no attempt runs.
func (p *planner) idleInterval() time.Duration {
	return p.Timeouts.IdleInterval - time.Duration(p.Random*float64(p.Timeouts.IdleInterval)/10)
}

// WithActionError returns the Decision after its Action returned an error. An error that an administrator must correct or look at is reported
// at once. After any other error the Action is tried again; that becomes an error of the attempt when its deadline has passed.
func (d Decision) WithActionError(f Facts, err error) Decision {
	d.RequeueAfter = 5 * f.Timeouts.PollInterval
	switch hardware.KindOf(err) {
	case hardware.Unauthorized, hardware.Invalid, hardware.Unsupported, hardware.Ignored:
	default:
		return d
	}
	p := &planner{Facts: f, d: d}
	p.d.RequeueAfter = f.Timeouts.RetryBase
	reason, message := ErrorReasonText(err), actionErrorMessage(err)
	if e := d.Record.Error; e != nil && hardware.KindOf(err) != hardware.Unauthorized {
		// The Decision has reported an error already. If the new one replaced it, the reason would change with every observation, each change
		// with an event, and nobody could read why an attempt failed. During the grace period of a BMC it is the error of the record.
		// A refused login is the exception: the next observation must find it as the reason, or it logs in again until the BMC locks
		// the account.
		if first, _, _ := strings.Cut(e.Message, secondErrorPrefix); e.Reason != reason || !strings.HasPrefix(first, message) {
			p.setError(d.Status.ErrorType, e.Reason, first+secondErrorPrefix+reason+": "+message)
		}
		return p.d
	}
	p.setError(actionErrorTypes[d.Action.Kind], reason, message)
	p.countError()
	return p.d
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

var actionErrorTypes = map[ActionKind]metal3.ErrorType{
	ActionInspect: metal3.InspectionError, ActionInstall: metal3.ProvisioningError, ActionErase: metal3.ProvisioningError,
	ActionCancel: metal3.PowerManagementError, ActionSetPower: metal3.PowerManagementError,
}
