package plan

import (
	"crypto/sha256"
	"encoding/hex"
)

// Tenant is what the vendor's software in a tenant cluster - an operator, a device plugin, a DRA driver, KubeVirt - must
// be told so that it agrees with the nodes of a NodeType. What is empty is left to the software's defaults.
type Tenant struct {
	// DriverVersion that the operator installs.
	DriverVersion string
	// KernelModule is the kind of kernel modules that it installs: Open, Proprietary, or empty for its own choice.
	KernelModule string
	// MIGStrategy of device plugin and feature discovery: none, single, mixed.
	MIGStrategy string
	// MIGConfig is an entry of the MIG manager's configuration that nodes name by the label nvidia.com/mig.config.
	MIGConfig *Configuration
	// PluginConfig is a configuration of the device plugin's that nodes name by the label nvidia.com/device-plugin.config.
	PluginConfig *Configuration
	// VGPUConfig is an entry of the vGPU device manager's configuration that nodes name by the label nvidia.com/vgpu.config.
	VGPUConfig *Configuration
	// WorkloadConfig of the operator: container, vm-passthrough, vm-vgpu.
	WorkloadConfig string
	// FeatureGates that the DRA driver runs with, sorted.
	FeatureGates []string
	// ResourceNaming is the strategy of AMD's device plugin: single, mixed.
	ResourceNaming string
	// HostDevices that KubeVirt must permit.
	HostDevices []HostDevice
}

// Configuration is one of several that a tenant's software knows by name.
type Configuration struct {
	// Name by which the node chooses it. Different contents have different names, so that NodeTypes can share a cluster.
	Name string
	// Content is the whole file, with this one entry.
	Content string
}

// HostDevice is an entry of KubeVirt's permittedHostDevices.
type HostDevice struct {
	// PCISelector is vendor and device, 10DE:2330; empty for mediated devices.
	PCISelector string
	// MdevName is the name of the mediated device type, NVIDIA A10-12Q; empty for PCI devices.
	MdevName string
	// ResourceName under which it is advertised.
	ResourceName string
	// External says that a device plugin other than KubeVirt's own advertises it.
	External bool
}

// Named gives a configuration a name of its own.
func Named(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "ingot-" + hex.EncodeToString(sum[:5])
}
