package lifecycle

import (
	"fmt"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// isBeforePowerOff: the machine still runs, and the roll can be called off.
func (s situation) isBeforePowerOff() bool { return !s.HasPowerOffBegun() }

func (s situation) uncordonCalledOff() result {
	if !s.guards.isCalledOff(s.Facts) {
		return next
	}
	return act(Action{Kind: Uncordon, NodeUID: s.Node.UID}, notice{
		reason: v1alpha1.ReasonEvicting, message: "the roll was called off: Node " + s.Machine.Name + " is being uncordoned",
	}).planAgain()
}

// awaitNextRevision stops a roll whose revision can no longer be installed.
func (s situation) awaitNextRevision() result {
	if s.Next.Name == "" {
		return next
	}
	reason, message := s.guards.unsuited(s.Facts, s.Next)
	if reason == "" {
		return next
	}
	return wait(notice{reason: reason, message: message + "; the roll waits, and its Node stays cordoned"}).lookAgain(time.Minute)
}

// awaitRendering waits until what is installed next is named whole.
func (s situation) awaitRendering() result {
	of := s.installedNext()
	if of.Rendering != "" {
		return next
	}
	return wait(notice{
		reason: v1alpha1.ReasonWaitingForNodeType, message: "revision " + of.Name + ": " + of.Problem + "; nothing is installed before that",
	}).lookAgain(time.Minute)
}

// takeImageOff is for hosts without HostRecords: a baremetal-operator installs only on what it has deprovisioned.
func (s situation) takeImageOff() result {
	if s.CanTakeImage() {
		return next
	}
	reason, message := s.hostTrouble()
	if reason == "" {
		reason, message = v1alpha1.ReasonErasing, fmt.Sprintf("host %s is %s; it takes the next image when it is available", s.hostName(), s.Host.State)
	}
	n := notice{reason: reason, waitingFor: "the host to be deprovisioned", message: message}
	if s.Host.ImageURL != "" {
		return act(Action{Kind: Deprovision}, n).lookAgain(hostRound)
	}
	return wait(n).lookAgain(hostRound)
}
