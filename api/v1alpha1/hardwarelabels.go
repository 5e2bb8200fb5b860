package v1alpha1

// Labels on a BareMetalHost of a redfish provider that say what inspection found. Each is absent while nobody could tell, and what a label must not have is
// replaced by hyphens.
const (
	// LabelManufacturer and LabelModel are those of the server.
	LabelManufacturer = "hardware.ingot.dev/manufacturer"
	LabelModel        = "hardware.ingot.dev/model"
	// LabelArchitecture is amd64 or arm64.
	LabelArchitecture = "hardware.ingot.dev/architecture"
	// LabelCPUModel, LabelCPUSockets, LabelCPUCores and LabelNUMANodes are of all processors together.
	LabelCPUModel   = "hardware.ingot.dev/cpu-model"
	LabelCPUSockets = "hardware.ingot.dev/cpu-sockets"
	LabelCPUCores   = "hardware.ingot.dev/cpu-cores"
	LabelNUMANodes  = "hardware.ingot.dev/numa-nodes"
	// LabelMemoryGiB is that of the memory modules or, while they are not known, what the BMC or the operating system tells.
	LabelMemoryGiB = "hardware.ingot.dev/memory-gib"
	// LabelNICMaxGbps is the speed of the fastest port that had a link.
	LabelNICMaxGbps = "hardware.ingot.dev/nic-max-gbps"
	// LabelGPULinkWidth is the lowest number of PCIe lanes of a GPU.
	LabelGPULinkWidth = "hardware.ingot.dev/gpu-link-width"
	// LabelTPM is the major version of the Trusted Platform Module.
	LabelTPM = "hardware.ingot.dev/tpm"
	// LabelBIOSVersion and LabelBMCVersion are those of the firmware.
	LabelBIOSVersion = "hardware.ingot.dev/bios-version"
	LabelBMCVersion  = "hardware.ingot.dev/bmc-version"
)

// HardwareLabels returns the keys of the labels that say what inspection found, but for those of GPUs.
func HardwareLabels() []string {
	return []string{
		LabelManufacturer, LabelModel, LabelArchitecture, LabelCPUModel, LabelCPUSockets, LabelCPUCores, LabelNUMANodes, LabelMemoryGiB, LabelNICMaxGbps, LabelGPULinkWidth,
		LabelTPM, LabelBIOSVersion, LabelBMCVersion,
	}
}
