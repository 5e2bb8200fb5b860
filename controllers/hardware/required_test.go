package hardware

import (
	"slices"
	"strings"
	"testing"
)

func TestRequiredGPUsAreComparedWithTheBus(t *testing.T) {
	h100 := PCIDevice{VendorID: "10de", DeviceID: "2330", Class: "030200"}
	nic := PCIDevice{VendorID: "15b3", DeviceID: "1021", Class: "020000"}
	required := RequiredGPUs{Model: "H100-SXM5-80GB", VendorID: "10de", DeviceIDs: "2330 2339", Count: 8}
	for _, c := range []struct {
		name     string
		required RequiredGPUs
		found    []PCIDevice
		says     string // empty: no difference
	}{
		{"all of them", required, append(slices.Repeat([]PCIDevice{h100}, 8), nic), ""},
		{"under two ids", required, append(slices.Repeat([]PCIDevice{h100}, 7), PCIDevice{VendorID: "10de", DeviceID: "2339", Class: "030200"}), ""},
		{"their other functions, an NVSwitch, and the BMC's graphics", required, append(slices.Repeat([]PCIDevice{h100}, 8),
			PCIDevice{VendorID: "10de", DeviceID: "10fa", Class: "040300"}, PCIDevice{VendorID: "10de", DeviceID: "22a3", Class: "068000"}, PCIDevice{VendorID: "1a03", DeviceID: "2000", Class: "030000"}), ""},
		{"nothing is required", RequiredGPUs{}, nil, ""},
		{"one is missing", required, slices.Repeat([]PCIDevice{h100}, 7), "expected 8 GPUs H100-SXM5-80GB (PCI ids 10de:2330,2339), the agent sees 7 of them"},
		{"one too many", required, slices.Repeat([]PCIDevice{h100}, 9), "sees 9 of them"},
		{"another model", required, slices.Repeat([]PCIDevice{{VendorID: "10de", DeviceID: "2335", Class: "030200"}}, 8), "0 of them and 8 with the PCI id 10de:2335"},
		{"none", required, []PCIDevice{nic}, "0 of them"},
		{"no scan", required, nil, "no PCI device at all"},
		{"AMD", RequiredGPUs{Model: "MI300X-192GB", VendorID: "1002", DeviceIDs: "74a1", Count: 1}, []PCIDevice{{VendorID: "1002", DeviceID: "74a1", Class: "120000"}}, ""},
	} {
		got := c.required.Difference(c.found)
		if (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: %q, expected %q", c.name, got, c.says)
		}
	}
}
