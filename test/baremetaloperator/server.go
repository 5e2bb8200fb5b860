package baremetaloperator

import (
	"context"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
)

// Deployment is what is installed on a server.
type Deployment struct {
	// URL is that of the image.
	URL string
	// Checksum is ALGORITHM:DIGEST of the image, and Format that of its file, as the host has them.
	Checksum, Format string
	// UserData, NetworkData and MetaData are the contents of the config drive.
	UserData, NetworkData, MetaData []byte
}

// Hardware is what an inspection finds.
type Hardware struct {
	metal3.HardwareDetails `json:",inline"`
	// Accelerators are the devices that Ironic knows by their PCI ids. Releases of 2026 have the field; see AddConditions.
	Accelerators []Accelerator `json:"accelerators,omitempty"`
}

// Accelerator is a device of Hardware, in the fields of Metal3.
type Accelerator struct {
	Type       string `json:"type,omitempty"`
	VendorID   string `json:"vendorID,omitempty"`
	DeviceID   string `json:"deviceID,omitempty"`
	DeviceInfo string `json:"deviceInfo,omitempty"`
	PCIAddress string `json:"pciAddress,omitempty"`
}

// Progress is the result of an operation on a server.
type Progress struct {
	// Done is true when the operation has ended. It is called again while it has not.
	Done bool
	// Started is true for the call that began an inspection.
	Started bool
	// Problem says why the operation failed. It is empty otherwise.
	Problem string
}

// Power is what is done with the power of a server.
type Power string

// Changes of the power. Reboot is done in place of Off with a server that must not be powered off.
const (
	On      Power = "on"
	Off     Power = "off"
	HardOff Power = "hard off"
	Reboot  Power = "reboot"
)

// Health is what a BMC says of its server. It is empty when the BMC says nothing.
type Health string

// Healths that a BMC reports.
const (
	HealthOK       Health = "OK"
	HealthWarning  Health = "Warning"
	HealthCritical Health = "Critical"
)

// Server is what the operator drives: a server and the service that installs it, which remembers what it does while the operator is away. Every method
// returns at once.
type Server interface {
	// Register makes the server known to the service, and checks the credentials. It is done when they are good.
	Register(ctx context.Context) Progress
	// Adopt makes the service know that the server has an image. It is done when it does.
	Adopt(ctx context.Context) Progress
	// Inspect returns the hardware. With refresh it begins again when it has ended before. The hardware is nil while it is not known.
	Inspect(ctx context.Context, refresh bool) (*Hardware, Progress)
	// Prepare sets up RAID and firmware.
	Prepare(ctx context.Context) Progress
	// PoweredOn returns whether the server is on, or nil when the BMC does not know.
	PoweredOn(ctx context.Context) (*bool, error)
	// SetPower changes the power. It is done when nothing had to be changed.
	SetPower(ctx context.Context, power Power) Progress
	// NeedsServicing reports whether the firmware of an installed server is to be changed.
	NeedsServicing(ctx context.Context) bool
	// Service changes the firmware of an installed server.
	Service(ctx context.Context) Progress
	// Deploy installs the image of the URL and boots the server with it. It calls begin when it begins, and returns its error.
	Deploy(ctx context.Context, url string, begin func(context.Context) (Deployment, error)) (Progress, error)
	// Clean removes what is installed, erases what the mode says, and leaves the server off.
	Clean(ctx context.Context, mode metal3.AutomatedCleaningMode) Progress
	// Detach makes the service forget the server, which goes on as it is.
	Detach(ctx context.Context) Progress
	// Delete makes the service forget the server.
	Delete(ctx context.Context) Progress
	// Health returns what the BMC says of the server.
	Health(ctx context.Context) Health
	// HasPowerFailure reports whether the service cannot see or change the power any more.
	HasPowerFailure(ctx context.Context) bool
}
