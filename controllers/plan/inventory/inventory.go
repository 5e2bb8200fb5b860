// Package inventory converts a server's hardware inventory into the inventory of its HostRecord and the labels of its BareMetalHost.
package inventory

import (
	"slices"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// gpuVendors are NVIDIA and AMD, by PCI vendor id (pci-ids.ucw.cz).
var gpuVendors = []string{"10de", "1002"}

// classGPU is the PCI class of the GPUs that HardwareInventory returns, because a HostRecord does not keep the class. 0302 is a 3D controller.
const classGPU = "030200"

// HostInventory returns the inventory for a HostRecord. Of the PCI devices it has only the GPUs, as counts. Where the inventory does not tell which
// GPUs there are, what the HostRecord had before, which may be nil, is kept.
func HostInventory(i hardware.Inventory, before *v1alpha1.HostInventory) *v1alpha1.HostInventory {
	out := &v1alpha1.HostInventory{
		Manufacturer: i.Manufacturer, Model: i.Model, SerialNumber: i.SerialNumber, SystemUUID: i.SystemUUID,
		SecureBoot:  v1alpha1.SecureBootState(i.SecureBoot),
		BIOSVersion: i.BIOSVersion, Architecture: i.Architecture,
		CPUModel: i.CPUModel, CPUThreads: input.Count(i.CPUThreads), MemoryBytes: max(i.MemoryBytes, 0),
		CPUSockets: input.Count(i.CPUSockets), CPUCores: input.Count(i.CPUCores), NUMANodes: input.Count(i.NUMANodes), BIOSDate: i.BIOSDate, TPMVersion: i.TPMVersion,
		BMCVersion: i.BMCVersion,
	}
	out.GPUs, out.GPUSource = gpus(i)
	if !out.IsGPUCountKnown() && before.IsGPUCountKnown() {
		out.GPUs, out.GPUSource = before.GPUs, before.GPUSource
	}
	for _, d := range i.Disks {
		out.Disks = append(out.Disks, v1alpha1.DiskInventory(d))
	}
	for _, n := range i.NICs {
		out.NICs = append(out.NICs, recordNIC(n))
	}
	for _, m := range i.MemoryModules {
		out.MemoryModules = append(out.MemoryModules, v1alpha1.MemoryModule{
			Slot: m.Slot, SizeBytes: m.SizeBytes, Manufacturer: m.Manufacturer, PartNumber: m.PartNumber, SerialNumber: m.SerialNumber, SpeedMTs: input.Count(m.SpeedMTs),
		})
	}
	return out
}

// HardwareInventory returns the inventory that a HostRecord has as the type of package hardware, or nil when it has none.
func HardwareInventory(kept *v1alpha1.HostInventory) *hardware.Inventory {
	if kept == nil {
		return nil
	}
	out := &hardware.Inventory{
		Manufacturer: kept.Manufacturer, Model: kept.Model, SerialNumber: kept.SerialNumber, SystemUUID: kept.SystemUUID,
		SecureBoot:  hardware.SecureBootState(kept.SecureBoot),
		BIOSVersion: kept.BIOSVersion, Architecture: kept.Architecture,
		CPUModel: kept.CPUModel, CPUThreads: int(kept.CPUThreads), MemoryBytes: kept.MemoryBytes, DeviceSource: hardware.DeviceSource(kept.GPUSource),
		CPUSockets: int(kept.CPUSockets), CPUCores: int(kept.CPUCores), NUMANodes: int(kept.NUMANodes), BIOSDate: kept.BIOSDate, TPMVersion: kept.TPMVersion,
		BMCVersion: kept.BMCVersion,
	}
	for _, d := range kept.Disks {
		out.Disks = append(out.Disks, hardware.Disk(d))
	}
	for _, n := range kept.NICs {
		out.NICs = append(out.NICs, hardware.NIC{
			Name: n.Name, MAC: n.MAC, SpeedMbps: int(n.SpeedMbps), Up: n.Link == v1alpha1.LinkUp, NoLink: n.Link == v1alpha1.LinkDown,
			Driver: n.Driver, Firmware: n.Firmware, PCIID: n.PCIID, SubsystemID: n.SubsystemID, NUMANode: n.NUMANode,
		})
	}
	for _, m := range kept.MemoryModules {
		out.MemoryModules = append(out.MemoryModules, hardware.MemoryModule{
			Slot: m.Slot, SizeBytes: m.SizeBytes, Manufacturer: m.Manufacturer, PartNumber: m.PartNumber, SerialNumber: m.SerialNumber, SpeedMTs: int(m.SpeedMTs),
		})
	}
	for _, g := range kept.GPUs {
		out.PCIDevices = append(out.PCIDevices, gpuDevices(g)...)
	}
	return out
}

// gpuDevices returns one device for each GPU of an entry. The entry does not tell which of them has which link, board and memory node.
func gpuDevices(g v1alpha1.GPUInventory) []hardware.PCIDevice {
	var nodes []string
	for _, n := range g.NUMANodes {
		nodes = append(nodes, slices.Repeat([]string{n.Node}, int(min(max(n.Count, 0), g.Count)))...)
	}
	var out []hardware.PCIDevice
	for at := range int(g.Count) {
		d := hardware.PCIDevice{
			VendorID: g.VendorID, DeviceID: g.DeviceID, Class: classGPU, LinkWidth: int(g.LinkWidth), MaxLinkWidth: int(g.MaxLinkWidth),
			MaxLinkSpeed: int(g.MaxLinkSpeed), PortMaxLinkSpeed: int(g.PortMaxLinkSpeed),
		}
		if len(g.SubsystemIDs) > 0 {
			d.SubsystemID = g.SubsystemIDs[at%len(g.SubsystemIDs)]
		}
		if at < len(nodes) {
			d.NUMANode = nodes[at]
		}
		out = append(out, d)
	}
	return out
}

// recordNIC returns a NIC as a HostRecord has it.
func recordNIC(n hardware.NIC) v1alpha1.NICInventory {
	out := v1alpha1.NICInventory{Name: n.Name, MAC: n.MAC, SpeedMbps: input.Count(n.SpeedMbps), Driver: n.Driver, Firmware: n.Firmware, PCIID: n.PCIID, SubsystemID: n.SubsystemID, NUMANode: n.NUMANode}
	switch {
	case n.Up:
		out.Link = v1alpha1.LinkUp
	case n.NoLink:
		out.Link = v1alpha1.LinkDown
	}
	return out
}
