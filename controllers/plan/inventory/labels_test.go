package inventory

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/presentation/catalogue"
)

// device is one GPU on the PCI bus.
func device(id string) hardware.PCIDevice {
	return hardware.PCIDevice{VendorID: "10DE", DeviceID: id, Class: "030200"}
}

func TestTheLabelsOfAHostSayWhichGPUsInspectionFound(t *testing.T) {
	const model, count = v1alpha1.LabelGPUModel, v1alpha1.LabelGPUCount
	h100 := slices.Repeat([]hardware.PCIDevice{device("2330")}, 8)
	for _, c := range []struct {
		name    string
		have    map[string]string
		found   []hardware.PCIDevice
		want    map[string]string
		warning bool
		says    string // empty: nothing changes
	}{
		{"new", nil, h100, map[string]string{model: "H100-SXM5-80GB", count: "8"}, false, "gpu.ingot.dev/count=8, gpu.ingot.dev/model=H100-SXM5-80GB"},
		{"labelled already", map[string]string{model: "H100-SXM5-80GB", count: "8", "rack": "a"}, h100, map[string]string{model: "H100-SXM5-80GB", count: "8", "rack": "a"}, false, ""},
		{"a GPU was lost", map[string]string{model: "H100-SXM5-80GB", count: "8"}, h100[1:], map[string]string{model: "H100-SXM5-80GB", count: "7"}, true, "said gpu.ingot.dev/count=8"},
		{"a person's value", map[string]string{model: "B200", count: "8"}, h100, map[string]string{model: "H100-SXM5-80GB", count: "8"}, true, "said gpu.ingot.dev/model=B200"},
		{"not in the catalogue", nil, []hardware.PCIDevice{device("2fff")}, map[string]string{count: "1"}, true, "PCI id 10de:2fff is not in Ingot's catalogue"},
		{"a person named what the catalogue lacks", map[string]string{model: "X1", count: "1"}, []hardware.PCIDevice{device("2fff")}, map[string]string{count: "1"}, true, "said gpu.ingot.dev/model=X1"},
		{"two models", nil, append([]hardware.PCIDevice{device("20b2")}, h100...), map[string]string{count: "9"}, true, "the models differ: 1 A100-SXM4-80GB, 8 H100-SXM5-80GB"},
		{"one known, one not", nil, append([]hardware.PCIDevice{device("2fff")}, h100...), map[string]string{count: "9"}, true, "10de:2fff"},
		{"one model under two ids", nil, []hardware.PCIDevice{device("20b1"), device("20f1")}, map[string]string{model: "A100-PCIe-40GB", count: "2"}, false, "A100-PCIe-40GB"},
		{"no GPU", nil, []hardware.PCIDevice{{VendorID: "8086", DeviceID: "1572", Class: "020000"}}, map[string]string{count: "0"}, false, "gpu.ingot.dev/count=0"},
	} {
		l := GPULabelChange(c.have, HostInventory(hardware.Inventory{PCIDevices: c.found, DeviceSource: hardware.DevicesByBMC}, nil))
		got := maps.Clone(c.have)
		if got == nil {
			got = map[string]string{}
		}
		maps.Copy(got, l.Set)
		for _, key := range l.Remove {
			delete(got, key)
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: labels %v, want %v", c.name, got, c.want)
		}
		if (l.Message == "") != (c.says == "") || l.IsEmpty() != (c.says == "") || l.Warning != c.warning || !strings.Contains(l.Message, c.says) {
			t.Errorf("%s: %+v, want %q", c.name, l, c.says)
		}
	}
}

func TestAHostThatWasNeverInspectedKeepsItsLabels(t *testing.T) {
	if l := GPULabelChange(map[string]string{v1alpha1.LabelGPUModel: "anything"}, nil); !l.IsEmpty() || l.Message != "" {
		t.Errorf("%+v", l)
	}
}

func TestEveryModelOfTheCatalogueCanBeALabel(t *testing.T) {
	for _, m := range catalogue.Models() {
		if problems := validation.IsValidLabelValue(m.Name); len(problems) > 0 {
			t.Errorf("%s: %v", m.Name, problems)
		}
	}
}
