package v1alpha1

// Reasons of Machine's Claimed condition.
const (
	ReasonClaimed = "Claimed"
	// ReasonClaiming: a host is being chosen or claimed.
	ReasonClaiming = "Claiming"
	// ReasonClaimTimedOut: the phase's deadline passed; the message names the host and what stands in the way.
	ReasonClaimTimedOut = "ClaimTimedOut"
	// ReasonNoHostAvailable: no host can be claimed now; the message says which were looked at and why each was passed over.
	ReasonNoHostAvailable = "NoHostAvailable"
	// ReasonHostNotFound: spec.hostName names no host of the provider.
	ReasonHostNotFound = "HostNotFound"
	// ReasonHostOrphaned: another host is still claimed by an earlier Machine of this name, and may run its node.
	ReasonHostOrphaned = "HostOrphaned"
	// ReasonKeptForMachine: the Machine has its host, and somebody has deleted that host; it is kept until the Machine has released it. It is the
	// reason of the HostRecord's condition Undeleted too.
	ReasonKeptForMachine = "KeptForMachine"
	// ReasonRestoreUnmatched: the objects were restored from a backup, and the host that names this Machine says something else than the Machine.
	// Nothing is done with either; the message says what differs.
	ReasonRestoreUnmatched = "RestoreUnmatched"
	// ReasonRestoreWaiting: the objects were restored from a backup, and the Machine takes its host over when what the message names is there.
	ReasonRestoreWaiting = "RestoreWaiting"
	// ReasonRestored is of an event alone: the Machine has found its host again after a restore.
	ReasonRestored = "Restored"
	// ReasonHostLost: the claimed host was deleted, or is another's now.
	ReasonHostLost = "HostLost"
	// ReasonWaitingForNodeType, ReasonWaitingForTenant: what the Machine refers to does not exist or is not Ready.
	ReasonWaitingForNodeType = "WaitingForNodeType"
	ReasonWaitingForTenant   = "WaitingForTenant"
	// ReasonVersionSkew: the image's kubelet is newer than the tenant's API server, or more than three minors older.
	ReasonVersionSkew = "VersionSkew"
	// ReasonDRANotServed: the revision's GPUs are advertised by a DRA driver, and the tenant's API does not serve resource.k8s.io/v1.
	ReasonDRANotServed = "DRANotServed"
)

// Reasons of Machine's Provisioned condition, beside those that the host reports (controllers/hardware.Reason, such
// as BootLoop or DigestMismatch, and those of HostError, such as BMCUnreachable or BMCConflict).
const (
	ReasonProvisioned  = "Provisioned"
	ReasonProvisioning = "Provisioning"
	// ReasonProvisioningTimedOut: the phase's deadline passed; the message names the step that it stopped at.
	ReasonProvisioningTimedOut = "ProvisioningTimedOut"
	// ReasonHostPaused, ReasonHostDetached: a person keeps the host's controller away by annotation.
	ReasonHostPaused   = "HostPaused"
	ReasonHostDetached = "HostDetached"
	// ReasonHostError: the host reports an error; the message quotes it.
	ReasonHostError = "HostError"
	// ReasonNodeSecretMissing: a file of the node is a key of a Secret in the host namespace, such as a licence token, and it
	// cannot be read; the message says which, and what to do.
	ReasonNodeSecretMissing = "NodeSecretMissing"
	// ReasonAcceptedWithWarnings is of an event alone: what the node's first boot reads is larger than some ways to it take,
	// or follows from what the vendor calls experimental.
	ReasonAcceptedWithWarnings = "AcceptedWithWarnings"
)

// Reasons of Machine's Joined condition.
const (
	ReasonJoined = "Joined"
	// ReasonWaitingForNode: the node boots and has not registered.
	ReasonWaitingForNode = "WaitingForNode"
	// ReasonJoinTimedOut: the phase's deadline passed without a Node.
	ReasonJoinTimedOut = "JoinTimedOut"
	// ReasonNodeConflict: a Node of that name exists and is another machine's.
	ReasonNodeConflict = "NodeConflict"
	// ReasonServerUnidentified: the tenant's cluster sets providerIDs itself, and what the Machine's Node would be known by instead is not known.
	ReasonServerUnidentified = "ServerUnidentified"
	// ReasonNodeLost: the Node object was deleted in the tenant's cluster.
	ReasonNodeLost = "NodeLost"
)

// Reasons of Machine's Validated condition.
const (
	ReasonValidated = "Validated"
	// ReasonChecksWaiting: checks wait for what a node does after it boots.
	ReasonChecksWaiting = "ChecksWaiting"
	// ReasonSettling: every check passes, and must do so for validation.settle.
	ReasonSettling = "Settling"
	// ReasonResourcesMissing: the node advertises less than promised.
	ReasonResourcesMissing = "ResourcesMissing"
	// ReasonChecksFailed: a check fails; the message names it.
	ReasonChecksFailed = "ChecksFailed"
	// ReasonValidationTimedOut: the phase's deadline passed; the message names the check that waits.
	ReasonValidationTimedOut = "ValidationTimedOut"
	// ReasonNodeRebooted: the boot changed since the verdict passed.
	ReasonNodeRebooted = "NodeRebooted"
	// ReasonServerOff is of Ready and of Joined: the BMC reports that the server is off, and Ingot did not power it off.
	ReasonServerOff = "ServerOff"
	// ReasonGateMissed: the Node was first seen without the gate; it was tainted at once.
	ReasonGateMissed = "GateMissed"
	// ReasonGateRemovedByOthers: something in the tenant's cluster keeps removing the gate of a node that is not validated; the Node is
	// cordoned, and the message says who removed it last.
	ReasonGateRemovedByOthers = "GateRemovedByOthers"
	// ReasonObserveOnly: validation.onFailure is Observe: the gate was lifted at the join, whatever the checks say.
	ReasonObserveOnly = "ObserveOnly"
)

// Reasons of Machine's NodeMetadataKept condition.
const (
	ReasonNodeMetadataKept = "NodeMetadataKept"
	// ReasonNodeMetadataRemovedByOthers: something in the tenant's cluster keeps removing labels or taints of the NodeType from the Node, which are
	// placed again ever more seldom; the message says which, and who removed them last.
	ReasonNodeMetadataRemovedByOthers = "NodeMetadataRemovedByOthers"
)

// Reasons of Machine's UpToDate condition.
const (
	ReasonUpToDate = "UpToDate"
	// ReasonRevisionOutdated: the NodeType has a newer revision.
	ReasonRevisionOutdated = "RevisionOutdated"
	// ReasonRenderingOutdated: the NodeType has another rendering of the same revision.
	ReasonRenderingOutdated = "RenderingOutdated"
)

// Reasons of Machine's Ready condition while it is rolled or released, in order.
const (
	// ReasonEvicting: pods are being evicted; the message names those that remain.
	ReasonEvicting = "Evicting"
	// ReasonDrainTimedOut: pods did not leave in rollout.drain.timeout; a roll waits for them, and its rollout stops.
	ReasonDrainTimedOut = "DrainTimedOut"
	// ReasonPoweringOff: the BMC has not confirmed the power-off.
	ReasonPoweringOff = "PoweringOff"
	// ReasonPoweredOff: spec.powerOff is set, and the BMC has confirmed the power-off. The Machine stays so until the field is cleared.
	ReasonPoweredOff = "PoweredOff"
	// ReasonDeletingNode: the Node object is being deleted.
	ReasonDeletingNode = "DeletingNode"
	// ReasonDeprovisioning: a baremetal-operator removes the image of the host, which takes the next one after that.
	ReasonDeprovisioning = "Deprovisioning"
	// ReasonErasing: the host is being deprovisioned and erased.
	ReasonErasing = "Erasing"
	// ReasonEraseFailed: the erase failed; the host stays out of the pool.
	ReasonEraseFailed = "EraseFailed"
	// ReasonNodeRemains: the tenant could not be reached; the host was powered off and the Node object remains there.
	ReasonNodeRemains = "NodeRemains"
)
