package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// HardwareRequirements is what a server must have to be given to a Machine, beside the GPUs of spec.gpu. A host whose inventory shows that it lacks
// something is not claimed. What only the agent can read is compared when it has booted: where something is missing or cannot be read, the attempt
// fails with HardwareInsufficient before the first byte is written.
type HardwareRequirements struct {
	// gpuLink is the PCIe link that every GPU of NVIDIA and AMD in the server must have:
	//   - FullWidth: as many lanes as the GPU has. A GPU with fewer is in a smaller slot, or not seated.
	//   - FullWidthAndSpeed: beside that, the port above the GPU must support the GPU's highest speed. The speed at the moment is not compared,
	//     because GPUs lower it while they are idle.
	//
	// +optional
	GPULink GPULink `json:"gpuLink,omitempty"`
	// minMemory of the server: the sum of its memory modules, or at least 95% of it as the memory of the operating system, which does not
	// see what the firmware keeps, where the modules are not known.
	// +optional
	MinMemory *resource.Quantity `json:"minMemory,omitempty"`
	// nics are the network ports that the server must have.
	// +optional
	NICs *NICRequirement `json:"nics,omitempty"`
	// firmware is the lowest version of the firmware of the server's components.
	// +optional
	// +listType=map
	// +listMapKey=component
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Firmware []FirmwareRequirement `json:"firmware,omitempty"`
}

// GPULink is a requirement on the PCIe link of GPUs.
// +kubebuilder:validation:Enum=FullWidth;FullWidthAndSpeed
type GPULink string

// Requirements on the PCIe link of GPUs.
const (
	// GPULinkFullWidth requires as many lanes as the GPU has.
	GPULinkFullWidth GPULink = "FullWidth"
	// GPULinkFullWidthAndSpeed requires beside that a port that supports the GPU's highest speed.
	GPULinkFullWidthAndSpeed GPULink = "FullWidthAndSpeed"
)

// NICRequirement is a number of network ports with a link of a speed.
type NICRequirement struct {
	// count of the ports, at least.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	Count int32 `json:"count"`
	// minGbps is the speed in Gbit/s that the link of each must have, at least. A port without a link does not count.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MinGbps int32 `json:"minGbps"`
}

// FirmwareRequirement is the lowest version of the firmware of one kind of component.
type FirmwareRequirement struct {
	// component whose firmware is compared:
	//   - BIOS: the firmware of the server.
	//   - BMC: the management controller, as it reports itself.
	//   - NIC: every network port whose PCI ids or driver are name.
	//   - Disk: every disk whose model contains name.
	//
	// +required
	Component FirmwareComponent `json:"component"`
	// name of the NICs, as their PCI ids such as 15b3:1021 or their driver such as ice, or a part of the model of the disks. Upper and lower case are
	// the same. A server without such a component meets the requirement.
	// +optional
	// +default=""
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name"`
	// minVersion is the lowest version, in the form in which the component reports it. Versions are compared part by part, where every character that
	// is neither a letter nor a digit ends a part: two numbers by their value, two parts of letters and digits that have one length by their
	// characters, others by their runs of digits and of letters. Upper and lower case are the same. A version that has further parts is higher. Where a number meets a letter the versions cannot be
	// compared, and the requirement is not met.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`[0-9A-Za-z]`
	MinVersion string `json:"minVersion"`
}

// FirmwareComponent is a kind of component with firmware.
// +kubebuilder:validation:Enum=BIOS;BMC;NIC;Disk
type FirmwareComponent string

// Components with firmware.
const (
	// FirmwareBIOS is the firmware of the server.
	FirmwareBIOS FirmwareComponent = "BIOS"
	// FirmwareBMC is that of the management controller.
	FirmwareBMC FirmwareComponent = "BMC"
	// FirmwareNIC is that of the network ports with the driver.
	FirmwareNIC FirmwareComponent = "NIC"
	// FirmwareDisk is that of the disks with the model.
	FirmwareDisk FirmwareComponent = "Disk"
)
