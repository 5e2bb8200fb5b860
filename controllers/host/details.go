package host

import (
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

const (
	bytesPerMiB = 1 << 20
	// mbpsPerGbps: network speeds are decimal.
	mbpsPerGbps = 1000
)

// hardwareDetails are an inventory in the fields that Metal3 has for it.
func hardwareDetails(i *v1alpha1.HostInventory) *metal3.HardwareDetails {
	out := &metal3.HardwareDetails{
		SystemVendor: metal3.HardwareSystemVendor{Manufacturer: i.Manufacturer, ProductName: i.Model, SerialNumber: i.SerialNumber},
		Firmware:     metal3.Firmware{BIOS: metal3.BIOS{Version: i.BIOSVersion}},
		RAMMebibytes: int(i.MemoryBytes / bytesPerMiB),
		CPU:          metal3.CPU{Arch: i.Architecture, Model: i.CPUModel, Count: int(i.CPUThreads)},
	}
	for _, n := range i.NICs {
		if n.MAC == "" {
			continue // the field's pattern demands one
		}
		out.NIC = append(out.NIC, metal3.NIC{Name: n.Name, MAC: n.MAC, SpeedGbps: int(n.SpeedMbps / mbpsPerGbps)})
	}
	for _, d := range i.Disks {
		out.Storage = append(out.Storage, metal3.Storage{
			Name: d.Name, Model: d.Model, SerialNumber: d.SerialNumber, WWN: d.WWN,
			SizeBytes: metal3.Capacity(d.SizeBytes), Rotational: d.Rotational,
		})
	}
	return out
}
