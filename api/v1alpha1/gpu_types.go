package v1alpha1

// GPUVendor is who made the GPUs.
// +kubebuilder:validation:Enum=nvidia;amd;generic
type GPUVendor string

// GPU vendors.
const (
	VendorNVIDIA  GPUVendor = "nvidia"
	VendorAMD     GPUVendor = "amd"
	VendorGeneric GPUVendor = "generic"
)

// DriverSource is where the GPU driver comes from.
// +kubebuilder:validation:Enum=Image;Packages;Operator
type DriverSource string

// Driver sources.
const (
	// DriverFromImage: baked into the OSImage.
	DriverFromImage DriverSource = "Image"
	// DriverFromPackages: installed by cloud-init at the first boot.
	DriverFromPackages DriverSource = "Packages"
	// DriverFromOperator: by the vendor's operator, in a pod.
	DriverFromOperator DriverSource = "Operator"
)

// Tenancy is whose pods run on a node.
// +kubebuilder:validation:Enum=Dedicated;Shared
type Tenancy string

// Tenancies.
const (
	// TenancyDedicated: the pods of one tenant.
	TenancyDedicated Tenancy = "Dedicated"
	// TenancyShared: the pods of several tenants.
	TenancyShared Tenancy = "Shared"
)

// GPUSpec is the GPUs of a node and how they are presented.
// +kubebuilder:validation:XValidation:rule="self.vendor != 'generic' || self.presentation.mode == 'Passthrough'",message="vendor: generic knows presentation.mode: Passthrough only"
// +kubebuilder:validation:XValidation:rule="self.vendor != 'amd' || (self.presentation.mode != 'VGPU' && self.presentation.mode != 'MIG')",message="vendor: amd has no VGPU and no MIG presentation: use Passthrough or DRA"
// +kubebuilder:validation:XValidation:rule="has(self.generic) == (self.vendor == 'generic')",message="generic must be set for vendor: generic, and for no other vendor"
// +kubebuilder:validation:XValidation:rule="!has(self.presentation.partitions) || self.vendor == 'amd'",message="presentation.partitions is only for vendor: amd; remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.presentation.mig) || !has(self.presentation.mig.layout) || self.presentation.mig.layout.all(l, !has(l.gpus) || l.gpus.all(g, g < self.count))",message="presentation.mig.layout names GPUs that a server does not have: gpus go from 0 to count - 1"
type GPUSpec struct {
	// vendor of the GPUs:
	//   - nvidia: GPUs of NVIDIA.
	//   - amd: GPUs of AMD.
	//   - generic: any other accelerator, such as an FPGA, a DPU or a Gaudi, which generic describes.
	//
	// +required
	Vendor GPUVendor `json:"vendor"`
	// model as in Ingot's catalogue: H100-SXM5-80GB.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Model string `json:"model"`
	// count of GPUs in one server.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Count int32 `json:"count"`
	// driver is where the driver comes from.
	// +optional
	// +default={}
	Driver GPUDriver `json:"driver,omitempty"`
	// imex says who runs IMEX, by which the trays of a GB200 or GB300 rack share memory. For other models it must be absent.
	//   - ComputeDomain: the DRA driver runs it for each of its compute domains. This is the default.
	//   - Host: the image runs it as a service of its own.
	//
	// +optional
	// +kubebuilder:validation:Enum=ComputeDomain;Host
	IMEX string `json:"imex,omitempty"`
	// tenancy says whose pods run on the nodes. With the defaults of NVIDIA's container toolkit a pod that sets the environment variable
	// NVIDIA_VISIBLE_DEVICES gets GPUs of its node without asking for them.
	//   - Dedicated: the pods of one tenant. This is the default; the container toolkit stays as the image has it.
	//   - Shared: the pods of several tenants. The container toolkit ignores that variable in containers that are not privileged, GPUs reach containers
	//     by the Container Device Interface (CDI), and the node must report that this is so. It is not possible for virtual machines.
	//
	// Privileged pods and hostPath volumes reach every device with either: Pod Security baseline or restricted refuses them. For GPUs of AMD and for
	// generic accelerators nothing is set on the node: kubelet gives the device files that their device plugins name. A container runtime of their
	// vendor in the image, which reads variables such as AMD_VISIBLE_DEVICES or HABANA_VISIBLE_DEVICES, is not looked at.
	// +optional
	Tenancy Tenancy `json:"tenancy,omitempty"`
	// generic says what Ingot cannot know of an accelerator of vendor generic.
	// +optional
	Generic *GenericSpec `json:"generic,omitempty"`
	// presentation is how the GPUs appear.
	// +required
	Presentation Presentation `json:"presentation"`
}

// GPUDriver is where the driver comes from.
// +kubebuilder:validation:XValidation:rule="has(self.version) == (has(self.source) && self.source != 'Image')",message="version must be set for source: Packages and Operator, and for no other source: the OSImage says which driver is baked in"
// +kubebuilder:validation:XValidation:rule="has(self.packages) == (has(self.source) && self.source == 'Packages')",message="packages must be set for source: Packages, and for no other source"
type GPUDriver struct {
	// source of the driver:
	//   - Image: the driver is baked into the OSImage.
	//   - Packages: cloud-init installs the driver at the first boot, from packages.
	//   - Operator: the vendor's operator installs the driver, in a pod.
	//
	// +optional
	// +default="Image"
	Source DriverSource `json:"source,omitempty"`
	// version that the packages or the operator install, as the driver prints it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`
	// kernelModule is the kind of NVIDIA's kernel modules that the packages or the operator install:
	//   - Open: the open kernel modules.
	//   - Proprietary: the proprietary kernel modules.
	//
	// +optional
	// +kubebuilder:validation:Enum=Open;Proprietary
	KernelModule string `json:"kernelModule,omitempty"`
	// packages to install at the first boot: the driver's and what belongs to it, each with its exact version as the
	// distribution's package manager takes it: nvidia-driver-580-server=580.126.09-0ubuntu1.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Packages []string `json:"packages,omitempty"`
}

// GenericSpec is an accelerator that is not in the catalogue: an FPGA, a DPU, a Gaudi.
// +kubebuilder:validation:XValidation:rule="has(self.resourceName) || has(self.dra)",message="set resourceName, which a device plugin advertises, or dra, or both"
type GenericSpec struct {
	// resourceName under which a device plugin advertises the devices: habana.ai/gaudi.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="resourceName must be a qualified name such as habana.ai/gaudi"
	ResourceName string `json:"resourceName,omitempty"`
	// resourcesPerDevice is how many of it each device gives; default 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	ResourcesPerDevice int32 `json:"resourcesPerDevice,omitempty"`
	// kernelArguments that the image must have.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=256
	KernelArguments []string `json:"kernelArguments,omitempty"`
	// modules to load at every boot, in this order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_-]+$`
	// +kubebuilder:validation:items:MaxLength=64
	Modules []string `json:"modules,omitempty"`
	// blacklist is modules that must not be loaded.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_-]+$`
	// +kubebuilder:validation:items:MaxLength=64
	Blacklist []string `json:"blacklist,omitempty"`
	// packages to install at the first boot.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Packages []string `json:"packages,omitempty"`
	// dra is the DRA driver that publishes the devices, for passthrough.advertise: DRA.
	// +optional
	DRA *GenericDRA `json:"dra,omitempty"`
}

// GenericDRA is a DRA driver that Ingot does not know.
type GenericDRA struct {
	// driver name: gaudi.intel.com.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Driver string `json:"driver"`
	// deviceClass that selects the devices; absent: none is expected.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	DeviceClass string `json:"deviceClass,omitempty"`
	// type is the value of the devices' attribute type; absent: they have no such attribute.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Type string `json:"type,omitempty"`
}
