package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RenderingEncoding is the encoding of the NodeTypeRenderings that this version writes. A version reads every encoding up to
// its own; golden files of each are kept beside the tests of controllers/plan/rendering.
const RenderingEncoding int32 = 1

// RenderedRevision is exactly what a node is installed with: a NodeTypeRevision and one NodeTypeRendering of it. The zero value
// stands for none.
type RenderedRevision struct {
	// Revision names the NodeTypeRevision.
	Revision string
	// Rendering names the NodeTypeRendering.
	Rendering string
}

// IsZero reports whether it names nothing.
func (r RenderedRevision) IsZero() bool { return r == RenderedRevision{} }

// NodeTypeRenderingSpec is what one version of Ingot made of a revision. It never changes.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable: run ingot rollout refresh, which makes a new rendering"
type NodeTypeRenderingSpec struct {
	// revisionRef names the NodeTypeRevision.
	// +required
	RevisionRef LocalReference `json:"revisionRef"`
	// encoding of plan: the meaning of its members. A member that is absent asks nothing of the node and promises nothing.
	// +required
	// +kubebuilder:validation:Minimum=1
	Encoding int32 `json:"encoding"`
	// plan of a node: what its operating system is told, and what it must then advertise. The resources that a NodeType declares
	// are not in it: they are added where the plan is used.
	// +required
	Plan NodePlan `json:"plan"`
}

// NodeTypeRenderingStatus says who uses it.
type NodeTypeRenderingStatus struct {
	// usedBy says what depends on it. It cannot be deleted before that is gone; see config/policy/README.md.
	// +optional
	UsedBy *UsedBy `json:"usedBy,omitempty"`
}

// NodeTypeRendering is what one version of Ingot made of a NodeTypeRevision, once and for all: Machines are installed from it and
// judged by it, whatever version runs later. Its name is the revision's and a digest of the plan.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=ntrend,categories=ingot
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=".spec.revisionRef.name"
// +kubebuilder:printcolumn:name="Encoding",type=integer,JSONPath=".spec.encoding"
// +kubebuilder:printcolumn:name="Used-By",type=integer,JSONPath=".status.usedBy.count"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type NodeTypeRendering struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec NodeTypeRenderingSpec `json:"spec"`
	// +optional
	Status NodeTypeRenderingStatus `json:"status,omitempty"`
}

// NodeTypeRenderingList is a list of NodeTypeRenderings.
// +kubebuilder:object:root=true
type NodeTypeRenderingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeTypeRendering `json:"items"`
}

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
	// deviceListStrategy by which NVIDIA's device plugin names the devices of a container: cdi-cri; empty: that of its default.
	// +optional
	DeviceListStrategy string `json:"deviceListStrategy,omitempty"`
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
	// draRelease is the release of NVIDIA's DRA driver, where it is not Ingot's default.
	// +optional
	DRARelease string `json:"draRelease,omitempty"`
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
