package rack_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/rack"
)

// TestNothingIsWrittenToAServerThatLacksTheGPUs installs, loses a GPU, and installs again for a Machine that needs all of them.
func TestNothingIsWrittenToAServerThatLacksTheGPUs(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	s := r.rack.Servers()[0]
	required := hardware.RequiredGPUs{Model: "H100-SXM5-80GB", VendorID: "10de", DeviceIDs: "2330", Count: 8}
	install := func() hardware.AttemptStatus {
		return r.work(s, func(attempt hardware.Attempt) error {
			return r.installer.Install(t.Context(), r.host(s), attempt, hardware.InstallSpec{Image: r.image, GPUs: required})
		})
	}
	if status := install(); status.State != hardware.AttemptSucceeded {
		t.Fatalf("%+v", status)
	}
	if status := r.erase(s, hardware.EraseMetadata); status.State != hardware.AttemptSucceeded {
		t.Fatalf("%+v", status)
	}
	before := writtenAt(t, s)
	s.SetFaults(rack.Faults{MissingGPUs: 1})
	if status := install(); status.State != hardware.AttemptFailed || status.Reason != hardware.ReasonHardwareDiffers {
		t.Fatalf("%+v", status)
	}
	if !writtenAt(t, s).Equal(before) {
		t.Error("the disk was written although a GPU is missing")
	}
	session, err := r.store.ByUID(t.Context(), s.UUID())
	if err != nil {
		t.Fatal(err)
	}
	if session.Inventory == nil || session.Inventory.DeviceSource != hardware.DevicesByAgent {
		t.Errorf("the inventory of the agent was not stored: %+v", session.Inventory)
	}
}

// TestNothingIsWrittenToAServerThatLacksHardware installs a server, and then the same with a GPU in half a slot, and with old firmware.
func TestNothingIsWrittenToAServerThatLacksHardware(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, nil)
	s := r.rack.Servers()[0]
	required := hardware.Requirements{
		FullGPULinkWidth: true, GPUVendors: []string{"10de"}, MemoryBytes: 1 << 30, NICCount: 1, NICSpeedMbps: 10000,
		Firmware: []hardware.RequiredFirmware{{Component: hardware.FirmwareBIOS, MinVersion: s.BIOSVersion()}},
	}
	install := func() hardware.AttemptStatus {
		return r.work(s, func(attempt hardware.Attempt) error {
			return r.installer.Install(t.Context(), r.host(s), attempt, hardware.InstallSpec{Image: r.image, Requirements: required})
		})
	}
	if status := install(); status.State != hardware.AttemptSucceeded {
		t.Fatalf("%+v", status)
	}
	if status := r.erase(s, hardware.EraseMetadata); status.State != hardware.AttemptSucceeded {
		t.Fatalf("%+v", status)
	}
	before := writtenAt(t, s)
	for says, fault := range map[string]rack.Faults{
		"has its 16 PCIe lanes, seen 8":    {NarrowGPUs: 1},
		"of the BIOS, seen 0.1: update it": {BIOSVersion: "0.1"},
	} {
		s.SetFaults(fault)
		if status := install(); status.State != hardware.AttemptFailed || status.Reason != hardware.ReasonHardwareInsufficient || !strings.Contains(status.Message, says) {
			t.Errorf("expected %q: %+v", says, status)
		}
		if !writtenAt(t, s).Equal(before) {
			t.Error("the disk was written although the server lacks hardware")
		}
	}
}

// writtenAt returns when the server's disk was written last.
func writtenAt(t *testing.T, s *rack.Server) time.Time {
	t.Helper()
	disk, err := os.Stat(s.DiskPath())
	if err != nil {
		t.Fatal(err)
	}
	return disk.ModTime()
}
