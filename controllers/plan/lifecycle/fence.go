package lifecycle

import (
	"fmt"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// evictionRound is how often pods that remain are asked to leave, hostRound how often a power-off or an erase is looked at.
const (
	evictionRound = 5 * time.Second
	hostRound     = 30 * time.Second
)

// mostNames is how many pods, or budgets, a message names at most, so that it stays readable.
const mostNames = 5

// canEvict: the machine still runs; a roll waits for its pods without end, a release for the time that they are given.
func (s situation) canEvict() bool {
	return !s.HasPowerOffBegun() && !(s.Machine.Status.Phase == v1alpha1.MachineReleasing && s.IsDrainOver())
}

func (s situation) awaitTenant() result {
	if s.Tenant.Reachable {
		return next
	}
	if s.Machine.Status.Phase == v1alpha1.MachineDraining {
		return wait(notice{
			reason: v1alpha1.ReasonWaitingForTenant, waitingFor: "the tenant's API server", message: tenantTrouble(s.Facts) + "; the roll waits for it",
		}).lookAgain(time.Minute)
	}
	until := s.Entered().Add(s.Timeouts.Draining)
	return wait(notice{
		reason: v1alpha1.ReasonEvicting, waitingFor: "the tenant's API server",
		message: fmt.Sprintf("%s; the release goes on without it at %s", tenantTrouble(s.Facts), until.UTC().Format(time.RFC3339)),
	}).lookAgain(min(time.Minute, max(until.Sub(s.Now), time.Second)))
}

func (s situation) cordonNode() result {
	if !s.HasOwnNode() || s.Node.Unschedulable {
		return next
	}
	return act(Action{Kind: Cordon, NodeUID: s.Node.UID}, notice{
		reason: v1alpha1.ReasonEvicting, message: "Node " + s.Machine.Name + " is being cordoned",
	}).planAgain()
}

// evictPods says which pods remain. Past its time a roll waits on, and names what does not let them go.
func (s situation) evictPods() result {
	if !s.HasOwnNode() || len(s.Node.Pods) == 0 {
		return next
	}
	evict, pods := Action{Kind: Evict, NodeUID: s.Node.UID}, podsToLeave(s.Node.Pods)
	if s.Machine.Status.Phase != v1alpha1.MachineDraining || !s.IsDrainOver() {
		return act(evict, notice{reason: v1alpha1.ReasonEvicting, message: pods}).lookAgain(evictionRound)
	}
	message := pods
	if b := s.Node.Budgets; len(b) > 0 {
		message += "; no eviction is allowed by PodDisruptionBudget " + strings.Join(b[:min(len(b), mostNames)], ", ")
	}
	return act(evict, notice{reason: v1alpha1.ReasonDrainTimedOut, waitingFor: pods, message: message +
		"; a roll forces no pod: mend what keeps them, delete the pods, or call the roll off: ingot rollout undo " + s.Machine.Spec.NodeTypeRef.Name}).lookAgain(hostRound)
}

func podsToLeave(names []string) string {
	switch n := len(names); {
	case n == 1:
		return "1 pod to leave: " + names[0]
	case n <= mostNames:
		return fmt.Sprintf("%d pods to leave: %s", n, strings.Join(names, ", "))
	default:
		return fmt.Sprintf("%d pods to leave: %s and %d more", n, strings.Join(names[:mostNames], ", "), n-mostNames)
	}
}

// awaitObservation keeps the step into a phase from beginning the power-off: nobody looked for the Node's pods before it.
func (s situation) awaitObservation() result {
	if !s.entering || s.HasPowerOffBegun() {
		return next
	}
	return wait(notice{reason: v1alpha1.ReasonEvicting, message: "the node is being emptied"})
}

// beginPowerOff records that the power-off is begun before the host is asked for it: a roll that is called off meanwhile must see
// it.
func (s situation) beginPowerOff() result {
	if s.HasPowerOffBegun() {
		return next
	}
	return record(powerOffRequested, s.powerOffNotice())
}

func (s situation) powerOff() result {
	if !s.Host.Online {
		return next
	}
	return act(Action{Kind: PowerOff}, s.powerOffNotice())
}

func (s situation) powerOffNotice() notice {
	return notice{reason: v1alpha1.ReasonPoweringOff, message: "host " + s.hostName() + " is being powered off"}
}

func (s situation) awaitPowerOff() result {
	if s.guards.isPoweredOff(s.Facts) {
		return next
	}
	reason, message := s.hostTrouble()
	if reason == "" {
		reason, message = v1alpha1.ReasonPoweringOff, "the BMC has not confirmed the power-off of "+s.hostName()
	}
	return wait(notice{
		reason: reason, waitingFor: "the confirmed power-off", message: message + "; nothing touches its disk before" + s.wayOut(),
	}).lookAgain(hostRound)
}

// wayOut tells of a release that is late how a server is given up that cannot be mended.
func (s situation) wayOut() string {
	if !s.IsOverdue() {
		return ""
	}
	return "; mend that, or give the server up as it is: annotate its BareMetalHost with baremetalhost.metal3.io/detached and delete it"
}

// deleteNode deletes the Node of the machine that is off. A release goes on without the tenant when that had its time: the Node
// then remains, and reportRemainingNode says so.
func (s situation) deleteNode() result {
	switch {
	case s.guards.isNodeGone(s.Facts):
		return next
	case s.Tenant.Reachable:
		return act(Action{Kind: DeleteNode, NodeUID: s.Node.UID}, s.nodeDeletionNotice()).planAgain()
	case s.Machine.Status.Phase == v1alpha1.MachineReleasing && s.IsDrainOver():
		return next
	default:
		return s.awaitTenant()
	}
}

func (s situation) nodeDeletionNotice() notice {
	return notice{reason: v1alpha1.ReasonDeletingNode, message: "Node " + s.Machine.Name + " is being deleted"}
}
