// Package inventory is what Ingot keeps of a server's hardware: in its HostRecord, and in the labels that NodeTypes select hosts by.
package inventory

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/presentation/catalogue"
)

// gpuVendors are NVIDIA and AMD, by PCI vendor id (pci-ids.ucw.cz).
var gpuVendors = []string{"10de", "1002"}

// classGPU stands for every GPU that comes out of a count; 0302 is a 3D controller.
const classGPU = "030200"

// isGPU goes by PCI class: 03 is a display controller (VGA, 3D), 1200 a processing accelerator, as AMD's MI300 calls itself.
// A GPU's other functions (audio, USB) and NVSwitches (0680) are none.
func isGPU(d hardware.PCIDevice) bool {
	class := strings.ToLower(d.Class)
	return slices.Contains(gpuVendors, strings.ToLower(d.VendorID)) && (strings.HasPrefix(class, "03") || strings.HasPrefix(class, "1200"))
}

// Record is what a HostRecord keeps of an inventory. Of PCI devices only GPUs are kept, as counts.
func Record(i hardware.Inventory) *v1alpha1.HostInventory {
	out := &v1alpha1.HostInventory{
		Manufacturer: i.Manufacturer, Model: i.Model, SerialNumber: i.SerialNumber, SystemUUID: i.SystemUUID,
		BIOSVersion: i.BIOSVersion, Architecture: i.Architecture,
		CPUModel: i.CPUModel, CPUThreads: int32(i.CPUThreads), MemoryBytes: i.MemoryBytes,
		GPUs: gpus(i.PCIDevices),
	}
	for _, d := range i.Disks {
		out.Disks = append(out.Disks, v1alpha1.DiskInventory(d))
	}
	for _, n := range i.NICs {
		out.NICs = append(out.NICs, v1alpha1.NICInventory{Name: n.Name, MAC: n.MAC, SpeedMbps: int32(n.SpeedMbps)})
	}
	return out
}

// Hardware is the inventory that a HostRecord keeps; nil when it keeps none.
func Hardware(kept *v1alpha1.HostInventory) *hardware.Inventory {
	if kept == nil {
		return nil
	}
	out := &hardware.Inventory{
		Manufacturer: kept.Manufacturer, Model: kept.Model, SerialNumber: kept.SerialNumber, SystemUUID: kept.SystemUUID,
		BIOSVersion: kept.BIOSVersion, Architecture: kept.Architecture,
		CPUModel: kept.CPUModel, CPUThreads: int(kept.CPUThreads), MemoryBytes: kept.MemoryBytes,
	}
	for _, d := range kept.Disks {
		out.Disks = append(out.Disks, hardware.Disk(d))
	}
	for _, n := range kept.NICs {
		out.NICs = append(out.NICs, hardware.NIC{Name: n.Name, MAC: n.MAC, SpeedMbps: int(n.SpeedMbps)})
	}
	for _, g := range kept.GPUs {
		for range g.Count {
			out.PCIDevices = append(out.PCIDevices, hardware.PCIDevice{VendorID: g.VendorID, DeviceID: g.DeviceID, Class: classGPU})
		}
	}
	return out
}

// gpus counts the GPUs by vendor and device id, and names the models that the catalogue has.
func gpus(devices []hardware.PCIDevice) []v1alpha1.GPUInventory {
	var out []v1alpha1.GPUInventory
	for _, d := range devices {
		if !isGPU(d) {
			continue
		}
		g := v1alpha1.GPUInventory{VendorID: strings.ToLower(d.VendorID), DeviceID: strings.ToLower(d.DeviceID), Count: 1}
		if m, known := catalogue.Identify(g.VendorID, g.DeviceID); known {
			g.Model = m.Name
		}
		at := slices.IndexFunc(out, func(o v1alpha1.GPUInventory) bool { return o.VendorID == g.VendorID && o.DeviceID == g.DeviceID })
		if at < 0 {
			out = append(out, g)
			continue
		}
		out[at].Count++
	}
	slices.SortFunc(out, func(a, b v1alpha1.GPUInventory) int {
		return cmp.Or(cmp.Compare(a.VendorID, b.VendorID), cmp.Compare(a.DeviceID, b.DeviceID))
	})
	return out
}
