package generic_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/test/requests"
)

func TestAGenericAcceleratorIsWhatItsNodeTypeSays(t *testing.T) {
	plan, err := presentation.Resolve(requests.Gaudi())
	if err != nil {
		t.Fatal(err)
	}
	e := plan.Expectation
	if r := e.Resources[0]; r.Name != "habana.ai/gaudi" || r.Quantity.String() != "8" || !e.IsForeign("habana.ai/other") || len(e.Slices) > 0 {
		t.Errorf("the plugin's resource: %+v", e)
	}
	if diff := cmp.Diff([]string{"gaudi.example.com", "gaudi.intel.com", "gpu.amd.com", "gpu.intel.com", "gpu.nvidia.com"}, e.AbsentDrivers); diff != "" {
		t.Error(diff)
	}
	claimed, err := presentation.Resolve(requests.All()["gaudi-dra"])
	if err != nil {
		t.Fatal(err)
	}
	if s := claimed.Expectation.Slices; len(s) != 1 || s[0].Driver != "gaudi.example.com" || s[0].Devices[0].Count != 8 || !claimed.Expectation.IsForeign("habana.ai/gaudi") {
		t.Errorf("the driver's devices: %+v", claimed.Expectation)
	}
	fabric := requests.All()["gaudi-dra"]
	fabric.GPU.Generic.ResourceName = "example.com/gaudi"
	if plan, err := presentation.Resolve(fabric); err != nil || !plan.Expectation.IsForeign("example.com/gaudi") {
		t.Errorf("the device plugin's resource is not foreign beside the driver's devices: %v", err)
	}
	region, err := presentation.Resolve(requests.All()["fpga"])
	if err != nil {
		t.Fatal(err)
	}
	if r := region.Expectation.Resources[0]; r.Name != "fpga.intel.com/region-0a" || r.Quantity.String() != "32" {
		t.Errorf("four of each: %+v", r)
	}
}

func TestAGenericAcceleratorThatIsNotDescribedIsRefused(t *testing.T) {
	for sentence, tt := range map[string]struct {
		change       func(*spec.Request)
		reason, rule string
	}{
		"nothing said": {func(r *spec.Request) { r.GPU.Generic = nil }, "PresentationInvalid", "generic/missing"},
		"none at all":  {func(r *spec.Request) { r.GPU.Count = 0 }, "PresentationInvalid", "gpu/count"},
		"no resource":  {func(r *spec.Request) { r.GPU.Generic.ResourceName = "" }, "PresentationInvalid", "generic/resource-name"},
		"no driver": {func(r *spec.Request) {
			r.GPU.Generic.DRA = nil
			r.GPU.Presentation.Passthrough = &v1alpha1.PassthroughSpec{Advertise: "DRA"}
		}, "PresentationInvalid", "generic/dra"},
		"virtual machines": {func(r *spec.Request) { r.GPU.Presentation.Passthrough = &v1alpha1.PassthroughSpec{Workload: "VM"} }, "PresentationInvalid", "generic/vm"},
		"sharing": {func(r *spec.Request) {
			r.GPU.Presentation.Passthrough = &v1alpha1.PassthroughSpec{Sharing: &v1alpha1.SharingSpec{}}
		}, "PresentationInvalid", "generic/sharing"},
		"a module that must and must not": {func(r *spec.Request) { r.GPU.Generic.Blacklist = []string{"habanalabs"} }, "PresentationInvalid", "generic/modules"},
		"an image without its arguments":  {func(r *spec.Request) { r.Image.KernelArguments = nil }, "KernelArgumentMissing", "image/kernel-arguments"},
		"another count promised":          {func(r *spec.Request) { r.Resources["habana.ai/gaudi"] = resource.MustParse("4") }, "ResourcesDisagree", "promise/gpu"},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := requests.Gaudi()
			tt.change(&r)
			var refusal *spec.Refusal
			if _, err := presentation.Resolve(r); !errors.As(err, &refusal) || refusal.Reason != tt.reason || refusal.Rule != tt.rule {
				t.Fatalf("error %v, want a *Refusal with %s, %s", err, tt.reason, tt.rule)
			}
		})
	}
}

func TestWhatIgnitionSetsNeedsNotBeInTheImage(t *testing.T) {
	for name, r := range map[string]spec.Request{"generic": requests.Gaudi(), "virtual machines": requests.All()["h100-vm"], "virtual GPUs": requests.All()["a100-vgpu"]} {
		r.Image.UserData, r.Image.KernelArguments = v1alpha1.UserDataIgnition, nil
		plan, err := presentation.Resolve(r)
		if err != nil || len(plan.KernelArguments) == 0 {
			t.Errorf("%s: %v: %v", name, err, plan.KernelArguments)
		}
	}
}
