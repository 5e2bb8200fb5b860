package passthrough_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/passthrough"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/test/requests"
	"github.com/ingot-dev/ingot/test/require"
)

func TestGPUsOfVirtualMachinesAreNamedAndPermittedAsTheDevicePluginHasThem(t *testing.T) {
	for name, want := range map[string]string{
		"h100-vm":          "nvidia.com/GH100_H100_PCIE=2 10DE:2331",
		"gh200-vm":         "nvidia.com/GH100_GH200_120GB___480GB=1 10DE:2342",
		"a10-vm-addresses": "nvidia.com/GA102GL_A10=2 10DE:2236",
		"b300-vm":          "nvidia.com/3182=8 10DE:3182",
	} {
		r := requests.All()[name]
		r.Resources = nil
		resolved, err := presentation.Resolve(r)
		if err != nil {
			t.Fatal(err)
		}
		e := resolved.Expectation
		got := fmt.Sprintf("%s=%s", e.Resources[0].Name, e.Resources[0].Quantity.String())
		for _, d := range resolved.Tenant.HostDevices {
			got += " " + d.PCISelector
			if diff := cmp.Diff(v1alpha1.PermittedHostDevice{PCISelector: d.PCISelector, ResourceName: string(e.Resources[0].Name), External: true}, d); diff != "" {
				t.Error(diff)
			}
		}
		if got != want || resolved.NodeLabels["nvidia.com/gpu.workload.config"] != "vm-passthrough" || !e.IsForeign("nvidia.com/gpu") {
			t.Errorf("%s: %s, want %s; labels %v", name, got, want, resolved.NodeLabels)
		}
	}
}

func TestRequestsThatVirtualMachinesCannotUseAreRefused(t *testing.T) {
	for sentence, tt := range map[string]struct {
		base         string
		change       func(*spec.Request)
		reason, rule string
	}{
		"no IOMMU":                    {"h100-vm", func(r *spec.Request) { r.Image.KernelArguments = []string{"modprobe.blacklist=nouveau"} }, "KernelArgumentMissing", "image/iommu"},
		"nouveau":                     {"h100-vm", func(r *spec.Request) { r.Image.KernelArguments = []string{"intel_iommu=on"} }, "KernelArgumentMissing", "image/kernel-arguments"},
		"a driver":                    {"h100-vm", func(r *spec.Request) { r.Image.Software.GPUDriver = requests.H100().Image.Software.GPUDriver }, "PresentationInvalid", "image/driver-unwanted"},
		"a driver from packages":      {"h100-vm", func(r *spec.Request) { r.GPU.Driver.Source = "Packages" }, "PresentationInvalid", "vm/driver-source"},
		"claims":                      {"h100-vm", func(r *spec.Request) { r.GPU.Presentation.Passthrough.Advertise = "DRA" }, "PresentationInvalid", "vm/advertise"},
		"sharing":                     {"h100-vm", func(r *spec.Request) { r.GPU.Presentation.Passthrough.Sharing = &v1alpha1.SharingSpec{} }, "PresentationInvalid", "vm/sharing"},
		"fewer addresses than GPUs":   {"a10-vm-addresses", func(r *spec.Request) { r.GPU.Count = 3 }, "PresentationInvalid", "vm/addresses"},
		"an address twice":            {"a10-vm-addresses", func(r *spec.Request) { r.GPU.Presentation.Passthrough.Addresses[1] = "0000:17:00.0" }, "PresentationInvalid", "vm/addresses"},
		"no address":                  {"a10-vm-addresses", func(r *spec.Request) { r.GPU.Presentation.Passthrough.Addresses[1] = "17:00.0" }, "PresentationInvalid", "vm/addresses"},
		"a name that nobody knows":    {"b300-vm", func(r *spec.Request) { r.GPU.Presentation.Passthrough.ResourceName = "" }, "PresentationInvalid", "vm/resource-name"},
		"two names":                   {"h100-vm", func(r *spec.Request) { r.GPU.Model = "H100-SXM5-96GB" }, "PresentationInvalid", "vm/resource-name"},
		"GPUs of containers promised": {"h100-vm", func(r *spec.Request) { r.Resources["nvidia.com/gpu"] = resource.MustParse("2") }, "ResourcesDisagree", "promise/gpu"},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := requests.All()[tt.base]
			tt.change(&r)
			var refusal *spec.Refusal
			if _, err := presentation.Resolve(r); !errors.As(err, &refusal) || refusal.Reason != tt.reason || refusal.Rule != tt.rule {
				t.Fatalf("error %v, want a *Refusal with %s, %s", err, tt.reason, tt.rule)
			}
		})
	}
}

// TestARefusalNamesTheResourcesOfTheModelItself: an H100 with 96 GB is sold under two PCI ids, which the plugin's file names differently.
func TestARefusalNamesTheResourcesOfTheModelItself(t *testing.T) {
	for model, want := range map[string][]string{
		"H100-SXM5-96GB":    {"nvidia.com/GH100_H100_96GB with that of 1.6.0", "nvidia.com/GH100_H100_SXM5_96GB with that of 1.6.0"},
		"B300-SXM-269GB":    {"nvidia.com/3182 with a file"},
		"GB300-278GB":       {"nvidia.com/31c2 with a file"},
		"H800-PCIe-80GB":    nil,
		"H100-NVL-94GB":     nil,
		"L40-48GB":          nil,
		"A800-PCIe-80GB":    nil,
		"H20-SXM5-96GB":     nil,
		"A16-16GB":          nil,
		"A800-PCIe-40GB":    nil,
		"A100-PCIe-40GB":    nil, // two PCI ids of one name
		"H20-3e-SXM5-141GB": nil,
	} {
		r := requests.All()["h100-vm"]
		r.GPU.Model, r.Resources = model, nil
		_, err := presentation.Resolve(r)
		if (err == nil) != (want == nil) {
			t.Errorf("%s: error %v", model, err)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want %s", model, err, part)
			}
		}
		if err != nil && model != "B300-SXM-269GB" && strings.Contains(err.Error(), "3182") {
			t.Errorf("%s: %v names another model's resource", model, err)
		}
	}
}

// TestTheBindScriptSucceedsOnlyWhenEveryGPUIsBound runs the script over a directory in the place of sysfs, in
// which nothing moves: what is bound otherwise stays so.
func TestTheBindScriptSucceedsOnlyWhenEveryGPUIsBound(t *testing.T) {
	shell := require.Tool(t, "sh", "apt-get install -y dash")
	for sentence, tt := range map[string]struct {
		name    string
		drivers map[string]string
		well    bool
	}{
		"all are held":                {"h100-vm", map[string]string{"0000:17:00.0": "vfio-pci", "0000:18:00.0": "vfio-pci"}, true},
		"one is another driver's":     {"h100-vm", map[string]string{"0000:17:00.0": "vfio-pci", "0000:18:00.0": "nvidia"}, false},
		"one is missing":              {"h100-vm", map[string]string{"0000:17:00.0": "vfio-pci"}, false},
		"one too many":                {"h100-vm", map[string]string{"0000:17:00.0": "vfio-pci", "0000:18:00.0": "vfio-pci", "0000:19:00.0": "vfio-pci"}, false},
		"the named ones are held":     {"a10-vm-addresses", map[string]string{"0000:17:00.0": "vfio-pci", "0000:65:00.0": "vfio-pci", "0000:66:00.0": "nvidia"}, true},
		"a named one is not there":    {"a10-vm-addresses", map[string]string{"0000:17:00.0": "vfio-pci"}, false},
		"the vendor's own on a Grace": {"gh200-vm", map[string]string{"0009:01:00.0": "nvgrace_gpu_vfio_pci"}, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := requests.All()[tt.name]
			resolved, err := presentation.Resolve(r)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			id := strings.ToLower(strings.TrimPrefix(resolved.Tenant.HostDevices[0].PCISelector, "10DE:"))
			write := func(path, text string) {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for address, driver := range tt.drivers {
				write("bus/pci/drivers/"+driver+"/unbind", "")
				write("bus/pci/devices/"+address+"/vendor", "0x10de\n")
				write("bus/pci/devices/"+address+"/device", "0x"+id+"\n")
				if err := os.Symlink(filepath.Join(dir, "bus/pci/drivers", driver), filepath.Join(dir, "bus/pci/devices", address, "driver")); err != nil {
					t.Fatal(err)
				}
			}
			write("bus/pci/devices/0000:00:00.0/vendor", "0x8086\n")
			write("bus/pci/devices/0000:00:00.0/device", "0x1234\n")
			write("bin/modprobe", "#!/bin/sh\n")
			write("script", strings.ReplaceAll(resolved.Files[0].Content, "/sys/", dir+"/"))
			cmd := exec.Command(shell, filepath.Join(dir, "script"))
			cmd.Env = []string{"PATH=" + dir + "/bin:/usr/bin:/bin"}
			if out, err := cmd.CombinedOutput(); (err == nil) != tt.well {
				t.Errorf("the script ended with %v: %s", err, out)
			}
		})
	}
}

func FuzzPCIAddress(f *testing.F) {
	for _, seed := range []string{"0000:17:00.0", "0000:17:1f.7", "0000:17:20.0", "17:00.0", "0000:17:00.8", "0000:1G:00.0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var domain, bus, device, function uint
		n, err := fmt.Sscanf(s, "%04x:%02x:%02x.%1x", &domain, &bus, &device, &function)
		want := err == nil && n == 4 && device < 32 && function < 8 && fmt.Sprintf("%04x:%02x:%02x.%x", domain, bus, device, function) == s
		if passthrough.IsPCIAddress(s) != want {
			t.Errorf("%q is a PCI address: %v, want %v", s, passthrough.IsPCIAddress(s), want)
		}
	})
}
