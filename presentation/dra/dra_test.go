package dra_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/test/requests"
)

func TestThePlanExpectsTheDRADriversDevicesAndNoDevicePluginResources(t *testing.T) {
	plan, err := presentation.Resolve(requests.H100WithDRA())
	if err != nil {
		t.Fatal(err)
	}
	e := plan.Expectation
	if len(e.Slices) != 1 || e.Slices[0].Driver != "gpu.nvidia.com" || e.Slices[0].Hint == "" {
		t.Fatalf("slices %+v", e.Slices)
	}
	if diff := cmp.Diff([]v1alpha1.ExpectedDevices{{Type: "gpu", Count: 8, Attributes: map[string][]string{"architecture": {"Hopper"}, "driverVersion": {"570.133.7", "570.133.07"}},
		Products:   map[string]v1alpha1.ExpectedProduct{"productName": {Words: []string{"H100"}, AbsentWords: []string{"NVL", "PCIE"}}},
		Capacities: map[string]v1alpha1.ExpectedRange{"memory": {Minimum: resource.MustParse("72Gi"), Maximum: resource.MustParse("80Gi")}}}}, e.Slices[0].Devices); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]v1alpha1.ExpectedDeviceClass{{Name: "gpu.nvidia.com", Count: 8}}, e.Slices[0].DeviceClasses); diff != "" {
		t.Error(diff)
	}
	if !e.IsForeign("nvidia.com/gpu") || !e.IsForeign("nvidia.com/mig-1g.10gb") {
		t.Error("the device plugin's resources are not foreign on a node whose GPUs a DRA driver gives away")
	}
	if diff := cmp.Diff([]string{"gaudi.intel.com", "gpu.amd.com", "gpu.intel.com"}, e.AbsentDrivers); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"nvidia.com/gpu.deploy.device-plugin": "false", "nvidia.com/dra-kubelet-plugin": "true"}, plan.NodeLabels); diff != "" {
		t.Error(diff)
	}
}

func TestInstancesByDRAAreCountedByProfileAndByClass(t *testing.T) {
	plan, err := presentation.Resolve(requests.All()["h200-mig-dra"])
	if err != nil {
		t.Fatal(err)
	}
	attributes := map[string][]string{"architecture": {"Hopper"}, "driverVersion": {"580.126.9", "580.126.09"}}
	products := map[string]v1alpha1.ExpectedProduct{"productName": {Words: []string{"H200"}, AbsentWords: []string{"NVL", "PCIE"}}}
	memory := func(minimum, maximum string) map[string]v1alpha1.ExpectedRange {
		return map[string]v1alpha1.ExpectedRange{"memory": {Minimum: resource.MustParse(minimum), Maximum: resource.MustParse(maximum)}}
	}
	if diff := cmp.Diff([]v1alpha1.ExpectedDevices{
		{Type: "gpu", Count: 5, Attributes: attributes, Products: products, Capacities: memory("129945Mi", "141Gi")},
		{Type: "mig", Profiles: []string{"3g.71gb"}, Count: 2, Attributes: attributes, Products: products, Capacities: memory("61363Mi", "72192Mi")},
		{Type: "mig", Profiles: []string{"1g.35gb"}, Count: 4, Attributes: attributes, Products: products, Capacities: memory("30681Mi", "36096Mi")},
		{Type: "mig", Profiles: []string{"1g.18gb"}, Count: 6, Attributes: attributes, Products: products, Capacities: memory("15340Mi", "18048Mi")},
		{Type: "mig", Profiles: []string{"1g.18gb+me"}, Count: 2, Attributes: attributes, Products: products, Capacities: memory("15340Mi", "18048Mi")},
	}, plan.Expectation.Slices[0].Devices); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]v1alpha1.ExpectedDeviceClass{{Name: "gpu.nvidia.com", Count: 5}, {Name: "mig.nvidia.com", Count: 14}}, plan.Expectation.Slices[0].DeviceClasses); diff != "" {
		t.Error(diff)
	}
	if !plan.Expectation.IsForeign("nvidia.com/gpu") || plan.NodeLabels["nvidia.com/gpu.deploy.mig-manager"] != "false" || plan.NodeLabels["nvidia.com/dra-kubelet-plugin"] != "true" {
		t.Errorf("the device plugin is not foreign, or a label is missing: %v", plan.NodeLabels)
	}
}

func TestUnpartitionedGPUsByDRAAreTheSameUnderEitherMode(t *testing.T) {
	want, err := presentation.Resolve(requests.H100WithDRA())
	if err != nil {
		t.Fatal(err)
	}
	for sentence, p := range map[string]v1alpha1.Presentation{
		"passthrough advertised by DRA": {Mode: v1alpha1.ModePassthrough, Passthrough: &v1alpha1.PassthroughSpec{Advertise: v1alpha1.AdvertiseDRA}},
		"the defaults spelled out":      {Mode: v1alpha1.ModeDRA, DRA: &v1alpha1.DRASpec{Driver: "gpu.nvidia.com", Devices: "GPU"}},
	} {
		r := requests.H100WithDRA()
		r.GPU.Presentation = p
		got, err := presentation.Resolve(r)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", sentence, diff)
		}
	}
}

func TestRequestsThatTheDRADriverCannotServeAreRefused(t *testing.T) {
	for sentence, tt := range map[string]struct {
		change       func(*spec.Request)
		reason, rule string
		says         string
	}{
		"a driver that is too old for it":        {func(r *spec.Request) { r.Image.Software.GPUDriver.Version = "550.163.01" }, "DriverTooOld", "dra/driver-version", "565 or newer"},
		"a driver that is too old for the model": {func(r *spec.Request) { r.Image.Software.GPUDriver.Version = "470.82.01" }, "DriverTooOld", "image/driver-version", "525.85.12"},
		"a kubelet that is too old":              {func(r *spec.Request) { r.Image.Software.Kubelet = "1.34.1" }, "PresentationInvalid", "dra/kubelet-version", "1.34.2"},
		"a containerd without CDI":               {func(r *spec.Request) { r.Image.Software.Containerd = "1.6.20" }, "PresentationInvalid", "dra/containerd-version", "CDI"},
		"a containerd that the image hides":      {func(r *spec.Request) { r.Image.Software.Containerd = "" }, "PresentationInvalid", "dra/containerd-version", "must be a version"},
		"another driver's name":                  {func(r *spec.Request) { r.GPU.Presentation.DRA = &v1alpha1.DRASpec{Driver: "gpu.amd.com"} }, "PresentationInvalid", "dra/driver", "gpu.nvidia.com"},
		"instances without a layout":             {func(r *spec.Request) { r.GPU.Presentation.DRA = &v1alpha1.DRASpec{Devices: "MIG"} }, "PresentationInvalid", "dra/mig-layout", "or add the feature gate DynamicMIG"},
		"virtual machines without an IOMMU":      {func(r *spec.Request) { r.GPU.Presentation.DRA = &v1alpha1.DRASpec{Devices: "VFIO"} }, "KernelArgumentMissing", "image/iommu", "intel_iommu=on"},
		"gates that exclude each other": {func(r *spec.Request) {
			r.GPU.Presentation.DRA = &v1alpha1.DRASpec{Devices: "VFIO", FeatureGates: []string{"NVMLDeviceHealthCheck"}}
		}, "PresentationInvalid", "dra/gates-exclude", "dra.devices: VFIO needs the feature gate PassthroughSupport, dra.featureGates has NVMLDeviceHealthCheck"},
		"sharing that excludes a gate": {func(r *spec.Request) {
			r.GPU.Presentation.DRA = &v1alpha1.DRASpec{Sharing: &v1alpha1.SharingSpec{Strategy: "MPS", Replicas: 2}, FeatureGates: []string{"ConsumableShares"}}
		}, "PresentationInvalid", "dra/gates-exclude", "cannot share a device by MPS beside ConsumableShares"},
		"a gate that the release lacks": {func(r *spec.Request) {
			r.GPU.Presentation.DRA = &v1alpha1.DRASpec{DriverRelease: "0.4.1", FeatureGates: []string{"ConsumableShares"}}
		}, "PresentationInvalid", "dra/gate-release", "release 0.4.1 of the driver lacks and 0.5.0 has"},
		"a gate that another field needs and the release lacks": {func(r *spec.Request) {
			*r = requests.NVIDIA("GB300-278GB", 4, "595.58.03")
			r.GPU.Presentation = v1alpha1.Presentation{Mode: v1alpha1.ModeDRA, DRA: &v1alpha1.DRASpec{DriverRelease: "0.4.1"}}
			r.GPU.IMEX = spec.IMEXHost
		}, "PresentationInvalid", "dra/gate-release", "Host needs the feature gate HostManagedIMEXDaemon"},
		"a release that nobody knows": {func(r *spec.Request) {
			r.GPU.Presentation.DRA = &v1alpha1.DRASpec{DriverRelease: "0.9.0"}
		}, "PresentationInvalid", "dra/release", "0.4.1, 0.5.0"},
		"a gate that needs another": {func(r *spec.Request) {
			r.GPU.Presentation.DRA = &v1alpha1.DRASpec{FeatureGates: []string{"DeviceMetadata"}}
		}, "PresentationInvalid", "dra/gate-needs", "PassthroughSupport"},
		"a gate that the driver has not": {func(r *spec.Request) {
			r.GPU.Presentation.DRA = &v1alpha1.DRASpec{FeatureGates: []string{"DynamicMig"}}
		}, "PresentationInvalid", "dra/feature-gate", "DynamicMIG"},
		"partitions beside whole GPUs": {func(r *spec.Request) {
			r.GPU.Presentation.DRA = &v1alpha1.DRASpec{FeatureGates: []string{"DynamicMIG"}}
		}, "PresentationInvalid", "dra/dynamic-mig", "devices: MIG"},
		"a layout that claims take apart": {func(r *spec.Request) {
			r.GPU.Presentation.DRA = &v1alpha1.DRASpec{Devices: "MIG", Layout: []v1alpha1.MIGLayout{requests.MIGEntry(requests.Profiles{"1g.10gb": 7})}, FeatureGates: []string{"DynamicMIG"}}
		}, "PresentationInvalid", "dra/static-mig", "DynamicMIG"},
		"a layout that is impossible": {func(r *spec.Request) {
			r.Image.Software.MIGParted = "0.15.0"
			r.GPU.Presentation.DRA = &v1alpha1.DRASpec{Devices: "MIG", Layout: []v1alpha1.MIGLayout{requests.MIGEntry(requests.Profiles{"3g.40gb": 2, "1g.10gb": 1})}}
		}, "PresentationInvalid", "mig/memory-slices", "dra.layout[0]"},
		"a layout that nobody would make": {func(r *spec.Request) {
			requests.UseOperatorDriver(r, "580.126.09")
			r.GPU.Presentation.DRA = &v1alpha1.DRASpec{Devices: "MIG", Layout: []v1alpha1.MIGLayout{requests.MIGEntry(requests.Profiles{"1g.10gb": 7})}}
		}, "PresentationInvalid", "mig/operator-dra", "nobody"},
		"a driver that the operator does not pair with claims": {func(r *spec.Request) { requests.UseOperatorDriver(r, "570.133.20") }, "DriverTooOld", "dra/driver-version", "580 or newer"},
		"partitions of a GPU that has none": {func(r *spec.Request) {
			r.GPU.Model = "L40S-48GB"
			r.GPU.Presentation.DRA = &v1alpha1.DRASpec{Devices: "MIG", FeatureGates: []string{"DynamicMIG"}}
		}, "PresentationInvalid", "mig/model", "L40S"},
		"an unknown way to share": {func(r *spec.Request) {
			r.GPU.Presentation.DRA = &v1alpha1.DRASpec{Sharing: &v1alpha1.SharingSpec{Strategy: "Luck", Replicas: 2}}
		}, "PresentationInvalid", "sharing/strategy", "Luck"},
		"a promise of the device plugin's": {func(r *spec.Request) { r.Resources["nvidia.com/gpu"] = resource.MustParse("8") }, "ResourcesDisagree", "promise/gpu", "nvidia.com/gpu"},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := requests.H100WithDRA()
			tt.change(&r)
			_, err := presentation.Resolve(r)
			requests.CheckRefusal(t, err, tt.reason, tt.rule, tt.says)
		})
	}
}

func TestAFeatureGateThatNeedsMoreSaysWhat(t *testing.T) {
	for gate, want := range map[string]string{
		"DRAListTypeAttributes": "kube-apiserver must have its own feature gate", "FabricManagerPartitioning": "FABRIC_MODE=1 and its library libnvfm", "ConsumableShares": "consumableShares: memory",
		"NVMLDeviceHealthCheck": "",
	} {
		r := requests.H100WithDRA()
		r.GPU.Presentation.DRA = &v1alpha1.DRASpec{FeatureGates: []string{gate}}
		plan, err := presentation.Resolve(r)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, w := range plan.Warnings {
			texts = append(texts, w.Message)
		}
		if len(texts) != min(len(want), 1) || !strings.Contains(strings.Join(texts, " "), want) {
			t.Errorf("%s: %q", gate, texts)
		}
	}
}

func TestDynamicMIGKeepsTheOperatorsMIGManagerAway(t *testing.T) {
	plan, err := presentation.Resolve(requests.All()["h100-dra-mig-dynamic"])
	if err != nil || plan.NodeLabels["nvidia.com/gpu.deploy.mig-manager"] != "false" {
		t.Errorf("%v, %v", plan.NodeLabels, err)
	}
}

func TestTheContainerToolkitIsNotNeededForClaims(t *testing.T) {
	r := requests.H100WithDRA()
	r.Image.Software.ContainerToolkit = ""
	if _, err := presentation.Resolve(r); err != nil {
		t.Error(err)
	}
}

func TestADevicePluginsNodeExpectsNoDRADriver(t *testing.T) {
	for name, r := range map[string]spec.Request{"passthrough": requests.H100(), "MIG": requests.All()["h100-mig-mixed"], "no GPU": requests.All()["no-gpu"]} {
		plan, err := presentation.Resolve(r)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(plan.Expectation.AbsentDrivers, "gpu.nvidia.com") || len(plan.Expectation.Slices) > 0 || plan.NodeLabels["nvidia.com/dra-kubelet-plugin"] != "" {
			t.Errorf("%s: the DRA driver is not absent: %+v", name, plan)
		}
	}
}

func TestARackByClaimsNeedsWhatRunsIMEX(t *testing.T) {
	r := requests.NVIDIA("GB200-186GB", 4, "570.133.20", requests.WithDRA(v1alpha1.DRASpec{}))
	var refusal *spec.Refusal
	if _, err := presentation.Resolve(r); !errors.As(err, &refusal) || refusal.Rule != "dra/driver-version" || !strings.Contains(refusal.Message, "570.158.01") {
		t.Errorf("compute domains with an old driver: %v", err)
	}
	r.GPU.IMEX, r.Image.Software.IMEX = "Host", "570.133.20"
	if plan, err := presentation.Resolve(r); err != nil || !slices.Equal(plan.Tenant.FeatureGates, []string{"HostManagedIMEXDaemon"}) {
		t.Errorf("IMEX on the host: %v, gates %v", err, plan.Tenant.FeatureGates)
	}
}

func TestPartitionsByClaimsAreCountedByTheirPlacements(t *testing.T) {
	for name, want := range map[string]string{"h100-dra-mig-dynamic": "gpu 2 mig 50", "a100-dra-mig-dynamic": "mig 50"} {
		plan, err := presentation.Resolve(requests.All()[name])
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

// TestOnlyAnotherReleaseThanTheDefaultIsInThePlan: a plan of the version before, which had no releases, means the same.
func TestOnlyAnotherReleaseThanTheDefaultIsInThePlan(t *testing.T) {
	for release, want := range map[string]string{"": "", "0.5.0": "", "0.4.1": "0.4.1"} {
		r := requests.H100WithDRA()
		r.GPU.Presentation.DRA = &v1alpha1.DRASpec{DriverRelease: release}
		r.GPU.Presentation.Mode, r.GPU.Presentation.Passthrough = v1alpha1.ModeDRA, nil
		plan, err := presentation.Resolve(r)
		if err != nil || plan.Tenant.DRARelease != want {
			t.Errorf("%q: the plan has the release %q, want %q: %v", release, plan.Tenant.DRARelease, want, err)
		}
	}
}
