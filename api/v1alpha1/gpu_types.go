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

// PresentationMode is how GPUs appear to pods.
// +kubebuilder:validation:Enum=Passthrough;VGPU;MIG;DRA
type PresentationMode string

// Presentation modes.
const (
	ModePassthrough PresentationMode = "Passthrough"
	ModeVGPU        PresentationMode = "VGPU"
	ModeMIG         PresentationMode = "MIG"
	ModeDRA         PresentationMode = "DRA"
)

// Workload is what a passed-through GPU is given to.
// +kubebuilder:validation:Enum=Container;VM
type Workload string

// Workloads.
const (
	WorkloadContainer Workload = "Container"
	WorkloadVM        Workload = "VM"
)

// Advertiser is what tells Kubernetes of the GPUs.
// +kubebuilder:validation:Enum=DevicePlugin;DRA
type Advertiser string

// Advertisers.
const (
	AdvertiseDevicePlugin Advertiser = "DevicePlugin"
	AdvertiseDRA          Advertiser = "DRA"
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

// GPUSpec is the GPUs of a node and how they are presented.
// +kubebuilder:validation:XValidation:rule="self.vendor != 'generic' || self.presentation.mode == 'Passthrough'",message="vendor: generic knows presentation.mode: Passthrough only"
// +kubebuilder:validation:XValidation:rule="self.vendor != 'amd' || (self.presentation.mode != 'VGPU' && self.presentation.mode != 'MIG')",message="vendor: amd has no VGPU and no MIG presentation: use Passthrough or DRA"
// +kubebuilder:validation:XValidation:rule="has(self.generic) == (self.vendor == 'generic')",message="generic must be set for vendor: generic, and for no other vendor"
// +kubebuilder:validation:XValidation:rule="!has(self.presentation.partitions) || self.vendor == 'amd'",message="presentation.partitions is only for vendor: amd; remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.presentation.mig) || !has(self.presentation.mig.layout) || self.presentation.mig.layout.all(l, !has(l.gpus) || l.gpus.all(g, g < self.count))",message="presentation.mig.layout names GPUs that a server does not have: gpus go from 0 to count - 1"
type GPUSpec struct {
	// vendor of the GPUs.
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
	// imex says who runs IMEX, by which the trays of a GB200 or GB300 rack share memory: ComputeDomain, the DRA driver's
	// compute domains, which is the default, or Host, the image's own service. For other models it must be absent.
	// +optional
	// +kubebuilder:validation:Enum=ComputeDomain;Host
	IMEX string `json:"imex,omitempty"`
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
	// source of the driver.
	// +optional
	// +default="Image"
	Source DriverSource `json:"source,omitempty"`
	// version that the packages or the operator install, as the driver prints it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`
	// kernelModule is the kind of NVIDIA's kernel modules that the packages or the operator install.
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

// Presentation is how GPUs appear: a mode, and the member of that name.
// +kubebuilder:validation:XValidation:rule="!has(self.passthrough) || self.mode == 'Passthrough'",message="passthrough is only for mode: Passthrough; remove it or change mode"
// +kubebuilder:validation:XValidation:rule="has(self.vgpu) == (self.mode == 'VGPU')",message="vgpu must be set for mode: VGPU, and for no other mode"
// +kubebuilder:validation:XValidation:rule="has(self.mig) == (self.mode == 'MIG')",message="mig must be set for mode: MIG, and for no other mode"
// +kubebuilder:validation:XValidation:rule="!has(self.dra) || self.mode == 'DRA'",message="dra is only for mode: DRA; remove it or change mode"
type Presentation struct {
	// mode of presentation.
	// +required
	Mode PresentationMode `json:"mode"`
	// passthrough says how whole GPUs are given away; absent: to containers, by the device plugin, one pod each.
	// +optional
	Passthrough *PassthroughSpec `json:"passthrough,omitempty"`
	// vgpu says which virtual GPUs.
	// +optional
	VGPU *VGPUSpec `json:"vgpu,omitempty"`
	// mig says how GPUs are partitioned.
	// +optional
	MIG *MIGSpec `json:"mig,omitempty"`
	// dra says which devices a DRA driver publishes; absent: whole GPUs.
	// +optional
	DRA *DRASpec `json:"dra,omitempty"`
	// partitions of AMD GPUs; absent: whole GPUs.
	// +optional
	Partitions *PartitionSpec `json:"partitions,omitempty"`
}

// PartitionSpec is how every AMD GPU of a node is partitioned.
type PartitionSpec struct {
	// compute partitions of a GPU: SPX is one, DPX two, TPX three, QPX four, CPX one for each compute die.
	// +required
	// +kubebuilder:validation:Enum=SPX;DPX;TPX;QPX;CPX
	Compute string `json:"compute"`
	// memory partitions of a GPU.
	// +required
	// +kubebuilder:validation:Enum=NPS1;NPS2;NPS3;NPS4
	Memory string `json:"memory"`
	// resourceNaming is the device plugin's strategy: single is amd.com/gpu for all, mixed amd.com/cpx_nps4.
	// +optional
	// +default="single"
	// +kubebuilder:validation:Enum=single;mixed
	ResourceNaming string `json:"resourceNaming,omitempty"`
}

// SharingSpec lets several pods use one device.
type SharingSpec struct {
	// strategy of sharing.
	// +required
	// +kubebuilder:validation:Enum=TimeSlicing;MPS
	Strategy string `json:"strategy"`
	// replicas advertised per device.
	// +required
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=48
	Replicas int32 `json:"replicas"`
}

// PassthroughSpec gives whole GPUs away.
// +kubebuilder:validation:XValidation:rule="(!has(self.addresses) && !has(self.resourceName)) || (has(self.workload) && self.workload == 'VM')",message="addresses and resourceName are for workload: VM only; remove them"
// +kubebuilder:validation:XValidation:rule="!has(self.sharing) || !has(self.workload) || self.workload == 'Container'",message="sharing is for workload: Container only: a virtual machine owns its GPU"
type PassthroughSpec struct {
	// workload that gets the GPUs.
	// +optional
	// +default="Container"
	Workload Workload `json:"workload,omitempty"`
	// advertise by the device plugin or by a DRA driver.
	// +optional
	// +default="DevicePlugin"
	Advertise Advertiser `json:"advertise,omitempty"`
	// sharing of one GPU by several pods; absent: none.
	// +optional
	Sharing *SharingSpec `json:"sharing,omitempty"`
	// addresses are the PCI addresses of the GPUs for virtual machines, 0000:17:00.0, the same on every server; absent: every
	// GPU of the model, by its PCI ids.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:Pattern=`^[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]$`
	// +kubebuilder:validation:items:MaxLength=12
	Addresses []string `json:"addresses,omitempty"`
	// resourceName under which virtual machines' GPUs are advertised; absent: the name that NVIDIA's KubeVirt device plugin
	// gives them, where it is known.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="resourceName must be a qualified name such as nvidia.com/GA102GL_A10"
	ResourceName string `json:"resourceName,omitempty"`
}

// VGPUSpec is virtual GPUs: host says which types it offers, a guest how it is licensed.
// +kubebuilder:validation:XValidation:rule="self.role == 'Host' ? (has(self.types) && self.types.size() > 0 && !has(self.licence)) : (has(self.licence) && !has(self.types))",message="role: Host needs types and no licence; role: Guest needs licence and no types"
// +kubebuilder:validation:XValidation:rule="self.role == 'Host' || (!has(self.framework) && !has(self.namePrefix))",message="framework and namePrefix are for role: Host only; remove them"
type VGPUSpec struct {
	// role of the node.
	// +required
	// +kubebuilder:validation:Enum=Host;Guest
	Role string `json:"role"`
	// types and how many of each per GPU: H100XM-20C: 4.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, self[k] >= 1 && self[k] <= 64)",message="types must say how many of each per GPU, from 1 to 64"
	Types map[string]int32 `json:"types,omitempty"`
	// framework of the host's kernel by which virtual GPUs are made: Mdev, mediated devices, or VendorVFIO, virtual functions
	// that NVIDIA's driver itself hands out, which is experimental. Absent: what follows from the model and the OSImage's
	// kernel, where that is certain.
	// +optional
	// +kubebuilder:validation:Enum=Mdev;VendorVFIO
	Framework string `json:"framework,omitempty"`
	// namePrefix is how the vGPU manager begins the names of mediated devices: NVIDIA A10-12Q, or GRID T4-1Q. Absent: NVIDIA,
	// from Ampere on; older GPUs must say.
	// +optional
	// +kubebuilder:validation:Enum=NVIDIA;GRID
	NamePrefix string `json:"namePrefix,omitempty"`
	// licence of a guest.
	// +optional
	Licence *VGPULicence `json:"licence,omitempty"`
}

// VGPULicence is how a vGPU guest is licensed.
type VGPULicence struct {
	// tokenSecretRef names a Secret in the host namespace whose key client_configuration_token.tok is the client configuration
	// token. It is read when a node is installed: a changed token reaches a node with its next installation.
	// +required
	TokenSecretRef LocalReference `json:"tokenSecretRef"`
	// featureType as in gridd.conf.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4
	FeatureType int32 `json:"featureType,omitempty"`
}

// MIGSpec partitions GPUs.
// +kubebuilder:validation:XValidation:rule="self.strategy == 'none' || (has(self.layout) && self.layout.size() > 0)",message="layout must say which profiles: strategy single and mixed partition the GPUs"
// +kubebuilder:validation:XValidation:rule="self.strategy != 'none' || !has(self.layout) || self.layout.size() == 0",message="strategy: none has no layout: remove it"
type MIGSpec struct {
	// strategy in the device plugin's own words.
	// +required
	// +kubebuilder:validation:Enum=none;single;mixed
	Strategy string `json:"strategy"`
	// advertise by the device plugin or by a DRA driver.
	// +optional
	// +default="DevicePlugin"
	Advertise Advertiser `json:"advertise,omitempty"`
	// layout of the GPUs.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Layout []MIGLayout `json:"layout,omitempty"`
}

// MIGLayout is the profiles of some GPUs.
type MIGLayout struct {
	// gpus are the indices; absent: all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=63
	GPUs []int32 `json:"gpus,omitempty"`
	// profiles and how many of each on every GPU: 1g.10gb: 7.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, self[k] >= 1 && self[k] <= 7)",message="profiles must say how many of each per GPU, from 1 to 7, which is all that a GPU has"
	Profiles map[string]int32 `json:"profiles"`
}

// DRASpec publishes devices by a DRA driver.
// +kubebuilder:validation:XValidation:rule="!has(self.layout) || (has(self.devices) && self.devices == 'MIG')",message="layout is for devices: MIG only; remove it"
type DRASpec struct {
	// driver name; absent: the vendor's, gpu.nvidia.com or gpu.amd.com.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Driver string `json:"driver,omitempty"`
	// devices that are published.
	// +optional
	// +default="GPU"
	// +kubebuilder:validation:Enum=GPU;MIG;VFIO
	Devices string `json:"devices,omitempty"`
	// sharing of one device by several pods; absent: none.
	// +optional
	Sharing *SharingSpec `json:"sharing,omitempty"`
	// layout of the GPUs for devices: MIG. Absent: the driver partitions them as claims ask for it, which is experimental and
	// needs its feature gate DynamicMIG.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Layout []MIGLayout `json:"layout,omitempty"`
	// featureGates are those that the tenant's DRA driver runs with beyond its defaults: PassthroughSupport.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=64
	FeatureGates []string `json:"featureGates,omitempty"`
}
