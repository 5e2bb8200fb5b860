package hardware

import "context"

// Endpoint says where a BMC is and how to talk to it. It holds credentials: never log or print it.
type Endpoint struct {
	// Address is the URL of the Redfish service, scheme and host only: "https://10.0.0.7".
	Address string
	// SystemPath is the resource of the computer system, "/redfish/v1/Systems/1"; empty: the adapter finds it.
	SystemPath string
	// Username and Password are read from the Secret at every step, so that a changed Secret is used at the next one.
	Username, Password string
	// CABundle is PEM; empty: the system's roots.
	CABundle []byte
	// InsecureSkipVerify turns certificate verification off. Only an explicit opt-out sets it.
	InsecureSkipVerify bool
}

// String keeps credentials out of anything that is printed.
func (e Endpoint) String() string { return e.Address + e.SystemPath }

// GoString keeps credentials out of %#v.
func (e Endpoint) GoString() string { return e.String() }

// BMCs opens BMCs. Implementations may keep sessions between calls.
type BMCs interface {
	// BMC returns the management controller at the endpoint. It may log in; the session is the implementation's to keep and end.
	BMC(ctx context.Context, endpoint Endpoint) (BMC, error)
}

// BMC is one server's management controller.
type BMC interface {
	// Power reads the power state as the BMC reports it.
	Power(ctx context.Context) (PowerState, error)
	// SetPower asks for a power change and returns when the BMC has accepted it. Asking for what is the case already is no error.
	SetPower(ctx context.Context, action PowerAction) error
	// BootOnce makes the next boot, and only the next, come from the source.
	BootOnce(ctx context.Context, source BootSource) error
	// Media inserts a boot image as virtual media; an empty URL ejects. Unsupported where there is none.
	Media(ctx context.Context, imageURL string) error
	// Inventory reads what the BMC knows about the hardware. Members it does not report are left empty.
	Inventory(ctx context.Context) (Inventory, error)
}

// PowerState is the state of a server's power.
type PowerState string

// Power states.
const (
	PowerOn         PowerState = "On"
	PowerOff        PowerState = "Off"
	PowerTurningOn  PowerState = "PoweringOn"
	PowerTurningOff PowerState = "PoweringOff"
	PowerUnknown    PowerState = "Unknown"
)

// PowerAction is a change of a server's power.
type PowerAction string

// Power actions.
const (
	// TurnOn powers a server on.
	TurnOn PowerAction = "On"
	// TurnOff cuts the power at once.
	TurnOff PowerAction = "ForceOff"
	// ShutDown asks the operating system to stop.
	ShutDown PowerAction = "GracefulShutdown"
	// Restart cuts the power and powers on again.
	Restart PowerAction = "ForceRestart"
)

// BootSource is where a server boots from.
type BootSource string

// Boot sources.
const (
	BootNetwork BootSource = "Network"
	BootDisk    BootSource = "Disk"
	BootMedia   BootSource = "VirtualMedia"
)

// Inventory is what is known about a server's hardware. Sizes are in bytes, clock in MHz.
type Inventory struct {
	Manufacturer string `json:"manufacturer,omitempty"`
	Model        string `json:"model,omitempty"`
	SerialNumber string `json:"serialNumber,omitempty"`
	// SystemUUID is the DMI product UUID as the agent reads it; the BMC's own is never compared with it.
	SystemUUID   string      `json:"systemUUID,omitempty"`
	BIOSVersion  string      `json:"biosVersion,omitempty"`
	Architecture string      `json:"architecture,omitempty"`
	CPUModel     string      `json:"cpuModel,omitempty"`
	CPUThreads   int         `json:"cpuThreads,omitempty"`
	MemoryBytes  int64       `json:"memoryBytes,omitempty"`
	NICs         []NIC       `json:"nics,omitempty"`
	Disks        []Disk      `json:"disks,omitempty"`
	PCIDevices   []PCIDevice `json:"pciDevices,omitempty"`
}

// NIC is a network interface.
type NIC struct {
	Name string `json:"name,omitempty"`
	// MAC is in lower case with colons.
	MAC       string `json:"mac"`
	SpeedMbps int    `json:"speedMbps,omitempty"`
	Up        bool   `json:"up,omitempty"`
}

// Disk is a block device.
type Disk struct {
	// Name is the device's path, "/dev/nvme0n1", where an operating system reported it.
	Name         string `json:"name,omitempty"`
	Model        string `json:"model,omitempty"`
	SerialNumber string `json:"serialNumber,omitempty"`
	WWN          string `json:"wwn,omitempty"`
	SizeBytes    int64  `json:"sizeBytes"`
	Rotational   bool   `json:"rotational,omitempty"`
}

// PCIDevice is a PCI function. Ids are four lower-case hex digits without 0x, the class six ("030200" is a 3D controller).
type PCIDevice struct {
	// Address is domain:bus:device.function where an operating system reported it.
	Address  string `json:"address,omitempty"`
	VendorID string `json:"vendorID"`
	DeviceID string `json:"deviceID"`
	Class    string `json:"class,omitempty"`
	Model    string `json:"model,omitempty"`
}
