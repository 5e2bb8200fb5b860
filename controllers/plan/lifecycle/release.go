package lifecycle

import (
	"fmt"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// canBeRunning: the system that was installed on the host may run.
func (s situation) canBeRunning() bool { return s.Host.ImageURL != "" && s.CanHaveBooted() }

func (s situation) deprovision() result {
	if s.Host.ImageURL == "" {
		return next
	}
	return act(Action{Kind: Deprovision}, notice{
		reason: v1alpha1.ReasonErasing, waitingFor: "the host to be erased", message: "host " + s.hostName() + " is being deprovisioned",
	})
}

func (s situation) awaitErase() result {
	if s.guards.isHostBack(s.Facts) {
		return next
	}
	reason, message := s.hostTrouble()
	switch {
	case reason == "":
		reason, message = v1alpha1.ReasonErasing, "host "+s.hostName()+" is "+s.Host.State+s.runningStep()
	case s.Host.Error != "":
		reason, message = v1alpha1.ReasonEraseFailed, message+"; the host stays out of the pool"+s.wayOut()
	}
	return wait(notice{reason: reason, waitingFor: "the host to be erased", message: message}).lookAgain(hostRound)
}

func (s situation) runningStep() string {
	if r := s.Host.Record; r != nil && r.Status.Wanted.IsOpen() {
		if a := r.Status.Progress(); a != nil {
			return ": " + a.Step
		}
	}
	return ""
}

// deleteLateNode deletes a Node that registered between the request to erase and the power-off.
func (s situation) deleteLateNode() result {
	if !s.HasOwnNode() || !s.Tenant.Reachable || !s.guards.isPoweredOff(s.Facts) {
		return next
	}
	return act(Action{Kind: DeleteNode, NodeUID: s.Node.UID}, s.nodeDeletionNotice())
}

// clearHostRecord, deleteClaimSecret and returnHost empty what was written for the claim, and last of all the claim: whoever
// claims next finds nothing of it.
func (s situation) clearHostRecord() result {
	if s.Host.Record == nil || s.Host.Record.Spec.Machine == nil {
		return next
	}
	return act(Action{Kind: ClearHostRecord}, s.returnNotice()).planAgain()
}

func (s situation) deleteClaimSecret() result {
	if !s.Secret.Found {
		return next
	}
	return act(Action{Kind: DeleteClaimSecret}, s.returnNotice()).planAgain()
}

func (s situation) returnHost() result {
	return act(Action{Kind: ReturnHost}, s.returnNotice()).planAgain()
}

func (s situation) returnNotice() notice {
	return notice{reason: v1alpha1.ReasonErasing, message: "host " + s.hostName() + " is clean and goes back to the pool"}
}

// awaitRelease waits for the tenant when no host is left: a bootstrap token may be left there.
func (s situation) awaitRelease() result {
	if s.Tenant.Reachable || s.Machine.Status.Attempt == 0 {
		return wait(notice{reason: v1alpha1.ReasonDeletingNode, message: "no host is left to be returned"})
	}
	return s.awaitTenant()
}

// canNodeRemain: a Node object of this Machine is, or may be, left in the tenant's cluster.
func (s situation) canNodeRemain() bool {
	return s.HasOwnNode() || !s.Tenant.Reachable && s.Machine.Status.NodeRef != nil
}

func (s situation) remainsNotice() notice {
	name := s.Machine.Name
	return notice{
		reason:  v1alpha1.ReasonNodeRemains,
		message: fmt.Sprintf("Node %s may remain in the tenant's cluster: delete it there with kubectl delete node %s", name, name),
	}
}

// reportRemainingNode tells that the Node may remain before the Machine can be gone.
func (s situation) reportRemainingNode() result {
	if !s.canNodeRemain() || s.Machine.Status.NodeRemainsReportedAt != nil {
		return next
	}
	return record(nodeRemainsReported, s.remainsNotice())
}

func (s situation) removeFinalizer() result {
	if s.canNodeRemain() {
		return act(Action{Kind: RemoveFinalizer}, s.remainsNotice())
	}
	return act(Action{Kind: RemoveFinalizer}, notice{reason: v1alpha1.ReasonDeletingNode, message: "released"})
}

// IsOrphaned tells whether a host that a Machine claimed may be freed although no Machine is there to return it: a claim
// that arrived after its Machine was gone. A host that was asked for an image is left to people.
func IsOrphaned(machineExists bool, h Host) bool {
	recorded := h.Record != nil && h.Record.Spec.Machine != nil
	return !machineExists && h.Consumer == ConsumerOther && h.ImageURL == "" && !recorded &&
		(h.State == StateAvailable || h.State == StateReady)
}
