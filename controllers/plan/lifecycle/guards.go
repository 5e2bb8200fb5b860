package lifecycle

import (
	"slices"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/nodeidentity"
)

// scope is what edges and steps decide from. It is passed by value, so that neither can change the Decision.
type scope struct {
	Facts
	guards guards
	// entering is true while the Decision enters a phase: the facts were observed for the phase before it.
	entering bool
}

// guards are the conditions that safety depends on, each of them in one place. Edges and steps use them only through this struct, so that
// TestEveryGuardIsNeeded can remove one and show the harm. The comments give an order of events that does harm without the guard.
type guards struct {
	// hasHost: a host is changed, and its status used, only while its consumerRef is this Machine. Without it: an administrator
	// clears the consumerRef of Machine A's host, Machine B claims it and its node runs. A finds an image on the host that is not its
	// own and requests its own. The node of B is overwritten while its tenant uses it.
	hasHost func(Facts) bool
	// isHostClaimable: a host is claimed only while placement would choose it still. Without it: placement chooses a clean host;
	// before the claim is written, an administrator annotates the host with ingot.dev/erase, and that erase fails. The Machine claims
	// it, and its tenant reads what the tenant before it left on the disk.
	isHostClaimable func(Facts) bool
	// hasImageOnDisk: a Machine is Joining only when the host reports the image of this attempt as written and verified. Without it:
	// attempt 1 is installed, attempt 2 of the same image is requested, and the host still reports the image of attempt 1. The
	// Machine goes on to Joining, its token is accepted, and the server boots from a disk that is being written.
	hasImageOnDisk func(Facts) bool
	// isPoweredOff: a Node is deleted, and a disk written or erased, only after the BMC has confirmed a power-off that was requested
	// before. Without it: the power-off is requested, the BMC ignores it, and the Node is deleted. The tenant's cluster starts the pods
	// elsewhere, while the old ones still run and write to the same volume: the tenant's data is corrupted.
	isPoweredOff func(Facts) bool
	// isNodeGone: a disk is written only when the Machine's Node object is known not to exist. Without it: the tenant's API server does
	// not answer, the Node stays, and the next attempt is installed. Its kubelet registers under the same name and keeps the object, which
	// has no gate taint any more: pods are scheduled to a node that no verdict has passed.
	isNodeGone func(Facts) bool
	// isHostReturnable: a host is returned only when it is available again and erased as requested. Without it: the consumerRef is removed
	// while the erase runs, another tenant's Machine claims the host, and that tenant finds the data of the one before. A baremetal-operator must have seen that
	// no image is asked for, where it says what it has seen. Without it: it is stopped, the host is returned, and the next Machine asks for the image that has failed as
	// often as it is tried; the operator never saw the host without it, and reports a failure that it did not try.
	isHostReturnable func(Facts) bool
	// hasPassingVerdict: a Machine is Ready only when the verdict passed and is about this Node, this boot and this installation. Without
	// it: a node passes, reboots, and comes up with 7 of 8 GPUs. The verdict of the boot before still counts, the Machine stays Ready, and
	// the tenant's pods for 8 GPUs wait there for ever.
	hasPassingVerdict func(Facts) bool
	// isBootAfterPowerOff: after a power-off that spec.powerOff asked for, a verdict counts only for a boot after it. Without it: the server
	// is powered off and on again within half a minute, and the tenant's API server has not missed kubelet yet. The Node object still
	// shows the boot before and is Ready, and so is the verdict about it. The Machine is Ready, and pods are bound to a server that is
	// in its self-test.
	isBootAfterPowerOff func(Facts) bool
	// needsToken: a bootstrap token exists only from the time at which an agent asks for the node's documents until the Node has joined or the
	// installation is given up. Without it: a Machine has joined and its token stays. Whoever reads the user data from the disk or the
	// console log can join the tenant's cluster with it.
	needsToken func(Facts) bool
	// revisionProblem: no Node is drained for a revision that cannot be installed, or that the tenant's cluster does not support. Without it:
	// spec names a revision whose kubelet is newer than the tenant's API server. The node is drained, powered off and installed with it,
	// and cannot serve pods: the tenant has lost a node that worked.
	revisionProblem func(Facts, Revision) (reason, message string)
	// isRollCancelled: a roll ends without an installation only while what was installed before it still runs. Without it: the host is
	// requested to power off, and the roll is cancelled before the server is off. The Machine goes back to Validating and its Node is
	// uncordoned; a second later the server goes off under the pods that were scheduled to it.
	isRollCancelled func(Facts) bool
	// findOwner: a Node is the Machine's only by what its installation proves. Without it: the tenant's cluster sets providerIDs itself, and a machine of the
	// tenant's own has the Machine's name, or the server's earlier system has registered again before its disk was written. The Machine is bound to that Node,
	// lifts the gate of a node that was never installed, and deletes it with its release.
	findOwner func(nodeidentity.Claim, nodeidentity.Node) nodeidentity.Finding

	// The following are of hosts without HostRecords, which a baremetal-operator serves.

	// isPowerCurrent: that such a host is off counts only when its operator has looked at the power since the request. Without it: the server stops by
	// itself, the operator writes that it is off, and powers it on again. Before the operator writes that too, the Machine is rolled and the power-off
	// requested. The status says off, the Node is deleted, and its pods start elsewhere while the server runs them still.
	isPowerCurrent func(*Host) bool
	// canBeAskedOff: such a host is requested to power off only in a state in which its operator looks at the power. Without it: a Machine that is
	// being installed is rolled, and the power-off requested. The operator ends the installation, removes the annotation by which it would show that it
	// has seen the server off, and writes provisioned with the power of before, which was off. The server runs, and its Node is deleted. One whose operator
	// writes no conditions must have been seen on. Without it: the server stops by itself, is powered on again, and its BMC goes dark before the operator
	// has seen that. The status says off, nothing contradicts it, and the Node of a server that runs is deleted.
	canBeAskedOff func(*Host) bool
	// canTakeImage: such a host is requested to install only when its operator has given it back without an image. Without it: the next attempt has the
	// same image and other user data. Its operator compares the URLs, finds nothing to do, and powers the server on. The host reports the image as
	// installed, and the Machine is Joining with the system of the attempt before on its disk.
	canTakeImage func(Facts) bool
}

func realGuards() guards {
	return guards{
		hasHost: Facts.hasHost, isHostClaimable: Facts.isHostClaimable, hasImageOnDisk: Facts.hasImageOnDisk, isPoweredOff: Facts.isPoweredOff,
		isNodeGone: Facts.isNodeGone, isHostReturnable: Facts.isHostReturnable, hasPassingVerdict: Facts.hasPassingVerdict, isBootAfterPowerOff: Facts.isBootAfterPowerOff, needsToken: Facts.needsToken,
		revisionProblem: revisionProblem, isRollCancelled: Facts.isRollCancelled, findOwner: nodeidentity.Of,
		isPowerCurrent: (*Host).isPowerCurrent, canBeAskedOff: (*Host).canBeAskedOff, canTakeImage: Facts.canTakeImage,
	}
}

func (f Facts) hasHost() bool { return f.Host != nil && f.Host.Consumer == ConsumerMine }

func (f Facts) isHostClaimable() bool {
	return f.Host != nil && f.Host.Consumer == ConsumerNone && f.Host.ClaimProblem == ""
}

func (f Facts) hasImageOnDisk() bool {
	h := f.Host
	if h.State != metal3.StateProvisioned || h.Error != "" || !f.hasImageRequested() {
		return false
	}
	if !f.mustHaveRecord() {
		// The state is written before the first look at the power. A Machine that went on from it would take a later "off" for a confirmed one.
		return h.InstalledURL == h.ImageURL && h.PoweredOn
	}
	return h.Record != nil && h.Record.Status.Installed != nil &&
		h.Record.Status.Installed.MachineUID == f.Machine.UID && h.Record.Status.Installed.Attempt == f.Machine.Status.Attempt
}

// hasImageRequested reports whether the host is requested to install this Machine's image.
func (f Facts) hasImageRequested() bool {
	return f.Host.ImageURL != "" && f.Host.ImageURL == f.Revision.Image.URL && f.Host.Online
}

func (f Facts) isPoweredOff() bool {
	h := f.Host
	if h == nil || h.Online {
		return false
	}
	if !f.mustHaveRecord() {
		return !h.PoweredOn && f.hasCurrentPower()
	}
	// An Off that was observed for an older generation may be older than the request: the server may have been powered on since.
	return h.Record != nil && h.Record.Status.Power != nil && h.Record.Status.Power.State == string(hardware.PowerOff) &&
		h.Record.Status.Power.ObservedGeneration >= h.Generation
}

// hasCurrentPower applies the guard isPowerCurrent. Facts that Plan was not given have the rule itself.
func (f Facts) hasCurrentPower() bool {
	if f.isPowerCurrent == nil {
		return f.Host.isPowerCurrent()
	}
	return f.isPowerCurrent(f.Host)
}

// mustHaveRecord reports whether the host has a HostRecord or must have one. It is true also while that HostRecord is missing. The NodeProvider may be deleted while its hosts still exist.
func (f Facts) mustHaveRecord() bool { return f.Provider.HasRecords || f.Host.Record != nil }

func (f Facts) isNodeGone() bool { return f.Tenant.Reachable && !f.hasOwnNode() }

func (f Facts) isHostReturnable() bool {
	h := f.Host
	if h.Record == nil {
		return !f.Provider.HasRecords && h.isBack() && h.isSeenOff()
	}
	if h.ImageURL != "" || h.Error != "" || (h.State != metal3.StateAvailable && h.State != metal3.StateReady) {
		return false
	}
	r := h.Record.Status
	if r.Wanted.IsOpen() {
		return false
	}
	return r.Installed == nil && (r.LastTenant == "" || r.Erased != nil)
}

func (f Facts) hasPassingVerdict() bool {
	v := f.Machine.Status.Verdict
	return f.hasVerdictOfNode() && v.Result == v1alpha1.CheckPass && v.Admitted && f.Node.Found && v.BootID == f.Node.BootID
}

// hasVerdictOfNode reports whether there is a verdict about this Node and this installation, whatever its result and its boot.
func (f Facts) hasVerdictOfNode() bool {
	v, s := f.Machine.Status.Verdict, f.Machine.Status
	return v != nil && v.NodeUID == f.Node.UID && v.Revision == s.Revision && v.Rendering == s.Rendering
}

func (f Facts) isRollCancelled() bool {
	return f.NextRevision.Name == "" && !f.Machine.Spec.PowerOff && f.Machine.Status.NodeRef != nil && f.hasNodeOfThisAttempt() && !f.hasPowerOffBegun()
}

// hasPowerOffBegun reports whether the power-off was requested, or the status says that it will be. The status says so before the host is
// requested, so that a request on its way is never overlooked.
func (f Facts) hasPowerOffBegun() bool {
	return !f.Host.Online || f.Machine.Status.PowerOffRequestedAt != nil || f.hasPowerOffRecord()
}

// isOverdue reports whether the deadline of the phase has passed.
func (f Facts) isOverdue() bool {
	d := f.Machine.Status.Deadline
	return d != nil && f.IsOver(f.phaseStart(), d.Time)
}

// phaseStart returns the time at which the current phase began.
func (f Facts) phaseStart() time.Time { return f.Machine.Status.PhaseStart(f.Machine.Created) }

// IsDrainOver reports whether the drain time-out has certainly passed.
func (f Facts) IsDrainOver() bool { return f.drainLeft() <= 0 }

func (f Facts) drainLeft() time.Duration { return f.Left(f.phaseStart(), f.Timeouts.Draining) }

// canHaveBooted reports whether the installed system may run, or whether that is unknown.
func (f Facts) canHaveBooted() bool {
	installing := []metal3.ProvisioningState{metal3.StateRegistering, metal3.StateInspecting, metal3.StatePreparing, metal3.StateAvailable, metal3.StateReady, metal3.StateProvisioning}
	return f.hasOwnNode() || !slices.Contains(installing, f.Host.State)
}

// canTakeImage reports whether the host can be requested to install another image. A host with a HostRecord always can; a
// baremetal-operator installs only on what it has deprovisioned.
func (f Facts) canTakeImage() bool {
	return f.mustHaveRecord() || f.Host.isBack()
}

// hostName returns namespace/name of the host that the Machine has or claims.
func (s scope) hostName() string {
	if r := s.Machine.Status.HostRef; r != nil {
		return r.Namespace + "/" + r.Name
	}
	return ""
}

func (s scope) isDeleted() bool { return s.Machine.Deleting }

// hasHost applies the guard of that name. It hides Facts.hasHost from the edges and steps.
func (s scope) hasHost() bool { return s.guards.hasHost(s.Facts) }

// mustRoll reports whether spec names another revision and nothing prevents the roll. The problems are checked before the first pod is
// evicted. Without it: the Node is drained, the roll then stops at the problem, and the tenant has a drained Node and no new one.
func (s scope) mustRoll() bool {
	if s.NextRevision.Name == "" || !s.hasHost() {
		return false
	}
	reason, _ := s.rollProblem()
	return reason == ""
}

// canClaim requires the finalizer. Without it: the host is claimed, the Machine is deleted and goes at once, and its host keeps a
// consumerRef to an object that no longer exists.
func (s scope) canClaim() bool {
	if !s.Machine.Finalizer {
		return false
	}
	if s.Host != nil {
		// The Machine claimed this host before its manager was restarted, and goes on with it. Without it: placement chooses another host,
		// and this one stays claimed for ever.
		return true
	}
	reason, _ := s.referenceProblem()
	return reason == "" && s.Placement.Host.Name != ""
}

// hasLostClaim reports whether the chosen host cannot become this Machine's any more. Without it: two Machines choose one host and the
// other one claims it, or the host is deleted or fails after it was chosen. The Machine waits in Claiming for a host that it never gets,
// while other hosts are free. Back in Pending, placement chooses another host.
func (s scope) hasLostClaim() bool {
	return s.Host == nil || s.Host.Consumer == ConsumerOther || !s.guards.isHostClaimable(s.Facts)
}

// canBeginInstallation requires the rendering too, because entering Provisioning writes its name into the status for good. Without it: the
// status names a revision without a rendering, which has the promise that a verdict compares with, and the Machine is never Ready.
func (s scope) canBeginInstallation() bool { return s.hasHost() && s.Revision.Rendering != "" }

func (s scope) canJoin() bool {
	return s.hasHost() && s.Revision.Problem == "" && s.guards.hasImageOnDisk(s.Facts)
}

func (s scope) hasJoined() bool { return s.hasHost() && s.hasNodeOfThisAttempt() }

// isReady requires after a power-off also that the host is requested to be on and that Ingot's cordon is lifted. Without it: the Machine is
// Ready, which ends its power-off, and nobody requests its host to be on any more.
func (s scope) isReady() bool {
	isBack := s.Machine.Status.PowerOff == nil || s.Host.Online && !s.Node.CordonedByIngot
	return s.hasJoined() && s.hasCurrentVerdict() && isBack
}

// hasCurrentVerdict reports whether the verdict passes, and is about a boot after the last power-off.
func (s scope) hasCurrentVerdict() bool {
	return s.guards.hasPassingVerdict(s.Facts) && s.guards.isBootAfterPowerOff(s.Facts)
}

// mustValidateAgain requires that the tenant's API server answers. Without it: the network to one tenant fails, every Machine of that
// tenant leaves Ready though its node still works, and the rollouts and pools of the NodeType count them all as unavailable.
func (s scope) mustValidateAgain() bool { return s.Tenant.Reachable && !s.isReady() }

// revisionToInstall returns what the host is installed with after a drain: the next revision or, when the roll was cancelled too late, the same
// one again.
func (s scope) revisionToInstall() Revision {
	if s.NextRevision.Name != "" {
		return s.NextRevision
	}
	return s.Revision
}

// canReinstall reports whether the host is fenced and the next attempt can begin. The comments of its guards say what each of them prevents.
func (s scope) canReinstall() bool {
	return s.revisionToInstall().Rendering != "" && s.hasHost() && s.isInstallationDue() && s.guards.isPoweredOff(s.Facts) && s.guards.isNodeGone(s.Facts) && s.guards.canTakeImage(s.Facts) && !s.hasEarlierSecret()
}

// canCancelRoll requires that Ingot's cordon is lifted. Without it: the Machine is Ready again while its Node is unschedulable, and the
// tenant pays for a node that takes no pod.
func (s scope) canCancelRoll() bool {
	return s.hasHost() && s.guards.isRollCancelled(s.Facts) && !s.Node.CordonedByIngot
}

// isReleased reports whether nothing is left to do for a deleted Machine. While the tenant's API server does not answer, a token may be left
// there; it expires within the time that evictions are given, which this waits for. Without it: the Machine is gone, and its token, which
// nobody deletes any more, still lets a node join.
func (s scope) isReleased() bool {
	switch {
	case s.hasHost():
		return false
	case s.Machine.Status.Attempt == 0:
		return true
	case s.Tenant.Reachable:
		return s.Token == nil || s.isTokenKept()
	default:
		return s.IsDrainOver()
	}
}
