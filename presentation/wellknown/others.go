package wellknown

// Names of Intel's accelerators.
const (
	// HabanaDomain begins the resources of Intel's Gaudi accelerators.
	HabanaDomain = "habana.ai/"
	// GaudiDRADriver is the name of the DRA driver for Gaudi accelerators.
	GaudiDRADriver = "gaudi.intel.com"
	// IntelGPUDomain begins the resources of Intel's GPUs.
	IntelGPUDomain = "gpu.intel.com/"
	// IntelGPUDRADriver is the name of the DRA driver for Intel's GPUs.
	IntelGPUDRADriver = "gpu.intel.com"
)

// Feature gates of KubeVirt.
const (
	// KubeVirtGateGPUsWithDRA gives virtual machines the GPUs of resource claims.
	KubeVirtGateGPUsWithDRA = "GPUsWithDRA"
)
