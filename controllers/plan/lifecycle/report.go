package lifecycle

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
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

// hold says what the Machine waits for: the condition that is not yet True (empty: only Ready is not), the typed reason, one
// line for people (empty: the message), and the message.
func (p *planner) hold(condition, reason, waiting, message string) {
	p.reason, p.message = reason, message
	if waiting == "" {
		waiting = message
	}
	p.d.Status.WaitingFor = trim(waiting, MaxWaitingFor)
	if condition != "" {
		p.set(condition, metav1.ConditionFalse, reason, message)
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
		ObservedGeneration: p.f.Machine.Generation, LastTransitionTime: metav1.NewTime(p.f.Now),
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
	if d := p.d.Status.Deadline; d != nil && p.f.Now.Before(d.Time) {
		p.after(d.Sub(p.f.Now))
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
	if at >= rank[v1alpha1.MachineProvisioning] && p.g.hostIsMine(p.f) {
		p.set(v1alpha1.ConditionClaimed, metav1.ConditionTrue, v1alpha1.ReasonClaimed, "host "+p.hostName()+" is this Machine's")
	}
	if at >= rank[v1alpha1.MachineJoining] {
		p.set(v1alpha1.ConditionProvisioned, metav1.ConditionTrue, v1alpha1.ReasonProvisioned, "revision "+s.Revision+" is on the disk")
	}
	if at >= rank[v1alpha1.MachineValidating] && p.f.NodeOfThisAttempt() {
		s.NodeRef = &v1alpha1.NodeReference{Name: p.f.Machine.Name, UID: p.f.Node.UID}
		p.set(v1alpha1.ConditionJoined, metav1.ConditionTrue, v1alpha1.ReasonJoined, "Node "+p.f.Machine.Name+" exists")
	}
}

// reportUpToDate compares with the NodeType's target revision, and says why a roll that is asked for does not begin.
func (p *planner) reportUpToDate() {
	s := p.d.Status
	if p.f.Next.Name != "" && p.g.hostIsMine(p.f) {
		if reason, message := p.rollObstacle(); reason != "" {
			p.set(v1alpha1.ConditionUpToDate, metav1.ConditionFalse, reason, "cannot be rolled to revision "+p.f.Next.Name+": "+message)
			p.after(look)
			return
		}
	}
	switch target := p.f.NodeType.Target; {
	case s.Revision == "" || target == "":
	case s.Revision == target:
		p.set(v1alpha1.ConditionUpToDate, metav1.ConditionTrue, v1alpha1.ReasonUpToDate, "has the NodeType's target revision")
	default:
		p.set(v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonRevisionOutdated, "the NodeType's target revision is "+target)
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
	if p.f.Overdue() {
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

// hostAnswers tells whether the host goes on with its work, and says why when it does not. The Machine itself waits.
func (p *planner) hostAnswers() bool {
	reason, message := p.hostTrouble()
	if reason == "" {
		return true
	}
	p.hold(v1alpha1.ConditionProvisioned, reason, "", message)
	p.after(look)
	if p.f.Tenant.Reachable && p.f.Token != nil && p.f.ImageRequested() {
		p.tokenRight()
	}
	return false
}

// hostTrouble is why the host's controller does not go on.
func (p *planner) hostTrouble() (reason, message string) {
	h := p.f.Host
	switch {
	case h.Paused:
		return v1alpha1.ReasonHostPaused, "host " + p.hostName() + " is paused: remove its annotation baremetalhost.metal3.io/paused"
	case h.Detached:
		return v1alpha1.ReasonHostDetached, "host " + p.hostName() + " is detached: remove its annotation baremetalhost.metal3.io/detached"
	case h.Error != "" && h.ErrorReason != "":
		return h.ErrorReason, "host " + p.hostName() + ": " + h.ErrorMessage
	case h.Error != "":
		return v1alpha1.ReasonHostError, fmt.Sprintf("host %s reports a %s: %s", p.hostName(), h.Error, h.ErrorMessage)
	default:
		return "", ""
	}
}

func (p *planner) reportInstallation() {
	w, a := p.attempt()
	if w != nil && w.Outcome == v1alpha1.AttemptFailed && w.Reason != "" {
		p.hold(v1alpha1.ConditionProvisioned, w.Reason, "", fmt.Sprintf("host %s: %s at %s", p.hostName(), w.Message, w.Step))
		return
	}
	if a == nil || !writes[a.Step] {
		p.beforeWriting(a)
		p.d.Status.Progress = nil
		return
	}
	message := "host " + p.hostName() + " writes the image" + p.stuckAt(a)
	p.hold(v1alpha1.ConditionProvisioned, v1alpha1.ReasonProvisioning, "the image to be written", message)
	p.reportProgress(a)
}

// writing is the step at which bytes flow, writes those from the first byte on.
const writing = "Writing"

var writes = map[string]bool{writing: true, "Verifying": true, "Finishing": true}

// beforeWriting says the same from the claim until the first byte: a status write is a request, of which a Machine has a
// budget, and each step is in HostRecord.status.
func (p *planner) beforeWriting(a *v1alpha1.HostAttempt) {
	p.hold(v1alpha1.ConditionProvisioned, v1alpha1.ReasonProvisioning, "the installer to begin",
		"host "+p.hostName()+" is prepared and boots the installer"+p.stuckAt(a))
}

// stuckAt names the step when that is what people must know: the phase is late.
func (p *planner) stuckAt(a *v1alpha1.HostAttempt) string {
	switch {
	case !p.f.Overdue():
		return ""
	case a == nil:
		return ": it is " + p.f.Host.State
	default:
		return fmt.Sprintf(": attempt %d is at %s", a.Number, a.Step)
	}
}

// attempt is the host's current installation for this Machine, and what is kept of its progress; nil where there is none.
func (p *planner) attempt() (*v1alpha1.WantedAttempt, *v1alpha1.HostAttempt) {
	r := p.f.Host.Record
	if r == nil || r.Status.Wanted == nil || r.Status.Wanted.Operation != "Install" ||
		r.Status.Wanted.MachineUID != p.f.Machine.UID || r.Status.Wanted.MachineAttempt != p.f.Machine.Status.Attempt {
		return nil, nil
	}
	return r.Status.Wanted, r.Status.Progress()
}

func (p *planner) step() string {
	if r := p.f.Host.Record; r != nil && r.Status.Wanted.IsOpen() {
		if a := r.Status.Progress(); a != nil {
			return ": " + a.Step
		}
	}
	return ""
}

// reportProgress copies the first bytes and then those of every half of the image; HostRecord.status has more.
func (p *planner) reportProgress(a *v1alpha1.HostAttempt) {
	old, half := p.d.Status.Progress, a.TotalBytes/2
	if half == 0 {
		half = 1 << 28
	}
	if old != nil && (a.Step != writing || a.DoneBytes-old.DoneBytes < half && a.DoneBytes >= old.DoneBytes) {
		return
	}
	p.d.Status.Progress = &v1alpha1.Progress{Step: writing, DoneBytes: a.DoneBytes, TotalBytes: a.TotalBytes}
}

// waitingCheck is the first check that decides the verdict, in a few words: nvidia.com/gpu: 7 of 8.
func (p *planner) waitingCheck() string {
	if v := p.f.Machine.Status.Verdict; v != nil && p.f.NodeOfThisAttempt() && v.NodeUID == p.f.Node.UID {
		for _, c := range v.Checks {
			if c.Result == v.Result && c.Result != v1alpha1.CheckPass {
				return strings.TrimPrefix(c.Name, "resource/") + ": " + compared(c)
			}
		}
	}
	return ""
}

// compared says what was seen and what was expected: numbers as a part of the whole.
func compared(c v1alpha1.Check) string {
	if c.Observed == "" {
		return "nothing seen, expected " + c.Expected
	}
	if _, err := resource.ParseQuantity(c.Observed); err == nil {
		return c.Observed + " of " + c.Expected
	}
	return c.Observed + ", expected " + c.Expected
}

// verdictProblem is why the Machine is not Ready once it had a Node.
func (p *planner) verdictProblem() (reason, message string) {
	v, m := p.f.Machine.Status.Verdict, p.f.Machine
	switch {
	case !p.g.hostIsMine(p.f):
		return v1alpha1.ReasonHostLost, "host " + p.hostName() + " is no longer this Machine's"
	case !p.f.Tenant.Reachable:
		return v1alpha1.ReasonWaitingForTenant, tenantTrouble(p.f)
	case !p.f.Node.Found:
		return v1alpha1.ReasonNodeLost, "Node " + m.Name + " was deleted in the tenant's cluster: restart kubelet on it, and it registers again"
	case !p.f.NodeOfThisAttempt():
		return v1alpha1.ReasonNodeConflict, p.conflict()
	case v == nil || v.NodeUID != p.f.Node.UID || v.Revision != m.Status.Revision:
		return v1alpha1.ReasonChecksWaiting, "Node " + m.Name + " has not been judged yet"
	case v.BootID != p.f.Node.BootID:
		return v1alpha1.ReasonNodeRebooted, "Node " + m.Name + " booted since it was judged"
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionValidated); c != nil && c.Status != metav1.ConditionTrue {
		return c.Reason, c.Message
	} else if v.Result != v1alpha1.CheckPass {
		return v1alpha1.ReasonChecksWaiting, "a check does not pass: " + p.waitingCheck()
	}
	return v1alpha1.ReasonSettling, "every check passes; the gate is lifted when that lasted for validation.settle"
}
