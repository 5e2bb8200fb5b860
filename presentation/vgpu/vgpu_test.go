package vgpu_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/test/requests"
	"github.com/ingot-dev/ingot/test/require"
)

func TestVirtualGPUsAreNamedAndPermittedByTheirFramework(t *testing.T) {
	for name, want := range map[string]string{
		"a100-vgpu":          "nvidia.com/NVIDIA_A100-20C=4; mdev NVIDIA A100-20C true",
		"a100-vgpu-mig":      "nvidia.com/NVIDIA_A100-1-5C=8 nvidia.com/NVIDIA_A100-3-20C=2; mdev NVIDIA A100-1-5C true; mdev NVIDIA A100-3-20C true",
		"t4-vgpu":            "nvidia.com/GRID_T4-4Q=8; mdev GRID T4-4Q true",
		"l40s-vgpu-vfio":     "nvidia.com/NVIDIA_L40S-24Q=4; pci 10DE:26B9 false; experimental/vendor-vfio",
		"a40-vgpu-operator":  "nvidia.com/NVIDIA_A40-12Q=8; mdev NVIDIA A40-12Q true",
		"a40-vgpu-guest":     "nvidia.com/gpu=1",
		"h100-vgpu-nvswitch": "nvidia.com/NVIDIA_H100XM-80C=8; mdev NVIDIA H100XM-80C true; unverified/vgpu-nvswitch",
	} {
		r := requests.All()[name]
		r.Resources = nil
		plan, err := presentation.Resolve(r)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range plan.Expectation.Resources {
			names = append(names, fmt.Sprintf("%s=%s", r.Name, r.Quantity.String()))
		}
		got := strings.Join(names, " ")
		for _, d := range plan.Tenant.HostDevices {
			kind := "mdev " + d.MdevName
			if d.PCISelector != "" {
				kind = "pci " + d.PCISelector
			}
			got += fmt.Sprintf("; %s %t", kind, d.External)
		}
		for _, w := range plan.Warnings {
			got += "; " + w.Rule
		}
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestTheVGPUDeviceManagerReadsTheTypes(t *testing.T) {
	var config struct {
		Version string `json:"version"`
		Configs map[string][]struct {
			Devices string         `json:"devices"`
			VGPUs   map[string]int `json:"vgpu-devices"`
		} `json:"vgpu-configs"`
	}
	plan, err := presentation.Resolve(requests.All()["a100-vgpu-mig"])
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict([]byte(plan.Files[1].Content), &config); err != nil || fmt.Sprint(config.Configs["ingot"][0].VGPUs) != "map[A100-1-5C:4 A100-3-20C:1]" {
		t.Errorf("the configuration: %v: %s", err, plan.Files[1].Content)
	}
	byOperator, err := presentation.Resolve(requests.All()["a40-vgpu-operator"])
	if err != nil {
		t.Fatal(err)
	}
	tenant := byOperator.Tenant.VGPUConfig
	if err := yaml.UnmarshalStrict([]byte(tenant.Content), &config); err != nil || len(config.Configs[tenant.Name]) != 1 || byOperator.NodeLabels["nvidia.com/vgpu.config"] != tenant.Name {
		t.Errorf("the operator's configuration: %v: %s, and the node names %v", err, tenant.Content, byOperator.NodeLabels)
	}
}

// TestSmallTypesShareTheInstancesOfAGraphicsGPU: the device manager makes the MIG instances by the names of its configuration, and KubeVirt knows the types.
func TestSmallTypesShareTheInstancesOfAGraphicsGPU(t *testing.T) {
	for ordered, want := range map[string]string{
		"DC-1-12C=8":               `"DC-1-12CGFX": 8`,
		"DC-1-24QGFX=4":            `"DC-1-24QGFX": 4`,
		"DC-1-24Q=2 DC-2-12Q=4":    `"DC-1-24QGFX": 2` + "\n      " + `"DC-2-12QGFX": 4`,
		"DC-1-3Q=9 DC-2-48C=1":     `"DC-1-3QGFX": 9` + "\n      " + `"DC-2-48CGFX": 1`,
		"DC-1-3Q=17 DC-2-48C=1":    "do not fit",
		"DC-1-24Q=3 DC-2-12Q=1":    "do not fit",
		"DC-1-24Q=1 DC-1-24QGFX=1": "twice",
		"DC-1-12C=9":               "1 to 8",
	} {
		types := map[string]int32{}
		for _, word := range strings.Fields(ordered) {
			name, count, _ := strings.Cut(word, "=")
			n, err := strconv.Atoi(count)
			if err != nil {
				t.Fatal(err)
			}
			types[name] = int32(n)
		}
		plan, err := presentation.Resolve(requests.VGPUHost("RTX-PRO-6000-Blackwell-Server-96GB", "5.15.0", types, func(r *spec.Request) { r.Image.Software.GPUDriver.Version = "595.91.07" }))
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", ordered, err)
			}
			continue
		}
		if content := plan.Files[1].Content; !strings.Contains(content, want) {
			t.Errorf("%s: %s", ordered, content)
		}
		for _, r := range plan.Expectation.Resources {
			if strings.HasSuffix(string(r.Name), "GFX") {
				t.Errorf("%s: no device plugin advertises %s", ordered, r.Name)
			}
		}
	}
}

func TestEveryVGPUTypeOfEveryModelResolves(t *testing.T) {
	for _, m := range catalogue.Models() {
		for _, v := range m.VGPUTypes() {
			r := requests.VGPUHost(m.Name, "5.15.0", map[string]int32{v.Name: int32(v.Max)}, func(r *spec.Request) {
				r.Image.Software.GPUDriver.Version, r.GPU.Presentation.VGPU.NamePrefix = "595.91.07", "NVIDIA"
			})
			if _, err := presentation.Resolve(r); err != nil {
				t.Errorf("%d of %s: %v", v.Max, v.Name, err)
			}
		}
	}
}

func TestImpossibleVirtualGPUsAreRefused(t *testing.T) {
	types := func(types map[string]int32) func(*spec.Request) {
		return func(r *spec.Request) { r.GPU.Presentation.VGPU.Types = types }
	}
	for sentence, tt := range map[string]struct {
		base         string
		change       func(*spec.Request)
		reason, rule string
		says         string
	}{
		"another model's type":          {"a100-vgpu", types(map[string]int32{"A100D-20C": 2}), "PresentationInvalid", "vgpu/type", "A100-40C"},
		"no type":                       {"a100-vgpu", types(nil), "PresentationInvalid", "vgpu/type", "A100-40C"},
		"more than there can be":        {"a100-vgpu", types(map[string]int32{"A100-20C": 3}), "PresentationInvalid", "vgpu/count", "1 to 2"},
		"two sizes":                     {"a100-vgpu", types(map[string]int32{"A100-20C": 1, "A100-10C": 1}), "PresentationInvalid", "vgpu/equal-size", "one size"},
		"time and instances":            {"a100-vgpu", types(map[string]int32{"A100-20C": 1, "A100-1-5C": 1}), "PresentationInvalid", "vgpu/mixed-kinds", "not both"},
		"instances that do not fit":     {"a100-vgpu-mig", types(map[string]int32{"A100-3-20C": 2, "A100-1-5C": 1}), "PresentationInvalid", "vgpu/memory-slices", "9 memory slices"},
		"a model without types":         {"a100-vgpu", func(r *spec.Request) { r.GPU.Model = "GB300-278GB"; r.Image.Software.GPUDriver.Version = "595.91.07" }, "PresentationInvalid", "vgpu/type", "no vGPU type"},
		"a plain driver":                {"a100-vgpu", func(r *spec.Request) { r.Image.Software.GPUDriver.Kind = "" }, "DriverMissing", "image/driver-kind", "VGPUManager"},
		"no device manager":             {"a100-vgpu", func(r *spec.Request) { r.Image.Software.VGPUDeviceManager = "" }, "PresentationInvalid", "image/vgpu-device-manager", "nvidia-vgpu-dm"},
		"no IOMMU":                      {"a100-vgpu", func(r *spec.Request) { r.Image.KernelArguments = requests.H100().Image.KernelArguments }, "KernelArgumentMissing", "image/iommu", "amd_iommu=on"},
		"packages":                      {"a40-vgpu-operator", func(r *spec.Request) { r.GPU.Driver.Source = "Packages" }, "PresentationInvalid", "vgpu/driver-source", "Operator"},
		"a kernel that leaves it open":  {"a100-vgpu", func(r *spec.Request) { r.Image.OS.Kernel = "6.8.0" }, "PresentationInvalid", "vgpu/framework", "vgpu.framework: it is missing"},
		"a kernel that nobody names":    {"l40s-vgpu-vfio", func(r *spec.Request) { r.Image.OS.Kernel = "" }, "PresentationInvalid", "vgpu/framework", "os.kernel"},
		"mediated devices that are not": {"l40s-vgpu-vfio", func(r *spec.Request) { r.GPU.Presentation.VGPU.Framework = "Mdev" }, "PresentationInvalid", "vgpu/framework", "VendorVFIO"},
		"functions of an old kernel":    {"a100-vgpu", func(r *spec.Request) { r.GPU.Presentation.VGPU.Framework = "VendorVFIO" }, "PresentationInvalid", "vgpu/framework", "use Mdev"},
		"functions of an old GPU":       {"t4-vgpu", func(r *spec.Request) { r.GPU.Presentation.VGPU.Framework = "VendorVFIO" }, "PresentationInvalid", "vgpu/framework", "no virtual functions"},
		"functions with instances":      {"l40s-vgpu-vfio", func(r *spec.Request) { r.GPU.Model = "H100-PCIe-80GB"; types(map[string]int32{"H100-1-10C": 7})(r) }, "PresentationInvalid", "vgpu/vendor-vfio", "shares the GPU in time"},
		"functions by the operator":     {"a40-vgpu-operator", func(r *spec.Request) { r.Image.OS.Kernel, r.GPU.Presentation.VGPU.Framework = "6.8.0", "VendorVFIO" }, "PresentationInvalid", "vgpu/vendor-vfio", "mediated devices only"},
		"a word that nobody names":      {"t4-vgpu", func(r *spec.Request) { r.GPU.Presentation.VGPU.NamePrefix = "" }, "PresentationInvalid", "vgpu/name-prefix", "GRID"},
		"neither host nor guest":        {"a100-vgpu", func(r *spec.Request) { r.GPU.Presentation.VGPU.Role = "Both" }, "PresentationInvalid", "vgpu/role", "Both"},
		"nothing said":                  {"a100-vgpu", func(r *spec.Request) { r.GPU.Presentation.VGPU = nil }, "PresentationInvalid", "vgpu/missing", "role"},
		"a guest without a licence":     {"a40-vgpu-guest", func(r *spec.Request) { r.GPU.Presentation.VGPU.Licence = nil }, "PresentationInvalid", "vgpu/licence", "Secret"},
		"a feature that is none":        {"a40-vgpu-guest", func(r *spec.Request) { r.GPU.Presentation.VGPU.Licence.FeatureType = 3 }, "PresentationInvalid", "vgpu/feature-type", "RTX"},
		"a guest of the operator's":     {"a40-vgpu-guest", requests.WithOperatorDriver("550.163.02"), "PresentationInvalid", "vgpu/driver-source", "licensingConfig"},
		"a guest with a plain driver":   {"a40-vgpu-guest", func(r *spec.Request) { r.Image.Software.GPUDriver.Kind = "GPU" }, "DriverMissing", "image/driver-kind", "VGPUGuest"},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := requests.All()[tt.base]
			tt.change(&r)
			_, err := presentation.Resolve(r)
			requests.CheckRefusal(t, err, tt.reason, tt.rule, tt.says)
		})
	}
}

func TestAGuestHasItsTokenFromTheSecretAndWaitsForItsLicence(t *testing.T) {
	shell := require.Tool(t, "sh", "apt-get install -y dash")
	plan, err := presentation.Resolve(requests.VGPUGuest())
	if err != nil {
		t.Fatal(err)
	}
	if s := plan.SecretFiles; len(s) != 1 || s[0].Secret != "licence" || s[0].Key != "client_configuration_token.tok" || s[0].Mode != "0600" || !strings.Contains(plan.Files[1].Content, "FeatureType=4\n") {
		t.Errorf("the licence: %+v, %s", plan.SecretFiles, plan.Files[1].Content)
	}
	for sentence, tt := range map[string]struct {
		token, state string
		well         bool
	}{
		"licensed":   {"token", "    License Status                    : Licensed (Expiry: Permanent)", true},
		"unlicensed": {"token", "    License Status                    : Unlicensed (Restricted)", false},
		"no token":   {"", "    License Status                    : Licensed", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string]string{
				"token": tt.token, "nvidia-smi": "#!/bin/sh\necho '" + tt.state + "'\n", "sleep": "#!/bin/sh\n",
				"script": strings.NewReplacer(plan.SecretFiles[0].Path, filepath.Join(dir, "token"), "-gt 60", "-gt 2").Replace(plan.Files[0].Content),
			} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command(shell, filepath.Join(dir, "script"))
			cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin"}
			if out, err := cmd.CombinedOutput(); (err == nil) != tt.well {
				t.Errorf("the script ended with %v: %s", err, out)
			}
		})
	}
}

func TestFunctionsGetTheTypeThatTheDriverListsForThem(t *testing.T) {
	shell := require.Tool(t, "sh", "apt-get install -y dash")
	plan, err := presentation.Resolve(requests.All()["l40s-vgpu-vfio"])
	if err != nil {
		t.Fatal(err)
	}
	for sentence, tt := range map[string]struct {
		list string
		well bool
	}{
		"listed":                  {"ID    : vGPU Name\n1155  : NVIDIA L40S-2Q\n1159  : NVIDIA L40S-24Q\n1160  : NVIDIA L40S-48Q\n", true},
		"listed without a vendor": {"1159 : L40S-24Q\n", true},
		"not listed":              {"1155 : NVIDIA L40S-2Q\n", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			dir := t.TempDir()
			write := func(path, text string) {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for g := range 2 {
				for f := range 3 {
					gpu := fmt.Sprintf("bus/pci/devices/0000:%d0:00.0/", g+1)
					write(gpu+"vendor", "0x10de\n")
					write(gpu+"device", "0x26b9\n")
					write(fmt.Sprintf("%svirtfn%d/nvidia/current_vgpu_type", gpu, f), "0\n")
					write(fmt.Sprintf("%svirtfn%d/nvidia/creatable_vgpu_types", gpu, f), tt.list)
				}
			}
			write("sriov-manage", "#!/bin/sh\n")
			write("script", strings.NewReplacer("/sys/", dir+"/", "/usr/lib/nvidia/", dir+"/").Replace(plan.Files[0].Content))
			out, err := exec.Command(shell, filepath.Join(dir, "script")).CombinedOutput()
			if (err == nil) != tt.well {
				t.Fatalf("the script ended with %v: %s", err, out)
			}
			for f, want := range []string{"1159\n", "1159\n", "0\n"} {
				path := filepath.Join(dir, fmt.Sprintf("bus/pci/devices/0000:20:00.0/virtfn%d/nvidia/current_vgpu_type", f))
				if got, err := os.ReadFile(path); tt.well && (err != nil || string(got) != want) {
					t.Errorf("function %d has the type %q, want %q: %v", f, got, want, err)
				}
			}
		})
	}
}
