package lifecycle

import (
	"fmt"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// JoinGracePeriod is how long after the join checks that still wait are not reported: kubelet and the device plugins start one after the
// other.
const JoinGracePeriod = 10 * time.Second

func (s scope) waitForTenantBeforeJoin() result {
	if s.Tenant.Reachable {
		return done
	}
	return waitResult(report{condition: v1alpha1.ConditionJoined, reason: v1alpha1.ReasonWaitingForTenant, message: tenantProblem(s.Facts)}).withRequeueAfter(time.Minute)
}

// planEarlierNodeDeletion deletes the Node of an earlier attempt, whose system may have booted again while this attempt failed at first.
// By now its disk is overwritten, so that no system runs as that Node.
func (s scope) planEarlierNodeDeletion() result {
	if !s.hasEarlierNode() {
		return done
	}
	if s.Node.Undeletable != "" {
		return waitResult(report{
			condition: v1alpha1.ConditionJoined, reason: v1alpha1.ReasonWaitingForNode, waitingFor: "the tenant's cluster to remove the Node of an earlier attempt",
			message: "Node " + s.Machine.Name + " of an earlier attempt is not removed: " + s.Node.Undeletable,
		}).withRequeueAfter(hostCheckInterval)
	}
	return actionResult(Action{Kind: DeleteNode, NodeUID: s.Node.UID}, report{
		condition: v1alpha1.ConditionJoined, reason: v1alpha1.ReasonWaitingForNode,
		message: "Node " + s.Machine.Name + " of an earlier attempt is being deleted",
	}).withRequeue()
}

func (s scope) waitForNode() result {
	rest := s.powerOnRest()
	if s.isServerOff() && rest <= 0 {
		return waitResult(report{v1alpha1.ConditionJoined, v1alpha1.ReasonServerOff, "the server to be on", s.serverOffMessage()})
	}
	if s.Node.Found {
		reason, message := s.nodeProblem()
		return waitResult(report{condition: v1alpha1.ConditionJoined, reason: reason, message: message}).withRequeueAfter(time.Minute)
	}
	message := fmt.Sprintf("Node %s has not registered: look at the console of %s, and there at journalctl%s", s.Machine.Name, s.hostName(), joinLogs(s.Tenant.Join))
	if s.isOverdue() {
		message += "; its bootstrap token is deleted, so a kubelet without a certificate can join no more: delete this Machine for another try"
	}
	reason := v1alpha1.ReasonWaitingForNode
	if problem, text := s.hostProblem(); problem != "" {
		// The server may be off, and its BMC is what would have to power it on.
		reason, message = problem, text+"; "+message
	}
	return waitResult(report{v1alpha1.ConditionJoined, reason, "Node " + s.Machine.Name, message}).withRequeueAfter(rest)
}

// joinLogs returns the flags of journalctl for the units of a join.
func joinLogs(method v1alpha1.JoinMethod) string {
	switch {
	case method == v1alpha1.JoinScript:
		return " -u ingot-join-script, where the script of the TenantCluster runs, and -u cloud-final"
	case method.IsKubeadm():
		return " -u ingot-kubeadm-join, -u kubelet and -u cloud-final"
	}
	return " -u kubelet and -u cloud-final"
}

func (s scope) isTenantReachable() bool { return s.Tenant.Reachable }

// planTenantRecheck has the Machine planned again while the tenant's API server does not answer. It reports nothing, because the verdict
// reports that the API server does not answer.
func (s scope) planTenantRecheck() result {
	if s.Tenant.Reachable {
		return done
	}
	return done.withRequeueAfter(recheckInterval)
}

func (s scope) planSecretScrub() result {
	if !s.Secret.Found || s.Secret.TokenID == "" || s.Revision.Problem != "" {
		return done
	}
	return actionResult(Action{Kind: ScrubSecret}, report{}).withRequeue()
}

// planUncordon removes a cordon that arrived after its roll was cancelled. Without it: the Machine is Draining and the request to cordon its
// Node is slow; the roll is cancelled, the Node is not cordoned yet, and the Machine goes back to Validating; then the request arrives. The
// Machine becomes Ready, and its Node never takes a pod again. After a power-off that spec.powerOff asked for, the cordon stays until the
// verdict about the new boot passes.
func (s scope) planUncordon() result {
	if !s.hasNodeOfThisAttempt() || !s.Node.CordonedByIngot || s.Machine.Status.PowerOff != nil && !s.hasCurrentVerdict() {
		return done
	}
	return actionResult(Action{Kind: Uncordon, NodeUID: s.Node.UID}, report{}).withRequeue()
}

// waitForVerdict reports the check that the Machine waits for.
func (s scope) waitForVerdict() result {
	reason, message := s.verdictProblem()
	switch left := s.joinGraceLeft(); {
	case s.isServerOff():
		return waitResult(report{reason: reason, waitingFor: "the server to be on", message: message})
	case !s.hasNodeOfThisAttempt():
		return waitResult(report{v1alpha1.ConditionJoined, reason, s.decidingCheck(), message})
	case left > 0 && s.hasHost():
		return waitResult(report{
			reason: v1alpha1.ReasonChecksWaiting, waitingFor: "the first checks", message: "Node " + s.Machine.Name + " has joined and is being checked",
		}).withRequeueAfter(left)
	case s.Machine.Status.PowerOff != nil:
		return waitResult(report{reason: reason, waitingFor: s.decidingCheck(), message: message}).withRequeueAfter(kubeletSilence)
	default:
		return waitResult(report{reason: reason, waitingFor: s.decidingCheck(), message: message})
	}
}

// joinGraceLeft returns how much of JoinGracePeriod is left. It is 0 when a check has failed, which is reported at once.
func (s scope) joinGraceLeft() time.Duration {
	m := s.Machine.Status
	at := len(m.Timeline) - 1
	if at < 1 || m.Timeline[at-1].Phase != v1alpha1.MachineJoining || m.Verdict != nil && m.Verdict.Result == v1alpha1.CheckFail {
		return 0
	}
	return m.Timeline[at].At.Add(JoinGracePeriod).Sub(s.Now)
}
