package lifecycle

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/event"
)

// Decision says what to do about a Machine now.
type Decision struct {
	// Action is the side effect to try before the status is written. It is nil when there is none.
	Action *Action
	// Status is the next status of the Machine. The verdict and the condition Validated in it are unchanged: the validation
	// controller writes those.
	Status v1alpha1.MachineStatus
	// Events are to be emitted after the status is written.
	Events []event.Event
	// Requeue means to plan again at once.
	Requeue bool
	// RequeueAfter is when to plan again although nothing is observed to change. 0 means that only a change leads to another plan.
	RequeueAfter time.Duration
}

// ActionKind names a side effect.
type ActionKind string

// The side effects of a Machine's life. There are no others.
const (
	// AddFinalizer adds the finalizer, which keeps the Machine until its host is returned.
	AddFinalizer ActionKind = "AddFinalizer"
	// ClaimHost sets the host's consumerRef to this Machine.
	ClaimHost ActionKind = "ClaimHost"
	// WriteHostRecord sets HostRecord.spec to Action.Record.
	WriteHostRecord ActionKind = "WriteHostRecord"
	// CreateToken creates the bootstrap token. With Action.TokenID it creates the token again that the claim Secret has.
	CreateToken ActionKind = "CreateToken"
	// RenewToken changes the expiry of the token to Action.Expires.
	RenewToken ActionKind = "RenewToken"
	// DeleteToken deletes the bootstrap token.
	DeleteToken ActionKind = "DeleteToken"
	// WriteClaimSecret renders the node's documents, token included, into the claim Secret.
	WriteClaimSecret ActionKind = "WriteClaimSecret"
	// RecordSecretAttempt writes onto the host that the present attempt may have a claim Secret.
	RecordSecretAttempt ActionKind = "RecordSecretAttempt"
	// RequestInstall sets the host's image, user data, network data, meta data and online.
	RequestInstall ActionKind = "RequestInstall"
	// RecordInstallation writes Action.Installation into the host's annotation ingot.dev/installation.
	RecordInstallation ActionKind = "RecordInstallation"
	// ScrubSecret replaces the claim Secret's user data by one without the token.
	ScrubSecret ActionKind = "ScrubSecret"
	// SyncNodeMetadata sets the NodeType's labels and taints on the Node.
	SyncNodeMetadata ActionKind = "SyncNodeMetadata"
	// Cordon makes the Node unschedulable, and marks it with v1alpha1.AnnotationCordoned.
	Cordon ActionKind = "Cordon"
	// Uncordon makes the Node schedulable and removes that annotation.
	Uncordon ActionKind = "Uncordon"
	// Evict requests the eviction of every pod of Node.Pods once.
	Evict ActionKind = "Evict"
	// PowerOff sets the host's online to false.
	PowerOff ActionKind = "PowerOff"
	// PowerOn sets the host's online to true, with the image that it has.
	PowerOn ActionKind = "PowerOn"
	// DeleteNode deletes the Node whose uid is Action.NodeUID.
	DeleteNode ActionKind = "DeleteNode"
	// Deprovision removes image, user data, network data and meta data from the host, and sets online to false.
	Deprovision ActionKind = "Deprovision"
	// ClearHostRecord sets HostRecord.spec to Action.Record, which has nothing but Nodes that may remain.
	ClearHostRecord ActionKind = "ClearHostRecord"
	// DeleteClaimSecret deletes the claim Secret.
	DeleteClaimSecret ActionKind = "DeleteClaimSecret"
	// ReturnHost removes the host's consumerRef.
	ReturnHost ActionKind = "ReturnHost"
	// RemoveFinalizer removes the finalizer, so that the Machine is deleted.
	RemoveFinalizer ActionKind = "RemoveFinalizer"
)

// Action is one side effect. Those on a host apply to Facts.Host, under its resource version.
type Action struct {
	Kind ActionKind
	// Record is for WriteHostRecord and ClearHostRecord.
	Record v1alpha1.HostRecordSpec
	// ClusterUID is for RecordInstallation: the cluster that the Node has joined, where the annotations of a metal3 host are to say it.
	ClusterUID types.UID
	// Installation is for RequestInstall and RecordInstallation.
	Installation *v1alpha1.Installation
	// HostAttempt is for WriteClaimSecret: the number of the installation in the HostRecord. It is 0 for a host without one.
	HostAttempt int64
	// TokenID is for CreateToken (may be empty), RenewToken, DeleteToken and WriteClaimSecret.
	TokenID string
	// Expires is for CreateToken and RenewToken.
	Expires time.Time
	// RemainingNode is for ReturnHost: the Node that may be left, where there is no HostRecord to name it. It is nil otherwise.
	RemainingNode *v1alpha1.ReleasedNode
	// NodeUID is for SyncNodeMetadata, Cordon, Uncordon, Evict and DeleteNode.
	NodeUID types.UID
}

// maxTimeline is the number of phase entries that the status keeps.
const maxTimeline = 32

// planner makes one Decision.
type planner struct {
	scope
	d Decision
	// reason and message are those of the condition Ready when it becomes False.
	reason, message string
}

// Plan decides the next step of the Machine's life.
func Plan(f Facts) Decision { return plan(f, realGuards()) }

func plan(f Facts, g guards) Decision {
	f.findOwner, f.isPowerCurrent = g.findOwner, g.isPowerCurrent
	p := &planner{scope: scope{Facts: f, guards: g}, d: Decision{Status: *f.Machine.Status.DeepCopy()}}
	p.d.Status.ObservedGeneration = f.Machine.Generation
	if f.Machine.Status.Phase == "" {
		p.enterPhase(v1alpha1.MachinePending)
		p.Machine.Status = *p.d.Status.DeepCopy()
	}
	switch e := p.nextEdge(); {
	case phases[p.Machine.Status.Phase] == nil:
		return p.refuseNewerShape()
	case e == nil:
		p.applyResult(runSteps(phases[p.Machine.Status.Phase], p.scope))
	case e.to == gone:
		p.applyResult(runSteps(phases[gone], p.scope))
	default:
		p.followEdge(e)
		// The status that enters a phase also reports what that phase waits for. Its actions begin after that status is written.
		p.Machine.Status, p.entering = *p.d.Status.DeepCopy(), true
		p.applyResult(runSteps(phases[p.Machine.Status.Phase], p.scope))
		p.d.Action, p.d.Requeue, p.d.RequeueAfter = nil, true, 0
	}
	p.finishStatus(f.Machine.Status)
	if p.d.Action != nil && p.d.Requeue && f.Machine.Status.Phase == p.d.Status.Phase && !f.isOverdue() {
		// The action takes a moment only, so the status is not written just to report it.
		p.d.Status, p.d.Events = *f.Machine.Status.DeepCopy(), nil
	}
	return p.d
}

// nextEdge returns the first edge of the phase whose condition holds, or nil.
func (s scope) nextEdge() *edge {
	for i := range edges {
		if e := &edges[i]; e.from == s.Machine.Status.Phase && e.holds(s) {
			return e
		}
	}
	return nil
}

func (p *planner) followEdge(e *edge) {
	p.enterPhase(e.to)
	if e.enter != nil {
		e.enter(p)
	}
}

// applyResult writes the result of the steps into the Decision.
func (p *planner) applyResult(r result) {
	p.d.Action, p.d.Requeue = r.action, r.requeue
	if r.requeueAfter > 0 {
		p.requeueAfter(r.requeueAfter)
	}
	switch {
	case r.progress == nil:
	case *r.progress == v1alpha1.Progress{}:
		p.d.Status.Progress = nil
	default:
		p.d.Status.Progress = r.progress.DeepCopy()
	}
	if r.isFinal() {
		p.applyReport(r.report)
	}
	now := metav1.NewMicroTime(p.Now)
	switch r.timestamp {
	case powerOffRequested:
		p.d.Status.PowerOffRequestedAt = &now
	case powerOffBegun:
		p.d.Status.PowerOff = &v1alpha1.MachinePowerOff{RequestedAt: metav1.NewMicroTime(p.phaseStart())}
	case powerOffConfirmed:
		p.recordConfirmation()
	case nodeRemainsReported:
		p.d.Status.NodeRemainsReportedAt = &now
		p.addEvent(true, r.report.reason, r.report.message)
	}
}

func (p *planner) enterPhase(phase v1alpha1.MachinePhase) {
	s := &p.d.Status
	s.Phase, s.Deadline, s.WaitingFor, s.Progress = phase, nil, "", nil
	if phase != v1alpha1.MachineReleasing {
		s.PowerOffRequestedAt = nil // a release continues a power-off that a roll has requested
	}
	now := metav1.NewMicroTime(p.Now)
	if limit := p.Timeouts.ofPhase(phase); limit > 0 {
		deadline := metav1.NewMicroTime(p.Now.Add(limit))
		s.Deadline = &deadline
	}
	s.Timeline = append(s.Timeline, v1alpha1.PhaseEntry{Phase: phase, At: now})
	if extra := len(s.Timeline) - maxTimeline; extra > 0 {
		s.Timeline = s.Timeline[extra:]
	}
}

// requeueAfter has the Machine planned again after the duration at the latest, and not before a second has passed.
func (p *planner) requeueAfter(d time.Duration) {
	if p.d.RequeueAfter == 0 || d < p.d.RequeueAfter {
		p.d.RequeueAfter = max(d, time.Second)
	}
}

func (p *planner) addEvent(warning bool, reason, message string) {
	// The action is the phase that the decision ends in; finishStatus sets it.
	p.d.Events = append(p.d.Events, event.New(warning, reason, "", message))
}

func (p *planner) enterPending() { p.d.Status.HostRef = nil }

func (p *planner) enterClaiming() {
	host := p.Placement.Host
	if p.Host != nil {
		host.Namespace, host.Name = p.Host.Namespace, p.Host.Name
	}
	p.d.Status.HostRef = &v1alpha1.NamespacedReference{Namespace: host.Namespace, Name: host.Name}
}

func (p *planner) enterProvisioning() {
	p.d.Status.Revision, p.d.Status.Rendering, p.d.Status.Attempt = p.Revision.Name, p.Revision.Rendering, p.d.Status.Attempt+1
	p.d.Status.ProviderID = p.providerIDSource()
	p.addEvent(false, v1alpha1.ReasonClaimed, "claimed host "+p.hostName())
}

func (p *planner) enterDraining() {
	if p.Machine.Spec.PowerOff {
		p.addEvent(false, v1alpha1.ReasonEvicting, "spec.powerOff is set: its node is being emptied, and then its server is powered off")
		return
	}
	before, after := p.d.Status.Installed(), p.NextRevision.rendered()
	p.addEvent(false, v1alpha1.ReasonEvicting, fmt.Sprintf("is rolled from %s to %s: its node is being emptied", revisionOrRendering(before, after), revisionOrRendering(after, before)))
}

// revisionOrRendering returns the part of r that distinguishes it from other: the revision or, where both have the same revision, the
// rendering.
func revisionOrRendering(r, other v1alpha1.RenderedRevision) string {
	if r.Revision == other.Revision && r.Rendering != other.Rendering {
		return "rendering " + r.Rendering
	}
	return "revision " + r.Revision
}

// enterNextAttempt begins the installation after a drain. The revision is the same one again when the roll was cancelled too late.
func (p *planner) enterNextAttempt() {
	p.Revision, p.NextRevision = p.revisionToInstall(), Revision{}
	s := &p.d.Status
	s.Revision, s.Rendering, s.Attempt, s.NodeRef, s.SystemUUID, s.PowerOff = p.Revision.Name, p.Revision.Rendering, s.Attempt+1, nil, "", nil
	s.ProviderID = p.providerIDSource()
	p.setCondition(v1alpha1.ConditionJoined, metav1.ConditionFalse, v1alpha1.ReasonWaitingForNode, fmt.Sprintf("attempt %d is being installed", s.Attempt))
	p.addEvent(false, v1alpha1.ReasonProvisioning, fmt.Sprintf("host %s is powered off and is installed again, with revision %s as attempt %d", p.hostName(), s.Revision, s.Attempt))
}

// providerIDSource returns who sets the providerID of the Node of a new attempt; empty: Ingot.
func (p *planner) providerIDSource() v1alpha1.ProviderIDSource {
	if p.Tenant.ProviderID == v1alpha1.ProviderIDByCluster {
		return v1alpha1.ProviderIDByCluster
	}
	return ""
}

func (p *planner) enterJoining() {
	if id := p.Host.systemUUID(); id != "" {
		p.d.Status.SystemUUID = id
	}
	p.addEvent(false, v1alpha1.ReasonProvisioned, "the image of revision "+p.d.Status.Revision+" is on the disk of "+p.hostName())
}

func (p *planner) enterValidating() {
	switch s := p.Machine.Status; {
	case s.Phase == v1alpha1.MachineReady:
		if reason, message := p.verdictProblem(); !p.isPublishedByValidation(reason) {
			p.addEvent(true, reason, message)
		}
	case p.hasPowerOffRecord():
		p.addEvent(false, v1alpha1.ReasonChecksWaiting, "spec.powerOff is cleared: host "+p.hostName()+" is being powered on")
		p.confirmPowerOff()
		p.extendDeadline(p.Timeouts.Joining)
	case s.Phase == v1alpha1.MachineDraining:
		p.addEvent(false, v1alpha1.ReasonUpToDate, "the drain was called off; revision "+p.d.Status.Revision+" stays")
	default:
		p.addEvent(false, v1alpha1.ReasonJoined, "Node "+p.Machine.Name+" joined")
	}
}

func (p *planner) enterReady() {
	p.d.Status.PowerOff = nil
	p.addEvent(false, v1alpha1.ReasonReady, "the verdict passes; the gate is lifted")
}
