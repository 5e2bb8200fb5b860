package hardware

import (
	"strings"
	"testing"
)

// agentInventory is what an agent found on a server that meets every requirement of the tests below.
func agentInventory() Inventory {
	gpu := func(address string) PCIDevice {
		return PCIDevice{Address: address, VendorID: "10de", DeviceID: "2330", Class: "030200", LinkWidth: 16, MaxLinkWidth: 16, MaxLinkSpeed: 32000, PortMaxLinkSpeed: 32000}
	}
	return Inventory{
		DeviceSource: DevicesByAgent, BIOSVersion: "2.21.1", BMCVersion: "7.10.50.00", MemoryBytes: 2000 << 30,
		PCIDevices: []PCIDevice{gpu("0000:1b:00.0"), gpu("0000:3b:00.0"), {VendorID: "1a03", DeviceID: "2000", Class: "030000"}},
		NICs: []NIC{
			{Name: "eth0", MAC: "0c:42:a1:00:00:01", Up: true, SpeedMbps: 400000, Driver: "mlx5_core", PCIID: "15b3:1021", Firmware: "28.39.1002 (MT_0000000838)"},
			{Name: "eth1", MAC: "0c:42:a1:00:00:02", NoLink: true, Driver: "igb", PCIID: "8086:1521", Firmware: "1.63, 0x800009fa"},
		},
		Disks: []Disk{{Name: "/dev/nvme0n1", Model: "SAMSUNG MZQL21T9HCJR-00A07", SerialNumber: "S1", Firmware: "GDC7502Q"}},
	}
}

func TestRequirementsAreComparedWithWhatWasFound(t *testing.T) {
	width := Requirements{FullGPULinkWidth: true, GPUVendors: []string{"10de", "1002"}}
	speed := Requirements{FullGPULinkWidth: true, FullGPULinkSpeed: true, GPUVendors: []string{"10de"}}
	firmware := func(component FirmwareComponent, name, version string) Requirements {
		return Requirements{Firmware: []RequiredFirmware{{Component: component, Name: name, MinVersion: version}}}
	}
	for _, c := range []struct {
		name     string
		required Requirements
		change   func(*Inventory)
		missing  string
		unknown  string
	}{
		{"nothing is required", Requirements{}, func(i *Inventory) { *i = Inventory{} }, "", ""},
		{"the image's architecture", Requirements{Architecture: "arm64"}, func(i *Inventory) { i.Architecture = "aarch64" }, "", ""},
		{"another architecture", Requirements{Architecture: "amd64"}, func(i *Inventory) { i.Architecture = "aarch64" },
			"expected a server with processors of the image's architecture, amd64, seen arm64: give the NodeType an OSImage for arm64, or add the label hardware.ingot.dev/architecture=amd64", ""},
		{"an architecture that a BMC does not tell", Requirements{Architecture: "arm64"}, nil, "", ""},
		{"full width", width, nil, "", ""},
		{"a GPU at x8", width, func(i *Inventory) { i.PCIDevices[1].LinkWidth = 8 }, "expected that GPU 10de:2330 0000:3b:00.0 has its 16 PCIe lanes, seen 8: look whether it is seated", ""},
		{"a width that nobody has read", width, func(i *Inventory) { i.PCIDevices[0].LinkWidth = 0 }, "", "the PCIe link of GPU 10de:2330 0000:1b:00.0 cannot be read"},
		{"a NIC at x8 is no GPU", width, func(i *Inventory) {
			i.PCIDevices = append(i.PCIDevices, PCIDevice{VendorID: "15b3", Class: "020000", LinkWidth: 8, MaxLinkWidth: 16})
		}, "", ""},
		{"the port of the BMC's own graphics is not compared", width, func(i *Inventory) { i.PCIDevices[2].MaxLinkWidth, i.PCIDevices[2].LinkWidth = 4, 1 }, "", ""},
		{"full speed", speed, nil, "", ""},
		{"a slot of the generation before", speed, func(i *Inventory) { i.PCIDevices[0].PortMaxLinkSpeed = 16000 }, "expected that the port of GPU 10de:2330 0000:1b:00.0 supports 32 GT/s, seen 16 GT/s", ""},
		{"such a slot where only the width is required", width, func(i *Inventory) { i.PCIDevices[0].PortMaxLinkSpeed = 16000 }, "", ""},
		{"a speed that nobody has read", speed, func(i *Inventory) { i.PCIDevices[0].PortMaxLinkSpeed = 0 }, "", "the PCIe speed of GPU"},
		{"memory that the firmware keeps a part of", Requirements{MemoryBytes: 2048 << 30}, nil, "", ""},
		{"too little memory", Requirements{MemoryBytes: 2304 << 30}, nil, "expected 2304 GiB of memory, seen 2000 GiB", ""},
		{"modules count as they are", Requirements{MemoryBytes: 2048 << 30}, func(i *Inventory) {
			i.MemoryModules = []MemoryModule{{SizeBytes: 1024 << 30}, {SizeBytes: 960 << 30}}
		}, "expected 2048 GiB of memory, seen 1984 GiB in 2 modules: look whether a memory module has failed", ""},
		{"memory that nobody has read", Requirements{MemoryBytes: 1}, func(i *Inventory) { i.MemoryBytes = 0 }, "", "the size of the memory cannot be read"},
		{"a NIC with a link", Requirements{NICCount: 1, NICSpeedMbps: 400000}, nil, "", ""},
		{"a NIC without one", Requirements{NICCount: 2, NICSpeedMbps: 400000}, nil, "expected 2 NICs with a link of 400 Gbit/s or more, seen 1 of them, eth1 0c:42:a1:00:00:02 without a link: look at the cables", ""},
		{"a slow link", Requirements{NICCount: 1, NICSpeedMbps: 400000}, func(i *Inventory) { i.NICs[0].SpeedMbps = 200000 }, "seen 0 of them, eth0 0c:42:a1:00:00:01 at 200 Gbit/s", ""},
		{"a link that cannot be read", Requirements{NICCount: 2, NICSpeedMbps: 400000}, func(i *Inventory) { i.NICs[1].NoLink = false }, "", "with a link that cannot be read"},
		{"a BMC's list of NICs", Requirements{NICCount: 2, NICSpeedMbps: 400000}, func(i *Inventory) { i.DeviceSource = DevicesByBMC }, "", "no agent has read the links"},
		{"BIOS", firmware(FirmwareBIOS, "", "2.21"), nil, "", ""},
		{"an old BIOS", firmware(FirmwareBIOS, "", "2.22"), nil, "expected firmware 2.22 or later of the BIOS, seen 2.21.1: update it", ""},
		{"a BIOS of another form", firmware(FirmwareBIOS, "", "U54 v2.10"), nil, "seen 2.21.1, which cannot be compared", ""},
		{"an old BMC", firmware(FirmwareBMC, "", "7.20"), nil, "expected firmware 7.20 or later of the BMC, seen 7.10.50.00", ""},
		{"a BMC that says nothing", firmware(FirmwareBMC, "", "7.20"), func(i *Inventory) { i.BMCVersion = "" }, "", "of the BMC, which does not tell its version"},
		{"a NIC by its driver", firmware(FirmwareNIC, "MLX5_core", "28.40"), nil, "of the NIC eth0 0c:42:a1:00:00:01, seen 28.39.1002 (MT_0000000838)", ""},
		{"a NIC by its ids", firmware(FirmwareNIC, "15b3:1021", "28.39.1002"), nil, "", ""},
		{"a NIC that is not there", firmware(FirmwareNIC, "15b3:101d", "99"), nil, "", ""},
		{"a NIC that says nothing", firmware(FirmwareNIC, "15b3:1021", "28.39.1002"), func(i *Inventory) { i.NICs[0].Firmware = "" }, "", "of the NIC eth0 0c:42:a1:00:00:01, which does not tell"},
		{"an old disk", firmware(FirmwareDisk, "mzql2", "GDC7602Q"), nil, "expected firmware GDC7602Q or later of the disk", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := agentInventory()
			if c.change != nil {
				c.change(&found)
			}
			missing, unknown := c.required.Compare(found)
			for _, part := range []struct {
				name string
				got  []string
				want string
			}{{"missing", missing, c.missing}, {"unknown", unknown, c.unknown}} {
				if (part.want == "") != (len(part.got) == 0) || !strings.Contains(strings.Join(part.got, "; "), part.want) {
					t.Errorf("%s: %q, expected %q", part.name, part.got, part.want)
				}
			}
			if got := c.required.Difference(found); (got == "") != (c.missing+c.unknown == "") {
				t.Errorf("difference %q: what is unknown to the agent is not met", got)
			}
		})
	}
}
