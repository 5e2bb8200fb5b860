package lifecycle

import (
	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func (s scope) planDeprovision() result {
	if s.Host.ImageURL == "" && !s.isCleaningChanged() {
		return done
	}
	return actionResult(Action{Kind: Deprovision}, report{
		reason: v1alpha1.ReasonErasing, waitingFor: "the host to be erased", message: s.deprovisioningMessage(),
	})
}

// deprovisioningMessage is the same until the host is back, unless a step takes long: each status write is a request, and HostRecord.status has every step.
func (s scope) deprovisioningMessage() string {
	return "host " + s.hostName() + " is being deprovisioned"
}

func (s scope) waitForErase() result {
	if s.guards.isHostReturnable(s.Facts) {
		return done
	}
	reason, message := s.hostProblem()
	switch {
	case reason == "":
		reason, message = v1alpha1.ReasonErasing, s.deprovisioningMessage()+s.slowStep()
		if s.Host.isBack() {
			message = "host " + s.hostName() + " is " + string(s.Host.State) + s.unobservedHint()
		}
	case reason == v1alpha1.ReasonBootAddressWrong || reason == v1alpha1.ReasonBootNetworkInvalid:
		message += "; its erase waits for that, and the host stays out of the pool"
	case s.Host.Error != "":
		reason, message = v1alpha1.ReasonEraseFailed, message+"; the host stays out of the pool"+s.abandonHint()
	}
	return waitResult(report{reason: reason, waitingFor: "the host to be erased", message: message}).withRequeueAfter(hostCheckInterval)
}
