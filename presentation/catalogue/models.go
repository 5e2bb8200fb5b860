package catalogue

import "github.com/ingot-dev/ingot/api/v1alpha1"

// nvidiaPCI is NVIDIA's PCI vendor id.
const nvidiaPCI = "10de"

// models is the catalogue.
var models = []Model{
	nvidia("A100-SXM4-40GB", Ampere, SXM, 40, "450.80.02", "20b0"),
	nvidia("A100-SXM4-80GB", Ampere, SXM, 80, "450.80.02", "20b2"),
	nvidia("A100-PCIe-40GB", Ampere, PCIe, 40, "450.80.02", "20b1", "20f1"),
	nvidia("A100-PCIe-80GB", Ampere, PCIe, 80, "450.80.02", "20b5"),
	nvidia("H100-SXM5-80GB", Hopper, SXM, 80, "525.85.12", "2330"),
	nvidia("H100-PCIe-80GB", Hopper, PCIe, 80, "525.85.12", "2331"),
	nvidia("H100-NVL-94GB", Hopper, PCIe, 94, "525.85.12", "2321"),
	nvidia("H200-SXM-141GB", Hopper, SXM, 141, "550.90.07", "2335"),
	nvidia("H200-NVL-141GB", Hopper, PCIe, 141, "550.90.07", "233b"),
}

func nvidia(name string, arch Architecture, form FormFactor, gib int, driver string, devices ...string) Model {
	return Model{
		Name: name, Vendor: v1alpha1.VendorNVIDIA, PCIVendor: nvidiaPCI, PCIDevices: devices, MemoryGiB: []int{gib},
		Architecture: arch, FormFactor: form, MinimumDriver: driver, Geometry: sevenSlices,
	}
}
