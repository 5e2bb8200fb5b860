package inventory

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestAHostIsLabelledByItsHardware(t *testing.T) {
	found := &v1alpha1.HostInventory{
		Manufacturer: "Dell Inc.", Model: "PowerEdge XE9680", Architecture: "x86_64", CPUModel: "Intel(R) Xeon(R) Platinum 8468", CPUSockets: 2, CPUCores: 96, NUMANodes: 4,
		MemoryBytes: 2000 << 30, MemoryModules: slices.Repeat([]v1alpha1.MemoryModule{{SizeBytes: 64 << 30}}, 32), TPMVersion: "2", BIOSVersion: "2.4.1", BMCVersion: "7.10.30.00",
		NICs: []v1alpha1.NICInventory{{SpeedMbps: 25000, Link: v1alpha1.LinkUp}, {SpeedMbps: 400000, Link: v1alpha1.LinkUp}, {SpeedMbps: 800000, Link: v1alpha1.LinkDown}},
		GPUs: []v1alpha1.GPUInventory{{VendorID: "10de", DeviceID: "2330", Count: 8, LinkWidth: 16}, {VendorID: "10de", DeviceID: "2331", Count: 1, LinkWidth: 8}},
	}
	want := map[string]string{
		v1alpha1.LabelManufacturer: "Dell-Inc", v1alpha1.LabelModel: "PowerEdge-XE9680", v1alpha1.LabelArchitecture: "amd64", v1alpha1.LabelCPUModel: "Intel-R-Xeon-R-Platinum-8468",
		v1alpha1.LabelCPUSockets: "2", v1alpha1.LabelCPUCores: "96", v1alpha1.LabelNUMANodes: "4", v1alpha1.LabelMemoryGiB: "2048", v1alpha1.LabelTPM: "2",
		v1alpha1.LabelBIOSVersion: "2.4.1", v1alpha1.LabelBMCVersion: "7.10.30.00", v1alpha1.LabelNICMaxGbps: "400", v1alpha1.LabelGPULinkWidth: "8", v1alpha1.LabelGPUCount: "9",
	}
	have := map[string]string{"rack": "a", v1alpha1.LabelTPM: "3"}
	l := HostLabelChange(have, found)
	for key, value := range want {
		if l.Set[key] != value {
			t.Errorf("%s=%s, expected %s", key, l.Set[key], value)
		}
		have[key] = value
	}
	if len(l.Set) != len(want) {
		t.Errorf("%v, expected no more than %v", l.Set, want)
	}
	if again := HostLabelChange(have, found); !again.IsEmpty() {
		t.Errorf("labelled already: %+v", again)
	}

	// What nobody can tell any more has no label, and a host that was never inspected keeps what it has.
	found.TPMVersion, found.GPUs[0].LinkWidth = "", 0
	if l := HostLabelChange(have, found); !slices.Equal(l.Remove, []string{v1alpha1.LabelGPULinkWidth, v1alpha1.LabelTPM}) || len(l.Set) != 0 || l.Reason != "" {
		t.Errorf("%+v", l)
	}
	if l := HostLabelChange(have, nil); !l.IsEmpty() {
		t.Errorf("%+v", l)
	}
}

func TestMemoryThatOnlyTheBMCToldIsALabelToo(t *testing.T) {
	if l := HostLabelChange(nil, &v1alpha1.HostInventory{MemoryBytes: 512 << 30}); l.Set[v1alpha1.LabelMemoryGiB] != "512" {
		t.Errorf("%+v", l)
	}
}

func FuzzLabelValue(f *testing.F) {
	for _, text := range []string{"", "Dell Inc.", "--", "ü", "(R)", strings.Repeat("a-", 80), "To be filled by O.E.M."} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if problems := validation.IsValidLabelValue(labelValue(text)); len(problems) > 0 {
			t.Errorf("%q gives %q: %v", text, labelValue(text), problems)
		}
	})
}
