package v1alpha1

// HostInventory is what the agent and the BMC found. Sizes are in bytes.
type HostInventory struct {
	// manufacturer of the server.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Manufacturer string `json:"manufacturer,omitempty"`
	// model of the server.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Model string `json:"model,omitempty"`
	// serialNumber of the server.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	SerialNumber string `json:"serialNumber,omitempty"`
	// systemUUID is the DMI product UUID as the agent read it; empty when only the BMC was asked.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	SystemUUID string `json:"systemUUID,omitempty"`
	// cpuModel of the processors.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	CPUModel string `json:"cpuModel,omitempty"`
	// cpuThreads of all processors.
	// +optional
	CPUThreads int32 `json:"cpuThreads,omitempty"`
	// cpuSockets is the number of processors, as an agent counted them; absent while unknown.
	// +optional
	CPUSockets int32 `json:"cpuSockets,omitempty"`
	// cpuCores of all processors, as an agent counted them; absent while unknown.
	// +optional
	CPUCores int32 `json:"cpuCores,omitempty"`
	// numaNodes is the number of memory nodes, as an agent counted them; absent while unknown.
	// +optional
	NUMANodes int32 `json:"numaNodes,omitempty"`
	// memoryBytes of memory.
	// +optional
	MemoryBytes int64 `json:"memoryBytes,omitempty"`
	// memoryModules that are in the server, as an agent read them from DMI; empty while unknown.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	MemoryModules []MemoryModule `json:"memoryModules,omitempty"`
	// bmcVersion is the version of the BMC's firmware, as the BMC reports it; absent while unknown.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	BMCVersion string `json:"bmcVersion,omitempty"`
	// biosVersion of the server.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	BIOSVersion string `json:"biosVersion,omitempty"`
	// secureBoot is whether the firmware refuses programs that are not signed for it, as the BMC told it when the host was inspected; absent while unknown.
	//
	//   - On: it refuses them.
	//   - Off: it starts whatever boots.
	//
	// +optional
	SecureBoot SecureBootState `json:"secureBoot,omitempty"`
	// biosDate is the date of that version as the firmware tells it; absent while no agent has read it.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	BIOSDate string `json:"biosDate,omitempty"`
	// tpmVersion is the major version of the Trusted Platform Module, such as 2; absent while no agent has found one.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	TPMVersion string `json:"tpmVersion,omitempty"`
	// architecture of the processors.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Architecture string `json:"architecture,omitempty"`
	// disks of the server.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	Disks []DiskInventory `json:"disks,omitempty"`
	// nics are the network interfaces.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	NICs []NICInventory `json:"nics,omitempty"`
	// gpus of the server, by vendor and device id. An empty list means that there is none only where gpuSource is set.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	GPUs []GPUInventory `json:"gpus,omitempty"`
	// gpuSource says who counted the GPUs; absent while nobody could tell how many there are:
	//   - Agent: the agent on the server, from its own scan of the PCI bus.
	//   - BMC: the BMC, from its lists of devices and processors.
	//
	// +optional
	// +kubebuilder:validation:Enum=Agent;BMC
	GPUSource InventorySource `json:"gpuSource,omitempty"`
}

// InventorySource is who read a part of an inventory from the hardware.
type InventorySource string

// Sources of an inventory.
const (
	// SourceAgent means that the agent read it on the server.
	SourceAgent InventorySource = "Agent"
	// SourceBMC means that the BMC reported it.
	SourceBMC InventorySource = "BMC"
)

// IsGPUCountKnown reports whether it is known how many GPUs the server has, which may be none.
func (i *HostInventory) IsGPUCountKnown() bool {
	return i != nil && (i.GPUSource != "" || len(i.GPUs) > 0)
}

// DiskInventory is a disk.
type DiskInventory struct {
	// name is the device's path, where an operating system reported it.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name,omitempty"`
	// model of the disk.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Model string `json:"model,omitempty"`
	// serialNumber of the disk.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	SerialNumber string `json:"serialNumber,omitempty"`
	// wwn is the disk's World Wide Name.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	WWN string `json:"wwn,omitempty"`
	// sizeBytes of the disk.
	// +optional
	SizeBytes int64 `json:"sizeBytes,omitempty"`
	// rotational says that it is no solid-state disk.
	// +optional
	Rotational bool `json:"rotational,omitempty"`
	// transport is nvme, sata, sas, usb or virtio; absent while no agent has read it.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Transport string `json:"transport,omitempty"`
	// firmware is the version of the disk's firmware; absent while no agent has read it.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Firmware string `json:"firmware,omitempty"`
	// pciID is the PCI vendor and device id of an NVMe disk, such as 144d:a80a; absent while no agent has read it.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	PCIID string `json:"pciID,omitempty"`
	// subsystemID is the PCI vendor and device id of its board; absent while no agent has read it.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	SubsystemID string `json:"subsystemID,omitempty"`
	// numaNode is the number of the memory node that it is near; absent while that is not known.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	NUMANode string `json:"numaNode,omitempty"`
}

// NICInventory is a network interface.
type NICInventory struct {
	// name of the interface, where an operating system reported it.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name,omitempty"`
	// mac address in lower case with colons.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	MAC string `json:"mac,omitempty"`
	// speedMbps of the link.
	// +optional
	SpeedMbps int32 `json:"speedMbps,omitempty"`
	// driver of the operating system, where one reported it.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Driver string `json:"driver,omitempty"`
	// link of the port when it was read; absent while that is not known:
	//   - Up: the port had a link.
	//   - Down: an agent found the port without a link.
	//
	// +optional
	// +kubebuilder:validation:Enum=Up;Down
	Link LinkState `json:"link,omitempty"`
	// firmware is the version of the interface's firmware; absent while no agent has read it.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Firmware string `json:"firmware,omitempty"`
	// pciID is the interface's PCI vendor and device id, such as 15b3:1021; absent while no agent has read it.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	PCIID string `json:"pciID,omitempty"`
	// subsystemID is the PCI vendor and device id of its board; absent while no agent has read it.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	SubsystemID string `json:"subsystemID,omitempty"`
	// numaNode is the number of the memory node that it is near; absent while that is not known.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	NUMANode string `json:"numaNode,omitempty"`
}

// LinkState is the state of a network port.
type LinkState string

// States of a network port.
const (
	// LinkUp means that the port had a link.
	LinkUp LinkState = "Up"
	// LinkDown means that an agent found no link.
	LinkDown LinkState = "Down"
)

// MemoryModule is a memory module that is in the server.
type MemoryModule struct {
	// slot is the name of the slot on the board.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Slot string `json:"slot,omitempty"`
	// sizeBytes of the module.
	// +required
	SizeBytes int64 `json:"sizeBytes"`
	// manufacturer of the module.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Manufacturer string `json:"manufacturer,omitempty"`
	// partNumber of the module.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	PartNumber string `json:"partNumber,omitempty"`
	// serialNumber of the module.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	SerialNumber string `json:"serialNumber,omitempty"`
	// speedMTs is the number of million transfers per second at which the module runs; absent while unknown.
	// +optional
	SpeedMTs int32 `json:"speedMTs,omitempty"`
}

// GPUInventory counts GPUs of one kind.
type GPUInventory struct {
	// vendorID and deviceID are PCI ids, four lower-case hex digits.
	// +required
	// +kubebuilder:validation:MaxLength=128
	VendorID string `json:"vendorID"`
	// deviceID of the GPU; empty when the BMC reports neither the id nor the name of a model in Ingot's catalogue.
	// +required
	// +kubebuilder:validation:MaxLength=128
	DeviceID string `json:"deviceID"`
	// model as in Ingot's catalogue; absent when it does not know the ids.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Model string `json:"model,omitempty"`
	// count of such GPUs.
	// +required
	Count int32 `json:"count"`
	// linkWidth is the lowest number of PCIe lanes that one of these GPUs and its slot have agreed on; absent while no agent has read it.
	// +optional
	LinkWidth int32 `json:"linkWidth,omitempty"`
	// maxLinkWidth is the number of PCIe lanes that these GPUs have. A lower linkWidth is a smaller slot, or a GPU or cable that is not seated.
	// +optional
	MaxLinkWidth int32 `json:"maxLinkWidth,omitempty"`
	// maxLinkSpeed is the highest number of million transfers per second that these GPUs support on a PCIe lane; absent while no agent has read it.
	// +optional
	MaxLinkSpeed int32 `json:"maxLinkSpeed,omitempty"`
	// portMaxLinkSpeed is the lowest of what the ports above these GPUs support. Below maxLinkSpeed, a slot is slower than its GPU.
	// +optional
	PortMaxLinkSpeed int32 `json:"portMaxLinkSpeed,omitempty"`
	// subsystemIDs are the PCI vendor and device ids of their boards, such as 10de:16c1; empty while no agent has read them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	SubsystemIDs []string `json:"subsystemIDs,omitempty"`
	// numaNodes says how many of these GPUs are near which memory node; empty while no agent has read it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	NUMANodes []NUMANodeCount `json:"numaNodes,omitempty"`
}

// The limits of GPUInventory.subsystemIDs and GPUInventory.numaNodes.
const (
	MaxSubsystemIDs   = 8
	MaxNUMANodeCounts = 64
)

// NUMANodeCount counts devices that are near one memory node.
type NUMANodeCount struct {
	// node is the number of the memory node.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Node string `json:"node"`
	// count of the devices.
	// +required
	Count int32 `json:"count"`
}

// ExpectedGPUs are the GPUs that a server must have before an image is written to it. The agent's own scan of the PCI bus decides.
type ExpectedGPUs struct {
	// vendor of the GPUs:
	//   - nvidia: GPUs of NVIDIA.
	//   - amd: GPUs of AMD.
	//   - generic: any other accelerator, which is not compared.
	//
	// +required
	Vendor GPUVendor `json:"vendor"`
	// model as in Ingot's catalogue: H100-SXM5-80GB.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Model string `json:"model"`
	// count of GPUs in the server: exactly so many of this model, and no other GPUs of the vendor.
	// +required
	Count int32 `json:"count"`
}

// SecureBootState is whether Secure Boot is on.
// +kubebuilder:validation:Enum=On;Off
type SecureBootState string
