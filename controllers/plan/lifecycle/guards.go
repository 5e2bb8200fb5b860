package lifecycle

// guards are the questions that safety hangs on, each in one place. Tests take one away and see the harm.
type guards struct {
	// hostIsMine: nothing is asked of a host, and nothing concluded from it, without.
	hostIsMine func(Facts) bool
	// hostIsFit: a host is claimed only while placement finds it fit.
	hostIsFit func(Facts) bool
	// imageIsOnDisk: the host reports this attempt's image, written and verified.
	imageIsOnDisk func(Facts) bool
	// powerIsOff: the BMC confirmed the power-off after it was asked for.
	powerIsOff func(Facts) bool
	// nodeIsGone: the Machine's Node object is known not to exist.
	nodeIsGone func(Facts) bool
	// hostIsBack: the host is available again, erased as was asked.
	hostIsBack func(Facts) bool
	// verdictHolds: the verdict passed and speaks of this Node, this boot and this revision.
	verdictHolds func(Facts) bool
	// tokenMayLive: a bootstrap token is needed, and may be made or renewed.
	tokenMayLive func(Facts) bool
	// unsuited: nothing is drained for a revision that cannot be installed, or that the tenant's cluster cannot take.
	unsuited func(Facts, Revision) (reason, message string)
	// calledOff: a roll ends without a re-image only while what is installed still runs.
	calledOff func(Facts) bool
}

func realGuards() guards {
	return guards{
		hostIsMine: Facts.HostIsMine, hostIsFit: Facts.HostIsFit, imageIsOnDisk: Facts.ImageIsOnDisk, powerIsOff: Facts.PowerIsOff,
		nodeIsGone: Facts.NodeIsGone, hostIsBack: Facts.HostIsBack, verdictHolds: Facts.VerdictHolds, tokenMayLive: Facts.TokenMayLive,
		unsuited: unsuited, calledOff: Facts.CalledOff,
	}
}
