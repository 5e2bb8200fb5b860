package host

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/input"
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
	case p.newerValue() != "":
		p.refuseNewerShape()
	case p.isHeldAfterRestore():
		p.reportRestored()
	default:
		p.leaveQueue()
		p.recordObservedCall()
		p.restoreRecord()
		p.restoreLostRecord()
		p.recordCluster()
		p.postponeDeadline()
		p.concludeAttempt()
		p.shareData()
		p.acceptGoneDisks()
		p.clearError()
		p.decideAttached()
		p.reportMachineGone()
		p.recordPower()
	}
	p.removeUnneededCalls()
	p.reportFindings()
	p.reportKept()
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

// newerValue returns what of the record's attempt this version does not know; empty: it knows all of it.
func (p planner) newerValue() string {
	w := p.Record.Wanted
	switch {
	case w == nil:
	case !slices.Contains([]hardware.Operation{hardware.OpInspect, hardware.OpInstall, hardware.OpErase}, hardware.Operation(w.Operation)):
		return "operation " + input.Line(w.Operation, maxShownValue)
	case !slices.Contains([]v1alpha1.AttemptOutcome{"", v1alpha1.AttemptSucceeded, v1alpha1.AttemptFailed}, w.Outcome):
		return "outcome " + input.Line(string(w.Outcome), maxShownValue)
	}
	return ""
}

// maxShownValue is how much of a value that is not known is shown, in bytes.
const maxShownValue = 64

// refuseNewerShape does nothing with the hardware: a newer manager that was taken back wrote the record, and knows what it means.
func (p *planner) refuseNewerShape() {
	p.clearError()
	p.setError(metal3.RegistrationError, v1alpha1.ReasonNewerShape, fmt.Sprintf(
		"status.wanted of the HostRecord has the %s, which this version of Ingot does not know: nothing is done with this host until a manager runs that does", p.newerValue()))
	p.d.RequeueAfter, p.d.WaitingFor = p.idleInterval(), "a newer manager"
}

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
	if e, hint := p.d.Record.Error, p.deletionHint(); e != nil && p.mustBeDeleted() && !strings.Contains(e.Message, hint) {
		p.setError(p.d.Status.ErrorType, e.Reason, e.Message+hint)
	}
}

// deletionHint returns the end of the message of an error that prevents the deletion of a host.
func (p planner) deletionHint() string {
	if p.isSameServer() {
		return sameServerHint
	}
	return detachHint
}

// detachHint ends the message of an error that prevents the deletion of a host.
const detachHint = "; the host is deleted when its disks are erased: to give it up as it is, annotate it with " + metal3.DetachedAnnotation

// sameServerHint ends that message while another host is the same server. A host without data of a tenant is deleted at once and has no error.
const sameServerHint = "; the disks may have data of a tenant, so this host is deleted only after they are erased, and that waits until no other host is this server: " +
	"delete the other host, or give this one up by the annotation " + metal3.DetachedAnnotation + ": then the other host is erased before it is available"

// restoreLostRecord writes into a new record what is known of a host that has a state already.
func (p *planner) restoreLostRecord() {
	r, state := &p.d.Record, p.Host.Status.State
	if r.Power == nil && isPastInspection(state) {
		setLastTenant(r, unknownTenant, "", "")
		if state == metal3.StateProvisioned && p.Spec.Tenant != "" {
			setLastTenant(r, p.Spec.Tenant, p.Spec.TenantClusterUID, "")
		}
	}
	if state == metal3.StateProvisioned && r.Installed == nil && r.Wanted == nil && p.isImageRequested() {
		// The record was lost, and what the Machine says that it has is assumed to be on the disk. A record with an attempt was not
		// lost: that attempt removed status.installed, and the write of the state did not follow.
		r.Installed = &v1alpha1.HostInstalled{MachineUID: p.Spec.Machine.UID, Attempt: p.Spec.Attempt, Revision: p.Spec.Revision,
			Checksum: p.Spec.Image.Checksum, At: microTime(p.Now)}
	}
}

// shareData records for a clean host that another one, which has data of a tenant, is the same server. Without it: the host that had the tenant is
// given up without an erase, the other one counts as clean, and the next tenant reads the data. An externally provisioned host has unknown
// content when it ceases to be that, and must not be erased when it is deleted.
func (p *planner) shareData() {
	isExternal := p.Host.ExternallyProvisioned || p.tableState() == metal3.StateExternallyProvisioned
	if p.isSameServer() && p.Problem.HasData && p.isClean() && !isExternal {
		setLastTenant(&p.d.Record, sharedTenant, "", "")
		p.d.Record.Erased = nil
	}
}

func isPastInspection(s metal3.ProvisioningState) bool {
	return s != metal3.StateNone && s != metal3.StateRegistering && s != metal3.StateInspecting
}

// reportSameServer reports at once that another host is the same server. A host that has a Machine keeps its state, because its node goes on.
func (p *planner) reportSameServer() {
	kind := metal3.RegistrationError
	if p.Host.Claimed {
		kind = metal3.ProvisionedRegistrationError
	}
	p.setError(kind, p.Problem.Reason, p.Problem.Message)
}

func (p *planner) clearError() {
	p.d.Status.OperationalStatus = metal3.OperationalStatusOK
	p.d.Status.ErrorType, p.d.Status.ErrorMessage, p.d.Record.Error = "", "", nil
}

func (p *planner) setError(kind metal3.ErrorType, reason, message string) {
	p.d.Status.OperationalStatus = metal3.OperationalStatusError
	message = input.Line(message, v1alpha1.MaxHostError)
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
