package inventory

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

func TestGPUsAreCountedByVendorAndDevice(t *testing.T) {
	h100 := hardware.PCIDevice{VendorID: "10DE", DeviceID: "2330", Class: "030200"}
	got := HostInventory(hardware.Inventory{PCIDevices: []hardware.PCIDevice{
		h100, h100, {VendorID: "10de", DeviceID: "22a3", Class: "068000"}, {VendorID: "1002", DeviceID: "74a1", Class: "120000"},
		{VendorID: "1a03", DeviceID: "2000", Class: "030000"}, {VendorID: "10de", DeviceID: "10fa", Class: "040300"}, {VendorID: "10de"},
	}, DeviceSource: hardware.DevicesByAgent}, nil).GPUs
	want := []v1alpha1.GPUInventory{{VendorID: "1002", DeviceID: "74a1", Model: "MI300X-192GB", Count: 1}, {VendorID: "10de", DeviceID: "2330", Model: "H100-SXM5-80GB", Count: 2}}
	if !cmp.Equal(got, want) {
		t.Errorf("GPUs = %+v, expected %+v: no switch, no audio, no console graphics of the BMC", got, want)
	}
}

func TestAnInventorySurvivesTheHostRecord(t *testing.T) {
	all := hardware.Inventory{Manufacturer: "Acme", Model: "G8", SerialNumber: "1", SystemUUID: "dmi", BIOSVersion: "2.4", Architecture: "amd64",
		CPUModel: "EPYC", CPUThreads: 8, MemoryBytes: 8 << 30,
		NICs:       []hardware.NIC{{Name: "eno1", MAC: "0c:42:a1:00:00:01", SpeedMbps: 10000}},
		Disks:      []hardware.Disk{{Name: "/dev/nvme0n1", Model: "M", SerialNumber: "S1", WWN: "w", SizeBytes: 1 << 40, Rotational: true}},
		PCIDevices: []hardware.PCIDevice{{VendorID: "10de", DeviceID: "2330", Class: classGPU}, {VendorID: "10de", DeviceID: "2330", Class: classGPU}}, DeviceSource: hardware.DevicesByAgent}
	kept := HostInventory(all, nil)
	if diff := cmp.Diff(&all, HardwareInventory(kept)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(kept, HostInventory(*HardwareInventory(kept), nil)); diff != "" {
		t.Errorf("it is another at each look: %s", diff)
	}
	if HardwareInventory(nil) != nil {
		t.Error("nothing was kept, and something came back")
	}
}

func TestWhereTheDevicesAreIsKept(t *testing.T) {
	gpu := func(node, board string) hardware.PCIDevice {
		return hardware.PCIDevice{VendorID: "10de", DeviceID: "2330", Class: "030200", NUMANode: node, SubsystemID: board}
	}
	kept := HostInventory(hardware.Inventory{
		DeviceSource: hardware.DevicesByAgent,
		NICs:         []hardware.NIC{{Name: "eno1", SubsystemID: "15b3:0041", NUMANode: "1"}},
		Disks:        []hardware.Disk{{Name: "/dev/nvme0n1", PCIID: "144d:a80a", SubsystemID: "144d:a813", NUMANode: "0"}},
		PCIDevices:   []hardware.PCIDevice{gpu("10", "10de:16c2"), gpu("2", "10de:16c1"), gpu("2", "10de:16c1"), gpu("", "")},
	}, nil)
	again := HostInventory(*HardwareInventory(kept), nil)
	for _, got := range []*v1alpha1.HostInventory{kept, again} {
		g, want := got.GPUs[0], []v1alpha1.NUMANodeCount{{Node: "2", Count: 2}, {Node: "10", Count: 1}}
		if g.Count != 4 || !cmp.Equal(g.NUMANodes, want) || !cmp.Equal(g.SubsystemIDs, []string{"10de:16c1", "10de:16c2"}) {
			t.Errorf("%+v", g)
		}
		if n, d := got.NICs[0], got.Disks[0]; n.SubsystemID != "15b3:0041" || n.NUMANode != "1" || d.PCIID != "144d:a80a" || d.SubsystemID != "144d:a813" || d.NUMANode != "0" {
			t.Errorf("%+v, %+v", n, d)
		}
	}
}

func TestWhatAnAgentFoundIsKept(t *testing.T) {
	gpu := func(width int) hardware.PCIDevice {
		return hardware.PCIDevice{VendorID: "10de", DeviceID: "2330", Class: "030200", LinkWidth: width, MaxLinkWidth: 16}
	}
	found := hardware.Inventory{
		CPUSockets: 2, CPUCores: 96, NUMANodes: 2, BIOSDate: "03/14/2025", TPMVersion: "2", DeviceSource: hardware.DevicesByAgent,
		NICs:       []hardware.NIC{{Name: "eno1", Driver: "mlx5_core"}},
		PCIDevices: []hardware.PCIDevice{gpu(16), gpu(8), gpu(16), gpu(0)},
	}
	kept := HostInventory(found, nil)
	again := HostInventory(*HardwareInventory(kept), nil)
	for _, got := range []*v1alpha1.HostInventory{kept, again} {
		if got.CPUSockets != 2 || got.CPUCores != 96 || got.NUMANodes != 2 || got.BIOSDate != "03/14/2025" || got.TPMVersion != "2" || got.NICs[0].Driver != "mlx5_core" {
			t.Errorf("%+v", got)
		}
		if g := got.GPUs[0]; g.Count != 4 || g.LinkWidth != 8 || g.MaxLinkWidth != 16 {
			t.Errorf("%+v, expected that one of the GPUs has 8 lanes", g)
		}
	}
	found.PCIDevices = []hardware.PCIDevice{gpu(0)}
	if g := HostInventory(found, nil).GPUs[0]; g.LinkWidth != 0 || g.MaxLinkWidth != 0 {
		t.Errorf("%+v, expected that the width is unknown", g)
	}
}
