package host

import (
	"slices"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

const (
	// anyState stands for every state but deleting.
	anyState metal3.ProvisioningState = "any"
	// foreignState stands for a state that another system wrote. The content of the disks is unknown, and the record says so already.
	foreignState metal3.ProvisioningState = "foreign"
	// goneState is the state after the last one: the finalizer is removed.
	goneState metal3.ProvisioningState = "gone"
)

// edge is a transition from one state to another.
type edge struct {
	from, to metal3.ProvisioningState
	// when describes the condition in words.
	when string
	// holds is the condition.
	holds func(*planner) bool
	// enter writes into the Decision what the new state depends on. It is nil when there is nothing beyond the state.
	enter func(*planner)
}

// removalEdges are the transitions of a host that was deleted. They come before all others, and are followed even while the BMC
// cannot be read.
var removalEdges = []edge{
	{metal3.StateDeleting, goneState, "deleted, and the state deleting is written", (*planner).hasWrittenDeleting, nil},
	{anyState, metal3.StateDeleting, "deleted while it is detached, and abandoned without an erase", (*planner).isAbandoned, nil},
	{anyState, metal3.StateDeleting, "deleted and without data of its own, while another host is the same server", (*planner).isCleanDuplicate, nil},
	{anyState, metal3.StateDeleting, "deleted and clean, and no attempt was ever made", (*planner).isNeverUsed, nil},
	{anyState, metal3.StateDeprovisioning, "deleted, with an open attempt or disks that are not clean", (*planner).mustEraseBeforeDeletion, nil},
	{anyState, metal3.StatePoweringOffBeforeDelete, "deleted and clean, after an attempt", (*planner).mustPowerOffBeforeDeletion, nil},
	{metal3.StatePoweringOffBeforeDelete, metal3.StateDeleting, "the power is off, or cannot be switched off", (*planner).canDeleteCleanHost, nil},
}

// edges are the transitions of a host. The first edge of a state whose condition holds is followed, until none holds.
var edges = []edge{
	{metal3.StateRegistering, metal3.StateProvisioned, "its status was lost, and it has what its Machine had installed", (*planner).isStillInstalled, nil},
	{metal3.StateRegistering, metal3.StateExternallyProvisioned, "the BMC answers, and somebody else installs it", (*planner).isExternallyProvisioned, nil},
	{metal3.StateRegistering, metal3.StateAvailable, "the BMC answers, its hardware is known, and its disks are clean", all((*planner).isHardwareKnown, (*planner).isReadyForPool), nil},
	{metal3.StateRegistering, metal3.StateDeprovisioning, "the BMC answers, its hardware is known, and its disks are not clean", (*planner).isHardwareKnown, nil},
	{metal3.StateRegistering, metal3.StateInspecting, "the BMC answers", isTrue, nil},

	{metal3.StateInspecting, metal3.StateProvisioned, "its status is out of date, and it has what its Machine had installed", (*planner).isStillInstalled, nil},
	{metal3.StateInspecting, metal3.StateAvailable, "inspected, or not to be inspected, and clean", all((*planner).isInspected, (*planner).isReadyForPool), nil},
	{metal3.StateInspecting, metal3.StateDeprovisioning, "inspected, or not to be inspected, and not clean", (*planner).isInspected, nil},

	{metal3.StateAvailable, metal3.StateProvisioned, "its status is out of date, and it has what its Machine had installed", (*planner).isStillInstalled, nil},
	{metal3.StateAvailable, metal3.StateProvisioning, "its Machine requests an image", (*planner).mustInstall, nil},
	{metal3.StateAvailable, metal3.StatePreparing, "an erase is requested by annotation and no wrong boot address is known, or it is running", (*planner).mustErase, (*planner).enterPreparing},
	{metal3.StateAvailable, metal3.StateInspecting, "an inspection is requested by annotation and no wrong boot address is known, or it is running", (*planner).mustInspect, (*planner).enterInspecting},
	{metal3.StateAvailable, metal3.StateDeprovisioning, "its disks are not clean", (*planner).isIdleAndDirty, nil},
	{metal3.StateAvailable, metal3.StateExternallyProvisioned, "somebody else installs it", (*planner).isUnclaimedAndExternal, nil},

	{metal3.StatePreparing, metal3.StateProvisioned, "its status is out of date, and it has what its Machine had installed", (*planner).isStillInstalled, nil},
	{metal3.StatePreparing, metal3.StateAvailable, "the erase is proven", all((*planner).isEraseFinished, (*planner).isReadyForPool), (*planner).removeEraseAnnotation},
	{metal3.StatePreparing, metal3.StateDeprovisioning, "no erase is running, and its disks are not clean", (*planner).isEraseFinished, nil},

	{metal3.StateProvisioning, metal3.StateProvisioned, "the image that its Machine requests is on the disk", (*planner).isInstalled, nil},
	{metal3.StateProvisioning, metal3.StateDeprovisioning, "released", all((*planner).isIdle, (*planner).isReleased), nil},

	{metal3.StateProvisioned, metal3.StateDeprovisioning, "released", not((*planner).hasImage), nil},
	{metal3.StateProvisioned, metal3.StateProvisioning, "its Machine requests another attempt or image", (*planner).mustInstallAgain, nil},

	{metal3.StateExternallyProvisioned, metal3.StateDeprovisioning, "nobody else installs it any more", not((*planner).isExternallyProvisioned), (*planner).recordUnknownContent},

	{metal3.StateDeprovisioning, metal3.StateAvailable, "its disks are clean", all((*planner).isIdle, (*planner).isReadyForPool), (*planner).removeEraseAnnotation},
	{metal3.StateDeprovisioning, metal3.StateExternallyProvisioned, "somebody else installs it, nobody knows what is on its disks, and no erase was begun", (*planner).isLeftToOthers, (*planner).forgetContent},
	{metal3.StateDeprovisioning, metal3.StateAvailable, "the power is off, the policy requests no erase, and the installer need not be told", (*planner).canSkipErase, (*planner).recordSkippedErase},

	{metal3.StatePoweringOffBeforeDelete, metal3.StateAvailable, "claimed again, and clean", (*planner).isReadyForPool, nil},
	{metal3.StatePoweringOffBeforeDelete, metal3.StateDeprovisioning, "claimed again, and not clean", isTrue, nil},
	{metal3.StateDeleting, metal3.StateAvailable, "claimed again, and clean", (*planner).isReadyForPool, nil},
	{metal3.StateDeleting, metal3.StateDeprovisioning, "claimed again, and not clean", isTrue, nil},
	{foreignState, metal3.StateProvisioned, "it has what its Machine had installed", (*planner).isStillInstalled, nil},
	{foreignState, metal3.StateAvailable, "clean", (*planner).isReadyForPool, nil},
	{foreignState, metal3.StateDeprovisioning, "not clean", isTrue, nil},
}

// tableState returns the state of the host as the edges name it.
func (p *planner) tableState() metal3.ProvisioningState {
	switch s := p.d.Status.State; s {
	case metal3.StateNone:
		return metal3.StateRegistering
	case metal3.StateReady: // the name that older versions of Metal3 use for available
		return metal3.StateAvailable
	case metal3.StateRegistering, metal3.StateInspecting, metal3.StateAvailable, metal3.StatePreparing, metal3.StateProvisioning, metal3.StateProvisioned, metal3.StateExternallyProvisioned,
		metal3.StateDeprovisioning, metal3.StatePoweringOffBeforeDelete, metal3.StateDeleting:
		return s
	default:
		return foreignState
	}
}

// followEdges follows edges until none holds or the host has become available. That state is written, with the proof that it depends on,
// before anything else is done with the host. No path is longer than the table: a test looks for cycles.
func (p *planner) followEdges() {
	for range edges {
		e := p.nextEdge()
		if e == nil {
			return
		}
		p.d.followed = append(p.d.followed, e)
		if e.to == goneState {
			p.d.RemoveFinalizer = true
			return
		}
		if e.enter != nil {
			e.enter(p)
		}
		p.d.Status.State = e.to
		if e.to == metal3.StateAvailable {
			return
		}
	}
}

// nextEdge returns the first edge whose condition holds, or nil.
func (p *planner) nextEdge() *edge {
	from := p.tableState()
	canFollow := func(e edge) bool { return e.isFrom(from) && e.holds(p) }
	if i := slices.IndexFunc(removalEdges, canFollow); i >= 0 {
		return &removalEdges[i]
	}
	if isLeaving := from == metal3.StateDeleting || from == metal3.StatePoweringOffBeforeDelete; !p.canUseHardware() || isLeaving && p.mustBeDeleted() {
		return nil
	}
	if i := slices.IndexFunc(edges, canFollow); i >= 0 {
		return &edges[i]
	}
	return nil
}

// isFrom reports whether the edge begins at the state.
func (e edge) isFrom(from metal3.ProvisioningState) bool {
	return e.from == from || e.from == anyState && from != metal3.StateDeleting && from != e.to
}

// isTrue is the condition of an edge that holds always.
func isTrue(*planner) bool { return true }

// all returns a condition that holds when every given one does.
func all(conditions ...func(*planner) bool) func(*planner) bool {
	return func(p *planner) bool {
		return !slices.ContainsFunc(conditions, func(holds func(*planner) bool) bool { return !holds(p) })
	}
}

func not(holds func(*planner) bool) func(*planner) bool {
	return func(p *planner) bool { return !holds(p) }
}

// canUseHardware reports whether anything may be requested of the hardware. An installer continues while the BMC does not answer: it has the
// reports of its agent and its own time-outs. Nothing is requested while another host is the same server. Without it: a server that runs the
// node of one host is registered again under another name; the second host is erased, powered off or installed under the running node.
func (p planner) canUseHardware() bool {
	return p.Host.CanBeObserved() && !p.isSameServer() && (p.Problem == nil || p.d.Record.Wanted.IsOpen() && p.Observed != nil)
}

// isClean reports whether the disks may be given to anybody: nothing is installed, and there was no tenant or there is proof of an
// erase since. Without it: the manager is restarted between a release and the erase, the host goes from deprovisioning to available, and the
// next tenant reads the data of the one before.
func (p planner) isClean() bool {
	r := p.d.Record
	return r.Installed == nil && (r.LastTenant == "" || r.Erased != nil)
}

// hasSharedDataOnly reports whether the disks may have data of a tenant by what was known of another host alone.
func (p planner) hasSharedDataOnly() bool {
	return p.d.Record.Installed == nil && p.d.Record.LastTenant == sharedTenant
}

// isReadyForPool requires, beside clean disks, that no erase is unfinished. Without it: a full erase was requested for a clean host and fails
// half-way; the proof of the erase before still makes the host clean, and it is claimed although the requested erase was not made.
func (p planner) isReadyForPool() bool { return p.isClean() && !p.hasUnfinishedErase() }

// isIdle reports whether no attempt is open.
func (p planner) isIdle() bool         { return !p.d.Record.Wanted.IsOpen() }
func (p planner) isIdleAndClean() bool { return p.isIdle() && p.isClean() }
func (p planner) isIdleAndDirty() bool { return p.isIdle() && !p.isClean() }

// mustBeDeleted requires that no Machine has the host. Without it: an administrator deletes a host that runs a node, and Ingot erases its disks
// under the running node.
func (p planner) mustBeDeleted() bool { return p.Host.Deleting && !p.Host.Claimed }

// isAbandoned reports whether an administrator deleted the host while it is detached. It is then removed from the cluster without an erase.
func (p planner) isAbandoned() bool { return p.Host.Deleting && p.Host.Detached }

// hasWrittenDeleting requires that the state deleting was written, so that people and programs that watch the host see it before it goes.
func (p planner) hasWrittenDeleting() bool {
	return (p.mustBeDeleted() || p.isAbandoned()) && p.Host.Status.State == metal3.StateDeleting
}
func (p planner) isNeverUsed() bool {
	return p.mustBeDeleted() && p.d.Record.Wanted == nil && p.isClean()
}

// isCleanDuplicate reports whether a deleted host has no data of a tenant of its own and another host is the same server. It is deleted without a
// power-off. Data that the other host knows of stays that host's to erase. Without it: an administrator deletes the wrong one of two hosts, and the node of the other one is powered off. A host whose disks are
// not clean waits. Without that: the host that had a tenant is deleted without an erase, and the other host, which counts as clean, is
// given to another tenant.
func (p planner) isCleanDuplicate() bool {
	return p.mustBeDeleted() && p.isSameServer() && (p.isReadyForPool() || p.Problem.HasData && p.hasSharedDataOnly() && !p.hasUnfinishedErase())
}

// mustEraseBeforeDeletion reports whether a deleted host has an open attempt or disks that are not clean. Without it: a host with a tenant's
// data is removed from the cluster, registered again elsewhere as a new server, and given to another tenant without an erase.
func (p planner) mustEraseBeforeDeletion() bool {
	return p.mustBeDeleted() && !p.isAbandoned() && !p.isIdleAndClean()
}
func (p planner) mustPowerOffBeforeDeletion() bool {
	return p.mustBeDeleted() && !p.isAbandoned() && p.isIdleAndClean() && p.d.Record.Wanted != nil
}

// canDeleteCleanHost reports whether a clean host is off. A server that cannot be reached, or that ignores its power-off, does not prevent the
// deletion.
func (p planner) canDeleteCleanHost() bool {
	return p.mustBeDeleted() && p.isIdleAndClean() &&
		(p.Problem != nil || p.observedPower() == hardware.PowerOff || errorReason(p.Record.Error) == string(hardware.ReasonPowerOffIgnored))
}

func (p planner) isExternallyProvisioned() bool { return p.Host.ExternallyProvisioned }

// hasConsistentClaim reports whether the consumerRef and the record name the same Machine. Without it: Machine B has claimed the host while the
// record still has the image and the user data of Machine A, and the host is installed for A.
func (p planner) hasConsistentClaim() bool {
	return p.Host.Claimed && p.Spec.Machine != nil && p.Host.ConsumerUID == string(p.Spec.Machine.UID)
}

// isImageRequested reports whether a Machine that has this host requests an image.
func (p planner) isImageRequested() bool {
	return p.hasConsistentClaim() && p.Host.HasImage && p.Spec.Image != nil
}

// isUnused reports whether nobody uses the host. There may still be an annotation that requests something.
func (p planner) isUnused() bool {
	return !p.Host.Claimed && !p.Host.ExternallyProvisioned && !p.Host.HasImage
}
func (p planner) isUnclaimedAndExternal() bool {
	return p.isIdleAndClean() && !p.Host.Claimed && p.Host.ExternallyProvisioned
}

// mustInstall requires, beside the request, that the disks are clean or the installation is recorded already. Without it: a host whose proof
// of an erase was lost is claimed by another tenant's Machine and is installed at once. The image overwrites the root device only, and the new
// tenant reads the data of the one before on the other disks.
func (p planner) mustInstall() bool {
	return p.isImageRequested() && p.Host.Online && (p.isIdleAndClean() || !p.isIdle() && p.isRecordedAttempt(p.installationAttempt()))
}

func (p planner) mustErase() bool {
	return p.isRunning(hardware.OpErase) || p.isEraseRequested() && p.BootProblem == ""
}

// isEraseRequested reports whether an annotation requests an erase that can be made.
func (p planner) isEraseRequested() bool {
	mode := v1alpha1.EraseMode(p.Host.Erase)
	return p.isIdleAndClean() && p.isUnused() && (mode == v1alpha1.EraseMetadata || mode == v1alpha1.EraseFull)
}

func (p planner) mustInspect() bool {
	return p.isRunning(hardware.OpInspect) || p.isInspectionRequested() && p.BootProblem == ""
}

// isInspectionRequested reports whether an annotation requests an inspection that can be made.
func (p planner) isInspectionRequested() bool {
	return p.isIdleAndClean() && p.isUnused() && p.Host.Erase == "" && p.Host.InspectionRequested && !p.Host.InspectionDisabled
}

// isRunning reports whether an attempt of the operation is open.
func (p planner) isRunning(op hardware.Operation) bool {
	return !p.isIdle() && p.d.Record.Wanted.Operation == string(op)
}

// enterPreparing begins the erase that an annotation requests. An erase that is open already was recorded before the state was.
func (p *planner) enterPreparing() {
	if p.isIdle() {
		p.begin(eraseAttempt(v1alpha1.EraseMode(p.Host.Erase)))
	}
}

// enterInspecting begins the inspection that an annotation requests. One that is open already was recorded before the annotation was removed. Without its
// removal then: the process ends between the two, and the server is inspected twice, which boots the agent twice.
func (p *planner) enterInspecting() {
	if p.isIdle() {
		p.begin(inspectionAttempt())
	}
	if p.Host.InspectionRequested {
		p.d.RemoveAnnotations = append(p.d.RemoveAnnotations, AnnotationInspect)
	}
}

// isEraseFinished reports whether no erase is open or has failed.
func (p planner) isEraseFinished() bool {
	w := p.d.Record.Wanted
	return p.isIdle() && (w == nil || w.Operation != string(hardware.OpErase) || p.hasSucceeded(eraseAttempt(w.Erase)))
}

// removeEraseAnnotation removes the annotation when the erase that has succeeded is at least as strong as the annotation requests. The
// annotation may have been changed during a weaker erase, or have a mode that is not known.
func (p *planner) removeEraseAnnotation() {
	requested, isKnown := eraseStrength[v1alpha1.EraseMode(p.Host.Erase)]
	if w := p.d.Record.Wanted; isKnown && w != nil && w.Operation == string(hardware.OpErase) && eraseStrength[w.Erase] >= requested {
		p.d.RemoveAnnotations = append(p.d.RemoveAnnotations, AnnotationErase)
	}
}

// isInstalled requires that the recorded attempt is the one that the Machine requests. Without it: an installation ends after the Machine has
// requested another image; the host is provisioned with the old image, and the Machine joins with it.
func (p planner) isInstalled() bool {
	return p.isImageRequested() && p.Host.Online && p.hasSucceeded(p.installationAttempt())
}

// isStillInstalled reports whether a Machine has the host and runs on what was installed for it, whatever the state is. Without it: the
// BareMetalHost is restored from a backup without its status, goes to registering, has disks that are not clean, and is erased under the
// running node. It does not hold after an erase was begun, because the disks may be damaged by then.
func (p planner) isStillInstalled() bool {
	in := p.d.Record.Installed
	return p.isImageRequested() && p.isIdle() && !p.hasUnfinishedErase() && in != nil && in.MachineUID == p.Spec.Machine.UID
}

func (p planner) hasImage() bool { return p.Host.HasImage }

// isReleased reports whether no Machine requests the image that is being installed: the host was released, or its image was written by hand.
// Its edge requires isIdle too. Without it: the erase begins while the agent of the installation, which is not cancelled yet, still writes to
// the disk; the erase succeeds, and the next tenant finds what was written after it.
func (p planner) isReleased() bool {
	return !p.Host.HasImage || !p.Host.Claimed || p.Spec.Machine == nil
}

// mustInstallAgain reports whether the Machine requests something else than is installed. It is installed in place, without an erase, because
// the disks stay with the Machine. While spec.online is false the Machine is still fencing its node, and nothing may be written.
func (p planner) mustInstallAgain() bool {
	in := p.d.Record.Installed
	return p.hasConsistentClaim() && p.Spec.Image != nil && p.Host.Online &&
		(in == nil || in.MachineUID != p.Spec.Machine.UID || in.Attempt != p.Spec.Attempt || in.Checksum != p.Spec.Image.Checksum)
}

// isLeftToOthers reports whether a host of unknown content is to be left as it is. Without it: a hall is taken over from another system, its hosts wait for
// their grants, and a person who says that something runs there that stays cannot keep them from the erase.
func (p planner) isLeftToOthers() bool {
	return !p.Host.Claimed && p.Host.ExternallyProvisioned && p.isIdle() && p.isOfUnknownContent() && !p.hasUnfinishedErase()
}

// forgetContent leaves what is on the disks to who installs the host. Without it: its BareMetalHost is deleted, and its disks are erased under what runs there.
func (p *planner) forgetContent() { setLastTenant(&p.d.Record, "", "", "") }

func (p *planner) recordUnknownContent() {
	setLastTenant(&p.d.Record, unknownTenant, "", "")
	p.d.Record.Erased = nil
}

// hasUnfinishedErase reports whether an erase was begun since the last installation and has not succeeded.
func (p planner) hasUnfinishedErase() bool {
	w := p.d.Record.Wanted
	return w != nil && w.Operation == string(hardware.OpErase) && w.Outcome != v1alpha1.AttemptSucceeded
}

// canSkipErase reports whether the policy requests no erase, and the installer need not be told of the release. Without the latter: Ironic keeps the node as
// deployed, with the config drive of the tenant in its database. It requires the confirmed power-off and that no erase is unfinished. Without it: an
// administrator changes the policy to None while a failed erase has left half of a tenant's data, and the host goes to the pool with it.
func (p planner) canSkipErase() bool {
	return !p.NeedsRelease && p.isIdleAndDirty() && !p.hasUnfinishedErase() && p.observedPower() == hardware.PowerOff && p.eraseMode() == v1alpha1.EraseNone
}

// recordSkippedErase writes the decision not to erase as a proof with the mode None.
func (p *planner) recordSkippedErase() {
	r := &p.d.Record
	number := int64(0)
	if r.Wanted != nil {
		number = r.Wanted.Number
	}
	r.Erased = &v1alpha1.EraseProof{Mode: v1alpha1.EraseNone, Attempt: number, At: microTime(p.Now), Tenant: r.LastTenant}
	r.Installed, r.Failures = nil, 0
}
