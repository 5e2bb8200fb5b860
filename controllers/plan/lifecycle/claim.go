package lifecycle

import (
	"fmt"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// look is how often a Machine that waits for something unseen is looked at again.
const look = 5 * time.Minute

// addFinalizer holds the Machine until its host is back.
func (s situation) addFinalizer() result {
	if s.Machine.Finalizer {
		return next
	}
	return act(Action{Kind: AddFinalizer}, notice{}).planAgain()
}

// awaitReferences waits for NodeType, revision, provider and tenant.
func (s situation) awaitReferences() result {
	reason, message := s.obstacle()
	if reason == "" {
		return next
	}
	return wait(notice{condition: v1alpha1.ConditionClaimed, reason: reason, message: message}).lookAgain(look)
}

func (s situation) awaitPlacement() result {
	if s.Choice.Host.Name == "" && s.Choice.Reason != "" {
		return wait(notice{v1alpha1.ConditionClaimed, s.Choice.Reason, "a host that can be claimed", s.Choice.Message}).lookAgain(look)
	}
	return wait(notice{condition: v1alpha1.ConditionClaimed, reason: v1alpha1.ReasonClaiming, message: "a host is being chosen"}).lookAgain(look)
}

func (s situation) claimHost() result {
	return act(Action{Kind: ClaimHost}, notice{
		condition: v1alpha1.ConditionClaimed, reason: v1alpha1.ReasonClaiming, message: "host " + s.hostName() + " is being claimed",
	}).planAgain()
}

// reportLostHost says that the host is no longer this Machine's. Nothing more is done to it; the token is still kept as it must be.
func (s situation) reportLostHost() result {
	if s.hasHost() {
		return next
	}
	whose := "was deleted"
	if s.Host != nil {
		whose = "is no longer this Machine's"
		if s.Host.ConsumerName != "" {
			whose = "is " + s.Host.ConsumerName + "'s now"
		}
	}
	return s.keepToken(notice{}).then(wait(notice{
		condition: v1alpha1.ConditionClaimed, reason: v1alpha1.ReasonHostLost,
		message: fmt.Sprintf("host %s %s; nothing more is done to it: delete this Machine", s.hostName(), whose),
	}))
}
