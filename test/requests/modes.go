package requests

import (
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/spec"
)

// NVIDIA returns a request for unpartitioned GPUs of a model.
func NVIDIA(name string, count int32, driver string, changes ...func(*spec.Request)) spec.Request {
	r := H100()
	r.GPU.Model, r.GPU.Count, r.Image.Software.GPUDriver.Version = name, count, driver
	for _, change := range changes {
		change(&r)
	}
	return r
}

// WithSharing returns a change that lets pods share each GPU.
func WithSharing(strategy string, replicas int32) func(*spec.Request) {
	return func(r *spec.Request) {
		r.GPU.Presentation.Passthrough = &v1alpha1.PassthroughSpec{Sharing: &v1alpha1.SharingSpec{Strategy: strategy, Replicas: replicas}}
	}
}

// WithOperatorDriver returns the change of UseOperatorDriver.
func WithOperatorDriver(version string) func(*spec.Request) {
	return func(r *spec.Request) { UseOperatorDriver(r, version) }
}

// UsePackages changes the request so that the driver and its companions are installed from packages at the first boot.
func UsePackages(r *spec.Request) {
	r.GPU.Driver = v1alpha1.GPUDriver{Source: v1alpha1.DriverFromPackages, Version: "580.126.09", KernelModule: "Open", Packages: []string{
		"nvidia-driver-580-server-open=580.126.09-0ubuntu1", "nvidia-fabricmanager-580=580.126.09-0ubuntu1", "nvidia-container-toolkit=1.18.0-1",
	}}
	r.Image.Software.GPUDriver, r.Image.Software.ContainerToolkit = nil, ""
}

// WithDRA returns a change to presentation mode DRA.
func WithDRA(draSpec v1alpha1.DRASpec) func(*spec.Request) {
	return func(r *spec.Request) {
		r.GPU.Presentation = v1alpha1.Presentation{Mode: v1alpha1.ModeDRA, DRA: &draSpec}
		r.Image.Software.Containerd, r.Image.Software.MIGParted = "2.2.0", "0.15.0"
		r.Image.KernelArguments = append(r.Image.KernelArguments, "intel_iommu=on", "iommu=pt")
	}
}

// Share changes the request so that pods of several tenants run on a node.
func Share(r *spec.Request) {
	r.GPU.Tenancy, r.Image.Software.Containerd = v1alpha1.TenancyShared, "2.2.0"
}

// driverRequests returns requests that differ by the source of the driver, by the links between the GPUs, and by sharing.
func driverRequests() map[string]spec.Request {
	migByOperator := MIG("H100-SXM5-80GB", "mixed", 8, MIGEntry(Profiles{"1g.10gb": 7}))
	UseOperatorDriver(&migByOperator, "580.126.09")
	dynamic := v1alpha1.DRASpec{Devices: "MIG", FeatureGates: []string{"DynamicMIG"}}
	return map[string]spec.Request{
		"h100-time-slicing":       NVIDIA("H100-SXM5-80GB", 8, "580.126.09", WithSharing("TimeSlicing", 4)),
		"l40s-mps":                NVIDIA("L40S-48GB", 4, "580.126.09", WithSharing("MPS", 8)),
		"a100-operator":           NVIDIA("A100-SXM4-80GB", 8, "", WithOperatorDriver("580.126.09")),
		"t4-operator-mps":         NVIDIA("T4-16GB", 2, "", WithOperatorDriver("580.126.09"), WithSharing("MPS", 4)),
		"h100-mig-operator":       migByOperator,
		"h100-packages":           NVIDIA("H100-SXM5-80GB", 8, "", UsePackages),
		"h100-dra-operator":       NVIDIA("H100-SXM5-80GB", 8, "", WithDRA(v1alpha1.DRASpec{}), WithOperatorDriver("580.126.09")),
		"b200-sxm-8":              NVIDIA("B200-SXM-180GB", 8, "580.126.09"),
		"gb200-4":                 NVIDIA("GB200-186GB", 4, "580.126.09"),
		"gb300-imex-host":         NVIDIA("GB300-278GB", 4, "580.126.09", func(r *spec.Request) { r.GPU.IMEX, r.Image.Software.IMEX = "Host", "580.126.09-1" }),
		"h100-dra-vfio":           NVIDIA("H100-PCIe-80GB", 8, "580.126.09", WithDRA(v1alpha1.DRASpec{Devices: "VFIO"})),
		"h100-dra-time-slicing":   NVIDIA("H100-PCIe-80GB", 2, "580.126.09", WithDRA(v1alpha1.DRASpec{Sharing: &v1alpha1.SharingSpec{Strategy: "TimeSlicing", Replicas: 2}})),
		"h100-dra-mig-layout":     NVIDIA("H100-PCIe-80GB", 2, "580.126.09", WithDRA(v1alpha1.DRASpec{Devices: "MIG", Layout: []v1alpha1.MIGLayout{MIGEntry(Profiles{"1g.10gb": 7}, 1)}})),
		"h100-dra-mig-dynamic":    NVIDIA("H100-PCIe-80GB", 2, "580.126.09", WithDRA(dynamic)),
		"a100-dra-mig-dynamic":    NVIDIA("A100-PCIe-40GB", 2, "580.126.09", WithDRA(dynamic)),
		"h100-shared":             NVIDIA("H100-SXM5-80GB", 8, "580.126.09", Share),
		"h100-shared-packages":    NVIDIA("H100-SXM5-80GB", 8, "", UsePackages, Share),
		"h100-shared-dra":         NVIDIA("H100-SXM5-80GB", 8, "580.126.09", WithDRA(v1alpha1.DRASpec{}), Share),
		"a100-shared-operator":    NVIDIA("A100-SXM4-80GB", 8, "", WithOperatorDriver("580.126.09"), Share),
		"l40s-shared-mps":         NVIDIA("L40S-48GB", 4, "580.126.09", WithSharing("MPS", 8), Share),
		"rtx-pro-6000-mig-single": NVIDIA("RTX-PRO-6000-Blackwell-Server-96GB", 8, "580.126.09", rtxPRO6000),
	}
}

// rtxPRO6000 changes the request to MIG profiles that only this GPU has.
func rtxPRO6000(r *spec.Request) {
	r.Image.Software.MIGParted = "0.15.0"
	r.GPU.Presentation = v1alpha1.Presentation{Mode: v1alpha1.ModeMIG, MIG: &v1alpha1.MIGSpec{Strategy: "mixed", Layout: []v1alpha1.MIGLayout{MIGEntry(Profiles{"1g.24gb-me": 3, "1g.24gb+me.all": 1})}}}
}

// H100WithDRA returns a request for unpartitioned GPUs that the DRA driver publishes.
func H100WithDRA() spec.Request {
	r := H100()
	r.GPU.Presentation = v1alpha1.Presentation{Mode: v1alpha1.ModeDRA}
	r.Image.Software.Containerd, r.Image.Software.GPUDriver.Version = "2.2.0", "570.133.07"
	return r
}

// Profiles has the number of MIG instances by profile.
type Profiles = map[string]int32

// MIGEntry returns an entry of a MIG layout for the GPUs with these indexes, or for all.
func MIGEntry(profiles map[string]int32, gpus ...int32) v1alpha1.MIGLayout {
	return v1alpha1.MIGLayout{GPUs: gpus, Profiles: profiles}
}

// MIG returns a request for partitioned GPUs.
func MIG(model, strategy string, count int32, entries ...v1alpha1.MIGLayout) spec.Request {
	r := H100()
	r.Image.Software.MIGParted = "0.15.0"
	r.GPU.Model, r.GPU.Count = model, count
	r.GPU.Presentation = v1alpha1.Presentation{Mode: v1alpha1.ModeMIG, MIG: &v1alpha1.MIGSpec{Strategy: strategy, Layout: entries}}
	return r
}

// MIGRequests returns requests that differ by MIG strategy and layout.
func MIGRequests() map[string]spec.Request {
	claims := MIG("H200-SXM-141GB", "mixed", 8, MIGEntry(Profiles{"3g.71gb": 1, "1g.18gb": 3, "1g.18gb+me": 1}, 0, 1), MIGEntry(Profiles{"1g.35gb": 4}, 2))
	claims.GPU.Presentation.MIG.Advertise = v1alpha1.AdvertiseDRA
	claims.Image.Software.Containerd, claims.Image.Software.GPUDriver.Version = "2.2.0", "580.126.09"
	return map[string]spec.Request{
		"h100-mig-none":   MIG("H100-SXM5-80GB", "none", 8),
		"h100-mig-mixed":  MIG("H100-SXM5-80GB", "mixed", 8, MIGEntry(Profiles{"1g.10gb": 7}, 0, 1, 2, 3), MIGEntry(Profiles{"3g.40gb": 2}, 4, 5, 6, 7)),
		"a100-mig-part":   MIG("A100-SXM4-40GB", "mixed", 4, MIGEntry(Profiles{"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1}, 3, 1)),
		"a100-mig-single": MIG("A100-PCIe-80GB", "single", 2, MIGEntry(Profiles{"2g.20gb": 3})),
		"h200-mig-dra":    claims,
	}
}

// VGPUHost returns a request for a host of virtual GPUs.
func VGPUHost(name, kernel string, types map[string]int32, changes ...func(*spec.Request)) spec.Request {
	r := NVIDIA(name, 2, "570.158.02")
	r.Image.OS.Kernel, r.Image.Software.VGPUDeviceManager, r.Image.Software.GPUDriver.Kind = kernel, "0.5.0", "VGPUManager"
	r.Image.KernelArguments = append(r.Image.KernelArguments, "intel_iommu=on")
	r.GPU.Presentation = v1alpha1.Presentation{Mode: v1alpha1.ModeVGPU, VGPU: &v1alpha1.VGPUSpec{Role: "Host", Types: types}}
	for _, change := range changes {
		change(&r)
	}
	return r
}

// VGPUGuest returns a request for a guest with a licence.
func VGPUGuest() spec.Request {
	r := NVIDIA("A40-48GB", 1, "550.163.01")
	r.Image.Software.GPUDriver.Kind = "VGPUGuest"
	r.GPU.Presentation = v1alpha1.Presentation{Mode: v1alpha1.ModeVGPU, VGPU: &v1alpha1.VGPUSpec{Role: "Guest", Licence: &v1alpha1.VGPULicence{
		TokenSecretRef: v1alpha1.LocalReference{Name: "licence"}, FeatureType: 4,
	}}}
	return r
}

// vgpuRequests returns requests for hosts and guests.
func vgpuRequests() map[string]spec.Request {
	return map[string]spec.Request{
		"a100-vgpu":          VGPUHost("A100-PCIe-40GB", "5.15.0-91-generic", map[string]int32{"A100-20C": 2}),
		"a100-vgpu-mig":      VGPUHost("A100-PCIe-40GB", "5.15.0", map[string]int32{"A100-3-20C": 1, "A100-1-5C": 4}),
		"t4-vgpu":            VGPUHost("T4-16GB", "6.8.0", map[string]int32{"T4-4Q": 4}, func(r *spec.Request) { r.GPU.Presentation.VGPU.NamePrefix = "GRID" }),
		"l40s-vgpu-vfio":     VGPUHost("L40S-48GB", "6.8.0-45-generic", map[string]int32{"L40S-24Q": 2}),
		"a40-vgpu-operator":  VGPUHost("A40-48GB", "5.15.0", map[string]int32{"A40-12Q": 4}, WithOperatorDriver("550.163.02")),
		"a40-vgpu-guest":     VGPUGuest(),
		"h100-vgpu-nvswitch": VGPUHost("H100-SXM5-80GB", "5.15.0", map[string]int32{"H100XM-80C": 1}, func(r *spec.Request) { r.GPU.Count = 8 }),
	}
}

// VM returns a request for GPUs of virtual machines.
func VM(name string, count int32, change func(*v1alpha1.PassthroughSpec)) spec.Request {
	r := NVIDIA(name, count, "")
	r.Image.Software.GPUDriver, r.Image.Software.ContainerToolkit = nil, ""
	r.Image.KernelArguments = append(r.Image.KernelArguments, "amd_iommu=on")
	r.GPU.Presentation.Passthrough = &v1alpha1.PassthroughSpec{Workload: v1alpha1.WorkloadVM}
	if change != nil {
		change(r.GPU.Presentation.Passthrough)
	}
	return r
}

// vmRequests returns requests for GPUs of virtual machines.
func vmRequests() map[string]spec.Request {
	grace := VM("GH200-96GB", 1, nil)
	grace.Image.Architecture = "arm64"
	return map[string]spec.Request{
		"h100-vm":  VM("H100-PCIe-80GB", 2, nil),
		"gh200-vm": grace,
		"a10-vm-addresses": VM("A10-24GB", 2, func(p *v1alpha1.PassthroughSpec) {
			p.Addresses = []string{"0000:17:00.0", "0000:65:00.0"}
		}),
		"b300-vm": VM("B300-SXM-269GB", 8, func(p *v1alpha1.PassthroughSpec) { p.ResourceName = "nvidia.com/3182" }),
	}
}

// MI300X returns a request for AMD GPUs.
func MI300X(compute, memory, naming string, changes ...func(*spec.Request)) spec.Request {
	r := NVIDIA("MI300X-192GB", 8, "30.20.1", changes...)
	r.GPU.Vendor = v1alpha1.VendorAMD
	r.Image.KernelArguments, r.Image.Software.ContainerToolkit = nil, ""
	if d := r.Image.Software.GPUDriver; d != nil {
		d.Vendor, d.KernelModule = v1alpha1.VendorAMD, ""
	}
	if compute != "" {
		r.GPU.Presentation.Partitions = &v1alpha1.PartitionSpec{Compute: compute, Memory: memory, ResourceNaming: naming}
	}
	return r
}

// UseAMDDRA changes the request so that AMD's DRA driver publishes the GPUs.
func UseAMDDRA(r *spec.Request) {
	r.GPU.Presentation.Mode, r.Image.Software.Containerd = v1alpha1.ModeDRA, "2.2.0"
}

// amdRequests returns requests that differ by partition and by what advertises it.
func amdRequests() map[string]spec.Request {
	return map[string]spec.Request{
		"mi300x":              MI300X("", "", ""),
		"mi300x-cpx":          MI300X("CPX", "NPS4", ""),
		"mi300x-dpx-mixed":    MI300X("DPX", "NPS2", "mixed"),
		"mi300x-operator":     MI300X("", "", "", WithOperatorDriver("30.20.1")),
		"mi300x-cpx-operator": MI300X("CPX", "NPS1", "mixed", WithOperatorDriver("30.20.1")),
		"mi300x-dra":          MI300X("", "", "", UseAMDDRA),
		"mi300x-cpx-dra":      MI300X("CPX", "NPS4", "", UseAMDDRA),
	}
}

// Gaudi returns a request for an accelerator that is not in the catalogue.
func Gaudi() spec.Request {
	r := NVIDIA("Gaudi-3", 8, "")
	r.GPU.Vendor, r.Image.Software.GPUDriver, r.Image.Software.ContainerToolkit = v1alpha1.VendorGeneric, nil, ""
	r.Image.KernelArguments = []string{"hugepages=9000"}
	r.GPU.Generic = &v1alpha1.GenericSpec{
		ResourceName: "habana.ai/gaudi", KernelArguments: []string{"hugepages=9000"}, Packages: []string{"habanalabs-firmware=1.20.0-543"},
		Modules: []string{"habanalabs_cn", "habanalabs"}, Blacklist: []string{"habanalabs_old"},
		DRA: &v1alpha1.GenericDRA{Driver: "gaudi.example.com", DeviceClass: "gaudi.example.com"},
	}
	return r
}

// genericRequests returns requests for accelerators that are not in the catalogue.
func genericRequests() map[string]spec.Request {
	claimed, region := Gaudi(), Gaudi()
	claimed.GPU.Presentation.Passthrough = &v1alpha1.PassthroughSpec{Advertise: v1alpha1.AdvertiseDRA}
	region.GPU.Generic = &v1alpha1.GenericSpec{ResourceName: "fpga.intel.com/region-0a", ResourcesPerDevice: 4}
	return map[string]spec.Request{"gaudi": Gaudi(), "gaudi-dra": claimed, "fpga": region}
}
