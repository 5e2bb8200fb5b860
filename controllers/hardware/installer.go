package hardware

import (
	"context"
	"time"
)

// Installer puts images on servers' disks and takes them off. Every call is idempotent for the same host and attempt and
// returns at once, after at most one side effect on the hardware; the caller repeats the call until Observe
// reports the attempt settled.
type Installer interface {
	// Capabilities says what this installer can do.
	Capabilities() Capabilities
	// Observe reads power and, when the host has one, its current attempt. No side effect.
	Observe(ctx context.Context, host Host) (Observation, error)
	// Inspect advances an inventory of the host.
	Inspect(ctx context.Context, host Host, attempt Attempt) error
	// Install advances the installation of the image.
	Install(ctx context.Context, host Host, attempt Attempt, spec InstallSpec) error
	// Erase advances the erasure of the host's disks; settled only after a confirmed power-off.
	Erase(ctx context.Context, host Host, attempt Attempt, mode EraseMode) error
	// Cancel ends the attempt, whatever it does, and powers the host off. Settled when Observe reports PowerOff.
	Cancel(ctx context.Context, host Host, attempt Attempt) error
	// SetPower advances a change of power on a host where no attempt runs: it decides when the power is asked for, asked for
	// again, and cut instead of asked for. When the time for the change is over it goes on, and returns an *Error of the kind
	// Ignored with ReasonPowerOffIgnored or ReasonPowerOnIgnored. Settled when Observe reports the power.
	SetPower(ctx context.Context, host Host, change PowerChange) error
}

// Capabilities says what an Installer can do.
type Capabilities struct {
	// Formats are the image formats it writes: "raw", "raw.gz", "raw.zst", "qcow2".
	Formats []string
	// EraseModes are the modes it knows.
	EraseModes []EraseMode
	// ByteProgress: Observation carries bytes written.
	ByteProgress bool
	// AgentInventory: an inventory read by an agent on the host, DMI UUID included.
	AgentInventory bool
}

// Host names one server towards an Installer.
type Host struct {
	// UID is unique for ever; Namespace and Name are for people.
	UID, Namespace, Name string
	// BootMAC is the MAC address the host network-boots with, lower case with colons.
	BootMAC string
	// BMC is the management controller.
	BMC Endpoint
}

// String is namespace/name.
func (h Host) String() string { return h.Namespace + "/" + h.Name }

// Attempt keys one piece of work on a host.
type Attempt struct {
	// Number grows by one with every attempt on this host and is never used again.
	Number int64
	// Deadline is when the attempt fails, whatever it does then.
	Deadline time.Time
}

// PowerChange is a state of power that is wanted of a host.
type PowerChange struct {
	// Want is PowerOn or PowerOff.
	Want PowerState
	// Graceful lets the operating system stop before the power is cut. It holds for PowerOff.
	Graceful bool
	// Since is when the change was wanted first; every call for the same change has the same one.
	Since time.Time
}

// InstallSpec says what to write.
type InstallSpec struct {
	Image Image
	// RootDevice selects the disk; the zero value takes the smallest disk of at least 4 GiB that is not removable.
	RootDevice RootDevice
	// ConfigDrive is delivered on a partition labelled config-2, at most 64 MiB as an ISO 9660 file system.
	ConfigDrive ConfigDrive
}

// Image is an image to be written.
type Image struct {
	URL string
	// Checksum is "sha256:HEX" or "sha512:HEX", always of the file as served.
	Checksum string
	// Format is "raw", "raw.gz", "raw.zst" or "qcow2".
	Format string
}

// RootDevice selects a disk: every hint given must hold.
type RootDevice struct {
	DeviceName   string `json:"deviceName,omitempty"`
	SerialNumber string `json:"serialNumber,omitempty"`
	WWN          string `json:"wwn,omitempty"`
	Model        string `json:"model,omitempty"`
	MinSizeBytes int64  `json:"minSizeBytes,omitempty"`
}

// ConfigDrive holds the documents of an OpenStack config drive, openstack/latest. It holds secrets: never log it.
type ConfigDrive struct {
	// UserData is openstack/latest/user_data.
	UserData []byte
	// NetworkData is openstack/latest/network_data.json.
	NetworkData []byte
	// MetaData is openstack/latest/meta_data.json.
	MetaData []byte
}

// String keeps secrets out of anything that is printed.
func (ConfigDrive) String() string { return "config drive" }

// GoString keeps secrets out of %#v.
func (ConfigDrive) GoString() string { return "config drive" }

// EraseMode says how much of a host's disks is erased.
type EraseMode string

// Erase modes.
const (
	// EraseNone leaves the disks as they are.
	EraseNone EraseMode = "None"
	// EraseMetadata makes every disk unbootable and unreadable by name: partition tables, file-system signatures, the first and last MiB.
	EraseMetadata EraseMode = "Metadata"
	// EraseFull clears every byte of every disk.
	EraseFull EraseMode = "Full"
)

// Operation is the kind of work an attempt does.
type Operation string

// Operations.
const (
	OpInspect Operation = "Inspect"
	OpInstall Operation = "Install"
	OpErase   Operation = "Erase"
)

// AttemptState is how far an attempt is.
type AttemptState string

// Attempt states.
const (
	AttemptRunning   AttemptState = "Running"
	AttemptSucceeded AttemptState = "Succeeded"
	AttemptFailed    AttemptState = "Failed"
)

// Step is the hop an attempt is at; when it fails or runs out of time, it names the failed hop.
type Step string

// Steps, in order.
const (
	StepPoweringOff Step = "PoweringOff" // waits for the BMC to confirm power-off
	StepPoweringOn  Step = "PoweringOn"  // boot override set, waits for power
	StepBooting     Step = "Booting"     // waits for the boot document to be fetched: POST, DHCP, iPXE
	StepLoading     Step = "Loading"     // boot document served, waits for the agent to register
	StepRegistered  Step = "Registered"  // the agent has its instructions
	StepWriting     Step = "Writing"     // bytes flow
	StepErasing     Step = "Erasing"     // bytes are cleared
	StepVerifying   Step = "Verifying"   // digest, held-back first MiB, config drive
	StepFinishing   Step = "Finishing"   // waits for the reboot or the confirmed power-off
)

// Reason says why an attempt failed, in UpperCamel.
type Reason string

// Reasons of failed attempts.
const (
	ReasonPowerOnIgnored   Reason = "PowerOnIgnored"   // the BMC accepted power-on, and the power stayed off
	ReasonPowerOffIgnored  Reason = "PowerOffIgnored"  // the same for power-off
	ReasonNoBootRequest    Reason = "NoBootRequest"    // powered on, but never asked for a boot document: POST, NIC, cable, DHCP
	ReasonAgentMissing     Reason = "AgentMissing"     // fetched the boot document, but no agent registered
	ReasonAgentSilent      Reason = "AgentSilent"      // the agent registered and then said no more until the deadline
	ReasonBootLoop         Reason = "BootLoop"         // the agent was booted three times in one attempt without a result
	ReasonImageUnreachable Reason = "ImageUnreachable" // the agent could not read the image
	ReasonDigestMismatch   Reason = "DigestMismatch"   // the image as served is not the one that was asked for
	ReasonImageInvalid     Reason = "ImageInvalid"     // damaged compression, or larger than the disk
	ReasonNoRootDevice     Reason = "NoRootDevice"     // no disk fits the hints
	ReasonDiskError        Reason = "DiskError"        // reading, writing or clearing a disk failed
	ReasonCancelled        Reason = "Cancelled"        // ended by Cancel
	ReasonDeadlineExceeded Reason = "DeadlineExceeded" // ran out of time in a step that names no better reason
)

// Observation is what an Installer sees of a host.
type Observation struct {
	Power PowerState
	// Attempt is the current or last attempt; nil when there has been none.
	Attempt *AttemptStatus
	// Inventory is the newest one known; nil when there is none.
	Inventory *Inventory
}

// AttemptStatus is how an attempt stands, as its Installer says.
type AttemptStatus struct {
	Number int64
	State  AttemptState
	Step   Step
	// DoneBytes and TotalBytes are of the file as served; TotalBytes is 0 while unknown.
	DoneBytes, TotalBytes int64
	// Boots counts how often the boot document was served in this attempt.
	Boots int
	// Reason and Message say why it failed.
	Reason  Reason
	Message string
}
