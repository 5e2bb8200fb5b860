package lifecycle

import (
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/inventory"
)

// hostProblem returns the reason why the host's controller does not continue.
func (s scope) hostProblem() (reason, message string) {
	h, hostError := s.Host, s.hostError()
	switch {
	case h.Record != nil && !s.Provider.Found:
		return v1alpha1.ReasonProviderNotFound, fmt.Sprintf("no NodeProvider has the host namespace %s, so nobody drives the BMC of host %s: create it again with spec.hostNamespace: %s", h.Namespace, s.hostName(), h.Namespace)
	case h.Paused:
		return v1alpha1.ReasonHostPaused, "host " + s.hostName() + " is paused: remove its annotation " + metal3.PausedAnnotation
	case h.Detached:
		return v1alpha1.ReasonHostDetached, "host " + s.hostName() + " is detached: remove its annotation " + metal3.DetachedAnnotation
	case !s.mustHaveRecord() && h.ErrorReason == "":
		return s.servedHostProblem(hostError)
	case hostError != "" && h.ErrorReason == v1alpha1.ReasonHardwareInsufficient:
		return h.ErrorReason, s.hardwareProblem()
	case hostError != "" && h.ErrorReason != "":
		return h.ErrorReason, "host " + s.hostName() + ": " + failureKind(h.ErrorReason) + detailsHint
	case hostError != "":
		return v1alpha1.ReasonHostError, fmt.Sprintf("host %s reports a %s%s", s.hostName(), h.Error, detailsHint)
	default:
		return "", ""
	}
}

// hardwareProblem says what the server lacks. It is made from the inventory, so that the Machine says no more of the host than that.
func (s scope) hardwareProblem() string {
	message := "host " + s.hostName() + ": " + failureKind(v1alpha1.ReasonHardwareInsufficient)
	if r := s.Host.Record; r != nil && r.Status.Wanted != nil {
		if difference := inventory.HardwareDifference(r.Status.Wanted.Hardware, r.Status.Wanted.Image, r.Status.Inventory); difference != "" {
			message += ": " + difference
		}
	}
	return message + "; repair the server and have the attempt tried again (kubectl ingot why), lower spec.hardware of the NodeType, or " + s.Machine.RemovalAdvice()
}

// detailsHint ends the message about an error of a host or of an attempt on it. The texts themselves are not repeated in a Machine. Without that: they
// have addresses of BMCs and the names of other tenants' Machines, and whoever may read the Machine reads them.
const detailsHint = " (details: kubectl ingot why)"

// failureKinds are the errors of hosts and of attempts in words that are fit for those who may not read hosts.
var failureKinds = map[string]string{
	v1alpha1.ReasonBMCUnreachable:        "its BMC does not answer",
	v1alpha1.ReasonBMCUnauthorized:       "its BMC refuses the credentials",
	v1alpha1.ReasonBMCBusy:               "its BMC cannot serve requests now",
	v1alpha1.ReasonBMCSessionsExhausted:  "all sessions of its BMC are in use",
	v1alpha1.ReasonBMCNotFound:           "its BMC does not have the system that is asked for",
	v1alpha1.ReasonBMCConflict:           "its BMC refuses what is asked of it",
	v1alpha1.ReasonBMCUnsupported:        "its BMC cannot do what is needed",
	v1alpha1.ReasonBMCInvalid:            "the answers of its BMC cannot be read",
	v1alpha1.ReasonBMCAddressInvalid:     "the address of its BMC is not valid",
	v1alpha1.ReasonCredentialsMissing:    "the credentials of its BMC are missing",
	v1alpha1.ReasonCABundleMissing:       "the certificates of its BMC are missing",
	v1alpha1.ReasonHostRecordUnavailable: "its HostRecord cannot be read or written",
	v1alpha1.ReasonInstallerUnreachable:  "the service that installs it does not answer",
	v1alpha1.ReasonInstallerUnauthorized: "the service that installs it refuses the credentials, or what they ask for",
	v1alpha1.ReasonInstallerBusy:         "the service that installs it is busy and is asked again",
	v1alpha1.ReasonInstallerNotFound:     "the service that installs it does not have what is named for it",
	v1alpha1.ReasonInstallerConflict:     "the service that installs it has it in a state that does not allow the request, or for somebody else",
	v1alpha1.ReasonInstallerUnsupported:  "the service that installs it cannot do what is needed",
	v1alpha1.ReasonInstallerInvalid:      "the service that installs it refuses the request, or its answer cannot be read",
	v1alpha1.ReasonInstallerMaintenance:  "people have put it into maintenance in the service that installs it",
	v1alpha1.ReasonInstallerPowerFailure: "the service that installs it cannot read its power",
	v1alpha1.ReasonSameServer:            "another host is the same server, so nothing is done with either",
	v1alpha1.ReasonBootAddressWrong:      "something else than the boot service answers at the address that servers boot from",
	v1alpha1.ReasonBootNetworkInvalid:    "what is configured of the network that it boots with cannot work",
	v1alpha1.ReasonMachineGone:           "the Machine that had it is gone",

	string(hardware.ReasonPowerOnIgnored):       "its BMC accepted the power-on, and the server stayed off",
	string(hardware.ReasonPowerOffIgnored):      "its BMC accepted the power-off, and the server stayed on",
	string(hardware.ReasonNoBootRequest):        "the server was powered on and never asked for its boot document",
	string(hardware.ReasonAgentMissing):         "the server took its boot document, and no installer registered",
	string(hardware.ReasonAgentSilent):          "the installer stopped reporting",
	string(hardware.ReasonNoConfigDrive):        "the installer waited for the node's documents, which nobody wrote",
	string(hardware.ReasonBootLoop):             "the server boots the installer again and again",
	string(hardware.ReasonImageUnreachable):     "the installer cannot read the image",
	string(hardware.ReasonDigestMismatch):       "the image as served does not have the expected digest",
	string(hardware.ReasonImageInvalid):         "the image cannot be decompressed, or is larger than the disk",
	string(hardware.ReasonNoRootDevice):         "no disk matches the root device hints",
	string(hardware.ReasonHardwareDiffers):      "the server has other GPUs than are promised, and no disk was touched",
	string(hardware.ReasonHardwareInsufficient): "the server lacks hardware that the NodeType requires, and no disk was touched",
	string(hardware.ReasonRootDiskDiffers):      "the disk of the installation before is not there",
	string(hardware.ReasonDiskError):            "a disk cannot be read or written",
	string(hardware.ReasonWrongServer):          "another server answered than the host's, and nothing was written",
	string(hardware.ReasonServerDiffers):        "the server is not the one that is known, and nothing was written",
	string(hardware.ReasonTPMDiffers):           "the TPM did not prove that the server is the one that is known, and nothing was written",
	string(hardware.ReasonAnotherAgent):         "two agents spoke for one server, and nothing of either counts",
	string(hardware.ReasonNoDisk):               "no disk was found",
	string(hardware.ReasonDiskMissing):          "a disk that is to be erased is not there",
	string(hardware.ReasonDiskNotErasable):      "a disk cannot be erased",
	string(hardware.ReasonEvidenceMissing):      "the erase of a disk is not proven",
	string(hardware.ReasonInstallerFailed):      "the service that installs failed, and says why in its own words",
	string(hardware.ReasonCancelled):            "the attempt was called off",
	string(hardware.ReasonDeadlineExceeded):     "the time of the attempt is over",
	string(hardware.ReasonAttemptConflict):      "other work is under way on it",
	string(hardware.ReasonSecureBootOn):         "its Secure Boot is on, and what it would boot is not signed",
	string(hardware.ReasonBootImageNotFetched):  "its controller cannot fetch the boot medium from the boot service",
	string(hardware.ReasonBootMACConflict):      "another host has its boot MAC address, so the boot service serves neither",
}

// failureKind returns the words for a reason.
func failureKind(reason string) string {
	if kind := failureKinds[reason]; kind != "" {
		return kind
	}
	return "its controller reports " + reason
}

// slowStep returns the end of a message that names the place of a host that waits for its turn, or the installer's step where that takes long. It is empty while
// neither is so.
func (s scope) slowStep() string {
	if r := s.Host.Record; r != nil && r.Status.Queue != nil {
		return fmt.Sprintf(": it has the place %d in the queue of its NodeProvider, which works on a limited number of hosts at the same time", r.Status.Queue.Place)
	}
	if r := s.Host.Record; r != nil && r.Status.Wanted.IsOpen() {
		if a := r.Status.Progress(); a != nil && s.isStepSlow(a) {
			return ": " + stepTimes(r.Status.Wanted, a)
		}
	}
	return ""
}
