package v1alpha1

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

// Presentation is how GPUs appear: a mode, and the member of that name.
// +kubebuilder:validation:XValidation:rule="!has(self.passthrough) || self.mode == 'Passthrough'",message="passthrough is only for mode: Passthrough; remove it or change mode"
// +kubebuilder:validation:XValidation:rule="has(self.vgpu) == (self.mode == 'VGPU')",message="vgpu must be set for mode: VGPU, and for no other mode"
// +kubebuilder:validation:XValidation:rule="has(self.mig) == (self.mode == 'MIG')",message="mig must be set for mode: MIG, and for no other mode"
// +kubebuilder:validation:XValidation:rule="!has(self.dra) || self.mode == 'DRA'",message="dra is only for mode: DRA; remove it or change mode"
type Presentation struct {
	// mode is how the GPUs appear:
	//   - Passthrough: whole GPUs, or the partitions of AMD GPUs, are given to containers or to virtual machines.
	//   - VGPU: virtual GPUs are given to virtual machines; the node is their host or one of their guests.
	//   - MIG: NVIDIA GPUs are partitioned into MIG instances, which are given to containers.
	//   - DRA: a DRA driver publishes the GPUs, or parts of them, as devices in ResourceSlices, and pods claim them.
	//
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
	// compute partitions of a GPU:
	//   - SPX: one.
	//   - DPX: two.
	//   - TPX: three.
	//   - QPX: four.
	//   - CPX: one for each compute die.
	//
	// +required
	// +kubebuilder:validation:Enum=SPX;DPX;TPX;QPX;CPX
	Compute string `json:"compute"`
	// memory partitions of a GPU, which are no more than its compute partitions:
	//   - NPS1: one.
	//   - NPS2: two.
	//   - NPS3: three.
	//   - NPS4: four.
	//
	// +required
	// +kubebuilder:validation:Enum=NPS1;NPS2;NPS3;NPS4
	Memory string `json:"memory"`
	// resourceNaming is the device plugin's strategy for naming resources:
	//   - single: every partition is advertised as amd.com/gpu.
	//   - mixed: every partition is advertised under the name of its kind, such as amd.com/cpx_nps4.
	//
	// +optional
	// +default="single"
	// +kubebuilder:validation:Enum=single;mixed
	ResourceNaming string `json:"resourceNaming,omitempty"`
}

// SharingSpec lets several pods use one device.
type SharingSpec struct {
	// strategy of sharing:
	//   - TimeSlicing: the pods take turns on the GPU; nothing limits a pod's memory.
	//   - MPS: the pods run at the same time by NVIDIA's Multi-Process Service.
	//
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
	// workload that gets the GPUs:
	//   - Container: containers use the GPUs by the driver of the node.
	//   - VM: virtual machines get the GPUs by vfio-pci; the node has no driver for them.
	//
	// +optional
	// +default="Container"
	Workload Workload `json:"workload,omitempty"`
	// advertise says what makes the GPUs known to Kubernetes:
	//   - DevicePlugin: the device plugin advertises them as extended resources.
	//   - DRA: a DRA driver publishes them as devices in ResourceSlices.
	//
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
	// role of the node:
	//   - Host: the node runs the vGPU manager and offers virtual GPUs to virtual machines.
	//   - Guest: the node is a virtual machine that has been given virtual GPUs.
	//
	// +required
	// +kubebuilder:validation:Enum=Host;Guest
	Role string `json:"role"`
	// types and how many of each per GPU: H100XM-20C: 4.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, self[k] >= 1 && self[k] <= 64)",message="types must say how many of each per GPU, from 1 to 64"
	Types map[string]int32 `json:"types,omitempty"`
	// framework of the host's kernel by which virtual GPUs are made. Absent: what follows from the model and the OSImage's
	// kernel, where that is certain.
	//   - Mdev: virtual GPUs are mediated devices.
	//   - VendorVFIO: virtual GPUs are virtual functions that NVIDIA's driver hands out itself. This is experimental.
	//
	// +optional
	// +kubebuilder:validation:Enum=Mdev;VendorVFIO
	Framework string `json:"framework,omitempty"`
	// namePrefix is how the vGPU manager begins the names of mediated devices. Absent: NVIDIA for GPUs from Ampere on; for
	// older GPUs it must be set.
	//   - NVIDIA: as in NVIDIA A10-12Q.
	//   - GRID: as in GRID T4-1Q.
	//
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
	// strategy is the device plugin's strategy for MIG:
	//   - none: the GPUs are whole.
	//   - single: all instances have one profile and are advertised as nvidia.com/gpu.
	//   - mixed: instances are advertised under the name of their profile, such as nvidia.com/mig-1g.10gb.
	//
	// +required
	// +kubebuilder:validation:Enum=none;single;mixed
	Strategy string `json:"strategy"`
	// advertise says what makes the GPUs known to Kubernetes:
	//   - DevicePlugin: the device plugin advertises them as extended resources.
	//   - DRA: a DRA driver publishes them as devices in ResourceSlices.
	//
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
	// devices that are published:
	//   - GPU: whole GPUs.
	//   - MIG: MIG instances.
	//   - VFIO: whole GPUs for virtual machines, bound to vfio-pci when they are claimed.
	//
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
	// driverRelease of NVIDIA's DRA driver that the tenant runs; absent: 0.5.0. A feature gate that the release lacks is refused.
	//
	//   - 0.4.1: the release before, for clusters that have not moved.
	//   - 0.5.0: IMEX daemons of the host are used by its setting imex.mode.
	//
	// +optional
	// +kubebuilder:validation:Enum="0.4.1";"0.5.0"
	DriverRelease string `json:"driverRelease,omitempty"`
	// featureGates are those that the tenant's DRA driver runs with beyond its defaults: PassthroughSupport.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=64
	FeatureGates []string `json:"featureGates,omitempty"`
}
