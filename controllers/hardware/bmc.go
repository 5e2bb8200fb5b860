package hardware

import (
	"context"
	"strings"
)

// Endpoint is the address of a BMC and the credentials for it. It holds secrets: never log or print it.
type Endpoint struct {
	// Address is the URL of the Redfish service, scheme and host only: "https://10.0.0.7".
	Address string
	// SystemPath is the resource of the computer system, "/redfish/v1/Systems/1". When it is empty the adapter finds it.
	SystemPath string
	// Username and Password are read from the Secret at every reconcile, so that a changed Secret is used by the next one.
	Username, Password string
	// CABundle holds PEM certificates. When it is empty the root certificates of the system are used.
	CABundle []byte
	// InsecureSkipVerify turns certificate verification off. Only an explicit setting of the user sets it.
	InsecureSkipVerify bool
	// BootOrder keeps the boot order of a server whose BMC has no boot override; nil: it is kept in memory.
	BootOrder BootOrderMemory
}

// BootOrderMemory keeps the persistent boot order that a server had before it was changed for a boot, so that another process can put it back.
type BootOrderMemory interface {
	// Kept returns the order that is to be put back; nil when there is none.
	Kept() []string
	// Keep stores the order before it is changed, and nil when it was put back.
	Keep(ctx context.Context, order []string) error
}

// String returns the address without the credentials, so that printing an Endpoint shows no secret.
func (e Endpoint) String() string { return e.Address + e.SystemPath }

// GoString does the same for the verb %#v.
func (e Endpoint) GoString() string { return e.String() }

// BMCOpener opens BMCs. An implementation may keep sessions between calls.
type BMCOpener interface {
	// OpenBMC returns the management controller at the endpoint. It may log in; the implementation keeps and ends the session.
	OpenBMC(ctx context.Context, endpoint Endpoint) (BMC, error)
}

// BMC is the management controller of one server.
type BMC interface {
	// PowerState returns the power state that the BMC reports.
	PowerState(ctx context.Context) (PowerState, error)
	// SetPower requests a change of power and returns when the BMC has accepted it. It succeeds when the server is already in that state.
	SetPower(ctx context.Context, action PowerAction) error
	// SetBootOnce makes the next boot come from the source. It does not affect later boots, except on BMCs that know only overrides that
	// stay: so ClearBoot is called after the boot.
	SetBootOnce(ctx context.Context, source BootSource) error
	// SetBootAlways makes every boot come from the source until ClearBoot, where the BMC offers that, and otherwise the next one.
	SetBootAlways(ctx context.Context, source BootSource) error
	// ClearBoot ends an override, of whatever source, and puts a boot order back that was changed in place of one. It sends no change when there is none.
	ClearBoot(ctx context.Context) error
	// SetVirtualMedia inserts the boot image, whose URLs have the last part MediaFileName, as virtual media, in place of an earlier one. The URLs are
	// several ways to the same image: the first that the BMC fetches is used. Without a URL, or with empty ones, such images are ejected. Images with
	// other names are somebody else's and stay; it fails with Conflict where they take every slot, with Unsupported where the BMC has none, and with
	// Busy while the BMC inserts the image, or, with ReasonBootImageNotFetched, when it could not fetch it. Such a call is repeated.
	SetVirtualMedia(ctx context.Context, imageURLs ...string) error
	// SetPinnedBootOnce makes the next boot load the EFI program at the URL, whose last part is PinnedFileName, by UEFI HTTP boot. It fails with
	// Unsupported where the BMC cannot pin a URL, or does not keep it. No error has the last parts of the URL, which are a secret.
	SetPinnedBootOnce(ctx context.Context, programURL string) error
	// SetPinnedBootAlways does the same for every boot until ClearBoot, where the BMC offers that, and otherwise for the next one.
	SetPinnedBootAlways(ctx context.Context, programURL string) error
	// ClearPinnedBoot takes out a URL that Ingot has pinned. The URLs of others stay.
	ClearPinnedBoot(ctx context.Context) error
	// SetBootAuthorities makes the firmware trust these authorities, in PEM, for HTTPS boot, and no other ones with BootAuthorityName. It fails with
	// Unsupported where the BMC does not take them.
	SetBootAuthorities(ctx context.Context, authorities []byte) error
	// SecureBoot returns whether the next boot enforces Secure Boot, and the name of the setting that decides it. A BMC that does not tell returns
	// SecureBootUnknown and no error.
	SecureBoot(ctx context.Context) (state SecureBootState, setting string, err error)
	// Inventory returns the hardware that the BMC reports, completely: fields that it does not report are empty, and when one of its resources
	// cannot be read Inventory fails, so that the caller repeats it. It ends when ctx does.
	Inventory(ctx context.Context) (Inventory, error)
}

// SecureBootState is whether the firmware of a server refuses programs that nobody it knows has signed.
type SecureBootState string

// States of Secure Boot.
const (
	SecureBootUnknown SecureBootState = ""
	SecureBootOn      SecureBootState = "On"
	SecureBootOff     SecureBootState = "Off"
)

// PowerState is the power state of a server.
type PowerState string

// Power states.
const (
	PowerOn         PowerState = "On"
	PowerOff        PowerState = "Off"
	PowerTurningOn  PowerState = "PoweringOn"
	PowerTurningOff PowerState = "PoweringOff"
	PowerUnknown    PowerState = "Unknown"
)

// PowerAction is a change of power that a BMC can carry out.
type PowerAction string

// Power actions.
const (
	// TurnOn powers a server on.
	TurnOn PowerAction = "On"
	// TurnOff cuts the power at once. A BMC that cannot asks the operating system to stop.
	TurnOff PowerAction = "ForceOff"
	// ShutDown requests that the operating system stops.
	ShutDown PowerAction = "GracefulShutdown"
	// Restart cuts the power and then powers the server on.
	Restart PowerAction = "ForceRestart"
)

// BootSource is a device that a server boots from.
type BootSource string

// Boot sources.
const (
	BootNetwork BootSource = "Network"
	BootDisk    BootSource = "Disk"
	BootMedia   BootSource = "VirtualMedia"
	BootPinned  BootSource = "PinnedHTTP"
)

// HasOwnImage reports whether a server that boots from the source gets an image of its own for each boot, with the token in it. It then asks for no boot
// document.
func (s BootSource) HasOwnImage() bool { return s == BootMedia || s == BootPinned }

// MediaFileName is the last part of the URLs of the boot images that Ingot inserts as virtual media. Media are recognized by it, because the boot
// service may have had another address when an image was inserted, and a person may have inserted an image of his own.
const MediaFileName = "ingot-agent.iso"

// PinnedFileName is the same for the EFI programs whose URLs Ingot pins for UEFI HTTP boot. Firmware knows an EFI program by the ending.
const PinnedFileName = "ingot-agent.efi"

// BootAuthorityName is the common name of the authorities of the boot service's certificate. The certificates that firmware trusts are recognized by it.
const BootAuthorityName = "ingot-boot-authority"

// Inventory describes the hardware of a server, as far as it is known. An empty field is unknown.
type Inventory struct {
	Manufacturer string `json:"manufacturer,omitempty"`
	Model        string `json:"model,omitempty"`
	SerialNumber string `json:"serialNumber,omitempty"`
	// SystemUUID is the DMI product UUID that the agent reads. The UUID that a BMC reports is never compared with it.
	SystemUUID  string `json:"systemUUID,omitempty"`
	BIOSVersion string `json:"biosVersion,omitempty"`
	// SecureBoot is that of the next boot, as the BMC told it.
	SecureBoot   SecureBootState `json:"secureBoot,omitempty"`
	Architecture string          `json:"architecture,omitempty"`
	CPUModel     string          `json:"cpuModel,omitempty"`
	CPUThreads   int             `json:"cpuThreads,omitempty"`
	// CPUSockets, CPUCores, NUMANodes, BIOSDate and TPMVersion are told by an agent only.
	CPUSockets int    `json:"cpuSockets,omitempty"`
	CPUCores   int    `json:"cpuCores,omitempty"`
	NUMANodes  int    `json:"numaNodes,omitempty"`
	BIOSDate   string `json:"biosDate,omitempty"`
	TPMVersion string `json:"tpmVersion,omitempty"`
	// BMCVersion is the version of the BMC's firmware. Only the BMC tells it.
	BMCVersion  string `json:"bmcVersion,omitempty"`
	MemoryBytes int64  `json:"memoryBytes,omitempty"`
	// MemoryModules are told by an agent only.
	MemoryModules []MemoryModule `json:"memoryModules,omitempty"`
	NICs          []NIC          `json:"nics,omitempty"`
	Disks         []Disk         `json:"disks,omitempty"`
	PCIDevices    []PCIDevice    `json:"pciDevices,omitempty"`
	// DeviceSource says who vouches for PCIDevices, which then are all devices, each once. It is empty for the lists of a BMC as they were read.
	DeviceSource DeviceSource `json:"deviceSource,omitempty"`
}

// MaxText is the length of a text of an inventory in bytes, MaxParts the number of items of each of its lists. Adapters clean what they have read.
const MaxText, MaxParts = 128, 4096

// DeviceSource is who vouches for a list of PCI devices.
type DeviceSource string

// Sources of PCI devices.
const (
	// DevicesByAgent means that the operating system of the agent scanned the PCI bus.
	DevicesByAgent DeviceSource = "Agent"
	// DevicesByBMC means that the lists of the BMC were compared and found complete.
	DevicesByBMC DeviceSource = "BMC"
)

// NIC is a network interface.
type NIC struct {
	Name string `json:"name,omitempty"`
	// MAC is the address in lower case with colons.
	MAC       string `json:"mac"`
	SpeedMbps int    `json:"speedMbps,omitempty"`
	// Up means that the port has a link, NoLink that an agent has found none. Neither means that nobody knows.
	Up     bool `json:"up,omitempty"`
	NoLink bool `json:"noLink,omitempty"`
	// Driver is the kernel's driver, as an agent has it.
	Driver string `json:"driver,omitempty"`
	// Firmware is the version of the firmware, and PCIID is VENDOR:DEVICE in eight lower-case hexadecimal digits, as an agent has them.
	Firmware string `json:"firmware,omitempty"`
	PCIID    string `json:"pciID,omitempty"`
	// SubsystemID is VENDOR:DEVICE of the board, in the same form, and NUMANode the number of the memory node that the device is near, as an agent has them;
	// empty is unknown.
	SubsystemID string `json:"subsystemID,omitempty"`
	NUMANode    string `json:"numaNode,omitempty"`
}

// MemoryModule is a memory module that is there.
type MemoryModule struct {
	// Slot is the name of the slot on the board, "DIMM_A1".
	Slot         string `json:"slot,omitempty"`
	SizeBytes    int64  `json:"sizeBytes"`
	Manufacturer string `json:"manufacturer,omitempty"`
	PartNumber   string `json:"partNumber,omitempty"`
	SerialNumber string `json:"serialNumber,omitempty"`
	// SpeedMTs is the number of million transfers per second at which the module runs; 0 is unknown.
	SpeedMTs int `json:"speedMTs,omitempty"`
}

// Disk is a block device.
type Disk struct {
	// Name is the path of the device, "/dev/nvme0n1". It is empty when a BMC reported the disk.
	Name         string `json:"name,omitempty"`
	Model        string `json:"model,omitempty"`
	SerialNumber string `json:"serialNumber,omitempty"`
	WWN          string `json:"wwn,omitempty"`
	SizeBytes    int64  `json:"sizeBytes"`
	Rotational   bool   `json:"rotational,omitempty"`
	// Transport is nvme, sata, sas, usb or virtio, and Firmware the version of the firmware, as an agent has them; empty is unknown.
	Transport string `json:"transport,omitempty"`
	Firmware  string `json:"firmware,omitempty"`
	// PCIID, SubsystemID and NUMANode are those of the PCI device that the disk is, as an agent has them; empty for a disk behind a controller.
	PCIID       string `json:"pciID,omitempty"`
	SubsystemID string `json:"subsystemID,omitempty"`
	NUMANode    string `json:"numaNode,omitempty"`
}

// PCIDevice is a PCI function. The ids have four lower-case hexadecimal digits without 0x, the class has six ("030200" is a 3D controller). What a
// BMC does not report is empty: a device without vendor and class may be anything.
type PCIDevice struct {
	// List names the list of a BMC that has the device. A BMC may have the same device in several lists without a common address, but has it at
	// most once in each. It is empty when an operating system reported the device.
	List string `json:"list,omitempty"`
	// Address is domain:bus:device.function. It may be empty when a BMC reported the device.
	Address  string `json:"address,omitempty"`
	VendorID string `json:"vendorID"`
	DeviceID string `json:"deviceID"`
	Class    string `json:"class,omitempty"`
	Model    string `json:"model,omitempty"`
	// LinkWidth is the number of PCIe lanes that the device and its slot have agreed on, MaxLinkWidth the number that the device has.
	LinkWidth    int `json:"linkWidth,omitempty"`
	MaxLinkWidth int `json:"maxLinkWidth,omitempty"`
	// MaxLinkSpeed is the highest number of million transfers per second that the device supports on a lane, PortMaxLinkSpeed that of the port above
	// it. The speed that they have agreed on is not kept, because idle devices lower it.
	MaxLinkSpeed     int `json:"maxLinkSpeed,omitempty"`
	PortMaxLinkSpeed int `json:"portMaxLinkSpeed,omitempty"`
	// SubsystemID is VENDOR:DEVICE of the board, in the same form as the ids, and NUMANode the number of the memory node that the device is near; empty is
	// unknown.
	SubsystemID string `json:"subsystemID,omitempty"`
	NUMANode    string `json:"numaNode,omitempty"`
}

// IsAccelerator reports whether the class is one that GPUs have: 03 is a display controller (VGA, 3D), 12 a processing accelerator, which is the
// class of AMD's MI300. The other functions of a GPU (audio, USB) and NVSwitches (0680) have other classes; the graphics of a BMC has this one.
func (d PCIDevice) IsAccelerator() bool {
	return strings.HasPrefix(d.Class, "03") || strings.HasPrefix(d.Class, "12")
}
