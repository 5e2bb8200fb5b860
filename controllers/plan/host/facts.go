package host

import (
	"cmp"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// State is BareMetalHost.status.provisioning.state.
type State string

// States, as Metal3 names them.
const (
	StateNone                  State = ""
	StateRegistering           State = "registering"
	StateInspecting            State = "inspecting"
	StateAvailable             State = "available"
	StatePreparing             State = "preparing"
	StateProvisioning          State = "provisioning"
	StateProvisioned           State = "provisioned"
	StateExternallyProvisioned State = "externally provisioned"
	StateDeprovisioning        State = "deprovisioning"
	StatePoweringOff           State = "powering off before delete"
	StateDeleting              State = "deleting"
)

// Values of BareMetalHost.status.operationalStatus.
const (
	OperationalOK       = "OK"
	OperationalError    = "error"
	OperationalDetached = "detached"
)

// ErrorType is BareMetalHost.status.errorType.
type ErrorType string

// Error types, as Metal3 names them.
const (
	NoError              ErrorType = ""
	RegistrationError    ErrorType = "registration error"
	InspectionError      ErrorType = "inspection error"
	PreparationError     ErrorType = "preparation error"
	ProvisioningError    ErrorType = "provisioning error"
	PowerManagementError ErrorType = "power management error"
)

// UnknownTenant is the lastTenant of disks whose history is not known. It is no namespace/name, so it equals no TenantCluster.
const UnknownTenant = "unknown"

// maxFailures is how many failed attempts in a row are made before a person has to ask for another.
const maxFailures = 3

// Timeouts are how long attempts may take, and how often hosts are looked at. What an installer waits for within an attempt, or
// of a change of power, is hardware.Timeouts.
type Timeouts struct {
	// Inspect, Install, EraseMetadata and EraseFull are the deadlines of attempts.
	Inspect, Install, EraseMetadata, EraseFull time.Duration
	// BMCGrace is how long a registered host's BMC may fail before that is shown as an error.
	BMCGrace time.Duration
	// RetryBase is the pause after the first failure; it doubles with each further one.
	RetryBase time.Duration
	// Poll is the interval of looking while work runs.
	Poll time.Duration
	// Steady is the longest interval of looking while nothing runs; up to a tenth less is jitter.
	Steady time.Duration
}

// DefaultTimeouts are those for real servers.
func DefaultTimeouts() Timeouts {
	return Timeouts{
		Inspect: 10 * time.Minute, Install: 45 * time.Minute, EraseMetadata: 20 * time.Minute, EraseFull: 24 * time.Hour,
		BMCGrace: 2 * time.Minute, RetryBase: time.Minute, Poll: 2 * time.Second, Steady: 5 * time.Minute,
	}
}

// Facts are all that a decision depends on.
type Facts struct {
	// Now is the time of the observation, Random a number in [0, 1).
	Now    time.Time
	Random float64
	// Timeouts in force.
	Timeouts Timeouts
	// Host is the BareMetalHost.
	Host Host
	// Joined: the Machine that has the host knows its Node, so that no boot is awaited.
	Joined bool
	// GenerationSeen is when Host.Generation was first seen; zero when that is not known.
	GenerationSeen time.Time
	// Spec and Record are the HostRecord's spec and status.
	Spec   v1alpha1.HostRecordSpec
	Record v1alpha1.HostRecordStatus
	// ErasePolicy is the provider's, for when Spec says nothing.
	ErasePolicy v1alpha1.EraseMode
	// Observed is what the installer saw; nil when it was not or could not be asked.
	Observed *hardware.Observation
	// Problem is why the BMC could not be read; nil when it was.
	Problem *Problem
}

// Problem is why a BMC could not be read.
type Problem struct {
	// Reason in UpperCamel: BMCUnauthorized, BMCUnreachable, CredentialsMissing.
	Reason string
	// Message says what was expected, what was seen and where to look.
	Message string
}

// ReasonOf is the reason for a failure of a call to the hardware: its own where it has one, else its kind.
func ReasonOf(err error) string {
	if reason := hardware.ReasonOf(err); reason != "" {
		return string(reason)
	}
	return "BMC" + string(cmp.Or(hardware.KindOf(err), hardware.Unreachable))
}

// Host is what matters of a BareMetalHost.
type Host struct {
	Generation int64
	// Deleting: it has a deletion timestamp. Paused and Detached are Metal3's annotations.
	Deleting, Paused, Detached bool
	// Online is spec.online, ExternallyProvisioned spec.externallyProvisioned.
	Online, ExternallyProvisioned bool
	// InspectionDisabled by annotation or spec.inspectionMode; InspectionAsked by the annotation with an empty value.
	InspectionDisabled, InspectionAsked bool
	// Claimed: spec.consumerRef is set. ConsumerUID is its uid.
	Claimed     bool
	ConsumerUID string
	// HasImage: spec.image is set.
	HasImage bool
	// Reboot: some reboot annotation is there; RebootHard: one asks for the power to be cut; RebootOnce: the one without
	// suffix, which goes away when the host is off.
	Reboot, RebootHard, RebootOnce bool
	// UnsupportedHints are root device hints that the installer cannot follow.
	UnsupportedHints []string
	// Erase and Retry are the values of ingot.dev/erase and ingot.dev/retry.
	Erase, Retry string
	// Status as it stands.
	Status Status
}

// Status is what matters of BareMetalHost.status.
type Status struct {
	State             State
	OperationalStatus string
	ErrorType         ErrorType
	ErrorMessage      string
	ErrorCount        int
	PoweredOn         bool
}
