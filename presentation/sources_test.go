package presentation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/spec"
)

// model is a request for whole GPUs of a model.
func model(name string, count int32, driver string, changes ...func(*spec.Request)) spec.Request {
	r := h100()
	r.GPU.Model, r.GPU.Count, r.Image.Software.GPUDriver.Version = name, count, driver
	for _, change := range changes {
		change(&r)
	}
	return r
}

func shareBy(strategy string, replicas int32) func(*spec.Request) {
	return func(r *spec.Request) {
		r.GPU.Presentation.Passthrough = &v1alpha1.PassthroughSpec{Sharing: &v1alpha1.SharingSpec{Strategy: strategy, Replicas: replicas}}
	}
}

func operator(version string) func(*spec.Request) {
	return func(r *spec.Request) { byOperator(r, version) }
}

// byPackages installs the driver and what belongs to it at the first boot.
func byPackages(r *spec.Request) {
	r.GPU.Driver = v1alpha1.GPUDriver{Source: v1alpha1.DriverFromPackages, Version: "580.126.09", KernelModule: "Open", Packages: []string{
		"nvidia-driver-580-server-open=580.126.09-0ubuntu1", "nvidia-fabricmanager-580=580.126.09-0ubuntu1", "nvidia-container-toolkit=1.18.0-1",
	}}
	r.Image.Software.GPUDriver, r.Image.Software.ContainerToolkit = nil, ""
}

func claims(draSpec v1alpha1.DRASpec) func(*spec.Request) {
	return func(r *spec.Request) {
		r.GPU.Presentation = v1alpha1.Presentation{Mode: v1alpha1.ModeDRA, DRA: &draSpec}
		r.Image.Software.Containerd, r.Image.Software.MIGParted = "2.2.0", "0.15.0"
		r.Image.KernelArguments = append(r.Image.KernelArguments, "intel_iommu=on", "iommu=pt")
	}
}

// sourced differ by where the driver comes from, by what links the GPUs, and by how they are shared.
func sourced() map[string]spec.Request {
	migByOperator := byMIG("H100-SXM5-80GB", "mixed", 8, entry(profiles{"1g.10gb": 7}))
	byOperator(&migByOperator, "580.126.09")
	dynamic := v1alpha1.DRASpec{Devices: "MIG", FeatureGates: []string{"DynamicMIG"}}
	return map[string]spec.Request{
		"h100-time-slicing":       model("H100-SXM5-80GB", 8, "580.126.09", shareBy("TimeSlicing", 4)),
		"l40s-mps":                model("L40S-48GB", 4, "580.126.09", shareBy("MPS", 8)),
		"a100-operator":           model("A100-SXM4-80GB", 8, "", operator("580.126.09")),
		"t4-operator-mps":         model("T4-16GB", 2, "", operator("580.126.09"), shareBy("MPS", 4)),
		"h100-mig-operator":       migByOperator,
		"h100-packages":           model("H100-SXM5-80GB", 8, "", byPackages),
		"h100-dra-operator":       model("H100-SXM5-80GB", 8, "", claims(v1alpha1.DRASpec{}), operator("580.126.09")),
		"b200-sxm-8":              model("B200-SXM-180GB", 8, "580.126.09"),
		"gb200-4":                 model("GB200-186GB", 4, "580.126.09"),
		"gb300-imex-host":         model("GB300-278GB", 4, "580.126.09", func(r *spec.Request) { r.GPU.IMEX, r.Image.Software.IMEX = "Host", "580.126.09-1" }),
		"h100-dra-vfio":           model("H100-PCIe-80GB", 8, "580.126.09", claims(v1alpha1.DRASpec{Devices: "VFIO"})),
		"h100-dra-time-slicing":   model("H100-PCIe-80GB", 2, "580.126.09", claims(v1alpha1.DRASpec{Sharing: &v1alpha1.SharingSpec{Strategy: "TimeSlicing", Replicas: 2}})),
		"h100-dra-mig-layout":     model("H100-PCIe-80GB", 2, "580.126.09", claims(v1alpha1.DRASpec{Devices: "MIG", Layout: []v1alpha1.MIGLayout{entry(profiles{"1g.10gb": 7}, 1)}})),
		"h100-dra-mig-dynamic":    model("H100-PCIe-80GB", 2, "580.126.09", claims(dynamic)),
		"a100-dra-mig-dynamic":    model("A100-PCIe-40GB", 2, "580.126.09", claims(dynamic)),
		"rtx-pro-6000-mig-single": model("RTX-PRO-6000-Blackwell-Server-96GB", 8, "580.126.09", rtxPRO),
	}
}

func rtxPRO(r *spec.Request) {
	r.Image.Software.MIGParted = "0.15.0"
	r.GPU.Presentation = v1alpha1.Presentation{Mode: v1alpha1.ModeMIG, MIG: &v1alpha1.MIGSpec{Strategy: "mixed", Layout: []v1alpha1.MIGLayout{entry(profiles{"1g.24gb-me": 3, "1g.24gb+me.all": 1})}}}
}

func TestASharedGPUIsAdvertisedOnceForEachReplica(t *testing.T) {
	for name, want := range map[string]string{"h100-time-slicing": "nvidia.com/gpu=32 time-slicing 4", "l40s-mps": "nvidia.com/gpu=32 mps 8", "t4-operator-mps": "nvidia.com/gpu=8 mps 4"} {
		r := sourced()[name]
		r.Resources = nil
		plan, err := Resolve(r)
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

func TestPlacesThatWereInferredAreToldOf(t *testing.T) {
	r := byMIG("B200-SXM-180GB", "mixed", 8, entry(profiles{"1g.23gb": 7}))
	r.Image.Software.GPUDriver.Version = "580.126.09"
	plan, err := Resolve(r)
	if err != nil || len(plan.Warnings) != 1 || plan.Warnings[0].Rule != "unverified/mig-places" {
		t.Errorf("B200: %v, %+v", err, plan.Warnings)
	}
	if plan, err := Resolve(partitioned()["h100-mig-mixed"]); err != nil || len(plan.Warnings) > 0 {
		t.Errorf("H100: %v, %+v", err, plan.Warnings)
	}
}

func TestARackByClaimsNeedsWhatRunsIMEX(t *testing.T) {
	r := model("GB200-186GB", 4, "570.133.20", claims(v1alpha1.DRASpec{}))
	var refusal *spec.Refusal
	if err := resolveError(r); !errors.As(err, &refusal) || refusal.Rule != "dra/driver-version" || !strings.Contains(refusal.Message, "570.158.01") {
		t.Errorf("compute domains with an old driver: %v", err)
	}
	r.GPU.IMEX, r.Image.Software.IMEX = "Host", "570.133.20"
	if plan, err := Resolve(r); err != nil || !slices.Equal(plan.Tenant.FeatureGates, []string{"HostManagedIMEXDaemon"}) {
		t.Errorf("IMEX on the host: %v, gates %v", err, plan.Tenant.FeatureGates)
	}
}

func TestTheOperatorIsToldWhatTheNodeNames(t *testing.T) {
	plan, err := Resolve(sourced()["h100-mig-operator"])
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Units)+len(plan.Files)+len(plan.Packages) > 0 {
		t.Errorf("the node gets what the operator brings: %+v", plan)
	}
	config := plan.Tenant.MIGConfig
	var read migConfig
	if err := yaml.UnmarshalStrict([]byte(config.Content), &read); err != nil || len(read.MIGConfigs[config.Name]) != 1 {
		t.Errorf("the MIG manager's configuration: %v: %s", err, config.Content)
	}
	if plan.NodeLabels["nvidia.com/mig.config"] != config.Name || plan.NodeLabels["nvidia.com/gpu.deploy.mig-manager"] != "" || plan.Tenant.DriverVersion != "580.126.09" {
		t.Errorf("the node's labels disagree with what the tenant is told: %v, %+v", plan.NodeLabels, plan.Tenant)
	}
	i := slices.IndexFunc(plan.Expectation.Labels, func(l v1alpha1.ExpectedLabel) bool { return l.Key == "nvidia.com/mig.config.state" })
	if i < 0 || plan.Expectation.Labels[i].Value != "success" || !slices.Contains(plan.Expectation.Labels[i].Passing, "pending") {
		t.Errorf("the manager's state is not expected: %+v", plan.Expectation.Labels)
	}
	other := sourced()["h100-mig-operator"]
	other.GPU.Presentation.MIG.Layout = []v1alpha1.MIGLayout{entry(profiles{"1g.10gb": 6})}
	if second, err := Resolve(other); err != nil || second.Tenant.MIGConfig.Name == config.Name {
		t.Errorf("another layout has the same name: %v", err)
	}
}

func TestPartitionsByClaimsAreCountedByTheirPlaces(t *testing.T) {
	for name, want := range map[string]string{"h100-dra-mig-dynamic": "gpu 2 mig 50", "a100-dra-mig-dynamic": "mig 50"} {
		plan, err := Resolve(sourced()[name])
		if err != nil {
			t.Fatal(err)
		}
		counts, got := map[string]int{}, []string(nil)
		for _, d := range plan.Expectation.Slices[0].Devices {
			counts[d.Type] += d.Count
		}
		for _, kind := range []string{"gpu", "mig"} {
			if counts[kind] > 0 {
				got = append(got, fmt.Sprintf("%s %d", kind, counts[kind]))
			}
		}
		if strings.Join(got, " ") != want || len(plan.Warnings) != 1 || plan.Warnings[0].Rule != "experimental/dynamic-mig" {
			t.Errorf("%s: %v with %+v, want %s", name, got, plan.Warnings, want)
		}
	}
}

func TestWhatLinksTheGPUsIsSetUp(t *testing.T) {
	for name, want := range map[string]string{
		"b200-sxm-8":      "nvidia-persistenced.service nvidia-fabricmanager.service ingot-gpu-mode.service; mlx5_core mlx5_ib ib_umad nvidia nvidia_uvm nvidia_modeset; masks IMEX: false; unsure: false",
		"gb200-4":         "nvidia-persistenced.service ingot-gpu-mode.service; nvidia nvidia_uvm nvidia_modeset; masks IMEX: true; unsure: false",
		"gb300-imex-host": "nvidia-persistenced.service nvidia-imex.service ingot-gpu-mode.service; nvidia nvidia_uvm nvidia_modeset; masks IMEX: false; unsure: true",
	} {
		plan, err := Resolve(sourced()[name])
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

func TestASourceThatWouldInstallSomethingElseIsRefused(t *testing.T) {
	for sentence, tt := range map[string]struct {
		base         string
		change       func(*spec.Request)
		reason, rule string
	}{
		"two drivers":                       {"a100-operator", func(r *spec.Request) { r.Image = h100().Image }, "PresentationInvalid", "driver/two"},
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
		"one replica":                       {"l40s-mps", shareBy("MPS", 1), "PresentationInvalid", "sharing/replicas"},
		"an unknown way to share":           {"l40s-mps", shareBy("Luck", 2), "PresentationInvalid", "sharing/strategy"},
		"the plain count of a shared GPU":   {"l40s-mps", func(r *spec.Request) { r.Resources["nvidia.com/gpu"] = *quantity("4") }, "ResourcesDisagree", "promise/gpu"},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := sourced()[tt.base]
			tt.change(&r)
			var refusal *spec.Refusal
			if err := resolveError(r); !errors.As(err, &refusal) || refusal.Reason != tt.reason || refusal.Rule != tt.rule {
				t.Fatalf("error %v, want a *Refusal with %s, %s", err, tt.reason, tt.rule)
			}
		})
	}
}
