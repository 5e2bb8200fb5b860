package measured

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/entitlement"
	"github.com/ingot-dev/ingot/controllers/plan/nodeidentity"
	"github.com/ingot-dev/ingot/controllers/plan/verdict"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/wellknown"
	"github.com/ingot-dev/ingot/test/requests"
)

// presentations are the modes whose nodes were recorded, each with the checks that must be among those of a verdict.
var presentations = []struct {
	mode   v1alpha1.PresentationMode
	checks []string
}{
	{v1alpha1.ModePassthrough, []string{
		"software/gpu-driver", "label/nvidia.com/gpu.family", "label/nvidia.com/gpu.count", "label/nvidia.com/gpu.product", "label/nvidia.com/gpu.memory",
		"report/gpu-mode", "resource/nvidia.com/gpu",
	}},
	{v1alpha1.ModeDRA, []string{
		"software/gpu-driver", "report/gpu-mode", "slices/gpu.nvidia.com", "slices/gpu.nvidia.com/gpu", "slices/gpu.nvidia.com/gpu/architecture",
		"slices/gpu.nvidia.com/gpu/driverVersion", "slices/gpu.nvidia.com/gpu/productName", "slices/gpu.nvidia.com/gpu/memory", "deviceclass/gpu.nvidia.com",
	}},
}

// expectationOf returns what a NodeType with so many GPUs of the model promises on an image with the recorded driver.
func expectationOf(t *testing.T, r recording, model catalogue.Model, mode v1alpha1.PresentationMode) v1alpha1.NodeExpectation {
	t.Helper()
	request := requests.ForModel(model)
	request.GPU.Count, request.GPU.Presentation = r.count, v1alpha1.Presentation{Mode: mode}
	request.Image.Software.GPUDriver.Version, request.Image.Software.Containerd = r.nvml.DriverVersion, "2.2.0"
	request.Resources = nil
	plan, err := presentation.Resolve(request)
	if err != nil {
		t.Fatalf("%s: %v", model.Name, err)
	}
	return plan.Expectation
}

// observationOf returns the node with what was recorded of it.
func observationOf(r recording, mode v1alpha1.PresentationMode, expected v1alpha1.NodeExpectation) verdict.Input {
	name, uid := nodeOf(r.slices)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid, Labels: r.labels["none"], Annotations: map[string]string{v1alpha1.AnnotationGPUMode: "boot " + r.modes}}}
	claim := nodeidentity.Claim{MachineUID: "machine", Attempt: 1}
	node.Spec.ProviderID = claim.ProviderID()
	node.Status = corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		NodeInfo:   corev1.NodeSystemInfo{BootID: "boot", KernelVersion: expected.Kernel, KubeletVersion: "v" + expected.Kubelet},
		Capacity:   corev1.ResourceList{}, Allocatable: corev1.ResourceList{},
	}
	in := verdict.Input{
		Clock: watched.Clock{Now: time.Unix(0, 0)}, Expectation: expected, Identity: verdict.Identity{Claim: claim}, Node: node, SlicesServed: true,
		Gate: v1alpha1.DefaultGateTaintKey, GPUModeReport: v1alpha1.ReportRequired,
	}
	if mode == v1alpha1.ModeDRA {
		in.Slices = r.slices
		in.DeviceClasses = map[string]verdict.DeviceClass{wellknown.NVIDIADeviceClassGPU: {Selectors: verdict.Compile(chartsClass())}}
		return in
	}
	for name, devices := range r.registered {
		healthy := 0
		for _, health := range devices {
			if health == "Healthy" {
				healthy++
			}
		}
		node.Status.Capacity[corev1.ResourceName(name)] = *resource.NewQuantity(int64(len(devices)), resource.DecimalSI)
		node.Status.Allocatable[corev1.ResourceName(name)] = *resource.NewQuantity(int64(healthy), resource.DecimalSI)
	}
	return in
}

// chartsClass returns the DeviceClass of the DRA driver's chart.
func chartsClass() *resourcev1.DeviceClass {
	expression := "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"
	return &resourcev1.DeviceClass{Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}}}
}

// nodeOf returns the name and the uid of the Node that owns the slices.
func nodeOf(published []resourcev1.ResourceSlice) (name string, uid types.UID) {
	for _, s := range published {
		for _, o := range s.OwnerReferences {
			return o.Name, o.UID
		}
	}
	return "", ""
}

func TestARealNodeIsWhatItsNodeTypePromises(t *testing.T) {
	for name, r := range readRecordings(t) {
		for _, p := range presentations {
			t.Run(fmt.Sprintf("%s/%s", name, p.mode), func(t *testing.T) {
				v := verdict.Judge(observationOf(r, p.mode, expectationOf(t, r, r.model, p.mode))).Verdict
				made := map[string]bool{}
				for _, c := range v.Checks {
					made[c.Name] = true
					if c.Result != v1alpha1.CheckPass {
						t.Errorf("%s: %s, expected %s, observed %s", c.Name, c.Result, c.Expected, c.Observed)
					}
				}
				for _, want := range p.checks {
					if !made[want] {
						t.Errorf("the verdict has no check %s: %v", want, v.Checks)
					}
				}
			})
		}
	}
}

// wrongModels has for some models the checks by which a node of h100 is no node of theirs.
var wrongModels = map[string]map[v1alpha1.PresentationMode]string{
	"H200-SXM-141GB": {v1alpha1.ModePassthrough: "label/nvidia.com/gpu.product label/nvidia.com/gpu.memory", v1alpha1.ModeDRA: "slices/gpu.nvidia.com/gpu/productName slices/gpu.nvidia.com/gpu/memory"},
	"H100-PCIe-80GB": {v1alpha1.ModePassthrough: "label/nvidia.com/gpu.product", v1alpha1.ModeDRA: "slices/gpu.nvidia.com/gpu/productName"},
	"H100-NVL-94GB":  {v1alpha1.ModePassthrough: "label/nvidia.com/gpu.product label/nvidia.com/gpu.memory", v1alpha1.ModeDRA: "slices/gpu.nvidia.com/gpu/productName slices/gpu.nvidia.com/gpu/memory"},
	"H100-SXM5-96GB": {v1alpha1.ModePassthrough: "label/nvidia.com/gpu.memory", v1alpha1.ModeDRA: "slices/gpu.nvidia.com/gpu/memory"},
	"A100-SXM4-80GB": {
		v1alpha1.ModePassthrough: "label/nvidia.com/gpu.family label/nvidia.com/gpu.product",
		v1alpha1.ModeDRA:         "slices/gpu.nvidia.com/gpu/architecture slices/gpu.nvidia.com/gpu/productName",
	},
}

func TestARealNodeIsNoNodeOfAnotherModel(t *testing.T) {
	for name, r := range readRecordings(t) {
		for _, model := range otherModels(r) {
			for _, p := range presentations {
				v := verdict.Judge(observationOf(r, p.mode, expectationOf(t, r, model, p.mode))).Verdict
				var failed []string
				for _, c := range v.Checks {
					if c.Result == v1alpha1.CheckFail {
						failed = append(failed, c.Name)
					}
				}
				want, isNamed := wrongModels[model.Name][p.mode]
				if v.Result != v1alpha1.CheckFail || name == "h100" && isNamed && strings.Join(failed, " ") != want {
					t.Errorf("%s by %s for %s: %s, the failed checks are %q, want %q", name, p.mode, model.Name, v.Result, failed, want)
				}
			}
		}
	}
}

// otherModels returns NVIDIA's models but the one that was recorded.
func otherModels(r recording) []catalogue.Model {
	return slices.DeleteFunc(catalogue.Models(), func(m catalogue.Model) bool { return m.Vendor != v1alpha1.VendorNVIDIA || m.Name == r.model.Name })
}

func TestTheClassOfAnEntitlementSelectsTheRealDevicesOfItsModelOnly(t *testing.T) {
	for name, r := range readRecordings(t) {
		for _, model := range append(otherModels(r), r.model) {
			want := 0
			if model.Name == r.model.Name {
				want = int(r.count)
			}
			selector := classSelector(t, r, model)
			for published, in := range map[string][]resourcev1.ResourceSlice{"whole": r.slices, "dynamic MIG": r.dynamic} {
				found, err := entitlement.Find(selector, in, func(string) bool { return false })
				if err != nil || found.Admitted != want {
					t.Errorf("%s, %s: the class for %s selects %d devices, want %d: %v\n%s", name, published, model.Name, found.Admitted, want, err, selector)
				}
			}
		}
	}
}

// classSelector returns the selector of the class for whole GPUs of nodes with this model.
func classSelector(t *testing.T, r recording, model catalogue.Model) string {
	t.Helper()
	e := &v1alpha1.Entitlement{Spec: v1alpha1.EntitlementSpec{Tenant: "legal", Namespaces: v1alpha1.TenantNamespaces{Names: []string{"legal"}}, Classes: []v1alpha1.EntitledClass{
		{Name: "gpu", Kind: v1alpha1.DeviceGPU, NodeTypeRef: v1alpha1.LocalReference{Name: "n"}, Devices: 1},
	}}}
	plan := entitlement.Make(entitlement.Input{Entitlement: e, Namespaces: []string{"legal"}, Promises: map[string]entitlement.Promise{
		"n": {Expectation: expectationOf(t, r, model, v1alpha1.ModeDRA)},
	}})
	if problem := plan.Classes[0].Problem; problem != "" {
		t.Fatalf("%s: %s", model.Name, problem)
	}
	return plan.Classes[0].Selector
}
