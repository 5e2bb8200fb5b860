package host

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/outcome"
)

// planner is a decision in the making.
type planner struct {
	Facts
	d Decision
	// changing is the power transition that was asked for, recorded instead of the state seen.
	changing hardware.PowerState
}

// Plan decides.
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
		p.adopt()
		p.conclude()
		p.clearError()
		p.decide()
		p.recordPower()
	}
	p.report()
	return p.d
}

// Observes says whether Plan wants the hardware to be looked at: not while a person keeps us away from it.
func (h Host) Observes() bool { return !h.Paused && !h.Detached }

// decideDetached leaves the hardware alone and shows what was seen last.
func (p *planner) decideDetached() {
	if p.follow(); p.tableState() != StateDeleting {
		p.d.Status.OperationalStatus = OperationalDetached
		return
	}
	p.clearError()
	p.takeSteps()
}

// hasOlderShape says whether an earlier version of Ingot wrote the record. It kept in status.attempt what is in status.wanted now.
func (p *planner) hasOlderShape() bool { return p.Record.Wanted == nil && p.Record.Attempt != nil }

// refuseOlderShape does nothing with the hardware: what is on the disks, and which attempt runs, cannot be told from the record.
func (p *planner) refuseOlderShape() {
	p.clearError()
	p.fail(RegistrationError, v1alpha1.ReasonOlderShape, "an earlier version of Ingot wrote the HostRecord of this host: it has status.attempt and no status.wanted. "+
		"Nothing is done with the host. Delete the HostRecord and remove its finalizer: the host is then taken as one of unknown content")
	p.d.Requeue, p.d.WaitsFor = p.steady(), "the HostRecord to be deleted"
}

// decide goes where an edge leads, does what the state asks for, and shows a BMC that cannot be read.
func (p *planner) decide() {
	p.follow()
	if p.d.DropFinalizer {
		return
	}
	if p.canWork() || p.tableState() == StateDeleting {
		p.takeSteps()
	}
	if p.Problem != nil && p.tableState() != StateDeleting {
		p.showProblem()
	}
	// While a silent BMC is borne with, the error is the record's, which has the hint already.
	if e := p.d.Record.Error; e != nil && p.isDeleted() && !strings.Contains(e.Message, detachHint) {
		p.fail(p.d.Status.ErrorType, e.Reason, e.Message+detachHint)
	}
}

// detachHint ends the message of an error that keeps a deleted host.
const detachHint = "; the host is deleted when its disks are erased: to give it up as it is, annotate it with baremetalhost.metal3.io/detached"

// outcomeFacts are what the outcome of the attempt that is wanted follows from.
func (p *planner) outcomeFacts() outcome.Facts {
	f := outcome.Facts{Now: p.Now, Spec: p.Spec, Observed: p.Observed, Power: p.seenPower(), Grace: p.Timeouts.BMCGrace}
	if p.Problem != nil {
		f.Problem = p.Problem.Reason + ": " + p.Problem.Message
	}
	return f
}

// conclude draws the consequences of the end of the attempt that is wanted, and tells of it.
func (p *planner) conclude() {
	wasOpen := !p.isIdle()
	outcome.Conclude(&p.d.Record, p.outcomeFacts())
	w := p.d.Record.Wanted
	switch {
	case !wasOpen || !p.isIdle():
	case w.Outcome == v1alpha1.AttemptFailed:
		p.d.Events = append(p.d.Events, Event{Warning: true, Reason: w.Reason, Action: w.Operation, Message: w.Message})
	default:
		p.d.Events = append(p.d.Events, Event{Reason: w.Operation + "Succeeded", Action: w.Operation,
			Message: "took " + p.Now.Sub(w.Since.Time).Round(time.Second).String()})
	}
}

// adopt recognises a host with a past that its record does not know.
func (p *planner) adopt() {
	r, state := &p.d.Record, p.Host.Status.State
	if r.Power == nil && isEstablished(state) {
		r.LastTenant = UnknownTenant
		if state == StateProvisioned && p.Spec.Tenant != "" {
			r.LastTenant = p.Spec.Tenant
		}
	}
	if state == StateProvisioned && r.Installed == nil && r.Wanted == nil && p.isAsked() {
		// The record was lost: what the Machine says it has is taken to be there. With an attempt in the record nothing was lost:
		// that withdrew what is installed, and the state's write did not come after it.
		r.Installed = &v1alpha1.HostInstalled{MachineUID: p.Spec.Machine.UID, Attempt: p.Spec.Attempt, Revision: p.Spec.Revision,
			Checksum: p.Spec.Image.Checksum, At: microTime(p.Now)}
	}
}

func isEstablished(s State) bool {
	return s != StateNone && s != StateRegistering && s != StateInspecting
}

// showProblem shows that the BMC cannot be read: a registered host's when that has lasted for a while.
func (p *planner) showProblem() {
	p.d.Requeue, p.d.WaitsFor = p.Timeouts.RetryBase, p.Problem.Reason
	kind := PowerManagementError
	switch p.d.Status.State {
	case StateNone, StateRegistering:
		p.d.Status.State = StateRegistering
		p.fail(RegistrationError, p.Problem.Reason, p.Problem.Message)
		return
	case StateInspecting:
		kind = InspectionError
	}
	if !p.isIdle() {
		p.d.Requeue = 5 * p.Timeouts.Poll
	}
	since := p.Now
	if power := p.Record.Power; power != nil && power.State != string(hardware.PowerOn) && power.State != string(hardware.PowerOff) {
		since = power.ObservedAt.Time
	}
	if left := p.Timeouts.BMCGrace - p.Now.Sub(since); left > 0 {
		was := p.Host.Status
		p.d.Status.OperationalStatus, p.d.Status.ErrorType, p.d.Status.ErrorMessage = was.OperationalStatus, was.ErrorType, was.ErrorMessage
		p.d.Record.Error = p.Record.Error
		p.d.Requeue = min(p.d.Requeue, left)
		return
	}
	p.fail(kind, p.Problem.Reason, p.Problem.Message)
}

func (p *planner) clearError() {
	p.d.Status.OperationalStatus = OperationalOK
	p.d.Status.ErrorType, p.d.Status.ErrorMessage, p.d.Record.Error = NoError, "", nil
}

func (p *planner) fail(kind ErrorType, reason, message string) {
	p.d.Status.OperationalStatus = OperationalError
	message = v1alpha1.Clipped(message, v1alpha1.MaxHostError)
	p.d.Status.ErrorType, p.d.Status.ErrorMessage = kind, reason+": "+message
	p.d.Record.Error = &v1alpha1.HostError{Reason: reason, Message: message}
}

// errorReason is the reason of an error; "" when there is none.
func errorReason(e *v1alpha1.HostError) string {
	if e == nil {
		return ""
	}
	return e.Reason
}

// report counts errors and makes the events that follow from what changed.
func (p *planner) report() {
	p.reportError()
	if before, after := p.Host.Status.State, p.d.Status.State; after != before && !p.hasAttemptEvent() {
		p.d.Events = append(p.d.Events, Event{Reason: stateReasons[after], Action: "Serve",
			Message: fmt.Sprintf("the host is %s now, it was %s", stateName(after), stateName(before))})
	}
}

// hasAttemptEvent says whether the beginning or the end of an attempt is told, with which the state changes.
func (p *planner) hasAttemptEvent() bool {
	return slices.ContainsFunc(p.d.Events, func(e Event) bool {
		return e.Action == string(hardware.OpInstall) || e.Action == string(hardware.OpInspect)
	})
}

func (p *planner) reportError() {
	before, after := p.Host.Status, &p.d.Status
	switch {
	case after.ErrorType == NoError:
		after.ErrorCount = 0
	case after.ErrorType != before.ErrorType || errorReason(p.d.Record.Error) != errorReason(p.Record.Error):
		// The message may change with every look, and is no new error then.
		after.ErrorCount = before.ErrorCount + 1
		p.d.Events = append(p.d.Events, Event{Warning: true, Reason: errorReason(p.d.Record.Error), Action: "Serve", Message: after.ErrorMessage})
	default:
		after.ErrorCount = before.ErrorCount
	}
}

func stateName(s State) string {
	if s == StateNone {
		return "new"
	}
	return string(s)
}

var stateReasons = map[State]string{
	StateRegistering: "Registering", StateInspecting: "Inspecting", StateAvailable: "Available", StatePreparing: "Preparing",
	StateProvisioning: "Provisioning", StateProvisioned: "Provisioned", StateExternallyProvisioned: "ExternallyProvisioned",
	StateDeprovisioning: "Deprovisioning", StatePoweringOff: "PoweringOff", StateDeleting: "Deleting",
}
