package v1alpha1

// NodePlan is what the operating system of a node is told, and what the node must then advertise.
type NodePlan struct {
	// kernelArguments that the presentation needs, baked into the image or set by Ignition.
	// +optional
	// +listType=atomic
	KernelArguments []string `json:"kernelArguments,omitempty"`
	// modules of the kernel.
	// +optional
	Modules KernelModules `json:"modules,omitzero"`
	// packages to install at the first boot.
	// +optional
	// +listType=atomic
	Packages []string `json:"packages,omitempty"`
	// files to write before kubelet starts.
	// +optional
	// +listType=atomic
	Files []NodeFile `json:"files,omitempty"`
	// units of systemd, in the order in which they are started.
	// +optional
	// +listType=atomic
	Units []SystemdUnit `json:"units,omitempty"`
	// secretFiles are files whose content is a Secret's: it enters at the last step of rendering, and no plan holds it.
	// +optional
	// +listType=atomic
	SecretFiles []NodeSecretFile `json:"secretFiles,omitempty"`
	// nodeLabels that kubelet registers with.
	// +optional
	NodeLabels map[string]string `json:"nodeLabels,omitempty"`
	// tenant is what the vendor's software in the tenant's cluster must be told to agree with the node.
	// +optional
	Tenant TenantSoftware `json:"tenant,omitzero"`
	// warnings are what people must know although it was not refused.
	// +optional
	// +listType=atomic
	Warnings []PlanWarning `json:"warnings,omitempty"`
	// expectation is what the node must advertise.
	// +optional
	Expectation NodeExpectation `json:"expectation,omitzero"`
}

// KernelModules of a node.
type KernelModules struct {
	// load at every boot, in this order.
	// +optional
	// +listType=atomic
	Load []string `json:"load,omitempty"`
	// blacklist is never loaded on its own.
	// +optional
	// +listType=atomic
	Blacklist []string `json:"blacklist,omitempty"`
}

// NodeFile is a file of the node.
type NodeFile struct {
	// path is absolute.
	// +required
	Path string `json:"path"`
	// mode is its permissions in octal: 0644.
	// +optional
	Mode string `json:"mode,omitempty"`
	// content of the file.
	// +optional
	Content string `json:"content,omitempty"`
}

// NodeSecretFile is a file of the node whose content is a key of a Secret.
type NodeSecretFile struct {
	// path is absolute.
	// +required
	Path string `json:"path"`
	// mode is its permissions in octal: 0600.
	// +optional
	Mode string `json:"mode,omitempty"`
	// secret in the host namespace.
	// +required
	Secret string `json:"secret"`
	// key of the Secret.
	// +required
	Key string `json:"key"`
}

// SystemdUnit is a unit that is enabled and started.
type SystemdUnit struct {
	// name with its suffix: ingot-gpu-mode.service.
	// +required
	Name string `json:"name"`
	// content of the unit file; empty: the image has the unit.
	// +optional
	Content string `json:"content,omitempty"`
}

// PlanWarning is something that was accepted and is not certain, such as what a vendor calls alpha.
type PlanWarning struct {
	// rule names it: experimental/dynamic-mig.
	// +required
	Rule string `json:"rule"`
	// message says what is uncertain and what to look at.
	// +required
	Message string `json:"message"`
}

// TenantSoftware is what the vendor's software in a tenant's cluster - an operator, a device plugin, a DRA driver, KubeVirt - must
// be told so that it agrees with the nodes of a NodeType. What is empty is left to the software's defaults.
type TenantSoftware struct {
	// driverVersion that the operator installs.
	// +optional
	DriverVersion string `json:"driverVersion,omitempty"`
	// kernelModule is the kind of kernel modules that it installs: Open, Proprietary, or empty for its own choice.
	// +optional
	KernelModule string `json:"kernelModule,omitempty"`
	// migStrategy of device plugin and feature discovery: none, single, mixed.
	// +optional
	MIGStrategy string `json:"migStrategy,omitempty"`
	// migConfig is an entry of the MIG manager's configuration that nodes name by the label nvidia.com/mig.config.
	// +optional
	MIGConfig *SoftwareConfiguration `json:"migConfig,omitempty"`
	// pluginConfig is a configuration of the device plugin's that nodes name by the label nvidia.com/device-plugin.config.
	// +optional
	PluginConfig *SoftwareConfiguration `json:"pluginConfig,omitempty"`
	// vgpuConfig is an entry of the vGPU device manager's configuration that nodes name by the label nvidia.com/vgpu.config.
	// +optional
	VGPUConfig *SoftwareConfiguration `json:"vgpuConfig,omitempty"`
	// workloadConfig of the operator: container, vm-passthrough, vm-vgpu.
	// +optional
	WorkloadConfig string `json:"workloadConfig,omitempty"`
	// featureGates that the DRA driver runs with, sorted.
	// +optional
	// +listType=atomic
	FeatureGates []string `json:"featureGates,omitempty"`
	// resourceNaming is the strategy of AMD's device plugin: single, mixed.
	// +optional
	ResourceNaming string `json:"resourceNaming,omitempty"`
	// hostDevices that KubeVirt must permit.
	// +optional
	// +listType=atomic
	HostDevices []PermittedHostDevice `json:"hostDevices,omitempty"`
}

// SoftwareConfiguration is one of several that a tenant's software knows by name.
type SoftwareConfiguration struct {
	// name by which the node chooses it. Different contents have different names, so that NodeTypes can share a cluster.
	// +required
	Name string `json:"name"`
	// content is the whole file, with this one entry.
	// +required
	Content string `json:"content"`
}

// PermittedHostDevice is an entry of KubeVirt's permittedHostDevices.
type PermittedHostDevice struct {
	// pciSelector is vendor and device, 10DE:2330; empty for mediated devices.
	// +optional
	PCISelector string `json:"pciSelector,omitempty"`
	// mdevName is the name of the mediated device type, NVIDIA A10-12Q; empty for PCI devices.
	// +optional
	MdevName string `json:"mdevName,omitempty"`
	// resourceName under which it is advertised.
	// +required
	ResourceName string `json:"resourceName"`
	// external says that a device plugin other than KubeVirt's own advertises it.
	// +optional
	External bool `json:"external,omitempty"`
}
