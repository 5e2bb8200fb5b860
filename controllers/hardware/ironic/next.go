package ironic

import (
	"cmp"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// actionKind says which request an attempt needs next.
type actionKind string

// The kinds of actions.
const (
	actionWait    actionKind = "wait"
	actionBegin   actionKind = "begin attempt"   // store the number and the work
	actionPrepare actionKind = "prepare work"    // store what the work needs, then request it
	actionRequest actionKind = "request state"   // request the provision state target
	actionProvide actionKind = "provide"         // reserve the node, store what its installation needs, then request available
	actionManage  actionKind = "manage"          // see to the port, then request manageable
	actionPower   actionKind = "power off"       // request it
	actionRelieve actionKind = "end maintenance" // which Ironic has begun because work has failed
	actionEnd     actionKind = "end attempt"     // store the outcome
	actionProve   actionKind = "read evidence"   // read the single node, and decide again
	actionRefuse  actionKind = "refuse the call" // a person or the caller must act
)

// action is one step of an attempt.
type action struct {
	kind    actionKind
	target  nodes.TargetProvisionState
	outcome hardware.Reason
	err     *hardware.Error
}

// call is what the Installer was asked for.
type call struct {
	host   hardware.Host
	number int64
	// deadline is when the attempt fails; zero: never.
	deadline time.Time
	work     work
	// isLive says that an install is of a live ISO.
	isLive bool
	// evidence is that of the work of the attempt.
	evidence evidence
	now      time.Time
}

// nextAction returns the next step of the attempt. An action that Ironic refuses is decided anew at the next call.
func nextAction(n node, c call) action {
	if refused := cmp.Or(refusalOf(n, c), refusalOfProtection(n, c), refusalOfInterfaces(n, c)); refused != nil {
		return action{kind: actionRefuse, err: refused}
	}
	switch {
	case n.record.number < c.number:
		return beginning(n, c)
	case n.record.hasFailed() || isEnded(n):
		return action{kind: actionWait}
	case isAtGoal(n) && n.reservation != "":
		return action{kind: actionWait} // the conductor lets go of it soon
	case isAtGoal(n) && c.evidence == evidencePresent:
		return action{kind: actionEnd, outcome: outcomeDone}
	case isAtGoal(n) && (c.evidence == evidenceUnread || c.evidence == evidenceToConfirm):
		return action{kind: actionProve}
	default:
		return continuing(n, c)
	}
}

// continuing returns the next step of an attempt that has not ended, and of whose success there is no evidence. What is at rest is requested again.
func continuing(n node, c call) action {
	switch {
	case !c.deadline.IsZero() && !c.now.Before(c.deadline):
		return cancelling(n, hardware.ReasonDeadlineExceeded)
	case n.isBegun() && isAborted(n):
		return action{kind: actionEnd, outcome: hardware.ReasonCancelled}
	case n.maintenance && isFaultOfWork(n):
		return action{kind: actionRelieve}
	case n.maintenance:
		return action{kind: actionWait} // Ironic refuses every work on such a node; the status says why
	case c.work == workEraseNone:
		return releasing(n)
	case n.isBegun() && !isUndecided(n):
		return finishing(n)
	default:
		return preparingAfter(n, c)
	}
}

// refusalOf returns why the node may not be touched for the call. Without it: a host is registered with the MAC address of a node that another system has
// deployed, the node is found by it, and the erase of the new host destroys that system.
func refusalOf(n node, c call) *hardware.Error {
	refuse := func(kind hardware.Kind, format string, args ...any) *hardware.Error {
		err := hardware.Errorf(kind, "begin work", c.host.String(), format, args...)
		err.Reason = hardware.ReasonAttemptConflict
		return err
	}
	switch {
	case n.record.host != "" && !isRecordOf(n, c.host):
		return refuse(hardware.Conflict, "Ironic's node %s is that of the host with the UID %s. When that host is gone: baremetal node unset %s%s --extra %s, and give the node the automated_clean that its extra %s names",
			n.uuid, n.record.host, n.uuid, flagOfReservation(n), extraHost, extraCleaning)
	case isForeign(n):
		return foreignUse(n, c.host)
	case isOfPeople(n.state):
		err := refuse(hardware.Conflict, "Ironic's node %s is in the state %q, in which somebody else works with it: wait until that is done, or bring it back to "+
			"active, manageable or available (baremetal node unrescue, unhold, abort or manage)", n.uuid, n.state)
		err.Reason = hardware.ReasonInstallerConflict
		return err
	case isAbandoned(n, c.now):
		err := refuse(hardware.Conflict, "Ironic's node %s is in the state %q and no conductor works on it: restart Ironic's conductor, which then ends such work", n.uuid, n.state)
		err.Reason = hardware.ReasonInstallerConflict
		return err
	case n.record.number > c.number:
		return refuse(hardware.Conflict, "the node is at attempt %d, the call is for attempt %d", n.record.number, c.number)
	case isOtherWork(n, c):
		return refuse(hardware.Conflict, "attempt %d does %s on the node, the call is for %s", c.number, n.record.work, c.work)
	case c.work == workInspect && n.state == nodes.Active && n.record.number < c.number:
		return hardware.Errorf(hardware.Unsupported, "inspect", c.host.String(), "Ironic inspects no node that is deployed: release the host first")
	}
	return nil
}

// refusalOfProtection returns why the node is not undeployed or rebuilt for the call; nil: it may be. Without it: a node that people have protected is powered off for
// a roll that Ironic refuses then, and is off until somebody finds out why.
func refusalOfProtection(n node, c call) *hardware.Error {
	isOver := !c.deadline.IsZero() && !c.now.Before(c.deadline)
	isUnderWay := n.record.number == c.number && (n.isBegun() || isEnded(n))
	if !n.isProtected || c.work == workInspect || isOver || isUnderWay {
		return nil
	}
	err := hardware.Errorf(hardware.Conflict, "begin work", c.host.String(), "people have protected Ironic's node %s, so that Ironic neither undeploys nor rebuilds it: "+
		"when that may be done: baremetal node unset --protected %s", n.uuid, n.uuid)
	err.Reason = hardware.ReasonInstallerConflict
	return err
}

// isRecordOf reports whether the node carries the record of the host, also of one that it was before it was created again from a backup.
func isRecordOf(n node, host hardware.Host) bool {
	return n.record.host == host.UID || n.record.host != "" && slices.Contains(host.FormerUIDs, n.record.host)
}

// isOfPeople reports whether a node is in a state to which nobody but people leads it: any to which no work of ours does, such as rescue, service, hold and adopt.
// Without it: a node is in one of them, or in one that a later Ironic has, and its host waits for hours without a word.
func isOfPeople(state nodes.ProvisionState) bool {
	switch state {
	case nodes.Verifying, nodes.Deploying, nodes.DeployWait, nodes.Cleaning, nodes.CleanWait, nodes.Inspecting, nodes.InspectWait, nodes.Deleting:
		return false
	default:
		return !isAtRest(state)
	}
}

// abandonedAfter is how long a node is in a state of a conductor's work that no conductor has locked, until the work counts as abandoned.
const abandonedAfter = 5 * time.Minute

// isAbandoned reports whether the work of a conductor on the node is nobody's. At its start Ironic ends what the process before had under way, but of each state only as many nodes
// as [conductor]periodic_max_workers says, 8 by default. Nothing that its API offers leads out of such a state.
func isAbandoned(n node, now time.Time) bool {
	switch n.state {
	case nodes.Verifying, nodes.Deploying, nodes.Cleaning, nodes.Deleting, nodes.Inspecting:
		changed, err := time.Parse(time.RFC3339Nano, n.changed)
		return err == nil && n.reservation == "" && now.Sub(changed) > abandonedAfter
	default:
		return false
	}
}

// isOtherWork reports whether the call is for the attempt of the node, and for other work.
func isOtherWork(n node, c call) bool {
	return n.record.number == c.number && c.work != "" && n.record.work != "" && n.record.work != c.work && n.record.outcome == ""
}

func isEnded(n node) bool {
	status := statusOf(n)
	return status == nil || status.State != hardware.AttemptRunning
}

// beginning stores a new attempt, after the work of an earlier one has ended. Of a node to install, one change stores the attempt and what it needs, before it is made
// available.
func beginning(n node, c call) action {
	if c.work == workInstall && n.state == nodes.Manageable && !n.maintenance {
		return fromManageable(c.work)
	}
	if isAtRest(n.state) {
		return action{kind: actionBegin}
	}
	if next := cancelling(n, hardware.ReasonCancelled); next.kind == actionRequest {
		return next
	}
	return action{kind: actionWait}
}

// isAtRest reports whether Ironic does nothing with the node, so that it may be patched and asked for another state.
func isAtRest(state nodes.ProvisionState) bool {
	switch state {
	case nodes.Enroll, nodes.Manageable, nodes.Available, nodes.Active, nodes.DeployFail, nodes.CleanFail, nodes.InspectFail, nodes.Error:
		return true
	default:
		return false
	}
}

// cancelling ends the work of the node, and then stores the outcome. Only the waits for the agent can be ended: what a conductor is doing goes on.
func cancelling(n node, outcome hardware.Reason) action {
	switch {
	case n.state == nodes.DeployWait:
		return action{kind: actionRequest, target: nodes.TargetDeleted}
	case n.state == nodes.CleanWait || n.state == nodes.InspectWait:
		return action{kind: actionRequest, target: nodes.TargetAbort}
	case isAtRest(n.state):
		return action{kind: actionEnd, outcome: outcome}
	default:
		return action{kind: actionWait}
	}
}

// releasing undeploys the node and powers it off, which is all that an erase of nothing does.
func releasing(n node) action {
	switch n.state {
	case nodes.Active, nodes.DeployFail, nodes.Error:
		return action{kind: actionRequest, target: nodes.TargetDeleted}
	case nodes.CleanFail, nodes.InspectFail:
		return action{kind: actionManage}
	}
	switch {
	case isFree(n.state) && n.targetPower == "" && powerOf(n) != hardware.PowerOff:
		return action{kind: actionPower}
	case n.state == nodes.Available:
		return action{kind: actionRequest, target: nodes.TargetManage} // others may schedule a node that is available
	default:
		return action{kind: actionWait}
	}
}

// finishing is what follows work that has not ended by its state alone: an erase ends with the power off.
func finishing(n node) action {
	if n.record.work.isErase() && n.state == nodes.Manageable && n.targetPower == "" && powerOf(n) != hardware.PowerOff {
		return action{kind: actionPower}
	}
	return action{kind: actionWait}
}

// preparing leads the node to a state from which the work can be requested, and then prepares it.
func preparing(n node, w work) action {
	switch n.state {
	case nodes.Enroll, nodes.CleanFail:
		return action{kind: actionManage}
	case nodes.InspectFail:
		if w == workInspect {
			return action{kind: actionPrepare, target: nodes.TargetInspect}
		}
		return action{kind: actionManage}
	case nodes.Error:
		return action{kind: actionRequest, target: nodes.TargetDeleted}
	case nodes.Manageable:
		return fromManageable(w)
	case nodes.Available:
		if w == workInstall {
			return action{kind: actionPrepare, target: nodes.TargetActive}
		}
		return action{kind: actionRequest, target: nodes.TargetManage}
	case nodes.DeployFail:
		if w == workInstall {
			return action{kind: actionPrepare, target: nodes.TargetActive}
		}
		return action{kind: actionRequest, target: nodes.TargetDeleted}
	case nodes.Active:
		return fromActive(n, w)
	default:
		return action{kind: actionWait}
	}
}

func fromManageable(w work) action {
	switch w {
	case workInstall:
		return action{kind: actionProvide}
	case workInspect:
		return action{kind: actionPrepare, target: nodes.TargetInspect}
	default:
		return action{kind: actionPrepare, target: nodes.TargetClean}
	}
}

// fromActive installs in place. The power is confirmed off before: Ironic would also cut it, but a server whose BMC ignores that runs the old system while its
// disk is written.
func fromActive(n node, w work) action {
	switch {
	case w != workInstall:
		return action{kind: actionRequest, target: nodes.TargetDeleted}
	case n.targetPower != "":
		return action{kind: actionWait}
	case powerOf(n) != hardware.PowerOff:
		return action{kind: actionPower}
	default:
		return action{kind: actionPrepare, target: nodes.TargetRebuild}
	}
}

// nextCancel returns the next step of a Cancel of the attempt.
func nextCancel(n node, c call) action {
	if refused := refusalOf(n, c); refused != nil {
		return action{kind: actionRefuse, err: refused}
	}
	running := n.record.number < c.number || !isEnded(n)
	switch {
	case running:
		return cancelling(n, hardware.ReasonCancelled)
	case !isAtRest(n.state) || n.targetPower != "" || n.record.work == workInspect || powerOf(n) == hardware.PowerOff:
		return action{kind: actionWait}
	default:
		return action{kind: actionPower}
	}
}
