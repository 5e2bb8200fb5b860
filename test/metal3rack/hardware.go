package metal3rack

import (
	"context"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/baremetaloperator"
)

// inspecting names the inspection as work.
const inspecting = string(baremetaloperator.Inspecting)

// Inspect implements baremetaloperator.Server.
func (s *server) Inspect(ctx context.Context, refresh bool) (*baremetaloperator.Hardware, baremetaloperator.Progress) {
	if known := s.foundHardware(); known != nil && !refresh && !s.isUnderWay(inspecting) {
		return known, baremetaloperator.Progress{Done: true}
	}
	if p := s.Next(baremetaloperator.Inspecting); !p.Done {
		return nil, p
	}
	isStarted := !s.isUnderWay(inspecting)
	seen, progress := s.advance(ctx, inspecting, func(host hardware.Host, attempt hardware.Attempt) error {
		return s.site.installer.Inspect(ctx, host, attempt, hardware.InspectByAgent)
	})
	progress.Started = isStarted && progress.Problem == ""
	if !progress.Done || seen.Inventory == nil {
		return nil, progress
	}
	s.mu.Lock()
	s.inventory = seen.Inventory
	s.mu.Unlock()
	return s.foundHardware(), progress
}

// foundHardware returns what the last inspection found, or nil.
func (s *server) foundHardware() *baremetaloperator.Hardware {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inventory == nil {
		return nil
	}
	return &baremetaloperator.Hardware{HardwareDetails: hardwareDetails(*s.inventory, s.server.BootMAC())}
}

const (
	bytesPerMiB = 1 << 20
	// mbpsPerGbps: network speeds are decimal.
	mbpsPerGbps = 1000
)

// hardwareDetails returns what Metal3's inspection says of a server. GPUs are not part of it.
func hardwareDetails(found hardware.Inventory, bootMAC string) metal3.HardwareDetails {
	out := metal3.HardwareDetails{
		SystemVendor: metal3.HardwareSystemVendor{Manufacturer: found.Manufacturer, ProductName: found.Model, SerialNumber: found.SerialNumber},
		Firmware:     metal3.Firmware{BIOS: metal3.BIOS{Version: found.BIOSVersion}},
		RAMMebibytes: int(found.MemoryBytes / bytesPerMiB),
		CPU:          metal3.CPU{Arch: found.Architecture, Model: found.CPUModel, Count: found.CPUThreads},
	}
	for _, nic := range found.NICs {
		out.NIC = append(out.NIC, metal3.NIC{Name: nic.Name, MAC: nic.MAC, SpeedGbps: nic.SpeedMbps / mbpsPerGbps, PXE: strings.EqualFold(nic.MAC, bootMAC)})
	}
	for _, disk := range found.Disks {
		out.Storage = append(out.Storage, metal3.Storage{Name: disk.Name, Model: disk.Model, SerialNumber: disk.SerialNumber, WWN: disk.WWN, SizeBytes: metal3.Capacity(disk.SizeBytes)})
	}
	return out
}
