package sessions

import (
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

const (
	bytesPerMiB = 1 << 20
	// mbpsPerGbps: network speeds are decimal.
	mbpsPerGbps = 1000
	// classGPU stands for every GPU that comes out of a count; 0302 is a 3D controller.
	classGPU = "030200"
)

// Details is an inventory in the fields that Metal3 has for it.
func Details(i hardware.Inventory) *metal3.HardwareDetails {
	out := &metal3.HardwareDetails{
		SystemVendor: metal3.HardwareSystemVendor{Manufacturer: i.Manufacturer, ProductName: i.Model, SerialNumber: i.SerialNumber},
		Firmware:     metal3.Firmware{BIOS: metal3.BIOS{Version: i.BIOSVersion}},
		RAMMebibytes: int(i.MemoryBytes / bytesPerMiB),
		CPU:          metal3.CPU{Arch: i.Architecture, Model: i.CPUModel, Count: i.CPUThreads},
	}
	for _, n := range i.NICs {
		if n.MAC == "" {
			continue // the field's pattern demands one
		}
		out.NIC = append(out.NIC, metal3.NIC{Name: n.Name, MAC: n.MAC, SpeedGbps: n.SpeedMbps / mbpsPerGbps})
	}
	for _, d := range i.Disks {
		out.Storage = append(out.Storage, metal3.Storage{
			Name: d.Name, Model: d.Model, SerialNumber: d.SerialNumber, WWN: d.WWN,
			SizeBytes: metal3.Capacity(d.SizeBytes), Rotational: d.Rotational,
		})
	}
	return out
}

// inventory puts an inventory together again from what is kept of it.
func inventory(kept *v1alpha1.HostInventory, details *metal3.HardwareDetails) *hardware.Inventory {
	if kept == nil {
		return nil
	}
	out := &hardware.Inventory{
		Manufacturer: kept.Manufacturer, Model: kept.Model, SerialNumber: kept.SerialNumber, SystemUUID: kept.SystemUUID,
		CPUModel: kept.CPUModel, CPUThreads: int(kept.CPUThreads), MemoryBytes: kept.MemoryBytes,
	}
	for _, g := range kept.GPUs {
		for range g.Count {
			out.PCIDevices = append(out.PCIDevices, hardware.PCIDevice{VendorID: g.VendorID, DeviceID: g.DeviceID, Class: classGPU})
		}
	}
	if details == nil {
		for _, mac := range kept.MACs {
			out.NICs = append(out.NICs, hardware.NIC{MAC: mac})
		}
		for _, size := range kept.DiskBytes {
			out.Disks = append(out.Disks, hardware.Disk{SizeBytes: size})
		}
		return out
	}
	out.BIOSVersion, out.Architecture = details.Firmware.BIOS.Version, details.CPU.Arch
	for _, n := range details.NIC {
		out.NICs = append(out.NICs, hardware.NIC{Name: n.Name, MAC: n.MAC, SpeedMbps: n.SpeedGbps * mbpsPerGbps})
	}
	for _, d := range details.Storage {
		out.Disks = append(out.Disks, hardware.Disk{Name: d.Name, Model: d.Model, SerialNumber: d.SerialNumber, WWN: d.WWN,
			SizeBytes: int64(d.SizeBytes), Rotational: d.Rotational})
	}
	return out
}
