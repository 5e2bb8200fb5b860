package pci

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

func bus(kernel, id string, manager bool) (*Bus, *Device) {
	b := New(Options{
		Devices: []hardware.PCIDevice{{Address: "0000:12:00.0", VendorID: "10de", DeviceID: id, Class: "030200"}},
		Kernel:  kernel, Arguments: []string{"intel_iommu=on"}, VGPUManager: manager,
		VGPUTypes: func(string) []VGPUType {
			return []VGPUType{{ID: 7, Name: "NVIDIA L40S-24Q", Max: 2}, {ID: 8, Name: "NVIDIA L40S-48Q", Max: 1}}
		},
	})
	b.LoadModule("nvidia", nil)
	return b, b.Find("0000:12:00.0")
}

func TestAVirtualFunctionTakesATypeThatIsLeft(t *testing.T) {
	b, gpu := bus("6.8.0-31-generic", "26b9", true)
	if err := b.EnableVirtualFunctions(); err != nil || len(gpu.VirtualFunctions) == 0 {
		t.Fatal(err)
	}
	file := func(n int, name string) string {
		return fmt.Sprintf("%s/%s/virtfn%d/nvidia/%s", devicesFolder, gpu.Address, n, name)
	}
	for n, want := range []string{"", "", "not creatable"} {
		err := b.WriteFile(file(n, "current_vgpu_type"), []byte("7\n"))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("function %d: %v", n, err)
		}
	}
	if err := b.WriteFile(file(3, "current_vgpu_type"), []byte("8\n")); err == nil {
		t.Error("types of two sizes share a GPU")
	}
	if text, err := b.ReadFile(file(0, "current_vgpu_type")); err != nil || string(text) != "7\n" || b.VGPUTypeName(gpu.VirtualFunctions[0]) != "NVIDIA L40S-24Q" {
		t.Errorf("%q: %v", text, err)
	}
	if err := b.WriteFile(file(0, "current_vgpu_type"), []byte("0\n")); err != nil || gpu.VirtualFunctions[0].VGPUType != 0 {
		t.Errorf("a type is not taken back: %v", err)
	}
	if list, err := b.List(devicesFolder + "/" + gpu.Address); err != nil || !slices.Contains(list, "virtfn0") || !slices.Contains(list, "vendor") || slices.Contains(list, "physfn") {
		t.Errorf("%q: %v", list, err)
	}
	if err := b.CreateMediatedDevices(gpu, map[string]int{"L40S-24Q": 1}); err == nil {
		t.Error("a mediated device on a kernel that has none")
	}
	b.UnloadModule("nvidia")
	if gpu.Driver != "" || len(gpu.VirtualFunctions) > 0 {
		t.Error("functions outlive their driver")
	}
}

func TestMediatedDevicesTakeTheManagerAndWhatTheKernelHas(t *testing.T) {
	one := map[string]int{"L40S-24Q": 2}
	for name, test := range map[string]struct {
		kernel, id string
		manager    bool
		functions  bool
		types      map[string]int
		well       bool
	}{
		"all is there":       {"5.15.0", "26b9", true, true, one, true},
		"no functions":       {"5.15.0", "26b9", true, false, one, false},
		"Turing needs none":  {"6.12.0", "1eb8", true, false, one, true},
		"a newer kernel":     {"6.8.0", "26b9", true, true, one, false},
		"no manager":         {"5.15.0", "26b9", false, true, one, false},
		"more than fit":      {"5.15.0", "26b9", true, true, map[string]int{"L40S-24Q": 3}, false},
		"an unheard-of type": {"5.15.0", "26b9", true, true, map[string]int{"L40S-7Q": 1}, false},
	} {
		b, gpu := bus(test.kernel, test.id, test.manager)
		if test.functions {
			_ = b.EnableVirtualFunctions() // without the manager there are none, as the next line finds
		}
		if err := b.CreateMediatedDevices(gpu, test.types); (err == nil) != test.well || len(gpu.MediatedDevices) > 0 != test.well {
			t.Errorf("%s: %v, %q", name, err, gpu.MediatedDevices)
		}
	}
}

func TestVFIOTakesWhatItsParameterNames(t *testing.T) {
	b := New(Options{Devices: []hardware.PCIDevice{{Address: "0000:12:00.0", VendorID: "10de", DeviceID: "2236", Class: "030200"}}, IOMMU: true})
	b.LoadModule("vfio_pci", map[string]string{"ids": "10de:2330,10DE:2236"})
	b.LoadModule("nvidia", nil)
	if d := b.Find("0000:12:00.0"); d.Driver != VFIO {
		t.Errorf("held by %q", d.Driver)
	}
	for _, path := range []string{"/sys/bus/pci/devices/0000:99:00.0/vendor", "/sys/bus/pci/devices/0000:12:00.0/nothing"} {
		if _, err := b.ReadFile(path); err == nil {
			t.Errorf("%s is there", path)
		}
	}
}
