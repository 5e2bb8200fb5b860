package lifecycle

import (
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// gone is the phase after the last one: the finalizer is removed.
const gone v1alpha1.MachinePhase = "gone"

// edge is a transition from one phase to another.
type edge struct {
	from, to v1alpha1.MachinePhase
	// when describes the condition in words.
	when string
	// holds is the condition.
	holds func(scope) bool
	// enter writes into the status what the new phase depends on. It is nil when there is nothing beyond the phase.
	enter func(*planner)
}

// edges are the transitions of a Machine. The first edge of a phase whose condition holds is followed.
var edges = edgeTable()

func edgeTable() []edge {
	releasing := func(from v1alpha1.MachinePhase) edge {
		return edge{from, v1alpha1.MachineReleasing, "deleted", scope.isDeleted, nil}
	}
	rolling := func(from v1alpha1.MachinePhase) edge {
		return edge{from, v1alpha1.MachineDraining, "another revision is wanted and can be installed", scope.mustRoll, (*planner).enterDraining}
	}
	poweringOff := func(from v1alpha1.MachinePhase) edge {
		return edge{from, v1alpha1.MachineDraining, "spec.powerOff is set", scope.mustPowerOff, (*planner).enterDraining}
	}
	const (
		pending, claiming, provisioning = v1alpha1.MachinePending, v1alpha1.MachineClaiming, v1alpha1.MachineProvisioning
		joining, validating             = v1alpha1.MachineJoining, v1alpha1.MachineValidating
		ready, draining                 = v1alpha1.MachineReady, v1alpha1.MachineDraining
	)
	return []edge{
		releasing(pending),
		{pending, claiming, "all it refers to is ready, and placement chose a host", scope.canClaim, (*planner).enterClaiming},
		releasing(claiming),
		{claiming, provisioning, "the host's consumerRef is this Machine, and its revision has a rendering", scope.canBeginInstallation, (*planner).enterProvisioning},
		{claiming, pending, "the host is another's, gone or no longer fit", scope.hasLostClaim, (*planner).enterPending},
		releasing(provisioning),
		poweringOff(provisioning),
		rolling(provisioning),
		{provisioning, joining, "this attempt's image is on the disk", scope.canJoin, (*planner).enterJoining},
		releasing(joining),
		poweringOff(joining),
		rolling(joining),
		{joining, validating, "this attempt's Node exists", scope.hasJoined, (*planner).enterValidating},
		releasing(validating),
		poweringOff(validating),
		rolling(validating),
		{validating, ready, "the verdict passes for this Node, boot and revision, and the gate is lifted", scope.isReady, (*planner).enterReady},
		releasing(ready),
		poweringOff(ready),
		rolling(ready),
		{ready, validating, "the verdict no longer passes", scope.mustValidateAgain, (*planner).enterValidating},
		releasing(draining),
		{draining, provisioning, "evicted, power-off confirmed, Node and documents deleted, and the next revision has a rendering", scope.canReinstall, (*planner).enterNextAttempt},
		{draining, validating, "the roll or the power-off was called off before the power-off was begun, and the Node is uncordoned", scope.canCancelRoll, (*planner).enterValidating},
		{draining, validating, "spec.powerOff was cleared, and no roll can begin", scope.canPowerOn, (*planner).enterValidating},
		{v1alpha1.MachineReleasing, gone, "no host is this Machine's, and its token is gone", scope.isReleased, nil},
	}
}

// phases lists the steps of each phase. They run while none of the phase's edges holds, in this order, up to the first that has
// something to do or to wait for. The goal of a step says what is true when it has nothing to do.
var phases = map[v1alpha1.MachinePhase][]step{
	v1alpha1.MachinePending: {
		newStep("the Machine has the finalizer", scope.planFinalizer),
		newStep("everything that it refers to can be used", scope.waitForReferences),
		newStep("placement has chosen a host, and the NodeQuota of its namespace, if there is one, has a place for it", scope.waitForPlacement),
	},
	v1alpha1.MachineClaiming: {
		newStep("everything that it refers to can be used", scope.waitForReferences),
		newStep("the host's consumerRef is this Machine", scope.planHostClaim),
		newStep("its revision has a rendering", scope.waitForRendering),
	},
	v1alpha1.MachineProvisioning: {
		newStep("the host is this Machine's", scope.reportLostHost),
		newStep("the host reports no problem", scope.waitForHealthyHost),
		newStep("the revision whose image is on the disk can be rendered", scope.waitForRevision),
		newStep("the revision suits the tenant's cluster, or is requested already", scope.waitForTenantSupport),
		newStep("the HostRecord has this attempt", scope.planHostRecord),
		newStep("the bootstrap token is valid while an agent needs it, and deleted otherwise", scope.planInstallToken),
		newStep("the claim Secret has this attempt's documents when an agent needs them", scope.planInstallSecret),
		newStep("the host is requested to install the image", scope.planInstallRequest),
		newStep("the image is on the disk", scope.waitForInstallation),
	},
	v1alpha1.MachineJoining: {
		newStep("the host is this Machine's", scope.reportLostHost),
		newStep("the host says what is installed on it", scope.planInstallationRecord),
		newStep("the tenant's API server answers", scope.waitForTenantBeforeJoin),
		newStep("no Node of an earlier attempt exists", scope.planEarlierNodeDeletion),
		newStep("the bootstrap token is valid, or deleted when the phase is late", scope.planJoinToken),
		newStep("the Node has registered", scope.waitForNode),
	},
	v1alpha1.MachineValidating: append(joinedNodeSteps(),
		newStep("the verdict passes", scope.waitForVerdict)),
	v1alpha1.MachineReady: joinedNodeSteps(),
	v1alpha1.MachineDraining: append([]step{
		newStep("the host is this Machine's", scope.reportLostHost),
		stepsIf("the power-off is not begun", scope.isBeforePowerOff,
			newStep("no bootstrap token is left", scope.planTokenDeletionBeforeFence),
			newStep("the Node of a drain that was called off is uncordoned", scope.planUncordonAfterCancelledRoll),
			newStep("the wanted revision suits the tenant's cluster", scope.waitForNextRevision)),
		newStep("no other host is the same server", scope.waitForOneHost),
		newStep("a host without a HostRecord may be powered off", scope.waitWhileNeverPoweredOff),
		stepsIf("spec.powerOff asks for the server to be off", scope.isPowerOffWanted, powerOffSteps()...)},
		append(fenceSteps(),
			newStep("spec.powerOff is cleared", scope.waitWhilePoweredOff),
			newStep("the host can take another image", scope.planDeprovisionForNextImage),
			newStep("no claim Secret of the attempt is left, where each attempt has its own", scope.planEarlierSecretDeletion),
			newStep("the next revision has a rendering", scope.waitForRendering))...),
	v1alpha1.MachineReleasing: {
		newStep("no bootstrap token is left", scope.planTokenDeletionBeforeFence),
		stepsIf("the host is this Machine's", scope.hasHost,
			newStep("no other host is the same server", scope.waitForOneHost),
			newStep("a host without a HostRecord may be powered off", scope.waitWhileNeverPoweredOff),
			stepsIf("the installed system may run", scope.canBeRunning, fenceSteps()...),
			newStep("the HostRecord says which Node may remain", scope.planRemainingNodeRecord),
			newStep("the host has no image", scope.planDeprovision),
			newStep("a host without a HostRecord stays requested to be off", scope.planOfflineAgain),
			newStep("the host is erased and available", scope.waitForErase),
			newStep("no Node that registered meanwhile exists", scope.planLateNodeDeletion),
			newStep("the HostRecord is empty", scope.planHostRecordRemoval),
			newStep("the claim Secret is deleted", scope.planClaimSecretDeletion),
			newStep("the host has no consumerRef", scope.planHostReturn)),
		newStep("the tenant's API server answers, or had its time", scope.waitForTenantAfterReturn),
	},
	gone: {
		newStep("it is reported that a Node may remain", scope.planRemainingNodeReport),
		newStep("the finalizer is removed", scope.planFinalizerRemoval),
	},
}

// joinedNodeSteps are the steps with a Node that has joined. They remove what only the join needed, and give the Node the labels and
// taints of its NodeType.
func joinedNodeSteps() []step {
	return []step{
		newStep("the host is this Machine's", scope.reportLostHost),
		newStep("the host is requested to be on after a power-off", scope.planPowerOn),
		newStep("the tenant's API server is checked again while it does not answer", scope.planTenantRecheck),
		stepsIf("the tenant's API server answers", scope.isTenantReachable,
			newStep("no bootstrap token is left", scope.planTokenDeletionAfterJoin),
			newStep("the claim Secret has no token", scope.planSecretScrub),
			newStep("the HostRecord, or a metal3 host, says which cluster the Node has joined", scope.planClusterRecord),
			newStep("the Node has no cordon of Ingot's", scope.planUncordon),
			newStep("the Node has its NodeType's labels and taints", scope.planNodeMetadata)),
		newStep("the host says what is installed on it", scope.planInstallationRecord),
	}
}

// fenceSteps are the steps that stop the machine and delete its Node. A disk may be written or erased only after them.
func fenceSteps() []step {
	return append(emptyingSteps(),
		newStep("the status says that the power-off is begun", scope.planPowerOffTimestamp),
		newStep("the host is requested to power off", scope.planPowerOff),
		newStep("the BMC has confirmed the power-off", scope.waitForPowerOff),
		newStep("the Node is deleted", scope.planNodeDeletion),
	)
}

// powerOffSteps are the steps that spec.powerOff asks for. They keep the Node, because nothing touches the disk.
func powerOffSteps() []step {
	return append(emptyingSteps(),
		newStep("the status says that this power-off is begun", scope.planPowerOffRecord),
		newStep("the host is requested to power off", scope.planPowerOff),
		newStep("the BMC has confirmed the power-off", scope.waitForPowerOff),
		newStep("the status says that it is confirmed", scope.planPowerOffConfirmation),
		newStep("spec.powerOff is cleared", scope.waitWhilePoweredOff),
	)
}

// emptyingSteps are the steps that empty the Node before a power-off.
func emptyingSteps() []step {
	return []step{
		stepsIf("the pods have time to leave", scope.CanEvict,
			newStep("the tenant's API server answers", scope.waitForTenant),
			newStep("the Node is cordoned", scope.planCordon),
			newStep("the Node's pods have left", scope.planEviction)),
		newStep("the Node's pods were listed in this phase", scope.waitForPodList),
	}
}

// step is one thing that a phase does or waits for, or a group of steps.
type step struct {
	// goal says in words what is true when the step has nothing to do. For a group it says what is true while its steps run.
	goal string
	// run is nil for a group.
	run func(scope) result
	// applies and group are nil for a single step.
	applies func(scope) bool
	group   []step
}

// newStep returns a single step.
func newStep(words string, run func(scope) result) step { return step{goal: words, run: run} }

// stepsIf returns a group of steps that run only while the condition holds. The group is no loop: it runs once in each plan.
func stepsIf(condition string, applies func(scope) bool, group ...step) step {
	return step{goal: condition, applies: applies, group: group}
}

// result is what a step returns: done, a waitResult, a timestampResult or an actionResult. The planner applies it to the Decision.
type result struct {
	// action is the Action to try. It is nil when there is none.
	action *Action
	// report is what the status says. The first report ends the list of steps; without one the following step runs.
	report report
	// timestamp is the status field to write. It is empty when there is none.
	timestamp timestamp
	// progress is the progress of the installation in the status. nil leaves it as it was, and the zero value removes it.
	progress *v1alpha1.Progress
	// requeueAfter is when to plan again although nothing is observed to change. 0 means that only a change leads to another plan.
	requeueAfter time.Duration
	// requeue means to plan again as soon as the action is done or, without an action, as soon as the status is written.
	requeue bool
}

// timestamp names a status field that records that something was begun or reported. The next decision depends on the field, and on no
// condition.
type timestamp string

const (
	// powerOffRequested is status.powerOffRequestedAt.
	powerOffRequested timestamp = "powerOffRequestedAt"
	// powerOffBegun is status.powerOff.requestedAt, powerOffConfirmed its confirmedAt.
	powerOffBegun, powerOffConfirmed timestamp = "powerOff.requestedAt", "powerOff.confirmedAt"
	// nodeRemainsReported is status.nodeRemainsReportedAt. Its report becomes an event of type Warning too.
	nodeRemainsReported timestamp = "nodeRemainsReportedAt"
)

// report is what the status says about a Machine that is not Ready.
type report struct {
	// condition is the condition that becomes False. When it is empty, only Ready becomes False.
	condition string
	// reason is the reason of that condition and of Ready.
	reason string
	// waitingFor is status.waitingFor, one short line. When it is empty, the message is used.
	waitingFor string
	message    string
}

// done is the result of a step whose goal is reached.
var done = result{}

// waitResult returns the result of a step that can only wait. It ends the list of steps.
func waitResult(r report) result { return result{report: r} }

// timestampResult returns the result of a step that needs a timestamp in the status before anything follows from it. It ends the list of
// steps, and the next one is planned after the status is written.
func timestampResult(t timestamp, r report) result {
	return result{timestamp: t, report: r, requeue: true}
}

// actionResult returns the result of a step that has an Action to try. With an empty report the following steps run too, to say what the
// Machine waits for; none of their actions is tried.
func actionResult(a Action, r report) result { return result{action: &a, report: r} }

// withRequeueAfter returns the result with a time after which to plan again.
func (r result) withRequeueAfter(after time.Duration) result {
	r.requeueAfter = after
	return r
}

// withRequeue returns the result with the request to plan again at once.
func (r result) withRequeue() result {
	r.requeue = true
	return r
}

// isFinal reports whether the list of steps ends with this result.
func (r result) isFinal() bool { return r.report.reason != "" }

// then combines the results of two steps that follow each other: the first action, the first report, and the earlier time to plan again.
func (r result) then(following result) result {
	if r.isFinal() {
		return r
	}
	both := following
	if r.action != nil {
		both.action, both.requeue, both.timestamp = r.action, r.requeue, ""
	}
	if r.requeueAfter > 0 && (both.requeueAfter == 0 || r.requeueAfter < both.requeueAfter) {
		both.requeueAfter = r.requeueAfter
	}
	return both
}

// runSteps runs the steps in order until the result is final, and returns the combined result.
func runSteps(steps []step, s scope) result {
	r := done
	for _, st := range steps {
		switch {
		case r.isFinal():
			return r
		case st.run != nil:
			r = r.then(st.run(s))
		case st.applies(s):
			r = r.then(runSteps(st.group, s))
		}
	}
	return r
}
