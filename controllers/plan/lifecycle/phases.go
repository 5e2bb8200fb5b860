package lifecycle

import "github.com/ingot-dev/ingot/api/v1alpha1"

// phases are what is done in each phase while none of its edges holds. The steps are taken in their order, up to the first that
// has something to do or to wait for. The words of a step say what holds when it has nothing to do.
var phases = map[v1alpha1.MachinePhase][]step{
	v1alpha1.MachinePending: {
		goal("the Machine has the finalizer", situation.addFinalizer),
		goal("everything that it refers to can be used", situation.awaitReferences),
		goal("placement has chosen a host", situation.awaitPlacement),
	},
	v1alpha1.MachineClaiming: {
		goal("everything that it refers to can be used", situation.awaitReferences),
		goal("the host's consumerRef is this Machine", situation.claimHost),
		goal("its revision has a rendering", situation.awaitRendering),
	},
	v1alpha1.MachineProvisioning: {
		goal("the host is this Machine's", situation.reportLostHost),
		goal("the host is in no trouble", situation.awaitHostController),
		goal("the revision whose image is on the disk can be rendered", situation.awaitRevision),
		goal("the revision suits the tenant's cluster, or is requested already", situation.awaitSuitability),
		goal("the HostRecord has this attempt", situation.writeHostRecord),
		goal("the bootstrap token is valid, or deleted when the phase is late", situation.keepInstallToken),
		goal("the claim Secret has this attempt's documents", situation.writeClaimSecret),
		goal("the host is requested to install the image", situation.requestInstall),
		goal("the image is on the disk", situation.awaitInstallation),
	},
	v1alpha1.MachineJoining: {
		goal("the host is this Machine's", situation.reportLostHost),
		goal("the tenant's API server answers", situation.awaitTenantToJoin),
		goal("no Node of an earlier attempt exists", situation.deleteEarlierNode),
		goal("the bootstrap token is valid, or deleted when the phase is late", situation.keepJoinToken),
		goal("the Node has registered", situation.awaitNode),
	},
	v1alpha1.MachineValidating: append(furnishSteps(),
		goal("the verdict passes", situation.awaitVerdict)),
	v1alpha1.MachineReady: furnishSteps(),
	v1alpha1.MachineDraining: append([]step{
		goal("the host is this Machine's", situation.reportLostHost),
		while("the power-off is not begun", situation.isBeforePowerOff,
			goal("no bootstrap token is left", situation.deleteToken),
			goal("the Node of a roll that was called off is uncordoned", situation.uncordonCalledOff),
			goal("the wanted revision suits the tenant's cluster", situation.awaitNextRevision))},
		append(fenceSteps(),
			goal("the host can take another image", situation.takeImageOff),
			goal("the next revision has a rendering", situation.awaitRendering))...),
	v1alpha1.MachineReleasing: {
		goal("no bootstrap token is left", situation.deleteToken),
		while("the host is this Machine's", situation.hasHost,
			while("the installed system may run", situation.canBeRunning, fenceSteps()...),
			goal("the host has no image", situation.deprovision),
			goal("the host is erased and available", situation.awaitErase),
			goal("no Node that registered meanwhile exists", situation.deleteLateNode),
			goal("the HostRecord is empty", situation.clearHostRecord),
			goal("the claim Secret is deleted", situation.deleteClaimSecret),
			goal("the host has no consumerRef", situation.returnHost)),
		goal("the tenant's API server answers, or had its time", situation.awaitRelease),
	},
	gone: {
		goal("it is reported that a Node may remain", situation.reportRemainingNode),
		goal("the finalizer is removed", situation.removeFinalizer),
	},
}

// furnishSteps are the steps with a Node that has joined: what the join needed goes, what its NodeType gives the Node comes.
func furnishSteps() []step {
	return []step{
		goal("the host is this Machine's", situation.reportLostHost),
		goal("the tenant's API server is looked for while it does not answer", situation.lookForTenant),
		while("the tenant's API server answers", situation.canAskTenant,
			goal("no bootstrap token is left", situation.deleteUsedToken),
			goal("the claim Secret has no token", situation.scrubSecret),
			goal("the Node has no cordon of Ingot's", situation.uncordonNode),
			goal("the Node has its NodeType's labels and taints", situation.furnishNode)),
	}
}

// fenceSteps are the steps that stop the machine and take its Node out of the cluster. A disk may be touched only behind it.
func fenceSteps() []step {
	return []step{
		while("the pods have time to leave", situation.canEvict,
			goal("the tenant's API server answers", situation.awaitTenant),
			goal("the Node is cordoned", situation.cordonNode),
			goal("the Node's pods have left", situation.evictPods)),
		goal("the Node's pods were looked for in this phase", situation.awaitObservation),
		goal("the status says that the power-off is begun", situation.beginPowerOff),
		goal("the host is requested to power off", situation.powerOff),
		goal("the BMC has confirmed the power-off", situation.awaitPowerOff),
		goal("the Node is deleted", situation.deleteNode),
	}
}
