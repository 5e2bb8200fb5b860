package inventory

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// TestGPUsOfSeveralListsAreCountedOnce has the lists of real products, each device as list, vendor, device, class and name.
func TestGPUsOfSeveralListsAreCountedOnce(t *testing.T) {
	const (
		nic     = "pci 15b3 1021 020000"
		console = "pci 1a03 2000 030000"
	)
	for _, c := range []struct {
		name    string
		devices []string
		want    string // empty: unknown
	}{
		{"a DGX: host functions, and processors of the baseboard", []string{"8 pci 10de 2330 030200", "4 pci 10de 22a3 068000", nic, console, "8 hgx 10de - 030200 H100 80GB HBM3"}, "8 10de:2330"},
		{"a DGX that lists the baseboard's chassis", []string{"8 pci 10de 2330 030200", "4 pci 10de 22a3 068000", "8 chassis 10de 2330 -", "4 chassis 10de 22a3 -"}, "8 10de:2330"},
		{"only the baseboard's chassis", []string{"8 chassis 10de 2330 -", "4 chassis 10de 22a3 -"}, ""},
		{"a card below the system, the chassis, and as a processor", []string{"pci 10de 2331 030000", "tree 10de 2331 030000", "cpu 10de - 030200 NVIDIA H100 PCIe", nic}, "1 10de:2331"},
		{"Supermicro: no ids, a class and names", []string{"8 pci - - 030000 H100 80GB HBM3", "pci 144d - 010000 NVMe", console}, "8 10de:2330"},
		{"a processor whose name is a part number", []string{"2 pci 10de 2321 030000 900-21010-0320-030", "2 cpu - - 030200 900-21010-0320-030"}, "2 10de:2321"},
		{"a misspelt processor does not count beside its function", []string{"8 pci 10de 2330 030200", "8 hgx 10de - 030200 NVIDIA H100 PCIe"}, "8 10de:2330"},
		{"one function is not read yet", []string{"7 pci 10de 2330 030200", "pci - - -"}, ""},
		{"one function is not read yet, and the processors are", []string{"7 pci 10de 2330 030200", "pci - - -", "8 hgx 10de - 030200 H100 80GB HBM3"}, "8 10de:2330"},
		{"processors alone", []string{"8 hgx 10de - 030200 H100 80GB HBM3"}, "8 10de:2330"},
		{"the model is not told", []string{"8 hgx 10de - 030200 Graphics Device"}, "8 10de:"},
		{"one list names the model, one does not", []string{"8 cpu 10de - 030200 GPU", "8 hgx 10de - 030200 H100 80GB HBM3"}, "8 10de:2330"},
		{"cards beside a baseboard", []string{"2 pci 10de 26b9 030200", "8 chassis 10de 2330 -"}, "8 10de:2330, 2 10de:26b9"},
		{"AMD", []string{"8 pci 1002 74a1 120000"}, "8 1002:74a1"},
		{"not in the catalogue", []string{"pci 10de 2fff 030200"}, "1 10de:2fff"},
		{"no list", nil, ""},
		{"no GPU", []string{nic, console, "pci 102b 0536 030000"}, "none"},
		{"no GPU, and one device is not read yet", []string{nic, "pci - - -"}, ""},
		{"no GPU, and a baseboard that does not answer", []string{nic, "hgx - - -"}, ""},
		{"display controllers without ids", []string{nic, "pci - - 030000"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, source := gpus(hardware.Inventory{PCIDevices: devices(t, c.devices)})
			var got []string
			for _, g := range found {
				got = append(got, fmt.Sprintf("%d %s:%s", g.Count, g.VendorID, g.DeviceID))
			}
			if source == v1alpha1.SourceBMC && len(got) == 0 {
				got = []string{"none"}
			}
			if seen := strings.Join(got, ", "); seen != c.want {
				t.Errorf("GPUs %q, expected %q", seen, c.want)
			}
		})
	}
}

// devices parses devices as in "8 pci 10de 2330 030200 NAME"; "-" is a member that the BMC does not report.
func devices(t *testing.T, lines []string) []hardware.PCIDevice {
	var out []hardware.PCIDevice
	for _, line := range lines {
		count := 1
		if _, err := fmt.Sscanf(line, "%d ", &count); err == nil {
			_, line, _ = strings.Cut(line, " ")
		}
		words := append(strings.SplitN(line, " ", 5), "")
		if len(words) < 5 {
			t.Fatalf("%q has too few words", line)
		}
		for i, word := range words {
			if word == "-" {
				words[i] = ""
			}
		}
		d := hardware.PCIDevice{List: words[0], VendorID: words[1], DeviceID: words[2], Class: words[3], Model: words[4]}
		out = append(out, slices.Repeat([]hardware.PCIDevice{d}, count)...)
	}
	return out
}

func TestWhatNobodyCanTellKeepsWhatWasKnown(t *testing.T) {
	known := HostInventory(hardware.Inventory{PCIDevices: devices(t, []string{"8 pci 10de 2330 030200"})}, nil)
	silent := hardware.Inventory{Model: "new"}
	if again := HostInventory(silent, known); len(again.GPUs) != 1 || again.GPUSource != v1alpha1.SourceBMC || again.Model != "new" {
		t.Errorf("%+v", again)
	}
	if first := HostInventory(silent, nil); first.IsGPUCountKnown() {
		t.Errorf("%+v", first)
	}
	none := HostInventory(hardware.Inventory{DeviceSource: hardware.DevicesByAgent}, known)
	if !none.IsGPUCountKnown() || len(none.GPUs) != 0 {
		t.Errorf("the agent saw no GPU, and the record says %+v", none)
	}
	if back := HardwareInventory(none); back.DeviceSource != hardware.DevicesByAgent || !HostInventory(*back, nil).IsGPUCountKnown() {
		t.Errorf("%+v", back)
	}
}

func TestAGPULabelIsUnknownOnlyWhereNobodyCouldTell(t *testing.T) {
	record := func(lines ...string) *v1alpha1.HostRecord {
		return &v1alpha1.HostRecord{Status: v1alpha1.HostRecordStatus{Inventory: HostInventory(hardware.Inventory{PCIDevices: devices(t, lines)}, nil)}}
	}
	const count, model = v1alpha1.LabelGPUCount, v1alpha1.LabelGPUModel
	for _, c := range []struct {
		name         string
		record       *v1alpha1.HostRecord
		count, model bool
	}{
		{"a host without a record", nil, false, false},
		{"a host that was never inspected", &v1alpha1.HostRecord{}, true, true},
		{"a BMC that lists nothing", record(), true, true},
		{"no GPU", record("pci 15b3 1021 020000"), false, false},
		{"GPUs", record("8 pci 10de 2330 030200"), false, false},
		{"GPUs that the catalogue lacks", record("8 pci 10de 2fff 030200"), false, false},
		{"GPUs whose model the BMC does not tell", record("8 hgx 10de - 030200"), false, true},
	} {
		if c.count != IsLabelUnknown(c.record, count) || c.model != IsLabelUnknown(c.record, model) || IsLabelUnknown(c.record, "rack") {
			t.Errorf("%s: count %v, model %v, expected %v, %v", c.name, IsLabelUnknown(c.record, count), IsLabelUnknown(c.record, model), c.count, c.model)
		}
	}
}

func TestAnUnknownCountHasNoLabels(t *testing.T) {
	unknown := HostInventory(hardware.Inventory{}, nil)
	if l := GPULabelChange(map[string]string{"rack": "a"}, unknown); !l.IsEmpty() {
		t.Errorf("%+v", l)
	}
	l := GPULabelChange(map[string]string{v1alpha1.LabelGPUCount: "0", "rack": "a"}, unknown)
	if !slices.Equal(l.Remove, []string{v1alpha1.LabelGPUCount}) || len(l.Set) != 0 || !l.Warning || !strings.Contains(l.Message, "could not tell") {
		t.Errorf("%+v", l)
	}
}
