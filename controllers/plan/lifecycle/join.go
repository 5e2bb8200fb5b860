package lifecycle

import (
	"fmt"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// FirstChecks is how long what a new Node lacks is not worth telling: kubelet and device plugins come up one after the other.
const FirstChecks = 10 * time.Second

func (s situation) awaitTenantToJoin() result {
	if s.Tenant.Reachable {
		return next
	}
	return wait(notice{condition: v1alpha1.ConditionJoined, reason: v1alpha1.ReasonWaitingForTenant, message: tenantTrouble(s.Facts)}).lookAgain(time.Minute)
}

// deleteEarlierNode deletes the Node of an earlier attempt, which came back when this one failed at first. Its disk is
// overwritten: nothing runs as it.
func (s situation) deleteEarlierNode() result {
	if !s.HasOwnNode() {
		return next
	}
	return act(Action{Kind: DeleteNode, NodeUID: s.Node.UID}, notice{
		condition: v1alpha1.ConditionJoined, reason: v1alpha1.ReasonWaitingForNode,
		message: "Node " + s.Machine.Name + " of an earlier attempt is being deleted",
	}).planAgain()
}

func (s situation) awaitNode() result {
	if s.Node.Found {
		return wait(notice{condition: v1alpha1.ConditionJoined, reason: v1alpha1.ReasonNodeConflict, message: s.conflict()}).lookAgain(time.Minute)
	}
	message := fmt.Sprintf("Node %s has not registered: look at the console of %s, and there at journalctl -u kubelet and -u cloud-final", s.Machine.Name, s.hostName())
	if s.IsOverdue() {
		message += "; its bootstrap token is deleted, so a kubelet without a certificate can join no more: delete this Machine for another try"
	}
	return wait(notice{v1alpha1.ConditionJoined, v1alpha1.ReasonWaitingForNode, "Node " + s.Machine.Name, message})
}

func (s situation) conflict() string {
	return fmt.Sprintf("Node %s exists in the tenant's cluster with providerID %q, this Machine's would be %q: delete that Node, or this Machine",
		s.Machine.Name, s.Node.ProviderID, s.Machine.ProviderID())
}

func (s situation) canAskTenant() bool { return s.Tenant.Reachable }

// lookForTenant looks for the tenant's API server now and then. The verdict says that it does not answer; nothing waits for it here.
func (s situation) lookForTenant() result {
	if s.Tenant.Reachable {
		return next
	}
	return next.lookAgain(look)
}

func (s situation) scrubSecret() result {
	if !s.Secret.Found || s.Secret.TokenID == "" || s.Revision.Problem != "" {
		return next
	}
	return act(Action{Kind: ScrubSecret}, notice{}).planAgain()
}

// uncordonNode takes back a cordon that was requested for a roll, and arrived after the roll was called off.
func (s situation) uncordonNode() result {
	if !s.HasNodeOfThisAttempt() || !s.Node.Cordoned {
		return next
	}
	return act(Action{Kind: Uncordon, NodeUID: s.Node.UID}, notice{}).planAgain()
}

func (s situation) furnishNode() result {
	if !s.HasNodeOfThisAttempt() || s.Node.Furnished {
		return next
	}
	return act(Action{Kind: FurnishNode, NodeUID: s.Node.UID}, notice{})
}

// awaitVerdict says which check the Machine waits for.
func (s situation) awaitVerdict() result {
	reason, message := s.verdictProblem()
	switch left := s.untilChecksTell(); {
	case !s.HasNodeOfThisAttempt():
		return wait(notice{v1alpha1.ConditionJoined, reason, s.waitingCheck(), message})
	case left > 0 && s.hasHost():
		return wait(notice{
			reason: v1alpha1.ReasonChecksWaiting, waitingFor: "the first checks", message: "Node " + s.Machine.Name + " has joined and is being checked",
		}).lookAgain(left)
	default:
		return wait(notice{reason: reason, waitingFor: s.waitingCheck(), message: message})
	}
}

// untilChecksTell is how long what a new Node lacks is still not told; a check that has failed for good is told at once.
func (s situation) untilChecksTell() time.Duration {
	m := s.Machine.Status
	at := len(m.Timeline) - 1
	if at < 1 || m.Timeline[at-1].Phase != v1alpha1.MachineJoining || m.Verdict != nil && m.Verdict.Result == v1alpha1.CheckFail {
		return 0
	}
	return m.Timeline[at].At.Add(FirstChecks).Sub(s.Now)
}
