package lifecycle

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// MaxWaitingFor is the most of status.waitingFor that is kept, maxMessage that of a condition's message; in bytes.
const (
	MaxWaitingFor = 160
	maxMessage    = 1024
)

// quietAfter is how many phases a Machine enters after an installation before its further comings and goings cause no
// events: a Node that flaps must not flood the history.
const quietAfter = 10

// tell says in the status what the Machine waits for.
func (p *planner) tell(n notice) {
	p.reason, p.message = n.reason, n.message
	if n.waitingFor == "" {
		n.waitingFor = n.message
	}
	p.d.Status.WaitingFor = trim(n.waitingFor, MaxWaitingFor)
	if n.condition != "" {
		p.set(n.condition, metav1.ConditionFalse, n.reason, n.message)
	}
}

func trim(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-3], "") + "..."
}

func (p *planner) set(condition string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&p.d.Status.Conditions, metav1.Condition{
		Type: condition, Status: status, Reason: reason, Message: trim(message, maxMessage),
		ObservedGeneration: p.Machine.Generation, LastTransitionTime: metav1.NewTime(p.Now),
	})
}

var rank = map[v1alpha1.MachinePhase]int{
	v1alpha1.MachinePending: 0, v1alpha1.MachineClaiming: 1, v1alpha1.MachineProvisioning: 2, v1alpha1.MachineJoining: 3,
	v1alpha1.MachineValidating: 4, v1alpha1.MachineReady: 5,
}

// report sets the conditions that follow from the phase, Ready, and the time to look again.
func (p *planner) report(before v1alpha1.MachineStatus) {
	p.reportConditions()
	p.reportReady(before)
	if d := p.d.Status.Deadline; d != nil && p.Now.Before(d.Time) {
		p.after(d.Sub(p.Now))
	}
	if sinceInstallation(p.d.Status.Timeline) > quietAfter && p.d.Status.Phase != v1alpha1.MachineReleasing {
		p.d.Events = nil
	}
}

// sinceInstallation counts the phases that were entered since the last installation began.
func sinceInstallation(timeline []v1alpha1.PhaseEntry) int {
	for i := range timeline {
		if timeline[len(timeline)-1-i].Phase == v1alpha1.MachineProvisioning {
			return i
		}
	}
	return len(timeline)
}

func (p *planner) reportConditions() {
	s := &p.d.Status
	at, living := rank[s.Phase]
	if living || s.Phase == v1alpha1.MachineDraining {
		p.reportUpToDate()
	}
	if !living {
		return
	}
	if at >= rank[v1alpha1.MachineProvisioning] && p.hasHost() {
		p.set(v1alpha1.ConditionClaimed, metav1.ConditionTrue, v1alpha1.ReasonClaimed, "host "+p.hostName()+" is this Machine's")
	}
	if at >= rank[v1alpha1.MachineJoining] {
		p.set(v1alpha1.ConditionProvisioned, metav1.ConditionTrue, v1alpha1.ReasonProvisioned, "revision "+s.Revision+" is on the disk")
	}
	if at >= rank[v1alpha1.MachineValidating] && p.HasNodeOfThisAttempt() {
		s.NodeRef = &v1alpha1.NodeReference{Name: p.Machine.Name, UID: p.Node.UID}
		p.set(v1alpha1.ConditionJoined, metav1.ConditionTrue, v1alpha1.ReasonJoined, "Node "+p.Machine.Name+" exists")
	}
}

// reportUpToDate compares with the NodeType's target revision, and says why a roll that is asked for does not begin.
func (p *planner) reportUpToDate() {
	s := p.d.Status
	if p.Next.Name != "" && p.hasHost() {
		if reason, message := p.rollObstacle(); reason != "" {
			p.set(v1alpha1.ConditionUpToDate, metav1.ConditionFalse, reason, "cannot be rolled to "+installed(p.Next.Rendered(), s.Installed())+": "+message)
			p.after(look)
			return
		}
	}
	switch target := p.NodeType.Target; {
	case s.Revision == "" || target.IsZero():
	case s.Installed() == target:
		p.set(v1alpha1.ConditionUpToDate, metav1.ConditionTrue, v1alpha1.ReasonUpToDate, "has the NodeType's target revision")
	case s.Revision == target.Revision:
		p.set(v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonRenderingOutdated, "the NodeType's target rendering of this revision is "+target.Rendering)
	default:
		p.set(v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonRevisionOutdated, "the NodeType's target revision is "+target.Revision)
	}
}

func (p *planner) reportReady(before v1alpha1.MachineStatus) {
	s := &p.d.Status
	if s.Phase == v1alpha1.MachineReady && p.reason == "" {
		s.WaitingFor = ""
		p.set(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady, "the node is as promised and admits pods")
		return
	}
	if p.reason == "" {
		p.reason, p.message = v1alpha1.ReasonEvicting, "the node is being emptied"
	}
	if p.IsOverdue() {
		p.timedOut()
	}
	p.set(v1alpha1.ConditionReady, metav1.ConditionFalse, p.reason, p.message)
	ready := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionReady)
	if trouble[p.reason] && (ready == nil || ready.Reason != p.reason) && len(p.d.Events) == 0 {
		p.event(true, p.reason, p.message)
	}
}

// working are reasons that say no more than that it takes time; past the deadline the phase's own reason says more.
var working = map[string]string{
	v1alpha1.ReasonClaiming:       v1alpha1.ReasonClaimTimedOut,
	v1alpha1.ReasonProvisioning:   v1alpha1.ReasonProvisioningTimedOut,
	v1alpha1.ReasonWaitingForNode: v1alpha1.ReasonJoinTimedOut,
	v1alpha1.ReasonChecksWaiting:  v1alpha1.ReasonValidationTimedOut,
	v1alpha1.ReasonSettling:       v1alpha1.ReasonValidationTimedOut,
	v1alpha1.ReasonNodeRebooted:   v1alpha1.ReasonValidationTimedOut,
}

// timedOut names the hop that the phase stopped at.
func (p *planner) timedOut() {
	deadline := p.d.Status.Deadline.UTC().Format(time.RFC3339)
	if reason := working[p.reason]; reason != "" {
		p.reason = reason
	}
	p.message = fmt.Sprintf("%s, which should have ended by %s: %s", p.d.Status.Phase, deadline, p.message)
	for _, c := range []struct{ condition, reason string }{
		{v1alpha1.ConditionClaimed, v1alpha1.ReasonClaimTimedOut},
		{v1alpha1.ConditionProvisioned, v1alpha1.ReasonProvisioningTimedOut},
		{v1alpha1.ConditionJoined, v1alpha1.ReasonJoinTimedOut},
	} {
		if p.reason == c.reason {
			p.set(c.condition, metav1.ConditionFalse, p.reason, p.message)
		}
	}
}

// trouble are reasons that people should be told of when they come up. What the verdict says, the validation controller tells.
var trouble = map[string]bool{
	v1alpha1.ReasonHostLost: true, v1alpha1.ReasonNodeConflict: true, v1alpha1.ReasonEraseFailed: true,
	v1alpha1.ReasonClaimTimedOut: true, v1alpha1.ReasonProvisioningTimedOut: true, v1alpha1.ReasonJoinTimedOut: true,
	v1alpha1.ReasonVersionSkew: true, v1alpha1.ReasonDRANotServed: true, v1alpha1.ReasonDrainTimedOut: true,
}
