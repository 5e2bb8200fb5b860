package tenantsoftware_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware/software"
)

// advertisers of GPUs are containers of these names.
var advertisers = []string{"nvidia-device-plugin-ctr", "gpus", "nvidia-kubevirt-gpu-dp-ctr", "amdgpu-dp-cntr", "plugin"}

// scheme has Kubernetes' own kinds.
func scheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	out := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(out); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// daemonSets are the DaemonSets among the objects, each read strictly.
func daemonSets(t testing.TB, all []*unstructured.Unstructured) []*appsv1.DaemonSet {
	t.Helper()
	decoder := serializer.NewCodecFactory(scheme(t), serializer.EnableStrict).UniversalDeserializer()
	var out []*appsv1.DaemonSet
	seen := map[string]bool{}
	for _, o := range all {
		id := o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
		if seen[id] {
			t.Errorf("%s is there twice", id)
		}
		seen[id] = true
		if slices.Contains([]string{"nvidia.com", "amd.com", "kubevirt.io"}, o.GroupVersionKind().Group) {
			continue
		}
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		typed, _, err := decoder.Decode(text, nil, nil)
		if err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if set, is := typed.(*appsv1.DaemonSet); is {
			out = append(out, set)
		}
	}
	return out
}

// selectedNodeTypes are the NodeTypes whose nodes the DaemonSet runs on.
func selectedNodeTypes(set *appsv1.DaemonSet) []string {
	return set.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0].Values
}

// checkAdvertisers checks that the GPUs of each NodeType are advertised by one DaemonSet at most, and says how many have one.
func checkAdvertisers(t testing.TB, all []*unstructured.Unstructured) map[string]int {
	t.Helper()
	out, pods := map[string]int{}, map[string]bool{}
	for _, set := range daemonSets(t, all) {
		labels := fmt.Sprint(set.Spec.Selector.MatchLabels)
		if pods[labels] || fmt.Sprint(set.Spec.Template.Labels) != labels {
			t.Errorf("the pods of %s, %s, are not its own", set.Name, labels)
		}
		pods[labels] = true
		if !slices.Contains(set.Spec.Template.Spec.Tolerations, corev1.Toleration{Key: "ingot.dev/unvalidated", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}) {
			t.Errorf("%s does not tolerate the gate", set.Name)
		}
		if slices.Contains(advertisers, set.Spec.Template.Spec.Containers[0].Name) {
			for _, name := range selectedNodeTypes(set) {
				out[name]++
			}
		}
	}
	for name, n := range out {
		if n > 1 {
			t.Errorf("%d DaemonSets advertise the GPUs of %s", n, name)
		}
	}
	return out
}

// countTolerations walks a chart's values and says how many lists of tolerations it has; each must have the gate.
func countTolerations(t testing.TB, path string, value any) int {
	t.Helper()
	n := 0
	switch v := value.(type) {
	case map[string]any:
		for key, each := range v {
			n += countTolerations(t, path+"."+key, each)
		}
	case []any:
		if strings.HasSuffix(strings.ToLower(path), "tolerations") {
			n++
			if !strings.Contains(fmt.Sprint(v), "key:ingot.dev/unvalidated") {
				t.Errorf("%s does not have the gate: %v", path, v)
			}
			return n
		}
		for _, each := range v {
			n += countTolerations(t, path, each)
		}
	}
	return n
}

func TestGPUsOfANodeAreAdvertisedOnce(t *testing.T) {
	all := nodeTypes(t)
	order := slices.Sorted(maps.Keys(all))
	conflicts := 0
	for i, a := range order {
		for _, b := range order[i:] {
			both := []software.NodeType{all[b], all[a]}
			if a == b {
				both = both[:1]
			}
			objects, err := tenantsoftware.Objects(both)
			if isConflict(t, err, a, b) {
				conflicts++
				continue
			}
			got := checkAdvertisers(t, objects)
			for _, n := range both {
				if want := expectedDaemonSets(n, both); got[n.Name] != want {
					t.Errorf("%s with %s: %d DaemonSets advertise the GPUs of %s, want %d", a, b, got[n.Name], n.Name, want)
				}
			}
		}
	}
	if conflicts == 0 {
		t.Error("no two NodeTypes are in each other's way")
	}
}

// expectedDaemonSets says how many DaemonSets of plain objects must advertise the NodeType's GPUs in the company of others.
func expectedDaemonSets(n software.NodeType, tenant []software.NodeType) int {
	if n.GPU == nil || n.GPU.Vendor == v1alpha1.VendorGeneric || n.GPU.Driver.Source == v1alpha1.DriverFromOperator && n.Plan.Expectation.Slices == nil {
		return 0
	}
	d := n.Plan.Tenant.HostDevices
	if len(d) > 0 && !d[0].External {
		return 0 // KubeVirt's own.
	}
	byOperator := slices.ContainsFunc(tenant, func(other software.NodeType) bool {
		return other.GPU != nil && other.GPU.Vendor == v1alpha1.VendorNVIDIA && other.GPU.Driver.Source == v1alpha1.DriverFromOperator
	})
	if n.GPU.Vendor == v1alpha1.VendorNVIDIA && byOperator && n.Plan.Expectation.Slices == nil {
		return 0
	}
	return 1
}

// isConflict reports whether two NodeTypes cannot share a tenant, and checks that it is said of these two.
func isConflict(t testing.TB, err error, a, b string) bool {
	t.Helper()
	var conflict *software.Conflict
	if errors.As(err, &conflict) {
		if conflict.NodeTypes != [2]string{a, b} || conflict.Message == "" || conflict.Software == "" {
			t.Errorf("%s with %s: %v", a, b, conflict)
		}
		return true
	}
	if err != nil {
		t.Fatalf("%s with %s: %v", a, b, err)
	}
	return false
}

// TestConsumableSharesHasTheValueWithoutWhichItDoesNothing: the feature gate alone only permits it.
func TestConsumableSharesHasTheValueWithoutWhichItDoesNothing(t *testing.T) {
	plain := nodeTypes(t)["h100-dra"]
	shared := plain
	shared.Plan.Tenant.FeatureGates = []string{"ConsumableShares"}
	for _, c := range []struct {
		nodeType software.NodeType
		is       bool
	}{{plain, false}, {shared, true}} {
		charts, manifests := renderSoftware(t, c.nodeType)
		if strings.Contains(charts, "consumableShares: memory") != c.is || strings.Contains(manifests, "name: CONSUMABLE_SHARES") != c.is {
			t.Errorf("with the gate %t: %s\n%s", c.is, charts, manifests)
		}
	}
}

func TestEveryChartToleratesTheGateBesideAnyOther(t *testing.T) {
	all := nodeTypes(t)
	order := slices.Sorted(maps.Keys(all))
	for i, a := range order {
		for _, b := range order[i+1:] {
			charts, err := tenantsoftware.Charts([]software.NodeType{all[a], all[b]})
			again, errAgain := tenantsoftware.Charts([]software.NodeType{all[b], all[a]})
			if fmt.Sprint(err) != fmt.Sprint(errAgain) || cmp.Diff(charts, again) != "" {
				t.Errorf("%s with %s: the order is of account: %v, %v", a, b, err, errAgain)
			}
			if isConflict(t, err, a, b) {
				continue
			}
			for _, c := range charts {
				n := countTolerations(t, c.Name, c.Values)
				for _, o := range c.Objects {
					n += countTolerations(t, o.GetKind(), o.Object)
				}
				if n == 0 && c.Name != "kubevirt" {
					t.Errorf("%s with %s: nothing of %s tolerates anything", a, b, c.Name)
				}
			}
		}
	}
}

func TestNodeTypesWithoutConflictAreServedTogetherInAnyOrder(t *testing.T) {
	all := nodeTypes(t)
	var tenant []software.NodeType
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if _, err := tenantsoftware.Objects(append(tenant, all[name])); err == nil {
			tenant = append(tenant, all[name])
		}
	}
	if len(tenant) < len(all)/2 {
		t.Fatalf("only %d of %d get along", len(tenant), len(all))
	}
	first, err := tenantsoftware.Objects(tenant)
	if err != nil {
		t.Fatal(err)
	}
	checkAdvertisers(t, first)
	slices.Reverse(tenant)
	second, err := tenantsoftware.Objects(tenant)
	if diff := cmp.Diff(first, second); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func TestAConflictNamesBothNodeTypes(t *testing.T) {
	all := nodeTypes(t)
	labelled := all["h100-sxm-8"]
	labelled.Labels = map[string]string{"nvidia.com/gpu.deploy.container-toolkit": "false"}
	single := all["h100-mig-operator"]
	single.Name, single.Plan.Tenant.MIGStrategy = "single", "single"
	newer := all["a40-vgpu-operator"]
	newer.Name, newer.Plan.Tenant.DriverVersion = "newer", "580.1"
	other := all["h100-time-slicing"]
	changed := *other.Plan.Tenant.PluginConfig
	changed.Content += "# other\n"
	other.Name, other.Plan.Tenant.PluginConfig = "other", &changed
	for sentence, tt := range map[string]struct {
		tenant []software.NodeType
		says   string
	}{
		"two toolkits":                {[]software.NodeType{all["a100-operator"], all["h100-sxm-8"]}, `NodeTypes a100-operator and h100-sxm-8: the GPU operator: it installs the container toolkit that a100-operator needs on every node with GPUs, and the nodes of h100-sxm-8 have one: set node.labels nvidia.com/gpu.deploy.container-toolkit: "false" in h100-sxm-8`},
		"a label keeps one away":      {[]software.NodeType{all["a100-operator"], labelled}, ""},
		"single and mixed":            {[]software.NodeType{single, all["h100-mig-operator"]}, "they want mixed and single: give both the same mig.strategy"},
		"two vGPU managers":           {[]software.NodeType{newer, all["a40-vgpu-operator"]}, "they want 550.163.02 and 580.1"},
		"two gates of the DRA driver": {[]software.NodeType{all["h100-dra-vfio"], all["h100-dra"]}, "apply --output operator-manifests"},
		"domains beside claims":       {[]software.NodeType{all["gb200-4"], all["h100-dra"]}, "where it would publish the GPUs that the device plugin advertises"},
		"two of one name":             {[]software.NodeType{all["h100-dra"], all["h100-dra"]}, "two NodeTypes have the name h100-dra"},
		"one name, two contents":      {[]software.NodeType{all["h100-time-slicing"], other}, "both name a configuration ingot-time-slicing-4"},
	} {
		_, err := tenantsoftware.Charts(tt.tenant)
		if tt.says == "" && err != nil || tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%s: %v", sentence, err)
		}
	}
}

func TestTheOperatorInstallsADriverForEachNodeTypeThatNeedsItsOwn(t *testing.T) {
	all := nodeTypes(t)
	older := all["h100-mig-operator"]
	older.Plan.Tenant.DriverVersion, older.Plan.Tenant.KernelModule = "570.172.08", "Open"
	charts, err := tenantsoftware.Charts([]software.NodeType{older, all["a100-operator"]})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range charts[0].Objects {
		if o.GetKind() == "NVIDIADriver" {
			spec := o.Object["spec"].(map[string]any)
			got = append(got, fmt.Sprintf("%s %s %s %s", o.GetName(), spec["version"], spec["kernelModuleType"], spec["nodeSelector"]))
		}
	}
	want := []string{"ingot-a100-operator 580.126.09 auto map[ingot.dev/nodetype:a100-operator]", "ingot-h100-mig-operator 570.172.08 open map[ingot.dev/nodetype:h100-mig-operator]"}
	if diff := cmp.Diff(want, got); diff != "" || charts[0].Values["driver"].(map[string]any)["version"] != nil {
		t.Error(diff, charts[0].Values["driver"])
	}
}

func TestConfigurationsOfADaemonSetAreThoseThatNodesName(t *testing.T) {
	all := nodeTypes(t)
	objects, err := tenantsoftware.Objects([]software.NodeType{all["l40s-mps"], all["h100-time-slicing"], all["h100-sxm-8"], all["h100-mig-mixed"]})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, set := range daemonSets(t, objects) {
		container := set.Spec.Template.Spec.Containers[0]
		at := slices.IndexFunc(container.Env, func(e corev1.EnvVar) bool { return e.Name == "MIG_STRATEGY" })
		line := fmt.Sprint(set.Name, " ", selectedNodeTypes(set), " ", container.Env[at].Value)
		for _, v := range set.Spec.Template.Spec.Volumes {
			if v.ConfigMap != nil {
				line += " " + v.ConfigMap.Items[0].Key + "=" + all[selectedNodeTypes(set)[0]].Plan.NodeLabels["nvidia.com/device-plugin.config"]
			}
		}
		got = append(got, line)
	}
	if diff := cmp.Diff([]string{
		"nvidia-device-plugin-daemonset [h100-sxm-8] none",
		"gpu-feature-discovery [h100-sxm-8] none",
		"nvidia-device-plugin-daemonset-ingot-mps-8 [l40s-mps] none ingot-mps-8=ingot-mps-8",
		"gpu-feature-discovery-ingot-mps-8 [l40s-mps] none ingot-mps-8=ingot-mps-8",
		"nvidia-mps-control-daemon-ingot-mps-8 [l40s-mps] none ingot-mps-8=ingot-mps-8",
		"nvidia-device-plugin-daemonset-ingot-time-slicing-4 [h100-time-slicing] none ingot-time-slicing-4=ingot-time-slicing-4",
		"gpu-feature-discovery-ingot-time-slicing-4 [h100-time-slicing] none ingot-time-slicing-4=ingot-time-slicing-4",
		"nvidia-device-plugin-daemonset-mig-mixed [h100-mig-mixed] mixed",
		"gpu-feature-discovery-mig-mixed [h100-mig-mixed] mixed",
	}, got); diff != "" {
		t.Error(diff)
	}
}
