package wellknown

// Resources of AMD's device plugin, and its DRA driver.
const (
	// AMDDomain begins the name of each of AMD's resources.
	AMDDomain = "amd.com/"
	// AMDGPU is the resource of a GPU with the naming strategy single. AMD's software tolerates a taint with this key.
	AMDGPU = "amd.com/gpu"
	// AMDDRADriver is the name of AMD's DRA driver, and of its DeviceClass.
	AMDDRADriver = "gpu.amd.com"
	// AMDKernelModule is the driver of AMD's GPUs in the kernel.
	AMDKernelModule = "amdgpu"
	// AMDDeviceTypeGPU and AMDDeviceTypePartition are the values of a device's attribute type.
	AMDDeviceTypeGPU       = AMDKernelModule
	AMDDeviceTypePartition = AMDDeviceTypeGPU + "-partition"
	// AMDAttributePartitionProfile is the attribute that names the partition.
	AMDAttributePartitionProfile = "partitionProfile"
)

// Values of the device plugin's option resource_naming_strategy.
const (
	AMDNamingSingle = "single"
	AMDNamingMixed  = "mixed"
)

// Node labels of the device config manager of AMD's operator.
const (
	// LabelAMDConfigProfile names the profile by which the manager partitions the GPUs of the node.
	LabelAMDConfigProfile = "dcm.amd.com/gpu-config-profile"
	// LabelAMDConfigProfileState reports the manager's progress.
	LabelAMDConfigProfileState = "dcm.amd.com/gpu-config-profile-state"
)
