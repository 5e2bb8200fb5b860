package nvidia_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/test/requests"
)

func TestASharedGPUIsAdvertisedOnceForEachReplica(t *testing.T) {
	for name, want := range map[string]string{"h100-time-slicing": "nvidia.com/gpu=32 time-slicing 4", "l40s-mps": "nvidia.com/gpu=32 mps 8", "t4-operator-mps": "nvidia.com/gpu=8 mps 4"} {
		r := requests.All()[name]
		r.Resources = nil
		plan, err := presentation.Resolve(r)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%s=%s", plan.Expectation.Resources[0].Name, plan.Expectation.Resources[0].Quantity.String())
		for _, key := range []string{"nvidia.com/gpu.sharing-strategy", "nvidia.com/gpu.replicas"} {
			i := slices.IndexFunc(plan.Expectation.Labels, func(l v1alpha1.ExpectedLabel) bool { return l.Key == key })
			got += " " + plan.Expectation.Labels[i].Value
		}
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		var config struct {
			Version string                    `json:"version"`
			Sharing map[string]map[string]any `json:"sharing"`
		}
		if err := yaml.UnmarshalStrict([]byte(plan.Tenant.PluginConfig.Content), &config); err != nil || config.Version != "v1" || len(config.Sharing) != 1 {
			t.Errorf("%s: the device plugin's configuration: %v: %s", name, err, plan.Tenant.PluginConfig.Content)
		}
		if plan.NodeLabels["nvidia.com/device-plugin.config"] != plan.Tenant.PluginConfig.Name {
			t.Errorf("%s: the node names another configuration than the tenant has: %v", name, plan.NodeLabels)
		}
	}
}

func TestTheSoftwareThatLinksTheGPUsIsSetUp(t *testing.T) {
	for name, want := range map[string]string{
		"b200-sxm-8":      "nvidia-persistenced.service nvidia-fabricmanager.service ingot-gpu-report.service ingot-gpu-mode.service; mlx5_core mlx5_ib ib_umad nvidia nvidia_uvm nvidia_modeset; masks IMEX: false; unsure: false",
		"gb200-4":         "nvidia-persistenced.service ingot-gpu-report.service ingot-gpu-mode.service; nvidia nvidia_uvm nvidia_modeset; masks IMEX: true; unsure: false",
		"gb300-imex-host": "nvidia-persistenced.service nvidia-imex.service ingot-gpu-report.service ingot-gpu-mode.service; nvidia nvidia_uvm nvidia_modeset; masks IMEX: false; unsure: true",
	} {
		plan, err := presentation.Resolve(requests.All()[name])
		if err != nil {
			t.Fatal(err)
		}
		var units []string
		for _, u := range plan.Units {
			units = append(units, u.Name)
		}
		got := fmt.Sprintf("%s; %s; masks IMEX: %t; unsure: %t", strings.Join(units, " "), strings.Join(plan.Modules.Load, " "),
			strings.Contains(plan.Files[0].Content, "systemctl mask nvidia-imex.service"), len(plan.Warnings) > 0)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestADriverSourceThatContradictsTheRequestIsRefused(t *testing.T) {
	for sentence, tt := range map[string]struct {
		base         string
		change       func(*spec.Request)
		reason, rule string
	}{
		"two drivers":                       {"a100-operator", func(r *spec.Request) { r.Image = requests.H100().Image }, "PresentationInvalid", "driver/two"},
		"a driver that is too old":          {"a100-operator", func(r *spec.Request) { r.GPU.Driver.Version = "440.33" }, "DriverTooOld", "image/driver-version"},
		"no version":                        {"a100-operator", func(r *spec.Request) { r.GPU.Driver.Version = "" }, "PresentationInvalid", "image/driver-version"},
		"a wildcard":                        {"h100-packages", func(r *spec.Request) { r.GPU.Driver.Packages[0] = "nvidia-driver=580.126.09*" }, "PresentationInvalid", "packages/wildcard"},
		"another version":                   {"h100-packages", func(r *spec.Request) { r.GPU.Driver.Version = "580.95.05" }, "PresentationInvalid", "packages/version"},
		"another version beside the driver": {"h100-packages", func(r *spec.Request) { r.GPU.Driver.Packages[1] = "nvidia-fabricmanager-590=590.48.01" }, "PresentationInvalid", "packages/companion-version"},
		"a version of companions only":      {"h100-packages", func(r *spec.Request) { r.GPU.Driver.Packages[0] = "nvidia-open=590.48.01-1" }, "PresentationInvalid", "packages/version"},
		"no fabric manager":                 {"h100-packages", func(r *spec.Request) { r.GPU.Driver.Packages = r.GPU.Driver.Packages[:1] }, "PresentationInvalid", "packages/fabric-manager"},
		"no toolkit":                        {"h100-packages", func(r *spec.Request) { r.GPU.Driver.Packages = r.GPU.Driver.Packages[:2] }, "PresentationInvalid", "image/container-toolkit"},
		"closed modules":                    {"b200-sxm-8", func(r *spec.Request) { r.Image.Software.GPUDriver.KernelModule = "Proprietary" }, "PresentationInvalid", "image/kernel-module"},
		"modules that nobody names":         {"b200-sxm-8", func(r *spec.Request) { r.Image.Software.GPUDriver.KernelModule = "" }, "PresentationInvalid", "image/kernel-module"},
		"another fabric manager":            {"b200-sxm-8", func(r *spec.Request) { r.Image.Software.FabricManager = "580.95.05" }, "PresentationInvalid", "image/fabric-manager"},
		"IMEX without a rack":               {"b200-sxm-8", func(r *spec.Request) { r.GPU.IMEX = "Host" }, "PresentationInvalid", "gpu/imex"},
		"IMEX of another version":           {"gb300-imex-host", func(r *spec.Request) { r.Image.Software.IMEX = "580.95.05" }, "PresentationInvalid", "image/imex"},
		"a guest's driver":                  {"b200-sxm-8", func(r *spec.Request) { r.Image.Software.GPUDriver.Kind = "VGPUGuest" }, "DriverMissing", "image/driver-kind"},
		"one replica":                       {"l40s-mps", requests.WithSharing("MPS", 1), "PresentationInvalid", "sharing/replicas"},
		"an unknown way to share":           {"l40s-mps", requests.WithSharing("Luck", 2), "PresentationInvalid", "sharing/strategy"},
		"the plain count of a shared GPU":   {"l40s-mps", func(r *spec.Request) { r.Resources["nvidia.com/gpu"] = resource.MustParse("4") }, "ResourcesDisagree", "promise/gpu"},
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

// warningRules are the rules of what a plan warns of.
func warningRules(t *testing.T, r spec.Request) (rules []string) {
	t.Helper()
	plan, err := presentation.Resolve(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range plan.Warnings {
		rules = append(rules, w.Rule)
	}
	return rules
}

func lookupModel(t *testing.T, name string) catalogue.Model {
	t.Helper()
	m, err := catalogue.Lookup(v1alpha1.VendorNVIDIA, name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAMIGModeThatNothingTurnsOffIsWarnedOf(t *testing.T) {
	for _, m := range catalogue.Models() {
		if m.Vendor != v1alpha1.VendorNVIDIA || m.Geometry == nil {
			continue
		}
		byClaims := requests.ForModel(m)
		requests.WithDRA(v1alpha1.DRASpec{})(&byClaims)
		requests.UseOperatorDriver(&byClaims, "595.91.07")
		isForVMs := requests.VM(m.Name, 8, func(s *v1alpha1.PassthroughSpec) { s.ResourceName = "nvidia.com/GPU" })
		if m.FormFactor == catalogue.Superchip {
			byClaims.GPU.Count, isForVMs.GPU.Count = 4, 4
		}
		for what, r := range map[string]spec.Request{"DRA": byClaims, "virtual machines": isForVMs} {
			if got := slices.Contains(warningRules(t, r), "unset/mig-mode"); got != m.HasPersistentMIGMode() {
				t.Errorf("%s, %s: told of: %v, and the mode persists: %v", m.Name, what, got, m.HasPersistentMIGMode())
			}
		}
	}
	if got := warningRules(t, requests.ForModel(lookupModel(t, "A100-SXM4-80GB"))); slices.Contains(got, "unset/mig-mode") {
		t.Errorf("the script turns it off: %v", got)
	}
}

func TestASubnetManagerThatNoPackageBringsIsWarnedOf(t *testing.T) {
	for name, want := range map[string]bool{"B200-SXM-180GB": true, "H100-SXM5-80GB": false, "GB200-186GB": false} {
		r := requests.NVIDIA(name, 8, "580.126.09")
		requests.UsePackages(&r)
		if got := slices.Contains(warningRules(t, r), "unverified/nvlsm"); got != want {
			t.Errorf("%s: told of: %v, want %v", name, got, want)
		}
		r.GPU.Driver.Packages = append(r.GPU.Driver.Packages, "nvlsm=2025.03.1-1")
		if slices.Contains(warningRules(t, r), "unverified/nvlsm") {
			t.Errorf("%s: a package brings it", name)
		}
	}
}
