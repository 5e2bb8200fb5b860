package catalogue

import "github.com/ingot-dev/ingot/api/v1alpha1"

// PCI vendor ids.
const (
	nvidiaPCIVendor = "10de"
	amdPCIVendor    = "1002"
)

// Types of vGPU by size class, as VGPUTypes reads them.
const (
	vgpu24 = "4C6 6C4 8C3 12C2 24C1 1Q24 2Q12 3Q8 4Q6 6Q4 8Q3 12Q2 24Q1"
	vgpu48 = "4C12 6C8 8C6 12C4 16C3 24C2 48C1 1Q32 2Q24 3Q16 4Q12 6Q8 8Q6 12Q4 16Q3 24Q2 48Q1"
	vgpu80 = " 10C8 16C5 20C4 40C2 80C1 1-10C7 1-10CME1 1-20C4 2-20C3 3-40C2 4-40C1 7-80C1"
	vgpu40 = "4C10 5C8 8C5 10C4 20C2 40C1 1-5C7 1-5CME1 1-10C4 2-10C3 3-20C2 4-20C1 7-40C1"

	vgpu16 = "4C4 8C2 16C1 1Q16 2Q8 4Q4 8Q2 16Q1"

	// The MIG instances behind these have the graphics engines (+gfx), and hold several of the smaller types.
	vgpuDC = "8C12 12C8 16C6 24C4 32C3 48C2 96C1 3Q32 4Q24 6Q16 8Q12 12Q8 16Q6 24Q4 32Q3 48Q2 96Q1" +
		" 1-8C12/24 1-12C8/24 1-24C4/24 2-12C8/48 2-16C6/48 2-24C4/48 2-48C2/48 4-24C4/96 4-32C3/96 4-48C2/96 4-96C1/96" +
		" 1-2Q48/24 1-3Q32/24 1-4Q24/24 1-6Q16/24 1-8Q12/24 1-12Q8/24 1-24Q4/24 2-12Q8/48 2-16Q6/48 2-24Q4/48 2-48Q2/48 4-24Q4/96 4-32Q3/96 4-48Q2/96 4-96Q1/96"

	vgpuA100D = "4C20 8C10" + vgpu80
	vgpuH100  = "4C20 5C16 8C10" + vgpu80
	vgpuH100L = "4C23 6C15 11C8 15C6 23C4 47C2 94C1 1-12C7 1-12CME1 1-24C4 2-24C3 3-47C2 4-47C1 7-94C1"
	vgpuH20   = "4C24 6C16 8C12 12C8 16C6 24C4 32C3 48C2 96C1 1-12C7 1-12CME1 1-24C4 2-24C3 3-48C2 4-48C1 7-96C1"
	vgpuH200  = "4C32 7C20 8C16 14C10 17C8 28C5 35C4 70C2 141C1 1-18C7 1-18CME1 1-35C4 2-35C3 3-71C2 4-71C1 7-141C1"
)

// models is the catalogue.
var models = []Model{
	nvidiaModel("T4-16GB", Turing, PCIe, memoryGiB(16), "", "1eb8").withVGPUs("T4", vgpu16),
	nvidiaModel("A10-24GB", Ampere, PCIe, memoryGiB(24), "", "2236").withVGPUs("A10", vgpu24),
	// An A16 is a board with four of these GPUs. An A2 has the same PCI id with another subsystem id, and as much memory: only the product name, which
	// feature discovery reports, tells them apart (the list of GPUs of NVIDIA's open kernel modules).
	nvidiaModel("A16-16GB", Ampere, PCIe, memoryGiB(16), "", "25b6").withVGPUs("A16", vgpu16),
	nvidiaModel("A30-24GB", Ampere, PCIe, memoryGiB(24), "460.73.01", "20b7").withMIG(fourSlices).withVGPUs("A30", "4C6 6C4 8C3 12C2 24C1 1-6C4 1-6CME1 2-12C2 2-12CME1 4-24C1"),
	nvidiaModel("A40-48GB", Ampere, PCIe, memoryGiB(48), "", "2235").withVGPUs("A40", vgpu48),
	nvidiaModel("A100-SXM4-40GB", Ampere, SXM, memoryGiB(40), "450.80.02", "20b0").withMIG(sevenSlices).withVGPUs("A100X", vgpu40),
	nvidiaModel("A100-SXM4-80GB", Ampere, SXM, memoryGiB(80), "450.80.02", "20b2").withMIG(sevenSlices).withVGPUs("A100DX", vgpuA100D),
	nvidiaModel("A100-PCIe-40GB", Ampere, PCIe, memoryGiB(40), "450.80.02", "20b1", "20f1").withMIG(sevenSlices).withVGPUs("A100", vgpu40),
	nvidiaModel("A100-PCIe-80GB", Ampere, PCIe, memoryGiB(80), "450.80.02", "20b5").withMIG(sevenSlices).withVGPUs("A100D", vgpuA100D),
	// The models for China have their PCI ids and names in the list of GPUs of NVIDIA's open kernel modules, their memory and profiles in mig-parted's
	// device filters, and are sold as HGX A800, H800 and H20 boards of eight with NVSwitches. Only H20's minimum driver is documented (MIG user guide).
	nvidiaModel("A800-SXM4-40GB", Ampere, SXM, memoryGiB(40), "", "20bd").withMIG(sevenSlices).withInferredPlacements(),
	nvidiaModel("A800-SXM4-80GB", Ampere, SXM, memoryGiB(80), "", "20f3").withMIG(sevenSlices).withInferredPlacements().withVGPUs("A800DX", vgpuA100D),
	nvidiaModel("A800-PCIe-40GB", Ampere, PCIe, memoryGiB(40), "", "20f6").withMIG(sevenSlices).withInferredPlacements(),
	nvidiaModel("A800-PCIe-80GB", Ampere, PCIe, memoryGiB(80), "", "20f5").withMIG(sevenSlices).withInferredPlacements().withVGPUs("A800D", vgpuA100D),
	nvidiaModel("L4-24GB", Ada, PCIe, memoryGiB(24), "", "27b8").withVGPUs("L4", vgpu24),
	nvidiaModel("L40-48GB", Ada, PCIe, memoryGiB(48), "", "26b5").withVGPUs("L40", vgpu48),
	nvidiaModel("L40S-48GB", Ada, PCIe, memoryGiB(48), "", "26b9").withVGPUs("L40S", vgpu48),
	nvidiaModel("H100-SXM5-80GB", Hopper, SXM, memoryGiB(80), "525.85.12", "2330").withMIG(sevenSlices).withVGPUs("H100XM", vgpuH100),
	nvidiaModel("H100-SXM5-96GB", Hopper, SXM, memoryGiB(96), "525.85.12", "233d", "2338").withMIG(sevenSlices),
	nvidiaModel("H100-PCIe-80GB", Hopper, PCIe, memoryGiB(80), "525.85.12", "2331").withMIG(sevenSlices).withVGPUs("H100", vgpuH100),
	nvidiaModel("H100-NVL-94GB", Hopper, PCIe, memoryGiB(94), "525.85.12", "2321").withMIG(sevenSlices).withVGPUs("H100L", vgpuH100L),
	nvidiaModel("H800-SXM5-80GB", Hopper, SXM, memoryGiB(80), "", "2324").withMIG(sevenSlices).withInferredPlacements().withVGPUs("H800XM", vgpuH100),
	nvidiaModel("H800-PCIe-80GB", Hopper, PCIe, memoryGiB(80), "", "2322").withMIG(sevenSlices).withInferredPlacements().withVGPUs("H800", vgpuH100),
	nvidiaModel("H800-NVL-94GB", Hopper, PCIe, memoryGiB(94), "", "233a").withMIG(sevenSlices).withInferredPlacements().withVGPUs("H800L", vgpuH100L),
	nvidiaModel("H20-SXM5-96GB", Hopper, SXM, memoryGiB(96), "535.161.07", "2329").withMIG(sevenSlices).withInferredPlacements().withVGPUs("H20", vgpuH20),
	nvidiaModel("H20-3e-SXM5-141GB", Hopper, SXM, memoryGiB(141), "", "232c").withMIG(sevenSlices).withInferredPlacements().withVGPUs("H20X", vgpuH200),
	nvidiaModel("H200-SXM-141GB", Hopper, SXM, memoryGiB(141), "550.90.07", "2335").withMIG(sevenSlices).withVGPUs("H200X", vgpuH200),
	nvidiaModel("H200-NVL-141GB", Hopper, PCIe, memoryGiB(141), "550.90.07", "233b").withMIG(sevenSlices).withVGPUs("H200", vgpuH200),
	nvidiaModel("GH200-96GB", Hopper, Superchip, memoryGiB(96), "", "2342").withMIG(sevenSlices).withOpenModules().withVGPUs("GH200", "96C1 1-12C7 1-12CME1 1-24C4 2-24C3 3-48C2 4-48C1 7-96C1"),
	nvidiaModel("GH200-144GB", Hopper, Superchip, memoryGiB(144), "", "2348").withMIG(sevenSlices).withOpenModules().withVGPUs("GH200L", "144C1 1-18C7 1-36C4 2-36C3 3-72C2 4-72C1 7-144C1"),
	nvidiaModel("B200-SXM-180GB", Blackwell, SXM, memoryGiB(180), "570.133.20", "2901").withMIG(sevenSlices).withInferredPlacements().withOpenModules().
		withVGPUs("B200X", "180C1 1-23C7 1-23CME1 1-45C4 2-45C3 3-90C2 4-90C1 7-180C1"),
	nvidiaModel("B300-SXM-269GB", Blackwell, SXM, memoryGiB(269), "580.82.07", "3182").withMIG(sevenSlices).withInferredPlacements().withOpenModules().
		withVGPUs("B300X", "269C1 1-34C7 1-34CME1 1-67C4 2-67C3 3-135C2 4-135C1 7-269C1"),
	// Drivers report different memory sizes for GB200, so that the names of its profiles differ too.
	nvidiaModel("GB200-186GB", Blackwell, Superchip, memoryGiB(186, 189), "570.133.20", "2941").withMIG(sevenSlices).withInferredPlacements().withOpenModules().
		withVGPUs("GB200", "189C1 1-24C7 1-24CME1 1-47C4 2-47C3 3-95C2 4-95C1 7-189C1"),
	// The minimum driver in the guide is that of a DGX Station with GB300. For GB300 in a rack the minimum of B300 is used, which has
	// the same GPU.
	nvidiaModel("GB300-278GB", Blackwell, Superchip, memoryGiB(278), "580.82.07", "31c2").withMIG(sevenSlices).withInferredPlacements().withOpenModules().withDocumentedDriver("595.58.03"),
	nvidiaModel("RTX-PRO-6000-Blackwell-Server-96GB", Blackwell, PCIe, memoryGiB(96), "575.51.03", "2bb5").withMIG(twelveSlices).withOpenModules().
		withVGPUs("DC", vgpuDC),
	// The cards of workstations have the profiles of the server's (MIG user guide), but no types of vGPU.
	nvidiaModel("RTX-PRO-6000-Blackwell-Workstation-96GB", Blackwell, PCIe, memoryGiB(96), "575.51.03", "2bb1").withMIG(twelveSlices).withOpenModules().withDisplayOutputs(),
	nvidiaModel("RTX-PRO-6000-Blackwell-Max-Q-96GB", Blackwell, PCIe, memoryGiB(96), "575.51.03", "2bb4").withMIG(twelveSlices).withOpenModules().withDisplayOutputs(),
	amdModel("MI300X-192GB", CDNA3, 192, 8, "74a1"),
	amdModel("MI325X-256GB", CDNA3, 256, 8, "74a5"),
	// PCI ids from AMD's system health checks for Instinct; memory and dies (256 compute units, 32 on each) from ROCm's GPU specifications.
	amdModel("MI350X-288GB", CDNA4, 288, 8, "75a0"),
	amdModel("MI355X-288GB", CDNA4, 288, 8, "75a3"),
}

// refused are products that people ask for and that have no entry, with the reason.
var refused = []struct {
	vendor v1alpha1.GPUVendor
	word   string
	why    string
}{
	// AMD's system health checks name its PCI id 74a2, and ROCm's GPU specifications have no row for it.
	{v1alpha1.VendorAMD, "MI308X", "AMD documents neither its memory nor its partitions"},
}

// pciNames are the names of devices in the pci.ids file of NVIDIA's KubeVirt device plugin 1.6.0, dated 2025-07-11. The plugin
// advertises other devices by their number until a newer file has their names. The same file is in NVIDIA's library go-nvlib 0.11.0.
var pciNames = map[string]string{
	"1eb8": "TU104GL [Tesla T4]",
	"20b0": "GA100 [A100 SXM4 40GB]",
	"20b1": "GA100 [A100 PCIe 40GB]",
	"20b2": "GA100 [A100 SXM4 80GB]",
	"20b5": "GA100 [A100 PCIe 80GB]",
	"20b7": "GA100GL [A30 PCIe]",
	"20bd": "GA100 [A800 SXM4 40GB]",
	"20f1": "GA100 [A100 PCIe 40GB]",
	"20f3": "GA100 [A800-SXM4-80GB]",
	"20f5": "GA100 [A800 80GB PCIe]",
	"20f6": "GA100 [A800 40GB PCIe]",
	"2235": "GA102GL [A40]",
	"2236": "GA102GL [A10]",
	"2321": "GH100 [H100L 94GB]",
	"2322": "GH100 [H800 PCIe]",
	"2324": "GH100 [H800]",
	"2329": "GH100 [H20]",
	"232c": "GH100 [H20 HBM3e]",
	"2330": "GH100 [H100 SXM5 80GB]",
	"2331": "GH100 [H100 PCIe]",
	"2335": "GH100 [H200 SXM 141GB]",
	"2338": "GH100 [H100 SXM5 96GB]",
	"233a": "GH100 [H800L 94GB]",
	"233b": "GH100 [H200 NVL]",
	"233d": "GH100 [H100 96GB]",
	"2342": "GH100 [GH200 120GB / 480GB]",
	"2348": "GH100 [GH200 144G HBM3e]",
	"25b6": "GA107GL [A2 / A16]",
	"26b5": "AD102GL [L40]",
	"26b9": "AD102GL [L40S]",
	"27b8": "AD104GL [L4]",
	"2901": "GB100 [B200]",
	"2941": "GB100 [HGX GB200]",
	"2bb1": "GB202GL [RTX PRO 6000 Blackwell Workstation Edition]",
	"2bb4": "GB202GL [RTX PRO 6000 Blackwell Max-Q Workstation Edition]",
	"2bb5": "GB202GL [RTX PRO 6000 Blackwell Server Edition]",
}

func memoryGiB(totals ...int) []int { return totals }

func nvidiaModel(name string, arch Architecture, form FormFactor, memory []int, driver string, devices ...string) Model {
	link := LinkNone
	switch {
	case form == SXM && arch == Blackwell:
		link = LinkNVLink5
	case form == SXM:
		link = LinkNVSwitch
	case form == Superchip && arch == Blackwell:
		link = LinkRack
	}
	return Model{
		Name: name, Vendor: v1alpha1.VendorNVIDIA, PCIVendor: nvidiaPCIVendor, PCIDevices: devices, MemoryGiB: memory,
		Architecture: arch, FormFactor: form, Link: link, MinimumDriver: driver,
	}
}

func amdModel(name string, arch Architecture, memory, xcc int, device string) Model {
	return Model{
		Name: name, Vendor: v1alpha1.VendorAMD, PCIVendor: amdPCIVendor, PCIDevices: []string{device}, MemoryGiB: memoryGiB(memory),
		Architecture: arch, FormFactor: OAM, Link: LinkNone, XCC: xcc,
	}
}

func (m Model) withMIG(g *Geometry) Model { m.Geometry = g; return m }

func (m Model) withInferredPlacements() Model { m.PlacementsInferred = true; return m }

func (m Model) withOpenModules() Model { m.OpenModules = true; return m }

func (m Model) withDisplayOutputs() Model { m.DisplayOutputs = true; return m }

func (m Model) withDocumentedDriver(driver string) Model { m.DocumentedDriver = driver; return m }

func (m Model) withVGPUs(name, types string) Model { m.VGPUName, m.vgpuTypes = name, types; return m }
