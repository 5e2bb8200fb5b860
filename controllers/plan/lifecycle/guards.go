package lifecycle

// guards are the questions that safety hangs on, each in one place. Tests take one away and see the harm.
type guards struct {
	// hasClaimedHost: without it nothing is requested of a host, and nothing is concluded from what it reports.
	hasClaimedHost func(Facts) bool
	// isHostFit: a host is claimed only while placement finds it fit.
	isHostFit func(Facts) bool
	// hasImageOnDisk: a Machine is Joining only when the host reports this attempt's image, written and verified.
	hasImageOnDisk func(Facts) bool
	// isPoweredOff: a Node is deleted, and a disk touched, only when the BMC has confirmed the power-off after it was requested.
	isPoweredOff func(Facts) bool
	// isNodeGone: a disk is touched only when the Machine's Node object is known not to exist.
	isNodeGone func(Facts) bool
	// isHostBack: a host is returned only when it is available again, erased as was requested.
	isHostBack func(Facts) bool
	// hasPassingVerdict: a Machine is Ready only when the verdict passed and speaks of this Node, this boot and this installation.
	hasPassingVerdict func(Facts) bool
	// needsToken: a bootstrap token is made or renewed only while an installation needs it.
	needsToken func(Facts) bool
	// unsuited: no Node is drained for a revision that cannot be installed, or that the tenant's cluster cannot take.
	unsuited func(Facts, Revision) (reason, message string)
	// isCalledOff: a roll ends without a new installation only while the one before it still runs.
	isCalledOff func(Facts) bool
}

func realGuards() guards {
	return guards{
		hasClaimedHost: Facts.HasClaimedHost, isHostFit: Facts.IsHostFit, hasImageOnDisk: Facts.HasImageOnDisk, isPoweredOff: Facts.IsPoweredOff,
		isNodeGone: Facts.IsNodeGone, isHostBack: Facts.IsHostBack, hasPassingVerdict: Facts.HasPassingVerdict, needsToken: Facts.NeedsToken,
		unsuited: unsuited, isCalledOff: Facts.IsCalledOff,
	}
}
