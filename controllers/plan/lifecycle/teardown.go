package lifecycle

import (
	"fmt"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// evictionInterval is how often the remaining pods are evicted again, hostCheckInterval how often a Machine that waits for a power-off or
// an erase is planned again.
const (
	evictionInterval  = 5 * time.Second
	hostCheckInterval = 30 * time.Second
)

// maxNamed is how many pods or budgets a message names, so that it stays readable.
const maxNamed = 5

// CanEvict reports whether the pods are still to be evicted, and therefore listed: until the power-off has begun and, in a release, until the drain time-out. A
// roll has no time-out.
func (f Facts) CanEvict() bool {
	return f.Host != nil && !f.hasPowerOffBegun() && !(f.Machine.Status.Phase == v1alpha1.MachineReleasing && f.IsDrainOver())
}

// isBeforePowerOff reports whether the machine still runs, so that the roll can be cancelled.
func (s scope) isBeforePowerOff() bool { return !s.hasPowerOffBegun() }

func (s scope) planUncordonAfterCancelledRoll() result {
	if !s.guards.isRollCancelled(s.Facts) {
		return done
	}
	return actionResult(Action{Kind: Uncordon, NodeUID: s.Node.UID}, report{
		reason: v1alpha1.ReasonEvicting, message: "the drain was called off: Node " + s.Machine.Name + " is being uncordoned",
	}).withRequeue()
}

// isSameServer reports whether another host is the server of this Machine's host.
func (s scope) isSameServer() bool {
	return s.Host != nil && s.Host.ErrorReason == v1alpha1.ReasonSameServer
}

// waitForOneHost lets a node run on while another host is its server. Without it: a baremetal-operator serves both hosts, and a Machine has
// each of them; one Machine is deleted, its host is powered off and cleaned, and the node of the other Machine is gone with its disk.
func (s scope) waitForOneHost() result {
	if !s.isSameServer() {
		return done
	}
	return waitResult(report{
		reason: v1alpha1.ReasonSameServer, waitingFor: "no other host to be this server", message: "host " + s.hostName() + ": " + failureKind(v1alpha1.ReasonSameServer) + detailsHint,
	}).withRequeueAfter(hostCheckInterval)
}

// waitForNextRevision stops a roll whose revision can no longer be installed.
func (s scope) waitForNextRevision() result {
	if s.NextRevision.Name == "" || s.Machine.Spec.PowerOff {
		return done
	}
	reason, message := s.guards.revisionProblem(s.Facts, s.NextRevision)
	if reason == "" {
		return done
	}
	return waitResult(report{reason: reason, message: message + "; the roll waits, and its Node stays cordoned"}).withRequeueAfter(time.Minute)
}

func (s scope) waitForTenant() result {
	if s.Tenant.Reachable {
		return done
	}
	if s.Machine.Status.Phase == v1alpha1.MachineDraining {
		return waitResult(report{
			reason: v1alpha1.ReasonWaitingForTenant, waitingFor: "the tenant's API server", message: tenantProblem(s.Facts) + "; the " + s.drainPurpose() + " waits for it",
		}).withRequeueAfter(time.Minute)
	}
	left := s.drainLeft()
	return waitResult(report{
		reason: v1alpha1.ReasonEvicting, waitingFor: "the tenant's API server",
		message: fmt.Sprintf("%s; the release goes on without it at %s", tenantProblem(s.Facts), s.Now.Add(left).UTC().Format(time.RFC3339)),
	}).withRequeueAfter(min(time.Minute, max(left, time.Second)))
}

func (s scope) planCordon() result {
	if !s.hasOwnNode() || s.Node.Unschedulable {
		return done
	}
	return actionResult(Action{Kind: Cordon, NodeUID: s.Node.UID}, report{
		reason: v1alpha1.ReasonEvicting, message: "Node " + s.Machine.Name + " is being cordoned",
	}).withRequeue()
}

// planEviction evicts the remaining pods and reports them. After its drain time-out a roll keeps waiting, and reports the budgets that allow no
// eviction.
func (s scope) planEviction() result {
	if !s.hasOwnNode() || len(s.Node.Pods) == 0 {
		return done
	}
	evict, pods := Action{Kind: Evict, NodeUID: s.Node.UID}, podsToLeave(s.Node.Pods)
	if s.Machine.Status.Phase != v1alpha1.MachineDraining || !s.IsDrainOver() {
		return actionResult(evict, report{reason: v1alpha1.ReasonEvicting, message: pods}).withRequeueAfter(evictionInterval)
	}
	message := pods
	if b := s.Node.Budgets; len(b) > 0 {
		message += "; no eviction is allowed by PodDisruptionBudget " + strings.Join(b[:min(len(b), maxNamed)], ", ")
	}
	return actionResult(evict, report{reason: v1alpha1.ReasonDrainTimedOut, waitingFor: pods, message: message +
		"; a " + s.drainPurpose() + " forces no pod: mend what keeps them, delete the pods, or call it off: " + s.callOffHint()}).withRequeueAfter(hostCheckInterval)
}

func podsToLeave(names []string) string {
	switch n := len(names); {
	case n == 1:
		return "1 pod to leave: " + names[0]
	case n <= maxNamed:
		return fmt.Sprintf("%d pods to leave: %s", n, strings.Join(names, ", "))
	default:
		return fmt.Sprintf("%d pods to leave: %s and %d more", n, strings.Join(names[:maxNamed], ", "), n-maxNamed)
	}
}

// waitForPodList prevents a power-off in the decision that enters the phase. Pods are listed only in the phases that evict, so that the facts
// of the phase before have none. Without it: a Ready Machine is deleted, its Node seems to have no pods, and the server is powered off
// under them.
func (s scope) waitForPodList() result {
	if !s.entering || s.hasPowerOffBegun() {
		return done
	}
	return waitResult(report{reason: v1alpha1.ReasonEvicting, message: "the node is being emptied"})
}

// planPowerOffTimestamp writes into the status that the host will be requested to power off. Without it: the request is sent, the
// manager is restarted before it sees spec.online false, and the roll is cancelled meanwhile. The Machine goes back to Validating while its
// server is about to go off.
func (s scope) planPowerOffTimestamp() result {
	if s.Machine.Status.PowerOffRequestedAt != nil {
		return done
	}
	return timestampResult(powerOffRequested, s.powerOffReport())
}

func (s scope) planPowerOff() result {
	switch h := s.Host; {
	case s.mustHaveRecord() && !h.Online, !s.mustHaveRecord() && h.isAskedOff():
		return done
	case s.mustHaveRecord() || !h.isSetAside() && s.guards.canBeAskedOff(h):
		return actionResult(Action{Kind: PowerOff}, s.powerOffReport())
	case !h.isSetAside() && s.hasFailedInstallation() && !s.isPowerOffWanted():
		return s.planDeprovisionForNextImage()
	}
	return s.waitForPowerState()
}

// powerOffReport is the same from the decision to power off until the BMC has confirmed it.
func (s scope) powerOffReport() report {
	return s.unconfirmedReport(v1alpha1.ReasonPoweringOff, "host "+s.hostName()+" is being powered off, which its BMC has not confirmed")
}

func (s scope) unconfirmedReport(reason, message string) report {
	return report{reason: reason, waitingFor: "the confirmed power-off", message: message + s.unconfirmedHint()}
}

func (s scope) waitForPowerOff() result {
	switch {
	case s.guards.isPoweredOff(s.Facts):
		return done
	case !s.mustHaveRecord() && s.Host.ImageURL == "" && (!s.Host.isPowerManaged() || s.isCleaningChanged()):
		// The power-off was confirmed before the host was deprovisioned, and is confirmed again when the operator looks at its power again.
		return s.planDeprovisionForNextImage()
	}
	r := s.powerOffReport()
	if reason, message := s.hostProblem(); reason != "" {
		r = s.unconfirmedReport(reason, message)
	}
	return waitResult(r).withRequeueAfter(hostCheckInterval)
}

// unconfirmedHint returns the end of a message about a power-off that the BMC has not confirmed.
func (s scope) unconfirmedHint() string {
	if s.isPowerOffWanted() {
		return "; take the server for running until then, or call it off: " + s.callOffHint()
	}
	return "; nothing touches its disk before" + s.abandonHint()
}

// abandonHint returns the end of a message that says how to abandon a server that cannot be repaired. It is empty until the phase is
// overdue.
func (s scope) abandonHint() string {
	if !s.isOverdue() {
		return ""
	}
	if !s.mustHaveRecord() {
		return "; mend that, or give the server up as it is: annotate its BareMetalHost with " + metal3.DetachedAnnotation + `='{"force":true}', wait until its status.operationalStatus is detached, and delete ` +
			"it, which asks for the verb abandon on this Machine. A baremetal-operator up to v0.12 detaches no host in this state: then abandon the Machine, as the README says (Hosts in use)"
	}
	return "; mend that, or give the server up as it is: annotate its BareMetalHost with " + metal3.DetachedAnnotation + " and delete it, which asks for the verb abandon on this Machine"
}

// planNodeDeletion deletes the Node of the machine that is off. A release continues without the tenant's API server after the drain time-out: the
// Node then remains, and planRemainingNodeReport reports that.
func (s scope) planNodeDeletion() result {
	switch {
	case s.guards.isNodeGone(s.Facts):
		return done
	case s.isNodeKept():
		return done
	case s.Tenant.Reachable && s.Node.Undeletable != "":
		return waitResult(report{
			reason: v1alpha1.ReasonDeletingNode, waitingFor: "the tenant's cluster to remove the Node", message: "Node " + s.Machine.Name + " is not removed: " + s.Node.Undeletable,
		}).withRequeueAfter(hostCheckInterval)
	case s.Tenant.Reachable:
		return actionResult(Action{Kind: DeleteNode, NodeUID: s.Node.UID}, s.deletingNodeReport()).withRequeue()
	case s.Machine.Status.Phase == v1alpha1.MachineReleasing && s.IsDrainOver():
		return done
	default:
		return s.waitForTenant()
	}
}

// isNodeKept reports whether a release goes on although its Node exists: the tenant's cluster does not remove it, and has had its time.
// Without it: a tenant gives its Nodes a finalizer, and no host that it had ever comes back to the pool.
func (s scope) isNodeKept() bool {
	return s.Machine.Status.Phase == v1alpha1.MachineReleasing && s.Tenant.Reachable && s.Node.Undeletable != "" && s.IsDrainOver()
}

// isTokenKept reports whether a release ends although its bootstrap token exists, for the same reason. The token expires.
func (s scope) isTokenKept() bool { return s.isTokenUndeletable() && s.IsDrainOver() }

func (s scope) deletingNodeReport() report {
	return report{reason: v1alpha1.ReasonDeletingNode, message: "Node " + s.Machine.Name + " is being deleted"}
}

// planDeprovisionForNextImage has an effect only on hosts without HostRecords: a baremetal-operator installs only on what it has deprovisioned.
func (s scope) planDeprovisionForNextImage() result {
	if s.guards.canTakeImage(s.Facts) {
		return done
	}
	reason, message := s.hostProblem()
	if reason == "" {
		reason, message = v1alpha1.ReasonDeprovisioning, fmt.Sprintf("host %s is %s; it takes the next image when it is available", s.hostName(), s.Host.State)
	}
	r := report{reason: reason, waitingFor: "the host to be deprovisioned", message: message}
	if s.Host.ImageURL != "" || s.isCleaningChanged() {
		return actionResult(Action{Kind: Deprovision}, r).withRequeueAfter(hostCheckInterval)
	}
	return waitResult(r).withRequeueAfter(hostCheckInterval)
}

// waitForRendering waits until the revision to install has a rendering.
func (s scope) waitForRendering() result {
	revision := s.revisionToInstall()
	if revision.Rendering != "" {
		return done
	}
	return waitResult(report{
		reason: v1alpha1.ReasonWaitingForNodeType, message: "revision " + revision.Name + ": " + revision.Problem + "; nothing is installed before that",
	}).withRequeueAfter(time.Minute)
}

// canBeRunning reports whether the system that was installed on the host may run.
func (s scope) canBeRunning() bool { return s.Host.ImageURL != "" && s.canHaveBooted() }

// planRemainingNodeRecord writes into the HostRecord, before the host is requested to be erased, that the Node or the bootstrap token may remain
// in the tenant's cluster, which does not answer or does not remove them. Without it: the server is powered on for its erase while the tenant's Node and credential
// are there, and only a Machine that is about to go tells of it.
func (s scope) planRemainingNodeRecord() result {
	if s.Host.ImageURL == "" || s.Host.Record == nil || s.Host.Record.Spec.Machine == nil {
		return done
	}
	if s.Tenant.Reachable && !s.isNodeKept() && !s.isTokenUndeletable() {
		return done
	}
	tokenID := s.remainingTokenID()
	if s.Host.Record.Spec.NodeRemains != nil || tokenID == "" && !s.hasRemainingNode() && !s.canBeRunning() {
		return done
	}
	spec := *s.Host.Record.Spec.DeepCopy()
	spec.NodeRemains = &v1alpha1.RemainingNode{Name: s.Machine.Name, TokenID: tokenID}
	return actionResult(Action{Kind: WriteHostRecord, Record: spec}, report{
		reason: v1alpha1.ReasonErasing, message: "host " + s.hostName() + " is erased next, and " + s.nodeRemainsReport().message,
	}).withRequeue()
}

// remainingTokenID returns the id of the bootstrap token that may remain. It is empty where there is none.
func (s scope) remainingTokenID() string {
	switch {
	case s.Token != nil:
		return s.Token.ID
	case s.Tenant.Reachable:
		return ""
	}
	return s.Secret.TokenID
}

// planLateNodeDeletion deletes a Node that registered between the request to erase and the power-off. A host without a HostRecord was not requested to
// power off: that it is given back shows that the system of the Node does not run.
func (s scope) planLateNodeDeletion() result {
	if !s.hasOwnNode() || !s.Tenant.Reachable || s.Node.Undeletable != "" || s.mustHaveRecord() && !s.guards.isPoweredOff(s.Facts) {
		return done
	}
	return actionResult(Action{Kind: DeleteNode, NodeUID: s.Node.UID}, s.deletingNodeReport()).withRequeue()
}

// planHostRecordRemoval, planClaimSecretDeletion and planHostReturn remove what was written for the claim, and the claim itself last. Without it: the
// consumerRef is removed first, another Machine claims the host, and the HostRecord and the Secret of this Machine are still there: the
// host would be installed with this Machine's user data.
func (s scope) planHostRecordRemoval() result {
	if s.Host.Record == nil || s.Host.Record.Spec.Machine == nil {
		return done
	}
	return actionResult(Action{Kind: ClearHostRecord, Record: v1alpha1.HostRecordSpec{RemainingNodes: s.remainingNodes()}}, s.returningReport()).withRequeue()
}

func (s scope) planClaimSecretDeletion() result {
	if !s.Secret.Found {
		return done
	}
	return actionResult(Action{Kind: DeleteClaimSecret}, s.returningReport()).withRequeue()
}

func (s scope) planHostReturn() result {
	return actionResult(Action{Kind: ReturnHost, RemainingNode: s.releasedNode()}, s.returningReport()).withRequeue()
}

func (s scope) returningReport() report {
	isErased := "is clean and "
	if !s.mustHaveRecord() {
		isErased = "" // its annotation ingot.dev/last-erase says what it is
	}
	return report{reason: v1alpha1.ReasonErasing, message: "host " + s.hostName() + " " + isErased + "goes back to the pool"}
}

// waitForTenantAfterReturn waits for the tenant's API server after the host is returned, because a bootstrap token may be left there.
func (s scope) waitForTenantAfterReturn() result {
	if s.isTokenUndeletable() {
		return waitResult(s.undeletableTokenReport(v1alpha1.ReasonDeletingNode)).withRequeueAfter(hostCheckInterval)
	}
	if s.Tenant.Reachable || s.Machine.Status.Attempt == 0 {
		return waitResult(report{reason: v1alpha1.ReasonDeletingNode, message: "no host is left to be returned"})
	}
	return s.waitForTenant()
}

// hasRemainingNode reports whether a Node of this Machine is left in the tenant's cluster, or whether that is unknown.
func (s scope) hasRemainingNode() bool {
	return s.hasOwnNode() || !s.Tenant.Reachable && s.canHaveRegistered()
}

func (s scope) nodeRemainsReport() report {
	name := s.Machine.Name
	message := fmt.Sprintf("Node %s may remain in the tenant's cluster: delete it there with kubectl delete node %s", name, name)
	if s.isTokenKept() {
		token := fmt.Sprintf("bootstrap token %s remains in the tenant's cluster until it expires: delete it there with kubectl -n kube-system delete secret bootstrap-token-%s",
			s.Token.ID, s.Token.ID)
		if !s.hasRemainingNode() {
			return report{reason: v1alpha1.ReasonNodeRemains, message: token}
		}
		message += "; " + token
	}
	return report{reason: v1alpha1.ReasonNodeRemains, message: message}
}

// planRemainingNodeReport reports that the Node may remain, while the Machine still exists to report it.
func (s scope) planRemainingNodeReport() result {
	if !s.hasRemainingNode() && !s.isTokenKept() || s.Machine.Status.NodeRemainsReportedAt != nil {
		return done
	}
	return timestampResult(nodeRemainsReported, s.nodeRemainsReport())
}

func (s scope) planFinalizerRemoval() result {
	if s.hasRemainingNode() || s.isTokenKept() {
		return actionResult(Action{Kind: RemoveFinalizer}, s.nodeRemainsReport())
	}
	return actionResult(Action{Kind: RemoveFinalizer}, report{reason: v1alpha1.ReasonDeletingNode, message: "released"})
}
