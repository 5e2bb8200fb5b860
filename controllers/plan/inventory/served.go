package inventory

import (
	"slices"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

const (
	bytesPerMiB = 1 << 20
	// acceleratorGPU is the type of a GPU in Metal3's HardwareData.
	acceleratorGPU = "GPU"
)

// Accelerator is an entry of spec.hardware.accelerators of Metal3's HardwareData. Ironic finds those devices that its list known_accelerators has, so
// that an accelerator which is missing there proves nothing.
type Accelerator struct {
	Type       string `json:"type,omitempty"`
	VendorID   string `json:"vendorID,omitempty"`
	DeviceID   string `json:"deviceID,omitempty"`
	DeviceInfo string `json:"deviceInfo,omitempty"`
	PCIAddress string `json:"pciAddress,omitempty"`
}

// OfHardwareData returns the inventory that a baremetal-operator has found. The number of GPUs is unknown where it names none. It has no system UUID,
// which Metal3 does not tell.
func OfHardwareData(found metal3.HardwareDetails, accelerators []Accelerator) *v1alpha1.HostInventory {
	i := hardware.Inventory{
		Manufacturer: found.SystemVendor.Manufacturer, Model: found.SystemVendor.ProductName, SerialNumber: found.SystemVendor.SerialNumber,
		BIOSVersion: found.Firmware.BIOS.Version, BIOSDate: found.Firmware.BIOS.Date, Architecture: found.CPU.Arch, CPUModel: found.CPU.Model,
		CPUThreads: found.CPU.Count, MemoryBytes: int64(found.RAMMebibytes) * bytesPerMiB,
	}
	for _, n := range found.NIC {
		i.NICs = append(i.NICs, hardware.NIC{Name: n.Name, MAC: n.MAC, SpeedMbps: n.SpeedGbps * mbpsPerGbps, Up: n.SpeedGbps > 0})
	}
	for _, a := range accelerators {
		if a.Type == "" || a.Type == acceleratorGPU {
			i.PCIDevices = append(i.PCIDevices, hardware.PCIDevice{Address: a.PCIAddress, VendorID: a.VendorID, DeviceID: a.DeviceID, Model: a.DeviceInfo, Class: classGPU})
		}
	}
	return HostInventory(i, nil)
}

// ServedLabelChange is HostLabelChange for a host that a baremetal-operator serves, whose inspection tells less than an agent of Ingot's: what it does not
// tell keeps the label that somebody wrote. Only the model of GPUs is removed, where they are of several.
func ServedLabelChange(have map[string]string, found *v1alpha1.HostInventory) LabelChange {
	l := HostLabelChange(have, found)
	isKnown := found.IsGPUCountKnown()
	if !isKnown {
		l.Reason, l.Message, l.Warning = "", "", false
	}
	l.Remove = slices.DeleteFunc(l.Remove, func(key string) bool { return !isKnown || key != v1alpha1.LabelGPUModel })
	return l
}
