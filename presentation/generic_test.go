package presentation

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/spec"
)

// gaudi is a request for an accelerator that is not in the catalogue.
func gaudi() spec.Request {
	r := model("Gaudi-3", 8, "")
	r.GPU.Vendor, r.Image.Software.GPUDriver, r.Image.Software.ContainerToolkit = v1alpha1.VendorGeneric, nil, ""
	r.Image.KernelArguments = []string{"hugepages=9000"}
	r.GPU.Generic = &v1alpha1.GenericSpec{
		ResourceName: "habana.ai/gaudi", KernelArguments: []string{"hugepages=9000"}, Packages: []string{"habanalabs-firmware=1.20.0-543"},
		Modules: []string{"habanalabs_cn", "habanalabs"}, Blacklist: []string{"habanalabs_old"},
		DRA: &v1alpha1.GenericDRA{Driver: "gaudi.example.com", DeviceClass: "gaudi.example.com"},
	}
	return r
}

func others() map[string]spec.Request {
	claimed, region := gaudi(), gaudi()
	claimed.GPU.Presentation.Passthrough = &v1alpha1.PassthroughSpec{Advertise: v1alpha1.AdvertiseDRA}
	region.GPU.Generic = &v1alpha1.GenericSpec{ResourceName: "fpga.intel.com/region-0a", ResourcesPerDevice: 4}
	return map[string]spec.Request{"gaudi": gaudi(), "gaudi-dra": claimed, "fpga": region}
}

func TestAGenericAcceleratorIsWhatItsNodeTypeSays(t *testing.T) {
	plan, err := Resolve(gaudi())
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
	claimed, err := Resolve(others()["gaudi-dra"])
	if err != nil {
		t.Fatal(err)
	}
	if s := claimed.Expectation.Slices; len(s) != 1 || s[0].Driver != "gaudi.example.com" || s[0].Devices[0].Count != 8 || !claimed.Expectation.IsForeign("habana.ai/gaudi") {
		t.Errorf("the driver's devices: %+v", claimed.Expectation)
	}
	fabric := others()["gaudi-dra"]
	fabric.GPU.Generic.ResourceName = "example.com/gaudi"
	if plan, err := Resolve(fabric); err != nil || !plan.Expectation.IsForeign("example.com/gaudi") {
		t.Errorf("the device plugin's resource is not foreign beside the driver's devices: %v", err)
	}
	region, err := Resolve(others()["fpga"])
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
		"another count promised":          {func(r *spec.Request) { r.Resources["habana.ai/gaudi"] = *quantity("4") }, "ResourcesDisagree", "promise/gpu"},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := gaudi()
			tt.change(&r)
			var refusal *spec.Refusal
			if err := resolveError(r); !errors.As(err, &refusal) || refusal.Reason != tt.reason || refusal.Rule != tt.rule {
				t.Fatalf("error %v, want a *Refusal with %s, %s", err, tt.reason, tt.rule)
			}
		})
	}
}

func TestWhatIgnitionSetsNeedsNotBeInTheImage(t *testing.T) {
	for name, r := range map[string]spec.Request{"generic": gaudi(), "virtual machines": toMachines()["h100-vm"], "virtual GPUs": virtual()["a100-vgpu"]} {
		r.Image.UserData, r.Image.KernelArguments = v1alpha1.UserDataIgnition, nil
		plan, err := Resolve(r)
		if err != nil || len(plan.KernelArguments) == 0 {
			t.Errorf("%s: %v: %v", name, err, plan.KernelArguments)
		}
	}
}
