package hardware

import (
	"slices"
	"strings"
	"testing"
)

func gpus(count int, device string) []PCIDevice {
	return slices.Repeat([]PCIDevice{{VendorID: "10de", DeviceID: device, Class: "030200"}}, count)
}

func TestWhatTheAgentSeesOtherwiseThanTheBMCIsTold(t *testing.T) {
	const gib = int64(1) << 30
	reported := func(change func(*Inventory)) *Inventory {
		i := Inventory{DeviceSource: DevicesByBMC, PCIDevices: gpus(8, "2330"), MemoryBytes: 2048 * gib, Disks: []Disk{{SerialNumber: "S1", SizeBytes: gib}}}
		change(&i)
		return &i
	}
	found := func(change func(*Inventory)) Inventory {
		i := Inventory{
			DeviceSource: DevicesByAgent, SystemUUID: "u", Disks: []Disk{{SerialNumber: "S1", SizeBytes: gib}, {SerialNumber: "S2", SizeBytes: gib}},
			PCIDevices:    append(gpus(8, "2330"), PCIDevice{VendorID: "1a03", DeviceID: "2000", Class: "030000"}),
			MemoryModules: slices.Repeat([]MemoryModule{{SizeBytes: 64 * gib}}, 32),
		}
		change(&i)
		return i
	}
	same := func(*Inventory) {}
	for _, c := range []struct {
		name  string
		known *Inventory
		found Inventory
		want  string // empty: no difference
	}{
		{"nothing", reported(same), found(same), ""},
		{"nothing known", nil, found(same), ""},
		{"a GPU less", reported(same), found(func(i *Inventory) { i.PCIDevices = gpus(7, "2330") }), "the BMC reports 8 GPUs 10de:2330, the agent sees 7 GPUs 10de:2330"},
		{"another model", reported(same), found(func(i *Inventory) { i.PCIDevices = gpus(8, "2335") }), "8 GPUs 10de:2335"},
		{"no GPU by the BMC", reported(func(i *Inventory) { i.PCIDevices = nil }), found(same), "the BMC reports no GPU"},
		{"GPUs that the BMC cannot tell", reported(func(i *Inventory) { i.PCIDevices, i.DeviceSource = nil, "" }), found(same), ""},
		{"a model that the BMC does not tell", reported(func(i *Inventory) { i.PCIDevices = gpus(8, "") }), found(same), ""},
		{"one less of a model that it does not tell", reported(func(i *Inventory) { i.PCIDevices = gpus(8, "") }), found(func(i *Inventory) { i.PCIDevices = gpus(7, "2330") }), "7 GPUs of vendor 10de"},
		{"a PCI bus that the agent could not scan", reported(same), found(func(i *Inventory) { i.PCIDevices, i.DeviceSource = nil, "" }), "the agent sees no GPU"},
		{"a memory module less", reported(same), found(func(i *Inventory) { i.MemoryModules = i.MemoryModules[1:] }), "2048 GiB of memory, the agent sees 1984 GiB in 31 modules"},
		{"memory that the agent does not tell", reported(same), found(func(i *Inventory) { i.MemoryModules = nil }), "the agent can use 0 GiB and is told of no module"},
		{"memory without modules", reported(same), found(func(i *Inventory) { i.MemoryModules, i.MemoryBytes = nil, 2000*gib }), ""},
		{"memory that the BMC cannot tell", reported(func(i *Inventory) { i.MemoryBytes = 0 }), found(same), ""},
		{"a disk less", reported(same), found(func(i *Inventory) { i.Disks = i.Disks[1:] }), "does not see disks that the BMC reports"},
		{"a disk without identity", reported(func(i *Inventory) { i.Disks = []Disk{{SizeBytes: 7}} }), found(same), ""},
		{"a host that an agent knows", reported(func(i *Inventory) { i.SystemUUID = "u" }), found(func(i *Inventory) { i.PCIDevices = nil }), ""},
	} {
		if got := BMCDifference(c.known, c.found); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, expected %q", c.name, got, c.want)
		}
	}
}

func TestPartsThatCameBackAreMoreParts(t *testing.T) {
	const gib = int64(1) << 30
	before := Inventory{PCIDevices: gpus(7, "2330"), MemoryModules: []MemoryModule{{SizeBytes: gib}}, Disks: []Disk{{SerialNumber: "S1", SizeBytes: gib}}}
	for name, c := range map[string]struct {
		change func(*Inventory)
		want   bool
	}{
		"nothing": {func(*Inventory) {}, false},
		"the graphics of the BMC": {func(i *Inventory) {
			i.PCIDevices = append(gpus(7, "2330"), PCIDevice{VendorID: "1a03", Class: "030000"})
		}, false},
		"a GPU more":                       {func(i *Inventory) { i.PCIDevices = gpus(8, "2330") }, true},
		"a GPU less":                       {func(i *Inventory) { i.PCIDevices = gpus(6, "2330") }, false},
		"a module more":                    {func(i *Inventory) { i.MemoryModules = slices.Repeat(i.MemoryModules, 2) }, true},
		"a disk more":                      {func(i *Inventory) { i.Disks = append(slices.Clone(i.Disks), Disk{SerialNumber: "S2", SizeBytes: gib}) }, true},
		"another disk":                     {func(i *Inventory) { i.Disks = []Disk{{SerialNumber: "S2", SizeBytes: gib}} }, false},
		"a GPU more and a disk less":       {func(i *Inventory) { i.PCIDevices, i.Disks = gpus(8, "2330"), nil }, false},
		"memory that is not told any more": {func(i *Inventory) { i.PCIDevices, i.MemoryModules = gpus(8, "2330"), nil }, false},
	} {
		now := before
		c.change(&now)
		if got := HasMoreParts(before, now); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
