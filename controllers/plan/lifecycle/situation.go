package lifecycle

// situation is what steps and edges decide from. It is passed by value, so that neither can change the Decision.
type situation struct {
	Facts
	guards guards
	// entering: the Decision enters the phase, on facts that were gathered for the phase before.
	entering bool
}

// hostName is namespace/name of the host that the Machine has or claims.
func (s situation) hostName() string {
	if r := s.Machine.Status.HostRef; r != nil {
		return r.Namespace + "/" + r.Name
	}
	return ""
}

func (s situation) isDeleted() bool { return s.Machine.Deleting }
func (s situation) hasHost() bool   { return s.guards.hasClaimedHost(s.Facts) }

// mustRoll: another revision is wanted, and nothing stands against it.
func (s situation) mustRoll() bool {
	if s.Next.Name == "" || !s.hasHost() {
		return false
	}
	reason, _ := s.rollObstacle()
	return reason == ""
}

func (s situation) canClaim() bool {
	if !s.Machine.Finalizer {
		return false
	}
	if s.Host != nil {
		return true // claimed before a crash: adopted, whatever placement says now
	}
	reason, _ := s.obstacle()
	return reason == "" && s.Choice.Host.Name != ""
}

func (s situation) hasLostClaim() bool {
	return s.Host == nil || s.Host.Consumer == ConsumerOther || !s.guards.isHostFit(s.Facts)
}

func (s situation) hasInstalled() bool {
	return s.hasHost() && s.Revision.Problem == "" && s.guards.hasImageOnDisk(s.Facts)
}

func (s situation) hasJoined() bool { return s.hasHost() && s.HasNodeOfThisAttempt() }

func (s situation) hasPassed() bool { return s.hasJoined() && s.guards.hasPassingVerdict(s.Facts) }

// hasFailed needs the tenant's word: while it cannot be reached nothing is known, and the Machine stays Ready.
func (s situation) hasFailed() bool { return s.Tenant.Reachable && !s.hasPassed() }

// canBeginInstall: the host is this Machine's, and what is to be installed is named whole. The name is kept for good, so a
// rendering that is missed must be waited for here.
func (s situation) canBeginInstall() bool { return s.hasHost() && s.Revision.Rendering != "" }

// installedNext is what a host that is fenced takes: what is wanted or, when the roll was called off too late, the same again.
func (s situation) installedNext() Revision {
	if s.Next.Name != "" {
		return s.Next
	}
	return s.Revision
}

func (s situation) isFenced() bool {
	return s.installedNext().Rendering != "" && s.hasHost() && s.guards.isPoweredOff(s.Facts) && s.guards.isNodeGone(s.Facts) && s.CanTakeImage()
}

// canEndRoll: the roll ends before it did harm; Ingot's own cordon is lifted first.
func (s situation) canEndRoll() bool {
	return s.hasHost() && s.guards.isCalledOff(s.Facts) && !s.Node.Cordoned
}

// isReleased: nothing is left to do. While the tenant cannot be reached a token may be left there; it ends by itself within
// the time that evictions are given.
func (s situation) isReleased() bool {
	switch {
	case s.hasHost():
		return false
	case s.Machine.Status.Attempt == 0:
		return true
	case s.Tenant.Reachable:
		return s.Token == nil
	default:
		return s.IsDrainOver()
	}
}
