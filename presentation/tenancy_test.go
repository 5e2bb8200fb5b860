package presentation

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/test/requests"
)

// TestOnNodesOfSeveralTenantsDevicesGoByCDIAndTheNodeReports also shows where Ingot cannot know whether the tenants are kept apart.
func TestOnNodesOfSeveralTenantsDevicesGoByCDIAndTheNodeReports(t *testing.T) {
	all := requests.All()
	amd, guest := all["mi300x"], all["a40-vgpu-guest"]
	requests.Share(&amd)
	requests.Share(&guest)
	both := all["h100-dra-vfio"]
	requests.Share(&both)
	alone := all["h100-shared-dra"]
	alone.Image.Software.ContainerToolkit = ""
	baked := requests.All()["a100-shared-operator"]
	baked.Image.Software.ContainerToolkit = "1.18.0"
	for sentence, tt := range map[string]struct {
		request  spec.Request
		strategy string
		report   bool
		warning  string
	}{
		"the toolkit of the image":           {all["h100-shared"], "cdi-cri", true, ""},
		"the toolkit of a package":           {all["h100-shared-packages"], "cdi-cri", true, ""},
		"the operator's toolkit":             {all["a100-shared-operator"], "cdi-cri", false, "operator-values"},
		"the operator with an image's":       {baked, "cdi-cri", true, ""},
		"claims name devices by CDI anyway":  {all["h100-shared-dra"], "", true, ""},
		"claims, and no toolkit":             {alone, "", true, ""},
		"claims of virtual machines too":     {both, "", true, ""},
		"a guest with virtual GPUs":          {guest, "cdi-cri", true, ""},
		"another vendor's container runtime": {amd, "", false, "AMD_VISIBLE_DEVICES"},
		"one tenant's":                       {all["h100-sxm-8"], "", false, ""},
	} {
		plan, err := Resolve(tt.request)
		if err != nil {
			t.Errorf("%s: %v", sentence, err)
			continue
		}
		warning := ""
		for _, w := range plan.Warnings {
			if w.Rule == "unverified/tenancy" {
				warning = w.Message
			}
		}
		if plan.Tenant.DeviceListStrategy != tt.strategy || plan.Expectation.ContainerdReport != tt.report || (warning == "") != (tt.warning == "") || !strings.Contains(warning, tt.warning) {
			t.Errorf("%s: strategy %q, report %v, warning %q", sentence, plan.Tenant.DeviceListStrategy, plan.Expectation.ContainerdReport, warning)
		}
	}
}

func TestTheDefaultTenancyChangesNoPlan(t *testing.T) {
	r := requests.H100()
	before, err := Resolve(r)
	if err != nil {
		t.Fatal(err)
	}
	r.GPU.Tenancy = v1alpha1.TenancyDedicated
	after, err := Resolve(r)
	if diff := cmp.Diff(before, after); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

func TestTenantsShareOnlyNodesOnWhichTheyCanBeKeptApart(t *testing.T) {
	all := requests.All()
	for sentence, tt := range map[string]struct {
		request    string
		change     func(*spec.Request)
		rule, says string
	}{
		"containerd is unknown":          {"h100-shared", func(r *spec.Request) { r.Image.Software.Containerd = "" }, "tenancy/containerd-version", "1.7 or newer"},
		"containerd hands over no CDI":   {"h100-shared", func(r *spec.Request) { r.Image.Software.Containerd = "1.6.33" }, "tenancy/containerd-version", "it is 1.6.33"},
		"the toolkit is too old":         {"h100-shared", func(r *spec.Request) { r.Image.Software.ContainerToolkit = "1.15.0" }, "tenancy/container-toolkit-version", "nvidia-cdi-hook"},
		"the package is too old":         {"h100-shared-packages", func(r *spec.Request) { r.GPU.Driver.Packages[2] = "nvidia-container-toolkit=1.15.0-1" }, "tenancy/container-toolkit-version", "it is 1.15.0-1"},
		"virtual machines get the GPUs":  {"h100-vm", requests.Share, "tenancy/virtual-machines", "virtual machines"},
		"virtual machines get parts":     {"a100-vgpu", requests.Share, "tenancy/virtual-machines", "virtual machines"},
		"containerd is just new enough":  {"h100-shared", func(r *spec.Request) { r.Image.Software.Containerd = "1.7.0" }, "", ""},
		"the package names no version":   {"h100-shared-packages", func(r *spec.Request) { r.GPU.Driver.Packages[2] = "nvidia-container-toolkit" }, "", ""},
		"the toolkit is just new enough": {"h100-shared", func(r *spec.Request) { r.Image.Software.ContainerToolkit = "1.16.0" }, "", ""},
	} {
		r := all[tt.request]
		tt.change(&r)
		_, err := Resolve(r)
		if tt.rule == "" {
			if err != nil {
				t.Errorf("%s: %v", sentence, err)
			}
			continue
		}
		requests.CheckRefusal(t, err, v1alpha1.ReasonPresentationInvalid, tt.rule, tt.says)
	}
}
