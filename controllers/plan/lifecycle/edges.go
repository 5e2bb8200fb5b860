package lifecycle

import "github.com/ingot-dev/ingot/api/v1alpha1"

// gone is where a Machine's life ends: its finalizer was removed.
const gone v1alpha1.MachinePhase = "gone"

// edge is one way from a phase to another.
type edge struct {
	from, to v1alpha1.MachinePhase
	// when says in words what holds decides.
	when  string
	holds func(situation) bool
	// enter records what the new phase stands on; nil: nothing beyond the phase itself.
	enter func(*planner)
}

// edges is the life of a Machine. The first edge of a phase that holds is taken.
var edges = table()

func table() []edge {
	releasing := func(from v1alpha1.MachinePhase) edge {
		return edge{from, v1alpha1.MachineReleasing, "deleted", situation.isDeleted, nil}
	}
	rolling := func(from v1alpha1.MachinePhase) edge {
		return edge{from, v1alpha1.MachineDraining, "another revision is wanted and can be installed", situation.mustRoll, (*planner).enterDraining}
	}
	const (
		pending, claiming, provisioning = v1alpha1.MachinePending, v1alpha1.MachineClaiming, v1alpha1.MachineProvisioning
		joining, validating             = v1alpha1.MachineJoining, v1alpha1.MachineValidating
		ready, draining                 = v1alpha1.MachineReady, v1alpha1.MachineDraining
	)
	return []edge{
		releasing(pending),
		{pending, claiming, "all it refers to is ready, and placement chose a host", situation.canClaim, (*planner).enterClaiming},
		releasing(claiming),
		{claiming, provisioning, "the host's consumerRef is this Machine, and its revision has a rendering", situation.canBeginInstall, (*planner).enterProvisioning},
		{claiming, pending, "the host is another's, gone or no longer fit", situation.hasLostClaim, (*planner).enterPending},
		releasing(provisioning),
		rolling(provisioning),
		{provisioning, joining, "this attempt's image is on the disk", situation.hasInstalled, (*planner).enterJoining},
		releasing(joining),
		rolling(joining),
		{joining, validating, "a Node with this attempt's providerID exists", situation.hasJoined, (*planner).enterValidating},
		releasing(validating),
		rolling(validating),
		{validating, ready, "the verdict passes for this Node, boot and revision, and the gate is lifted", situation.hasPassed, (*planner).enterReady},
		releasing(ready),
		rolling(ready),
		{ready, validating, "the verdict no longer passes", situation.hasFailed, (*planner).enterValidating},
		releasing(draining),
		{draining, provisioning, "evicted, power-off confirmed, Node deleted, and the next revision has a rendering", situation.isFenced, (*planner).enterNextAttempt},
		{draining, validating, "the roll was called off before the power-off was begun, and the Node is uncordoned", situation.canEndRoll, (*planner).enterValidating},
		{v1alpha1.MachineReleasing, gone, "no host is this Machine's, and its token is gone", situation.isReleased, nil},
	}
}
