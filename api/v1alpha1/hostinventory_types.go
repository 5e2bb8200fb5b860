package v1alpha1

// HostInventory is what the agent and the BMC found. Sizes are in bytes.
type HostInventory struct {
	// manufacturer of the server.
	// +optional
	Manufacturer string `json:"manufacturer,omitempty"`
	// model of the server.
	// +optional
	Model string `json:"model,omitempty"`
	// serialNumber of the server.
	// +optional
	SerialNumber string `json:"serialNumber,omitempty"`
	// systemUUID is the DMI product UUID as the agent read it; empty when only the BMC was asked.
	// +optional
	SystemUUID string `json:"systemUUID,omitempty"`
	// cpuModel of the processors.
	// +optional
	CPUModel string `json:"cpuModel,omitempty"`
	// cpuThreads of all processors.
	// +optional
	CPUThreads int32 `json:"cpuThreads,omitempty"`
	// memoryBytes of memory.
	// +optional
	MemoryBytes int64 `json:"memoryBytes,omitempty"`
	// biosVersion of the server.
	// +optional
	BIOSVersion string `json:"biosVersion,omitempty"`
	// architecture of the processors.
	// +optional
	Architecture string `json:"architecture,omitempty"`
	// disks of the server.
	// +optional
	// +listType=atomic
	Disks []DiskInventory `json:"disks,omitempty"`
	// nics are the network interfaces.
	// +optional
	// +listType=atomic
	NICs []NICInventory `json:"nics,omitempty"`
	// gpus found on the PCI bus, by vendor and device id.
	// +optional
	// +listType=atomic
	GPUs []GPUInventory `json:"gpus,omitempty"`
}

// DiskInventory is a disk.
type DiskInventory struct {
	// name is the device's path, where an operating system reported it.
	// +optional
	Name string `json:"name,omitempty"`
	// model of the disk.
	// +optional
	Model string `json:"model,omitempty"`
	// serialNumber of the disk.
	// +optional
	SerialNumber string `json:"serialNumber,omitempty"`
	// wwn is the disk's World Wide Name.
	// +optional
	WWN string `json:"wwn,omitempty"`
	// sizeBytes of the disk.
	// +optional
	SizeBytes int64 `json:"sizeBytes,omitempty"`
	// rotational says that it is no solid-state disk.
	// +optional
	Rotational bool `json:"rotational,omitempty"`
}

// NICInventory is a network interface.
type NICInventory struct {
	// name of the interface, where an operating system reported it.
	// +optional
	Name string `json:"name,omitempty"`
	// mac address in lower case with colons.
	// +optional
	MAC string `json:"mac,omitempty"`
	// speedMbps of the link.
	// +optional
	SpeedMbps int32 `json:"speedMbps,omitempty"`
}

// GPUInventory counts GPUs of one kind.
type GPUInventory struct {
	// vendorID and deviceID are PCI ids, four lower-case hex digits.
	// +required
	VendorID string `json:"vendorID"`
	// deviceID of the GPU.
	// +required
	DeviceID string `json:"deviceID"`
	// model as in Ingot's catalogue; absent when it does not know the ids.
	// +optional
	Model string `json:"model,omitempty"`
	// count of such GPUs.
	// +required
	Count int32 `json:"count"`
}
