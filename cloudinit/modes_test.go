package cloudinit

import (
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/spec"
)

// presented is a joining node whose GPUs are presented in a mode, resolved as the controllers do.
func presented(t testing.TB, model string, p v1alpha1.Presentation) Input {
	t.Helper()
	plan, err := presentation.Resolve(spec.Request{
		GPU: &v1alpha1.GPUSpec{Vendor: v1alpha1.VendorNVIDIA, Model: model, Count: 8, Presentation: p},
		Image: v1alpha1.OSImageSpec{KernelArguments: []string{"modprobe.blacklist=nouveau"}, Software: v1alpha1.OSImageSoftware{
			Kubelet: "1.37.0", Containerd: "2.2.0", ContainerToolkit: "1.18.0", MIGParted: "0.15.0",
			GPUDriver: &v1alpha1.GPUDriverSoftware{Vendor: v1alpha1.VendorNVIDIA, Version: "570.133.20"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	in := plain()
	in.Plan = plan
	return in
}

func modes(t testing.TB) map[string]Input {
	return map[string]Input{
		"mig": presented(t, "A100-SXM4-80GB", v1alpha1.Presentation{Mode: v1alpha1.ModeMIG, MIG: &v1alpha1.MIGSpec{Strategy: "mixed",
			Layout: []v1alpha1.MIGLayout{{GPUs: []int32{0, 1, 2}, Profiles: map[string]int32{"1g.10gb+me": 1, "1g.10gb": 6}}, {GPUs: []int32{3}, Profiles: map[string]int32{"3g.40gb": 2}}}}}),
		"vgpu-guest": guest(t, "", ""),
		"dra":        presented(t, "H200-NVL-141GB", v1alpha1.Presentation{Mode: v1alpha1.ModeDRA}),
	}
}

func TestEveryModesUserDataIsAsInTheGoldenFiles(t *testing.T) {
	for name, in := range modes(t) {
		docs, err := Render(in)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name+".user-data.yaml", docs.UserData)
	}
}

func TestEveryFileUnitAndLabelOfAPlanReachesTheNode(t *testing.T) {
	for name, in := range modes(t) {
		docs, err := Render(in)
		if err != nil {
			t.Fatal(err)
		}
		text := string(docs.UserData)
		for _, f := range in.Plan.Files {
			if !strings.Contains(text, `path: "`+f.Path+"\"\n") {
				t.Errorf("%s: %s is not written", name, f.Path)
			}
		}
		for _, u := range in.Plan.Units {
			if !strings.Contains(text, `["systemctl", "enable", "--now", "`+u.Name+`"]`) {
				t.Errorf("%s: %s is not enabled", name, u.Name)
			}
		}
		for key, value := range in.Plan.NodeLabels {
			if !strings.Contains(text, key+"="+value) {
				t.Errorf("%s: kubelet does not register with the label %s=%s", name, key, value)
			}
		}
		if strings.Index(text, `"--now", "ingot-gpu-mode.service"]`) > strings.Index(text, `"--now", "kubelet"]`) {
			t.Errorf("%s: kubelet starts before the GPUs have their mode", name)
		}
	}
}
