package hardware

import (
	"context"
	"time"
)

// Installer writes images to the disks of servers and erases them. Every call is idempotent for the same host and attempt and
// returns at once, after at most one side effect on the hardware. The caller repeats the call until Observe reports that the
// attempt has ended, which means that its state is Succeeded or Failed.
type Installer interface {
	// Capabilities returns what this Installer can do.
	Capabilities() Capabilities
	// Observe returns the power state of the host and its current attempt, if there is one. It has no side effect on the hardware.
	Observe(ctx context.Context, host Host) (Observation, error)
	// Inspect advances an attempt that reads the inventory of the host. With InspectByAgent it boots the agent on a server that is off, and succeeds
	// only after the BMC has confirmed that the server is off again. It powers no server off that it has not powered on.
	Inspect(ctx context.Context, host Host, attempt Attempt, inspector Inspector) error
	// Install advances an attempt that installs the image.
	Install(ctx context.Context, host Host, attempt Attempt, spec InstallSpec) error
	// Erase advances an attempt that erases the disks of the host. It succeeds only after the BMC has confirmed the power-off.
	Erase(ctx context.Context, host Host, attempt Attempt, mode EraseMode) error
	// Cancel ends the attempt at any step and powers the host off. It is complete when Observe reports PowerOff. An inspection that has not powered the
	// host on leaves the power as it is.
	Cancel(ctx context.Context, host Host, attempt Attempt) error
	// SetPower advances a change of power on a host where no attempt runs: it decides when the change is requested, when it is
	// requested again, and when the power is cut instead of shutting the operating system down. When the time-out of the change has
	// passed, it goes on and returns an *Error of the kind Ignored with ReasonPowerOffIgnored or ReasonPowerOnIgnored. It is
	// complete when Observe reports the desired power state. It asks the BMC at least once after PowerChange.Since, whatever Observe has reported.
	SetPower(ctx context.Context, host Host, change PowerChange) error
}

// Capabilities lists what an Installer can do.
type Capabilities struct {
	// Formats are the image formats that it can install: "raw", "raw.gz", "raw.zst", "qcow2", "live-iso".
	Formats []string
	// EraseModes are the modes that it supports.
	EraseModes []EraseMode
	// ByteProgress is true when an Observation contains the number of bytes written.
	ByteProgress bool
	// AgentInventory is true when an agent on the host reads the inventory, including the DMI UUID.
	AgentInventory bool
	// BootsToInspect is true when an inspection may boot the server, whoever is asked to inspect: the service that installs decides that by itself.
	BootsToInspect bool
	// DiskEvidence is true when a successful erase has evidence for every known disk. Without it nobody can tell whether a disk was left out, so that a full
	// erase counts as Metadata between tenants.
	DiskEvidence bool
	// NeedsConfigDrive is true when Install must be called with the config drive. Otherwise the agent asks for it when it runs on the server.
	NeedsConfigDrive bool
	// NeedsRelease is true when a host that is released without an erase needs a call of Erase with EraseNone. A service that installs keeps what it has
	// deployed, with the config drive, which holds secrets, until it is told that the deployment ends. Without it the confirmed power-off is enough.
	NeedsRelease bool
	// RootDeviceHints are the hints of RootDevice that it follows. A host with another one must not be installed by it, because another disk could be
	// overwritten.
	RootDeviceHints []Hint
}

// Host identifies one server to an Installer.
type Host struct {
	// UID is never used for another host. Namespace and Name are for messages and logs.
	UID, Namespace, Name string
	// FormerUIDs are those that the host had before it was created again from a backup of itself. What an Installer keeps of one of them is this host's.
	FormerUIDs []string
	// IsLeaving says that the host is deleted, with nothing of a tenant on its disks, and that this call is one of the last for it. An Installer that keeps in
	// a service whose host a server is forgets that in Observe, so that the server can be registered again. No attempt follows.
	IsLeaving bool
	// InstallerNode is the UUID or the name by which the service that installs, such as Ironic, knows the server already; empty: nobody has said it.
	InstallerNode string
	// BootMAC is the MAC address of the NIC that the host boots from over the network, in lower case with colons.
	BootMAC string
	// BMC is the endpoint of the management controller. It is the zero value where the service that installs has its own, which is left as it is.
	BMC Endpoint
	// BootWays are the ways in which the agent may be booted, BootNetwork, BootMedia and BootPinned, in the order of preference. Empty: the Installer decides.
	BootWays []BootSource
	// HasSignedBoot says that what the server boots over the network is signed for its Secure Boot. Without it a server whose Secure Boot is on is not
	// powered on.
	HasSignedBoot bool
}

// String returns namespace/name.
func (h Host) String() string { return h.Namespace + "/" + h.Name }

// Attempt identifies one inspection, installation or erasure of a host.
type Attempt struct {
	// Number is greater than that of every earlier attempt on this host and is never used again.
	Number int64
	// Deadline is the time at which the attempt fails, whatever its step.
	Deadline time.Time
}

// PowerChange is a change of the power state of a host.
type PowerChange struct {
	// Desired is the state to reach: PowerOn or PowerOff.
	Desired PowerState
	// Graceful gives the operating system time to stop before the power is cut. It applies to PowerOff only.
	Graceful bool
	// Since is the time from which the change is desired. Every call for the same change has the same value.
	Since time.Time
}

// InstallSpec describes what an installation writes and to which disk.
type InstallSpec struct {
	Image Image
	// RootDevice selects the disk. The zero value selects the smallest disk of at least 4 GiB that is neither removable nor on USB.
	RootDevice RootDevice
	// GPUs are what the server must have before its disk is touched.
	GPUs RequiredGPUs
	// Requirements are what it must have beside them.
	Requirements Requirements
	// PreviousRootDisk is the disk that an earlier installation for the same Machine was written to. The image is written to this disk and to no
	// other. The zero value means that there was none.
	PreviousRootDisk Disk
	// AcceptedRootDisk is the serial number, the WWN or the path of a disk that an administrator accepts in place of PreviousRootDisk.
	AcceptedRootDisk string
	// ReadConfigDrive returns what is written to a partition labelled config-2 as an ISO 9660 file system of at most 64 MiB. An Installer that needs it
	// (Capabilities.NeedsConfigDrive) calls it when it begins to write the disk, because each call reads several objects at the API server. It returns an *Error
	// of the kind Busy, with the reason ReasonNoConfigDrive, while the documents are not written. It is nil for any other Installer.
	ReadConfigDrive func(context.Context) (ConfigDrive, error)
}

// FormatLiveISO is the format of an image that the server runs from: it is written to no disk.
const FormatLiveISO = "live-iso"

// Image is a disk image, or a live ISO.
type Image struct {
	URL string
	// Checksum is "sha256:HEX" or "sha512:HEX" of the file as the server sends it, before decompression.
	Checksum string
	// Format is "raw", "raw.gz", "raw.zst", "qcow2" or FormatLiveISO.
	Format string
}

// ConfigDrive holds the documents of an OpenStack config drive. It holds secrets: never log it.
type ConfigDrive struct {
	// UserData is openstack/latest/user_data.
	UserData []byte
	// NetworkData is openstack/latest/network_data.json.
	NetworkData []byte
	// MetaData is openstack/latest/meta_data.json.
	MetaData []byte
}

// IsEmpty reports whether there is no document.
func (c ConfigDrive) IsEmpty() bool {
	return len(c.UserData) == 0 && len(c.NetworkData) == 0 && len(c.MetaData) == 0
}

// String returns a fixed text, so that printing a ConfigDrive shows no secret.
func (ConfigDrive) String() string { return "config drive" }

// GoString does the same for the verb %#v.
func (ConfigDrive) GoString() string { return "config drive" }

// EraseMode is how much of the disks of a host is erased.
type EraseMode string

// Erase modes.
const (
	// EraseNone leaves the disks as they are.
	EraseNone EraseMode = "None"
	// EraseMetadata clears the first and last MiB of every disk and of every partition, and the signatures of file systems, RAIDs and volume
	// managers that lie elsewhere. A disk whose partition table cannot be read is cleared as a whole.
	EraseMetadata EraseMode = "Metadata"
	// EraseFull clears every byte of every disk.
	EraseFull EraseMode = "Full"
)

// Operation is what an attempt does.
type Operation string

// Operations.
const (
	OpInspect Operation = "Inspect"
	OpInstall Operation = "Install"
	OpErase   Operation = "Erase"
)

// Inspector is who reads the inventory in an inspection.
type Inspector string

// Inspectors.
const (
	// InspectByBMC asks the BMC, in any power state.
	InspectByBMC Inspector = ""
	// InspectByAgent boots the agent on the server.
	InspectByAgent Inspector = "Agent"
)

// AttemptState says whether an attempt is running or how it ended.
type AttemptState string

// Attempt states.
const (
	AttemptRunning   AttemptState = "Running"
	AttemptSucceeded AttemptState = "Succeeded"
	AttemptFailed    AttemptState = "Failed"
)

// Step is the step that an attempt has reached. When the attempt fails, it is the step that failed.
type Step string

// Steps, in order.
const (
	StepPoweringOff Step = "PoweringOff" // waits until the BMC confirms the power-off
	StepPoweringOn  Step = "PoweringOn"  // the boot override is set; waits for power
	StepBooting     Step = "Booting"     // waits until the server fetches the boot document: POST, DHCP, iPXE
	StepLoading     Step = "Loading"     // the boot document was served; waits until the agent registers
	StepRegistered  Step = "Registered"  // the agent has registered and received its instructions
	StepWriting     Step = "Writing"     // the agent writes the image
	StepErasing     Step = "Erasing"     // the agent clears the disks
	StepVerifying   Step = "Verifying"   // the agent checks the digest, then writes the config drive and the first MiB
	StepFinishing   Step = "Finishing"   // the agent is done; waits for the reboot or the confirmed power-off
)

// Reason says why an attempt failed, in CamelCase.
type Reason string

// Reasons of failed attempts.
const (
	ReasonPowerOnIgnored   Reason = "PowerOnIgnored"   // the BMC accepted the power-on and the power stayed off
	ReasonPowerOffIgnored  Reason = "PowerOffIgnored"  // the BMC accepted the power-off and the power stayed on
	ReasonNoBootRequest    Reason = "NoBootRequest"    // the server was powered on and never requested its boot document: POST, NIC, cable, DHCP
	ReasonAgentMissing     Reason = "AgentMissing"     // the server fetched its boot document and no agent registered
	ReasonAgentSilent      Reason = "AgentSilent"      // the agent registered and then stopped reporting
	ReasonNoConfigDrive    Reason = "NoConfigDrive"    // the agent waited for its config drive, which nobody wrote
	ReasonBootLoop         Reason = "BootLoop"         // the boot document was served three times in one attempt without a result
	ReasonImageUnreachable Reason = "ImageUnreachable" // the agent could not read the image
	ReasonDigestMismatch   Reason = "DigestMismatch"   // the image as served does not have the expected digest
	ReasonImageInvalid     Reason = "ImageInvalid"     // the image cannot be decompressed, or is larger than the disk
	ReasonNoRootDevice     Reason = "NoRootDevice"     // no disk matches the hints
	ReasonHardwareDiffers  Reason = "HardwareDiffers"  // the agent found other GPUs than the Machine needs; no disk was touched
	// ReasonHardwareInsufficient means that the agent found, or could not rule out, that the server lacks what the NodeType requires; no disk was touched.
	ReasonHardwareInsufficient Reason = "HardwareInsufficient"
	ReasonRootDiskDiffers      Reason = "RootDiskDiffers"  // the disk that the installation before was written to is not there, or the hints exclude it
	ReasonDiskError            Reason = "DiskError"        // reading, writing or clearing a disk failed
	ReasonWrongServer          Reason = "WrongServer"      // the agent's server lacks the NIC that the host boots from; nothing was written
	ReasonServerDiffers        Reason = "ServerDiffers"    // the agent's server differs from the known hardware, and strictIdentity is set; nothing was written
	ReasonTPMDiffers           Reason = "TPMDiffers"       // the TPM that is known or listed did not prove that the agent runs on the server; nothing was written
	ReasonAnotherAgent         Reason = "AnotherAgent"     // a second agent used the token of the boot, so that it is not known which one is the server's
	ReasonNoDisk               Reason = "NoDisk"           // an erase found no disk at all
	ReasonDiskMissing          Reason = "DiskMissing"      // a disk that the host had is not there, so that it cannot be erased
	ReasonDiskNotErasable      Reason = "DiskNotErasable"  // a disk is read-only, removable or without size, or its controller has no driver
	ReasonEvidenceMissing      Reason = "EvidenceMissing"  // the agent reported an erase without evidence for every known disk
	ReasonServerIsOn           Reason = "ServerIsOn"       // an inspection by the agent needs a server that is off, and nobody knows what runs on this one
	ReasonInstallerFailed      Reason = "InstallerFailed"  // a service that installs failed, and says why in words alone
	ReasonCancelled            Reason = "Cancelled"        // Cancel ended the attempt
	ReasonDeadlineExceeded     Reason = "DeadlineExceeded" // the deadline passed in a step without a more specific reason
)

// Reasons of failed calls whose cause is not the BMC.
const (
	ReasonHostRecordUnavailable Reason = "HostRecordUnavailable" // the progress of the attempt cannot be read or written
	ReasonAttemptConflict       Reason = "AttemptConflict"       // the call is for another attempt or other work than the one under way
	ReasonSecureBootOn          Reason = "SecureBootOn"          // the firmware would refuse what the server is to boot, so that it is not powered on
	ReasonBootImageNotFetched   Reason = "BootImageNotFetched"   // the BMC could not fetch the boot medium from the boot service
	// Reasons of calls to a service that installs, by the kind of the failure.
	ReasonInstallerUnreachable  Reason = "InstallerUnreachable"
	ReasonInstallerUnauthorized Reason = "InstallerUnauthorized"
	ReasonInstallerBusy         Reason = "InstallerBusy"
	ReasonInstallerNotFound     Reason = "InstallerNotFound"
	ReasonInstallerConflict     Reason = "InstallerConflict"
	ReasonInstallerUnsupported  Reason = "InstallerUnsupported"
	ReasonInstallerInvalid      Reason = "InstallerInvalid"
	ReasonInstallerFull         Reason = "InstallerFull" // it works on as many hosts as it may; the kind is Busy
	// ReasonInstallerMaintenance and ReasonInstallerPowerFailure: the service does nothing with the server, because people have said so, or because its BMC does
	// not answer. What it says of the power is not looked after then.
	ReasonInstallerMaintenance  Reason = "InstallerMaintenance"
	ReasonInstallerPowerFailure Reason = "InstallerPowerFailure"

	ReasonBootMACConflict Reason = "BootMACConflict" // another host has the boot MAC address of the host, so that the boot service serves neither
)

// Observation is the state of a host as an Installer observes it.
type Observation struct {
	Power PowerState
	// IsPowerRemembered is true when a service tells the power as it remembers it, and the BMC was not asked for this observation. Then PowerAskedAt is
	// when the BMC was last asked, by SetPower of this process, and has answered; zero: never.
	IsPowerRemembered bool
	PowerAskedAt      time.Time
	// Attempt is the current or the last attempt; nil when there has been none.
	Attempt *AttemptStatus
	// Inventory is the last known inventory; nil when there is none.
	Inventory *Inventory
}

// AttemptStatus is the status of an attempt as its Installer reports it.
type AttemptStatus struct {
	Number int64
	State  AttemptState
	Step   Step
	// StepDeadline is when the attempt fails at this step, or when the agent must have reported progress. It is zero where the step has no
	// time-out of its own, or the Installer does not know it.
	StepDeadline time.Time
	// DoneBytes and TotalBytes count bytes of the image as served, or of the disks for an erase. TotalBytes is 0 while unknown.
	DoneBytes, TotalBytes int64
	// Boots is the number of boot documents that were served in this attempt.
	Boots int
	// IsRefusedByLimit is true while the attempt has not begun because the service that installs works on as many hosts as it may.
	IsRefusedByLimit bool
	// Reason and Message say why the attempt failed. The message of an attempt that has not failed says what a person should know of it.
	Reason  Reason
	Message string
	// RootDisk is the disk that an installation has written; the zero value while that is not known.
	RootDisk Disk
	// Evidence is what an erase has done to each disk; nil while that is not known.
	Evidence *EraseEvidence
	// Channel is how the agent of the current boot is reached; empty: by the network, or no server was booted.
	Channel Channel
	// TPM is what that agent has reported of its server's TPM.
	TPM TPM
}

// Timeouts are the time-outs of an Installer. The deadline of an attempt applies in addition to them.
type Timeouts struct {
	// GracefulOff is how long the operating system may take to stop before the power is cut.
	GracefulOff time.Duration
	// PowerOff is how long the BMC may take to report PowerOff after the power was cut.
	PowerOff time.Duration
	// PowerOn is how long the BMC may take to report PowerOn.
	PowerOn time.Duration
	// PowerOnRetry is the interval at which a power-on without effect is requested again.
	PowerOnRetry time.Duration
	// Boot is the time from power-on to the request for the boot document. The self-test of an HGX server takes more than 10 minutes.
	Boot time.Duration
	// Load is the time from the boot document to the registration of the agent.
	Load time.Duration
	// Silence is how long the agent may report no progress.
	Silence time.Duration
}

// DefaultTimeouts returns the time-outs for real servers.
func DefaultTimeouts() Timeouts {
	return Timeouts{
		GracefulOff: 2 * time.Minute, PowerOff: 3 * time.Minute, PowerOn: 5 * time.Minute, PowerOnRetry: 30 * time.Second,
		Boot: 20 * time.Minute, Load: 10 * time.Minute, Silence: 15 * time.Minute,
	}
}

// OfStep returns the time-out of a step. For a step of the agent it counts from the agent's last progress.
func (t Timeouts) OfStep(step Step) time.Duration {
	return map[Step]time.Duration{
		StepPoweringOff: t.PowerOff, StepPoweringOn: t.PowerOn, StepBooting: t.Boot, StepLoading: t.Load,
		StepRegistered: t.Silence, StepWriting: t.Silence, StepErasing: t.Silence, StepVerifying: t.Silence, StepFinishing: t.PowerOff,
	}[step]
}

// WithDefaults returns the time-outs, with the default for each one that is not positive.
func (t Timeouts) WithDefaults() Timeouts {
	d := DefaultTimeouts()
	for value, fallback := range map[*time.Duration]time.Duration{
		&t.GracefulOff: d.GracefulOff, &t.PowerOff: d.PowerOff, &t.PowerOn: d.PowerOn, &t.PowerOnRetry: d.PowerOnRetry,
		&t.Boot: d.Boot, &t.Load: d.Load, &t.Silence: d.Silence,
	} {
		if *value <= 0 {
			*value = fallback
		}
	}
	return t
}
