package wellknown

// Resources that NVIDIA's device plugins advertise.
const (
	// NVIDIADomain begins the name of each of NVIDIA's resources.
	NVIDIADomain = "nvidia.com/"
	// NVIDIAGPU is the resource of a GPU that is not partitioned, and with MIG strategy single also of a MIG instance. NVIDIA's
	// software tolerates a taint with this key.
	NVIDIAGPU = "nvidia.com/gpu"
	// NVIDIAMIGPrefix begins the resources of MIG instances with MIG strategy mixed.
	NVIDIAMIGPrefix = "nvidia.com/mig-"
)

// Node labels that NVIDIA's software obeys.
const (
	// LabelWorkloadConfig says what the GPUs of the node are for: one of the Workload constants.
	LabelWorkloadConfig = "nvidia.com/gpu.workload.config"
	// LabelDevicePluginConfig names the device plugin's configuration for the node.
	LabelDevicePluginConfig = "nvidia.com/device-plugin.config"
	// LabelMIGConfig names the configuration that the operator's MIG manager applies.
	LabelMIGConfig = "nvidia.com/mig.config"
	// LabelVGPUConfig names the configuration that the operator's vGPU device manager applies.
	LabelVGPUConfig = "nvidia.com/vgpu.config"
	// LabelDRAKubeletPlugin with the value true puts the DRA driver's kubelet plugin on the node.
	LabelDRAKubeletPlugin = "nvidia.com/dra-kubelet-plugin"

	// The operator keeps a component off a node whose label has the value false.
	LabelDeployDevicePlugin      = "nvidia.com/gpu.deploy.device-plugin"
	LabelDeployContainerToolkit  = "nvidia.com/gpu.deploy.container-toolkit"
	LabelDeployMIGManager        = "nvidia.com/gpu.deploy.mig-manager"
	LabelDeployVGPUManager       = "nvidia.com/gpu.deploy.vgpu-manager"
	LabelDeployVGPUDeviceManager = "nvidia.com/gpu.deploy.vgpu-device-manager"
)

// Node labels by which NVIDIA's software reports.
const (
	// Feature discovery sets these labels.
	LabelDriverVersion   = "nvidia.com/cuda.driver-version.full"
	LabelGPUFamily       = "nvidia.com/gpu.family"
	LabelGPUProduct      = "nvidia.com/gpu.product"
	LabelGPUMemory       = "nvidia.com/gpu.memory"
	LabelGPUCount        = "nvidia.com/gpu.count"
	LabelGPUReplicas     = "nvidia.com/gpu.replicas"
	LabelSharingStrategy = "nvidia.com/gpu.sharing-strategy"
	LabelMIGStrategy     = "nvidia.com/mig.strategy"
	LabelVGPUPresent     = "nvidia.com/vgpu.present"

	// The operator's managers set these labels to their progress.
	LabelMIGConfigState  = "nvidia.com/mig.config.state"
	LabelVGPUConfigState = "nvidia.com/vgpu.config.state"
)

// Values of LabelWorkloadConfig.
const (
	WorkloadContainer     = "container"
	WorkloadVMPassthrough = "vm-passthrough"
	WorkloadVMVGPU        = "vm-vgpu"
)

// DeviceListStrategyCDI has the device plugin name a container's devices in a member of its answer to kubelet, which containerd looks up in the CDI
// specifications of the node. The plugin's default is the variable NVIDIA_VISIBLE_DEVICES.
const DeviceListStrategyCDI = "cdi-cri"

// MIG strategies of the device plugin and of feature discovery.
const (
	MIGStrategyNone   = "none"
	MIGStrategySingle = "single"
	MIGStrategyMixed  = "mixed"
)

// Configuration files of NVIDIA's partitioning tools.
const (
	// MIGConfigsKey is the member of mig-parted's and the MIG manager's configuration file that has configurations by name.
	MIGConfigsKey = "mig-configs"
	// VGPUConfigsKey is the same member of the vGPU device manager's configuration file.
	VGPUConfigsKey = "vgpu-configs"
	// MIGConfigAllDisabled is the MIG manager's configuration in which no GPU is partitioned.
	MIGConfigAllDisabled = "all-disabled"
)

// NVIDIA's DRA driver for GPUs.
const (
	// NVIDIADRADriver is the name of the driver in ResourceSlices.
	NVIDIADRADriver = "gpu.nvidia.com"

	// Releases of the driver whose feature gates are known. Tenants get NVIDIADRARelease unless a NodeType names another.
	NVIDIADRARelease041 = "0.4.1"
	NVIDIADRARelease050 = "0.5.0"
	NVIDIADRARelease    = NVIDIADRARelease050

	// DeviceClasses of the driver.
	NVIDIADeviceClassGPU  = NVIDIADRADriver
	NVIDIADeviceClassMIG  = "mig.nvidia.com"
	NVIDIADeviceClassVFIO = "vfio.gpu.nvidia.com"

	// NVIDIAAttributeProduct is the attribute of a device with the name of its GPU, and NVIDIACapacityMemory the capacity with its memory.
	NVIDIAAttributeProduct = "productName"
	NVIDIACapacityMemory   = "memory"

	// Values of the device attribute type.
	NVIDIADeviceTypeGPU  = "gpu"
	NVIDIADeviceTypeMIG  = "mig"
	NVIDIADeviceTypeVFIO = "vfio"
)

// Feature gates of NVIDIA's DRA driver (its pkg/featuregates).
const (
	GateComputeDomainCliques      = "ComputeDomainCliques"
	GateConsumableShares          = "ConsumableShares"
	GateCrashOnFabricErrors       = "CrashOnNVLinkFabricErrors"
	GateDRAListTypeAttributes     = "DRAListTypeAttributes"
	GateDeviceMetadata            = "DeviceMetadata"
	GateDynamicMIG                = "DynamicMIG"
	GateFabricManagerPartitioning = "FabricManagerPartitioning"
	GateHostManagedIMEX           = "HostManagedIMEXDaemon"
	GateIMEXDaemonsWithDNSNames   = "IMEXDaemonsWithDNSNames"
	GateMPS                       = "MPSSupport"
	GateDeviceHealthCheck         = "NVMLDeviceHealthCheck"
	GatePassthrough               = "PassthroughSupport"
	GateTimeSlicing               = "TimeSlicingSettings"
)
