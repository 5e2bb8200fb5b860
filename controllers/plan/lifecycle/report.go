package lifecycle

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// MaxWaitingFor is the maximum length of status.waitingFor, maxMessage that of a condition's message. Both are in bytes.
const (
	MaxWaitingFor = 160
	maxMessage    = 1024
)

// maxPhasesWithEvents is how many phases a Machine may enter after an installation before it causes no more events. Without it: a Node
// whose verdict changes again and again fills the Machine's events.
const maxPhasesWithEvents = 10

// applyReport writes into the status what the Machine waits for.
func (p *planner) applyReport(r report) {
	p.reason, p.message = r.reason, r.message
	if r.waitingFor == "" {
		r.waitingFor = r.message
	}
	p.d.Status.WaitingFor = input.Line(r.waitingFor, MaxWaitingFor)
	if r.condition != "" {
		p.setCondition(r.condition, metav1.ConditionFalse, r.reason, r.message)
	}
}

func (p *planner) setCondition(condition string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&p.d.Status.Conditions, metav1.Condition{
		Type: condition, Status: status, Reason: reason, Message: input.Line(message, maxMessage),
		ObservedGeneration: p.Machine.Generation, LastTransitionTime: metav1.NewTime(p.Now),
	})
}

// phaseOrder orders the phases from the creation of a Machine to Ready.
var phaseOrder = map[v1alpha1.MachinePhase]int{
	v1alpha1.MachinePending: 0, v1alpha1.MachineClaiming: 1, v1alpha1.MachineProvisioning: 2, v1alpha1.MachineJoining: 3,
	v1alpha1.MachineValidating: 4, v1alpha1.MachineReady: 5,
}

// deadlineLeft returns the time until the deadline of the phase that the Decision ends in is certainly over; 0: it is, or there is none.
func (p *planner) deadlineLeft() time.Duration {
	s := &p.d.Status
	if s.Deadline == nil {
		return 0
	}
	began := s.PhaseStart(p.Machine.Created)
	return p.Left(began, s.Deadline.Sub(began))
}

// finishStatus sets the conditions that follow from the phase, the condition Ready, and the time to plan again at the deadline.
func (p *planner) finishStatus(before v1alpha1.MachineStatus) {
	p.setPhaseStatus()
	p.setDrainingDeadline()
	p.setNodeMetadata()
	p.reportReadiness(before)
	if left := p.deadlineLeft(); left > 0 {
		p.requeueAfter(left)
	}
	if phasesSinceInstallation(p.d.Status.Timeline) > maxPhasesWithEvents && p.d.Status.Phase != v1alpha1.MachineReleasing {
		p.d.Events = nil
	}
	for i := range p.d.Events {
		p.d.Events[i].Action = string(p.d.Status.Phase)
	}
}

// phasesSinceInstallation returns the number of phases that were entered since the last installation began.
func phasesSinceInstallation(timeline []v1alpha1.PhaseEntry) int {
	for i := range timeline {
		if timeline[len(timeline)-1-i].Phase == v1alpha1.MachineProvisioning {
			return i
		}
	}
	return len(timeline)
}

// setPhaseStatus sets the conditions Claimed, Provisioned and Joined to True from the phase on that proves them, with Joined also
// status.nodeRef, and sets the condition UpToDate.
func (p *planner) setPhaseStatus() {
	s := &p.d.Status
	order, isOrdered := phaseOrder[s.Phase]
	if isOrdered || s.Phase == v1alpha1.MachineDraining {
		p.setUpToDate()
	}
	if !isOrdered {
		return
	}
	if order >= phaseOrder[v1alpha1.MachineProvisioning] && p.hasHost() {
		p.reportClaim()
	}
	if order >= phaseOrder[v1alpha1.MachineJoining] {
		p.setCondition(v1alpha1.ConditionProvisioned, metav1.ConditionTrue, v1alpha1.ReasonProvisioned, "revision "+s.Revision+" is on the disk")
	}
	if order >= phaseOrder[v1alpha1.MachineValidating] && p.hasNodeOfThisAttempt() {
		s.NodeRef = &v1alpha1.NodeReference{Name: p.Machine.Name, UID: p.Node.UID}
		p.setCondition(v1alpha1.ConditionJoined, metav1.ConditionTrue, v1alpha1.ReasonJoined, "Node "+p.Machine.Name+" exists")
	}
}

// reportClaim sets the condition Claimed of a Machine that has its host. A host that was deleted meanwhile is kept for it; the condition and an
// event say so.
func (p *planner) reportClaim() {
	if p.Host.Deleting && !p.mustHaveRecord() {
		p.reportDeletedHost()
		return
	}
	if !p.Host.Deleting {
		p.setCondition(v1alpha1.ConditionClaimed, metav1.ConditionTrue, v1alpha1.ReasonClaimed, "host "+p.hostName()+" is this Machine's")
		return
	}
	message := "host " + p.hostName() + " " + v1alpha1.KeptForMachine(p.Machine.Namespace, p.Machine.Name)
	if c := meta.FindStatusCondition(p.Machine.Status.Conditions, v1alpha1.ConditionClaimed); c == nil || c.Reason != v1alpha1.ReasonKeptForMachine {
		p.addEvent(true, v1alpha1.ReasonKeptForMachine, message)
	}
	p.setCondition(v1alpha1.ConditionClaimed, metav1.ConditionTrue, v1alpha1.ReasonKeptForMachine, message)
}

// setUpToDate compares the Machine with the NodeType's target revision, and gives the reason when a roll cannot begin.
func (p *planner) setUpToDate() {
	s := p.d.Status
	if p.NextRevision.Name != "" && p.hasHost() {
		if reason, message := p.rollProblem(); reason != "" {
			p.setCondition(v1alpha1.ConditionUpToDate, metav1.ConditionFalse, reason, "cannot be rolled to "+revisionOrRendering(p.NextRevision.rendered(), s.Installed())+": "+message)
			p.requeueAfter(recheckInterval)
			return
		}
	}
	switch target := p.NodeType.Target; {
	case s.Revision == "" || target.IsZero():
	case s.Installed() == target:
		p.setCondition(v1alpha1.ConditionUpToDate, metav1.ConditionTrue, v1alpha1.ReasonUpToDate, "has the NodeType's target revision")
	case s.Revision == target.Revision:
		p.setCondition(v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonRenderingOutdated, "the NodeType's target rendering of this revision is "+target.Rendering)
	default:
		p.setCondition(v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonRevisionOutdated, "the NodeType's target revision is "+target.Revision)
	}
}

// reportReadiness sets the condition Ready, and adds an event of type Warning for a reason of isWarning that it did not have before.
func (p *planner) reportReadiness(before v1alpha1.MachineStatus) {
	s := &p.d.Status
	if s.Phase == v1alpha1.MachineReady && p.reason == "" {
		reason, message := v1alpha1.ReasonReady, "the node is as promised and admits pods"
		if s.WaitingFor = ""; !p.Tenant.Reachable {
			reason, s.WaitingFor, message = v1alpha1.ReasonWaitingForTenant, "the API server of "+tenantName(p.Facts), p.lastSeenMessage()
		}
		p.setCondition(v1alpha1.ConditionReady, metav1.ConditionTrue, reason, message)
		return
	}
	if p.reason == "" {
		p.reason, p.message = v1alpha1.ReasonEvicting, "the node is being emptied"
	}
	if p.isOverdue() && p.d.Status.Deadline != nil {
		p.reportTimeout()
	}
	p.setCondition(v1alpha1.ConditionReady, metav1.ConditionFalse, p.reason, p.message)
	ready := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionReady)
	if isWarning[p.reason] && !p.isPublishedByValidation(p.reason) && (ready == nil || ready.Reason != p.reason) && len(p.d.Events) == 0 {
		p.addEvent(true, p.reason, p.message)
	}
}

// lastSeenMessage says that the node was Ready when its tenant's API server answered last. It repeats no error of a request, because another one would be
// another write of every Machine of the tenant.
func (p *planner) lastSeenMessage() string {
	why := "it does not exist"
	if p.Tenant.Found {
		why = p.Tenant.Reason + ": its condition Ready says more"
	}
	return "the node was as promised when it was last seen, and runs on: " + tenantName(p.Facts) + " cannot be used: " + why
}

// newerShapeInterval is how often a Machine of a newer version is looked at.
const newerShapeInterval = 5 * time.Minute

// refuseNewerShape shows a phase that this version does not know, and does nothing: a newer manager that was taken back wrote it, and knows what it means.
func (p *planner) refuseNewerShape() Decision {
	p.setCondition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNewerShape, fmt.Sprintf(
		"status.phase is \"%s\", which this version of Ingot does not know: nothing is done with this Machine until a manager runs that does", input.Line(string(p.Machine.Status.Phase), 64)))
	p.requeueAfter(newerShapeInterval)
	return p.d
}

// timeoutReasons maps the reasons that say only that something takes time to the reason that replaces them after the deadline.
var timeoutReasons = map[string]string{
	v1alpha1.ReasonClaiming:       v1alpha1.ReasonClaimTimedOut,
	v1alpha1.ReasonProvisioning:   v1alpha1.ReasonProvisioningTimedOut,
	v1alpha1.ReasonWaitingForNode: v1alpha1.ReasonJoinTimedOut,
	v1alpha1.ReasonChecksWaiting:  v1alpha1.ReasonValidationTimedOut,
	v1alpha1.ReasonSettling:       v1alpha1.ReasonValidationTimedOut,
	v1alpha1.ReasonNodeRebooted:   v1alpha1.ReasonValidationTimedOut,
}

// reportTimeout adds to reason and message that the deadline of the phase has passed.
func (p *planner) reportTimeout() {
	deadline := p.d.Status.Deadline.UTC().Format(time.RFC3339)
	if reason := timeoutReasons[p.reason]; reason != "" {
		p.reason = reason
	}
	p.message = fmt.Sprintf("%s, which should have ended by %s: %s", p.d.Status.Phase, deadline, p.message)
	for _, c := range []struct{ condition, reason string }{
		{v1alpha1.ConditionClaimed, v1alpha1.ReasonClaimTimedOut},
		{v1alpha1.ConditionProvisioned, v1alpha1.ReasonProvisioningTimedOut},
		{v1alpha1.ConditionJoined, v1alpha1.ReasonJoinTimedOut},
	} {
		if p.reason == c.reason {
			p.setCondition(c.condition, metav1.ConditionFalse, p.reason, p.message)
		}
	}
}

// isWarning has the reasons that cause an event of type Warning when they become the reason of Ready. The events about a verdict are not
// among them: the validation controller emits those.
var isWarning = map[string]bool{
	v1alpha1.ReasonHostLost: true, v1alpha1.ReasonNodeConflict: true, v1alpha1.ReasonServerUnidentified: true, v1alpha1.ReasonEraseFailed: true,
	v1alpha1.ReasonClaimTimedOut: true, v1alpha1.ReasonProvisioningTimedOut: true, v1alpha1.ReasonJoinTimedOut: true,
	v1alpha1.ReasonVersionSkew: true, v1alpha1.ReasonDRANotServed: true, v1alpha1.ReasonDrainTimedOut: true, v1alpha1.ReasonServerOff: true,
	v1alpha1.ReasonBootAddressWrong: true, v1alpha1.ReasonKubeletUnsupported: true,
}

// currentAttempt returns the host's current installation for this Machine and its recorded progress, or nil where there is none.
func (f Facts) currentAttempt() (*v1alpha1.WantedAttempt, *v1alpha1.HostAttempt) {
	if f.Host == nil || f.Host.Record == nil {
		return nil, nil
	}
	r := f.Host.Record
	if r.Status.Wanted == nil || r.Status.Wanted.Operation != string(hardware.OpInstall) ||
		r.Status.Wanted.MachineUID != f.Machine.UID || r.Status.Wanted.MachineAttempt != f.Machine.Status.Attempt {
		return nil, nil
	}
	return r.Status.Wanted, r.Status.Progress()
}
