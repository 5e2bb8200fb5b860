package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Reasons of HostRecord.status.error and of the Machine that has the host, for calls to the hardware that fail. The message has the
// answer of the BMC. The reasons of failed attempts, such as BootLoop or DigestMismatch, are in controllers/hardware.Reason.
const (
	// ReasonBMCUnreachable: the BMC does not answer, breaks the connection, or cannot be trusted by its certificate.
	ReasonBMCUnreachable = "BMCUnreachable"
	// ReasonBMCUnauthorized: the BMC refuses the credentials.
	ReasonBMCUnauthorized = "BMCUnauthorized"
	// ReasonBMCBusy: the BMC answers again and again that it cannot serve the request now.
	ReasonBMCBusy = "BMCBusy"
	// ReasonBMCSessionsExhausted: every session that the BMC allows is in use, none of them is one that an earlier manager left, and the BMC takes no
	// credentials in a request. The message says how many there are and with whose account, where the BMC tells.
	ReasonBMCSessionsExhausted = "BMCSessionsExhausted"
	// ReasonBMCNotFound: the BMC has no resource at the path, such as the system of spec.bmc.address.
	ReasonBMCNotFound = "BMCNotFound"
	// ReasonBMCConflict: the BMC refuses a change because of its state, or because the resource was changed meanwhile (HTTP 409 or 412).
	ReasonBMCConflict = "BMCConflict"
	// ReasonBMCUnsupported: the BMC or its firmware cannot do what is needed.
	ReasonBMCUnsupported = "BMCUnsupported"
	// ReasonBMCInvalid: the BMC's answer, or a request to it, is malformed.
	ReasonBMCInvalid = "BMCInvalid"
	// ReasonBMCAddressInvalid: spec.bmc.address is not the address of a Redfish service or, with an ironic provider, of an IPMI BMC.
	ReasonBMCAddressInvalid = "BMCAddressInvalid"
	// ReasonCredentialsMissing, ReasonCABundleMissing: the Secret of the BMC's credentials, or of its certificates, cannot be used.
	ReasonCredentialsMissing = "CredentialsMissing"
	ReasonCABundleMissing    = "CABundleMissing"
	// ReasonHostRecordUnavailable: the progress of the attempt cannot be read from the HostRecord or written to it.
	ReasonHostRecordUnavailable = "HostRecordUnavailable"
)

// Reasons of HostRecord.status.error and of the Machine that has the host, for calls to an installer that is a service of its own, such as Ironic.
const (
	// ReasonInstallerUnreachable: the service does not answer, breaks the connection, or cannot be trusted by its certificate.
	ReasonInstallerUnreachable = "InstallerUnreachable"
	// ReasonInstallerUnauthorized: the service refuses the credentials, or their Secret cannot be used.
	ReasonInstallerUnauthorized = "InstallerUnauthorized"
	// ReasonInstallerBusy: the service works on so many other hosts, or on this one, that it takes no request now. It is asked again.
	ReasonInstallerBusy = "InstallerBusy"
	// ReasonInstallerNotFound: the service has no longer what it had for the host.
	ReasonInstallerNotFound = "InstallerNotFound"
	// ReasonInstallerConflict: what the service has for the host is in a state that does not allow the request, or is somebody else's.
	ReasonInstallerConflict = "InstallerConflict"
	// ReasonInstallerUnsupported: the service is too old, or cannot do what is needed.
	ReasonInstallerUnsupported = "InstallerUnsupported"
	// ReasonInstallerInvalid: the service's answer, or a request to it, is malformed.
	ReasonInstallerInvalid = "InstallerInvalid"
	// ReasonInstallerMaintenance: the service has the server in maintenance and does nothing with it until a person ends that. The message has its reason.
	ReasonInstallerMaintenance = "InstallerMaintenance"
	// ReasonInstallerPowerFailure: the service cannot read the power of the server from its BMC. It goes on by itself when the BMC answers.
	ReasonInstallerPowerFailure = "InstallerPowerFailure"
)

// ReasonSameServer of HostError: another BareMetalHost, in any namespace, is the same server. Nothing is done with either until one of them is
// deleted or corrected, or the annotation ingot.dev/not-same-server says that they are two servers.
const ReasonSameServer = "SameServer"

// ReasonBootNetworkInvalid of HostError: what the host's annotations and its NodeProvider's spec.redfish.netboot.network say of the network cannot work.
// No inspection, installation or erase of the host begins.
const ReasonBootNetworkInvalid = "BootNetworkInvalid"

// ReasonServerIsOn of HostError: the NodeProvider has inspect: Agent, and the server of a host that is to be inspected is on. It is not powered off for
// that, because nobody knows what runs on it. The host is not available before it is inspected.
const ReasonServerIsOn = "ServerIsOn"

// ReasonMachineGone of HostError: spec.consumerRef names a Machine that does not exist any more and that did not release the host. What runs on
// the server keeps running, and nothing is powered off or erased until the annotation ingot.dev/release asks for it.
const ReasonMachineGone = "MachineGone"

// ReasonHostRestored of HostError: the BareMetalHost was created again from a backup, and it is not known yet that the backup tells what is on the
// server. Nothing is powered, erased or installed until its Machine has taken it over or, where it has none, until the server is off.
const ReasonHostRestored = "HostRestored"

// MaxHostError is the limit of HostError.message and FailingCall.message, in bytes.
const MaxHostError = 8192

// HostError is why a host is in error.
type HostError struct {
	// reason in UpperCamel: BMCUnreachable, PowerOffIgnored, DigestMismatch.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason"`
	// message says what was expected, what was seen and where to look.
	// +optional
	// +kubebuilder:validation:MaxLength=8192
	Message string `json:"message,omitempty"`
}

// HostCall is a call to the hardware of a host.
// +kubebuilder:validation:Enum=Observe;Inspect;Install;Erase;Cancel;SetPower
type HostCall string

// Calls to the hardware of a host.
const (
	// CallObserve reads the power state and the progress of the attempt.
	CallObserve HostCall = "Observe"
	// CallInspect reads the inventory.
	CallInspect HostCall = "Inspect"
	// CallInstall continues an installation.
	CallInstall HostCall = "Install"
	// CallErase continues an erase.
	CallErase HostCall = "Erase"
	// CallCancel ends an attempt that is not wanted any more.
	CallCancel HostCall = "Cancel"
	// CallSetPower changes the power state.
	CallSetPower HostCall = "SetPower"
)

// FailingCall is a call to the hardware that fails again and again.
type FailingCall struct {
	// call that fails:
	//   - Observe: the power state and the progress of the attempt are read.
	//   - Inspect: the inventory is read.
	//   - Install: an installation is continued.
	//   - Erase: an erase is continued.
	//   - Cancel: an attempt that is not wanted any more is ended.
	//   - SetPower: the power is switched.
	//
	// +required
	Call HostCall `json:"call"`
	// reason in UpperCamel: BMCBusy, BMCConflict.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason"`
	// message has the answer of the BMC. A later answer that differs only in numbers, such as a time or the id of a request, is not
	// written.
	// +optional
	// +kubebuilder:validation:MaxLength=8192
	Message string `json:"message,omitempty"`
	// since is when the call failed for the first time after it had succeeded last.
	// +required
	Since metav1.MicroTime `json:"since"`
	// reasonSince is when reason and message were written. They are replaced at most once within the time after which an error is
	// reported.
	// +required
	ReasonSince metav1.MicroTime `json:"reasonSince"`
}
