package lifecycle

import (
	"fmt"
	"slices"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// This file has what is known of a host that a baremetal-operator serves. It has no HostRecord, and its status is written by a controller that is
// not Ingot's.

// powerStates are the states in which a baremetal-operator looks at the power and changes it. In every other state, status.poweredOn is what it was
// before.
var powerStates = []metal3.ProvisioningState{metal3.StateAvailable, metal3.StateReady, metal3.StateProvisioned, metal3.StateExternallyProvisioned}

// isPowerManaged reports whether a baremetal-operator looks at the power of the host in its state.
func (h *Host) isPowerManaged() bool { return slices.Contains(powerStates, h.State) }

// isPowerCurrent reports whether status.poweredOn of a host without a HostRecord was seen after the last change of its spec. With every request to power
// off Ingot writes the annotation that asks for a reboot, and the operator removes it when it sees that the server is off. An operator that writes
// conditions says with them also which generation it has observed. That alone proves nothing about the power: a look that only registers the host again
// writes the generation too.
//
// The annotation proves it only in a state in which the operator looks at the power, and a request to power off is sent only in such a state: without
// that, the operator ends an installation, writes provisioned with the power of before, and the server runs although its status says that it is off.
//
// It proves nothing either while the BMC does not answer: the power is unknown then, status.poweredOn stays what it was, and an operator whose status is
// off already removes the annotation. One that writes the condition Manageable says so with it. Of one that does not, only a change is believed: the
// status said on when the power-off was requested, and says off now.
func (h *Host) isPowerCurrent() bool {
	if h.canShowOff() {
		return h.hasOperatorSeenSpec() && h.PowerOffRequested && !h.RebootRequested
	}
	return h.hasOperatorSeenSpec() && h.PowerOffOfRunning
}

// canShowOff reports whether the operator can show of a server whose status says off already that it knows that.
func (h *Host) canShowOff() bool { return h.Manageable != nil || h.isEmptied() }

// canBeAskedOff reports whether a request to power off can be confirmed: the operator looks at the power, and can show that it has seen the server off.
func (h *Host) canBeAskedOff() bool {
	return h.isPowerManaged() && (h.canShowOff() || h.PoweredOn)
}

// isEmptied reports whether the operator has removed what was installed on the host, for which it powers the server off, or nothing ever was.
func (h *Host) isEmptied() bool {
	return h.InstalledURL == "" && (h.State == metal3.StateAvailable || h.State == metal3.StateReady)
}

// isAskedOff reports whether the host is requested to be off, in such a way that its operator can confirm it.
func (h *Host) isAskedOff() bool {
	return !h.Online && (h.canShowOff() && h.PowerOffRequested || h.Manageable == nil && h.PowerOffOfRunning)
}

// hasOperatorSeenSpec reports whether the operator looks at the power and knows it, and has observed the spec where it says what it has observed. An operator
// that says of any reason that it does not manage the host does not know its power.
func (h *Host) hasOperatorSeenSpec() bool {
	if !h.isPowerManaged() || h.isSetAside() || h.isUnreachable() {
		return false
	}
	switch h.OperationalStatus {
	case metal3.OperationalStatusDelayed, metal3.OperationalStatusDetached, metal3.OperationalStatusServicing:
		return false
	}
	if h.Manageable != nil && !*h.Manageable {
		return false
	}
	return h.isSpecObserved()
}

// isSeenOff reports whether the operator has looked at a host that was given back since its last change, and seen it off. Where Ingot asked for that, it has removed
// the annotation for a reboot then.
func (h *Host) isSeenOff() bool {
	return !h.Online && !h.PoweredOn && h.hasOperatorSeenSpec() && !(h.PowerOffRequested && h.RebootRequested)
}

// isSpecObserved reports whether the operator has observed the spec, where it says what it has observed.
func (h *Host) isSpecObserved() bool {
	return h.ObservedGeneration == nil || *h.ObservedGeneration >= h.Generation
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
	return h.ImageURL == "" && h.isEmptied()
}

// hostError returns the error of the host. That of an installation which a baremetal-operator has undone is none.
func (f Facts) hostError() string {
	if h := f.Host; !f.mustHaveRecord() && (h.isBack() && metal3.ErrorType(h.Error) == metal3.ProvisioningError || h.hasOldPowerError()) {
		return ""
	}
	return f.Host.Error
}

// isNeverPoweredOff reports whether spec.disablePowerOff forbids the power-off of a host without a HostRecord.
func (s scope) isNeverPoweredOff() bool {
	return s.Host != nil && s.Host.NeverPoweredOff && !s.mustHaveRecord()
}

// waitWhileNeverPoweredOff asks nothing of a host whose power-off an administrator has forbidden since its claim. Without it: Metal3's webhook refuses online
// false on such a host for ever or, without that webhook, the operator reboots the server again and again in place of the power-off; and the Machine says only that its
// BMC has not confirmed.
func (s scope) waitWhileNeverPoweredOff() result {
	if !s.isNeverPoweredOff() {
		return done
	}
	return waitResult(report{
		reason: v1alpha1.ReasonPowerOffDisabled, waitingFor: "spec.disablePowerOff of the host to be removed", message: s.neverPoweredOffMessage() + s.abandonHint(),
	}).withRequeueAfter(hostCheckInterval)
}

func (s scope) neverPoweredOffMessage() string {
	return "host " + s.hostName() + " has spec.disablePowerOff, so that its server can neither be powered off nor get another image: an administrator of the host removes that field"
}

// isCleaningChanged reports whether a host without an image is to be cleaned although that was set aside. The image is then removed once more, which sets it aside
// again. Without it: a site applies the manifest of a host again, in which its cleaning is enabled, and a roll cleans all disks before the operator has looked.
func (s scope) isCleaningChanged() bool {
	return !s.mustHaveRecord() && s.Host.CleaningChanged && !s.Host.isBack()
}

// isSetAside reports whether a person keeps the baremetal-operator away from the host.
func (h *Host) isSetAside() bool { return h.Paused || h.Detached }

// hasOldPowerError reports whether the error is about a change of the power that nobody asks for any more: the power is what the spec asks for. A
// baremetal-operator removes it with the next change of the power or the next installation. Without it: a power-off fails, spec.powerOff is cleared, the
// server runs on, and the Machine is never rolled again. Or it fails once before a roll removes the image, and the next one is never requested.
func (h *Host) hasOldPowerError() bool {
	return metal3.ErrorType(h.Error) == metal3.PowerManagementError && h.isPowerManaged() && h.Online == h.PoweredOn && !h.RebootRequested
}

// hasFailedInstallation reports whether a baremetal-operator has failed to install the host, so that nothing that was installed runs. Without it: the image
// cannot be fetched, its operator tries it again for ever, and the roll to the corrected image waits for a state between two tries. A try that goes on is none: it
// may end in the same moment, and its server run.
func (s scope) hasFailedInstallation() bool {
	return s.Host.ImageURL != "" && metal3.ErrorType(s.Host.Error) == metal3.ProvisioningError && !s.canHaveBooted()
}

// waitForPowerState waits until a baremetal-operator looks at the power of the host again. See isPowerCurrent.
func (s scope) waitForPowerState() result {
	waitingFor := "the host to leave the state " + string(s.Host.State)
	if s.Host.isSetAside() {
		waitingFor = "its baremetal-operator to serve the host again"
	}
	reason, message := s.hostProblem()
	switch {
	case reason != "":
	case s.Host.isPowerManaged():
		waitingFor = "its baremetal-operator to see the server on"
		reason, message = v1alpha1.ReasonPoweringOff, s.unprovenOffMessage()
	default:
		reason, message = v1alpha1.ReasonPoweringOff, fmt.Sprintf("host %s is %s, and is powered off when that has ended", s.hostName(), s.Host.State)
	}
	return waitResult(report{reason: reason, waitingFor: waitingFor, message: message}).withRequeueAfter(hostCheckInterval)
}

// planOfflineAgain requests a host to be off that somebody has set to online true since its image was removed. Without it: the operator powers the server on, and the
// Machine waits for ever for a host that is available and off.
func (s scope) planOfflineAgain() result {
	if s.mustHaveRecord() || !s.Host.Online || s.Host.isSetAside() {
		return done
	}
	return actionResult(Action{Kind: PowerOff}, s.powerOffReport()).withRequeueAfter(hostCheckInterval)
}

// unprovenOffMessage says why a server is not powered off that seems to be off.
func (s scope) unprovenOffMessage() string {
	message := "the status of host " + s.hostName() + " says that its server is off, and its baremetal-operator writes no conditions that say whether it knows the power: " +
		"the server is powered off when it has been seen on; remove each annotation " + metal3.RebootAnnotationPrefix + "/NAME that keeps it off"
	if !s.Host.Online {
		message += "; set spec.online of its BareMetalHost to true"
	}
	return message + s.abandonHint()
}

// servedInstallingReport is the same for the whole installation, because each write of a status is a request.
func (s scope) servedInstallingReport() report {
	return report{
		v1alpha1.ConditionProvisioned, v1alpha1.ReasonProvisioning, "its baremetal-operator to install it",
		"host " + s.hostName() + " is installed by its baremetal-operator" + s.overdueStep(nil),
	}
}

// servedErrors are the errors of a host that a baremetal-operator serves, as a reason and in words that are fit for those who may not read hosts.
var servedErrors = map[metal3.ErrorType]struct{ reason, words string }{
	metal3.RegistrationError:            {v1alpha1.ReasonBMCUnreachable, "its baremetal-operator cannot use its BMC: it does not answer, or refuses the credentials"},
	metal3.ProvisionedRegistrationError: {v1alpha1.ReasonBMCUnreachable, "its baremetal-operator cannot register the running server again"},
	metal3.PowerManagementError:         {v1alpha1.ReasonBMCConflict, "its BMC does not change the power"},
	metal3.ProvisioningError:            {string(hardware.ReasonInstallerFailed), "its baremetal-operator could not install or clean it"},
	metal3.InspectionError:              {v1alpha1.ReasonHostError, "its inspection failed"},
	metal3.PreparationError:             {v1alpha1.ReasonHostError, "its RAID or firmware could not be prepared"},
	metal3.ServicingError:               {v1alpha1.ReasonHostError, "its servicing failed"},
	metal3.DetachError:                  {v1alpha1.ReasonHostError, "its baremetal-operator could not detach it"},
}

// servedHostProblem returns the reason why the baremetal-operator of a host does not continue.
func (s scope) servedHostProblem(hostError string) (reason, message string) {
	h, name := s.Host, "host "+s.hostName()
	switch {
	case h.Deleting:
		return v1alpha1.ReasonHostDeleting, s.deletedHostMessage()
	case hostError != "":
		known, isKnown := servedErrors[metal3.ErrorType(hostError)]
		if !isKnown {
			known.reason, known.words = v1alpha1.ReasonHostError, "it reports a "+hostError
		}
		if h.ErrorCount > 1 {
			known.words += fmt.Sprintf(" (%d times)", h.ErrorCount)
		}
		return known.reason, name + ": " + known.words + detailsHint + s.givenUpHint(hostError)
	case h.OperationalStatus == metal3.OperationalStatusDelayed:
		return v1alpha1.ReasonHostDelayed, name + " waits until its baremetal-operator has ended work on other hosts (its PROVISIONING_LIMIT)"
	case h.OperationalStatus == metal3.OperationalStatusServicing:
		return v1alpha1.ReasonHostServicing, name + " is being serviced by its baremetal-operator, which changes its firmware"
	case h.OperationalStatus == metal3.OperationalStatusDetached:
		return v1alpha1.ReasonHostDetached, name + " is still detached: its baremetal-operator takes it back now"
	}
	return "", ""
}

// givenUpHint returns the end of the message about an installation that is tried no more. A baremetal-operator with a limit of tries leaves its error on a
// host that is available; one that tries again clears it there.
func (s scope) givenUpHint(hostError string) string {
	if metal3.ErrorType(hostError) != metal3.ProvisioningError || s.Host.State != metal3.StateAvailable || !s.hasImageRequested() {
		return ""
	}
	return "; its baremetal-operator tries it no more: mend the cause and " + s.Machine.RemovalAdvice() + ", or change the image of the NodeType"
}

// unobservedHint returns the end of a message about a host that is back but for its operator, which has not looked at it yet.
func (s scope) unobservedHint() string {
	if s.mustHaveRecord() || !s.Host.isBack() || s.Host.isSpecObserved() {
		return ""
	}
	return "; its baremetal-operator has not yet seen that no image is asked for: see whether it runs"
}

// deletedHostMessage says what the deletion of a BareMetalHost does to its Machine, and the way back.
func (s scope) deletedHostMessage() string {
	return fmt.Sprintf("BareMetalHost %s is being deleted: its baremetal-operator powers the server off and removes the image, whatever runs there. A deletion cannot be taken back: %s, "+
		"and create the BareMetalHost again when it is gone", s.hostName(), s.Machine.RemovalAdvice())
}

// reportDeletedHost sets the condition Claimed of a Machine whose host is being deleted, and adds an event the first time.
func (p *planner) reportDeletedHost() {
	message := p.deletedHostMessage()
	if c := meta.FindStatusCondition(p.Machine.Status.Conditions, v1alpha1.ConditionClaimed); c == nil || c.Reason != v1alpha1.ReasonHostDeleting {
		p.addEvent(true, v1alpha1.ReasonHostDeleting, message)
	}
	p.setCondition(v1alpha1.ConditionClaimed, metav1.ConditionFalse, v1alpha1.ReasonHostDeleting, message)
}
