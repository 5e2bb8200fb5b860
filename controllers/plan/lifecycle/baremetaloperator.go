package lifecycle

import (
	"fmt"
	"slices"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// This file has what is known of a host that a baremetal-operator serves. It has no HostRecord, and its status is written by a controller that is
// not Ingot's.

// powerStates are the states in which a baremetal-operator looks at the power and changes it. In every other state, status.poweredOn is what it was
// before.
var powerStates = []metal3.ProvisioningState{metal3.StateAvailable, metal3.StateReady, metal3.StateProvisioned, metal3.StateExternallyProvisioned}

// isPowerManaged reports whether a baremetal-operator looks at the power of the host in its state.
func (h *Host) isPowerManaged() bool { return slices.Contains(powerStates, h.State) }

// isPowerCurrent reports whether status.poweredOn of a host without a HostRecord was seen after the last change of its spec. Two things can prove
// that. An operator that writes conditions writes with them which generation it has observed. One that does not removes the annotation that asks
// for a reboot when it sees that the server is off, and Ingot writes that annotation with every request to power off.
//
// Both prove it only in a state in which the operator looks at the power, and a request to power off is sent only in such a state: without that,
// the operator ends an installation, writes provisioned with the power of before, and the server runs although its status says that it is off.
func (h *Host) isPowerCurrent() bool {
	if !h.isPowerManaged() || h.Paused || h.Detached || h.isUnreachable() {
		return false
	}
	switch h.OperationalStatus {
	case metal3.OperationalStatusDelayed, metal3.OperationalStatusDetached, metal3.OperationalStatusServicing:
		return false
	}
	if h.ObservedGeneration != nil {
		return *h.ObservedGeneration >= h.Generation
	}
	return h.PowerOffRequested && !h.RebootRequested
}

// isUnreachable reports whether the host has an error with which a baremetal-operator does not look at its power.
func (h *Host) isUnreachable() bool {
	switch metal3.ErrorType(h.Error) {
	case metal3.RegistrationError, metal3.ProvisionedRegistrationError, metal3.DetachError:
		return true
	}
	return false
}

// isBack reports whether a baremetal-operator has given the host back: nothing is installed, and nothing is asked for. An error that it had before
// may stay until the next change of the power, and says nothing about the host.
func (h *Host) isBack() bool {
	return h.ImageURL == "" && h.InstalledURL == "" && (h.State == metal3.StateAvailable || h.State == metal3.StateReady)
}

// hostError returns the error of the host. That of an installation which a baremetal-operator has undone is none.
func (f Facts) hostError() string {
	if h := f.Host; !f.mustHaveRecord() && h.isBack() && metal3.ErrorType(h.Error) == metal3.ProvisioningError {
		return ""
	}
	return f.Host.Error
}

// waitForPowerState waits until a baremetal-operator looks at the power of the host again. See isPowerCurrent.
func (s scope) waitForPowerState() result {
	reason, message := s.hostProblem()
	if reason == "" {
		reason, message = v1alpha1.ReasonPoweringOff, fmt.Sprintf("host %s is %s, and is powered off when that has ended", s.hostName(), s.Host.State)
	}
	return waitResult(report{reason: reason, waitingFor: "the host to leave the state " + string(s.Host.State), message: message}).withRequeueAfter(hostCheckInterval)
}
