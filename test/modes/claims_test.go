package modes

import (
	"fmt"
	"os"
	"slices"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/rack/vendor"
)

// TestEveryModesNodePassesAtWork judges an admitted node idle, with one device claimed, with all of them, and when the claims are gone. A device plugin counts a device
// that a pod has as before; a DRA driver may withdraw devices.
func TestEveryModesNodePassesAtWork(t *testing.T) {
	withdrew := 0
	for _, m := range readModes(t) {
		t.Run(m.name, func(t *testing.T) {
			observed := m.run(t, m.installMethods()[0], change{})
			if observed.joinError != "" {
				t.Fatal(observed.joinError)
			}
			idle := observed.result.Slices
			kinds := map[string][]string{}
			for _, s := range idle {
				for _, d := range s.Spec.Devices {
					if kind := d.Attributes["type"].StringValue; kind != nil {
						kinds[*kind] = append(kinds[*kind], d.Name)
					}
				}
			}
			works := map[string][]string{"idle": nil, "released": nil}
			for kind, names := range kinds {
				works["one "+kind] = names[:1]
				works["all "+kind] = names
			}
			if gpus, functions := kinds["gpu"], kinds["vfio"]; len(functions) > 1 {
				works["half of each"] = slices.Concat(gpus[:len(gpus)/2], functions[len(functions)/2:])
			}
			for what, claimed := range works {
				result := observed.result
				result.Slices = nil
				for _, s := range idle {
					prepared := s.DeepCopy()
					prepared.Spec.Devices = vendor.Prepare(s.Spec.Devices, claimed...)
					withdrew += len(s.Spec.Devices) - len(prepared.Spec.Devices)
					result.Slices = append(result.Slices, *prepared)
				}
				for _, c := range m.judgeAgain(m.plan(t), result, observed.cluster).Checks {
					if c.Result != v1alpha1.CheckPass {
						t.Errorf("%s: %s: expected %s, observed %s (%s)", what, c.Name, c.Expected, c.Observed, c.Hint)
					}
				}
			}
		})
	}
	if withdrew == 0 {
		t.Error("no driver withdrew anything")
	}
}

// TestALostGPUIsNoClaim has all forms of a GPU gone, and before the node was ever admitted one form of all.
func TestALostGPUIsNoClaim(t *testing.T) {
	for _, m := range readModes(t) {
		if m.name != "h100-dra-vfio" {
			continue
		}
		observed := m.run(t, "manifests", change{})
		result := observed.result
		without := func(names ...string) []resourcev1.ResourceSlice {
			var out []resourcev1.ResourceSlice
			for _, s := range observed.result.Slices {
				s = *s.DeepCopy()
				s.Spec.Devices = slices.DeleteFunc(s.Spec.Devices, func(d resourcev1.Device) bool { return slices.Contains(names, d.Name) })
				out = append(out, s)
			}
			return out
		}
		failed := func(v v1alpha1.Verdict) string {
			observed := observation{verdict: v}
			return observed.failedChecks()
		}
		result.Slices = without("gpu-3", "gpu-vfio-3")
		if got := failed(m.judgeAgain(m.plan(t), result, observed.cluster)); got != "slices/gpu.nvidia.com/gpu slices/gpu.nvidia.com/vfio deviceclass/gpu.nvidia.com deviceclass/vfio.gpu.nvidia.com" {
			t.Errorf("a GPU is gone, and these checks fail: %q", got)
		}
		var functions []string
		for i := range 8 {
			functions = append(functions, fmt.Sprint("gpu-vfio-", i))
		}
		result.Slices = without(functions...)
		if got := failed(m.judge(m.plan(t), result, observed.cluster)); got != "slices/gpu.nvidia.com/vfio deviceclass/vfio.gpu.nvidia.com" {
			t.Errorf("the driver publishes no GPU for virtual machines, and before the node is admitted these checks fail: %q", got)
		}
		return
	}
	t.Error("no mode has GPUs in two forms")
}

// TestWhatTheDriverItselfPublishesIsAsPromised has the devices that NVIDIA's driver publishes before and after claims.
func TestWhatTheDriverItselfPublishesIsAsPromised(t *testing.T) {
	for _, m := range readModes(t) {
		if m.name != "h100-dra-vfio" {
			continue
		}
		observed := m.run(t, "manifests", change{})
		for name, wantFirst := range map[string]v1alpha1.CheckResult{"idle": v1alpha1.CheckPass, "one-of-each": v1alpha1.CheckFail, "all": v1alpha1.CheckFail} {
			text, err := os.ReadFile("../rack/vendor/testdata/vfio-" + name + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			result := observed.result
			published := observed.result.Slices[0].DeepCopy()
			published.Spec.Devices = nil
			if err := yaml.UnmarshalStrict(text, &published.Spec.Devices); err != nil {
				t.Fatal(err)
			}
			result.Slices = []resourcev1.ResourceSlice{*published}
			if first := m.judge(m.plan(t), result, observed.cluster); first.Result != wantFirst {
				t.Errorf("%s, never admitted: %s, expected %s: %v", name, first.Result, wantFirst, first.Checks)
			}
			for _, c := range m.judgeAgain(m.plan(t), result, observed.cluster).Checks {
				if c.Result != v1alpha1.CheckPass {
					t.Errorf("%s: %s: expected %s, observed %s", name, c.Name, c.Expected, c.Observed)
				}
			}
		}
		return
	}
	t.Error("no mode has GPUs in two forms")
}
