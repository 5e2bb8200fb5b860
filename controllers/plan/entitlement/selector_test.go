package entitlement

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// promise returns what the golden plan of a NodeType promises.
func promise(t *testing.T, name string) Promise {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "presentation", "testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var plan v1alpha1.NodePlan
	if err := yaml.Unmarshal(text, &plan); err != nil {
		t.Fatal(err)
	}
	return Promise{Expectation: plan.Expectation}
}

// device returns a device of the driver of NVIDIA.
func device(kind, product, profile, memory string) resourcev1.Device {
	d := resourcev1.Device{Name: kind, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
		"type": {StringValue: ptr.To(kind)}, "productName": {StringValue: ptr.To(product)}, "architecture": {StringValue: ptr.To("Hopper")},
		"driverVersion": {VersionValue: ptr.To("999.1.2")},
	}}
	if profile != "" {
		d.Attributes["profile"] = resourcev1.DeviceAttribute{StringValue: ptr.To(profile)}
	}
	if memory != "" {
		d.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse(memory)}}
	}
	return d
}

func sliceOf(driver, node string, devices ...resourcev1.Device) resourcev1.ResourceSlice {
	return resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{Driver: driver, NodeName: ptr.To(node), Devices: devices}}
}

func TestASelectorSelectsWhatTheDriverPublishesAndNothingElse(t *testing.T) {
	h200 := func(kind, profile, memory string) resourcev1.Device {
		return device(kind, "NVIDIA H200", profile, memory)
	}
	for _, c := range []struct {
		name, promise string
		class         v1alpha1.EntitledClass
		driver        string
		device        resourcev1.Device
		want          int
	}{
		{"a whole GPU", "h200-mig-dra", v1alpha1.EntitledClass{Kind: v1alpha1.DeviceGPU}, "gpu.nvidia.com", h200("gpu", "", "141Gi"), 1},
		{"a GPU of another driver version", "h200-mig-dra", v1alpha1.EntitledClass{Kind: v1alpha1.DeviceGPU}, "gpu.nvidia.com", h200("gpu", "", ""), 1},
		{"an instance is no whole GPU", "h200-mig-dra", v1alpha1.EntitledClass{Kind: v1alpha1.DeviceGPU}, "gpu.nvidia.com", h200("mig", "3g.71gb", "70Gi"), 0},
		{"an instance", "h200-mig-dra", v1alpha1.EntitledClass{Kind: v1alpha1.DeviceMIG, Profile: "3g.71gb"}, "gpu.nvidia.com", h200("mig", "3g.71gb", "70Gi"), 1},
		{"an instance of another profile", "h200-mig-dra", v1alpha1.EntitledClass{Kind: v1alpha1.DeviceMIG, Profile: "3g.71gb"}, "gpu.nvidia.com", h200("mig", "1g.18gb", "17Gi"), 0},
		{"the GPU of another product", "h200-mig-dra", v1alpha1.EntitledClass{Kind: v1alpha1.DeviceGPU}, "gpu.nvidia.com", device("gpu", "NVIDIA H100 80GB HBM3", "", "80Gi"), 0},
		{"a product with a word of another one", "h200-mig-dra", v1alpha1.EntitledClass{Kind: v1alpha1.DeviceGPU}, "gpu.nvidia.com", device("gpu", "NVIDIA H200 NVL", "", "141Gi"), 0},
		{"a product whose name only begins so", "h200-mig-dra", v1alpha1.EntitledClass{Kind: v1alpha1.DeviceGPU}, "gpu.nvidia.com", device("gpu", "NVIDIA H2000", "", "141Gi"), 0},
		{"too little memory", "h200-mig-dra", v1alpha1.EntitledClass{Kind: v1alpha1.DeviceGPU}, "gpu.nvidia.com", h200("gpu", "", "80Gi"), 0},
		{"another driver", "h200-mig-dra", v1alpha1.EntitledClass{Kind: v1alpha1.DeviceGPU}, "gpu.example.com", h200("gpu", "", "141Gi"), 0},
		{"a device without attributes", "h200-mig-dra", v1alpha1.EntitledClass{Kind: v1alpha1.DeviceGPU}, "gpu.nvidia.com", resourcev1.Device{Name: "bare"}, 0},
		{"a GPU of AMD's without the optional attribute", "mi300x-dra", v1alpha1.EntitledClass{Kind: v1alpha1.DeviceGPU}, "gpu.amd.com", device("amdgpu", "AMD", "", ""), 1},
		{"a partition", "mi300x-cpx-dra", v1alpha1.EntitledClass{Kind: v1alpha1.DevicePartition, Profile: "cpx_nps4"}, "gpu.amd.com", partition("cpx_nps4"), 1},
		{"another partition", "mi300x-cpx-dra", v1alpha1.EntitledClass{Kind: v1alpha1.DevicePartition, Profile: "cpx_nps4"}, "gpu.amd.com", partition("dpx_nps1"), 0},
		{"a driver without types", "gaudi-dra", v1alpha1.EntitledClass{Kind: v1alpha1.DeviceGPU}, "gaudi.example.com", resourcev1.Device{Name: "bare"}, 1},
	} {
		c.class.NodeTypeRef.Name = "n"
		offered, _, problem := match(c.class, map[string]Promise{"n": promise(t, c.promise)})
		if problem != "" {
			t.Errorf("%s: %s", c.name, problem)
			continue
		}
		found, err := Find(selector(offered), []resourcev1.ResourceSlice{sliceOf(c.driver, "node", c.device)}, func(string) bool { return false })
		if err != nil || found.Admitted != c.want || found.Gated != 0 {
			t.Errorf("%s: %+v, %v, want %d by %s", c.name, found, err, c.want, selector(offered))
		}
	}
}

func partition(profile string) resourcev1.Device {
	d := device("amdgpu-partition", "AMD", "", "")
	d.Attributes["partitionProfile"] = resourcev1.DeviceAttribute{StringValue: ptr.To(profile)}
	return d
}

// TestEverySelectorCompilesAndIsCheapEnough makes a class of everything that any NodeType of the golden files promises.
func TestEverySelectorCompilesAndIsCheapEnough(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "presentation", "testdata", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	tried := map[v1alpha1.DeviceKind]int{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		p := promise(t, name)
		for _, o := range offers(p.Expectation) {
			tried[o.kind]++
			class := v1alpha1.EntitledClass{Name: "c", Kind: o.kind, Resource: o.resource, NodeTypeRef: v1alpha1.LocalReference{Name: "n"}}
			if len(o.profiles) > 0 && o.kind != v1alpha1.DeviceGPU {
				class.Profile = o.profiles[0]
			}
			offered, _, problem := match(class, map[string]Promise{"n": p})
			if problem != "" {
				t.Errorf("%s: %s: %s", name, o, problem)
			} else if o.kind != v1alpha1.DeviceResource {
				text := selector(offered)
				if _, err := Find(text, nil, nil); err != nil || len(text) > resourcev1.CELSelectorExpressionMaxLength {
					t.Errorf("%s: %s: %v (%d bytes): %s", name, o, err, len(text), text)
				}
			}
		}
	}
	for _, kind := range []v1alpha1.DeviceKind{v1alpha1.DeviceGPU, v1alpha1.DeviceMIG, v1alpha1.DeviceVFIO, v1alpha1.DevicePartition, v1alpha1.DeviceResource} {
		if tried[kind] == 0 {
			t.Errorf("no golden file has devices of kind %s", kind)
		}
	}
}

func TestAClassThatANodeTypeDoesNotPromiseIsRefusedWithWhatWouldFit(t *testing.T) {
	promises := map[string]Promise{"h200": promise(t, "h200-mig-dra"), "a100-mig": promise(t, "a100-mig-part"), "new": {Problem: "it has no rendering yet"}}
	for _, c := range []struct {
		class v1alpha1.EntitledClass
		want  []string
	}{
		{v1alpha1.EntitledClass{Kind: v1alpha1.DeviceMIG, Profile: "1g.5gb", NodeTypeRef: v1alpha1.LocalReference{Name: "h200"}}, []string{v1alpha1.ReasonNotPromised, "kind MIG with profile 1g.5gb", "kind GPU; ", "kind MIG with profile 3g.71gb"}},
		{v1alpha1.EntitledClass{Kind: v1alpha1.DeviceGPU, NodeTypeRef: v1alpha1.LocalReference{Name: "a100-mig"}}, []string{v1alpha1.ReasonNotPromised, "kind Resource with resource nvidia.com/mig-1g.5gb"}},
		{v1alpha1.EntitledClass{Kind: v1alpha1.DeviceGPU, NodeTypeRef: v1alpha1.LocalReference{Name: "b300"}}, []string{v1alpha1.ReasonNodeTypeUnknown, "there is no NodeType b300: there are a100-mig, h200, new"}},
		{v1alpha1.EntitledClass{Kind: v1alpha1.DeviceGPU, NodeTypeRef: v1alpha1.LocalReference{Name: "new"}}, []string{v1alpha1.ReasonNodeTypeUnknown, "it has no rendering yet"}},
	} {
		_, reason, problem := match(c.class, promises)
		for _, want := range c.want {
			if !strings.Contains(reason+": "+problem, want) {
				t.Errorf("%q does not say %q", reason+": "+problem, want)
			}
		}
	}
}

func TestDevicesOfNodesThatAreNotAdmittedAreCountedApart(t *testing.T) {
	offered, _, _ := match(v1alpha1.EntitledClass{Kind: v1alpha1.DeviceGPU, NodeTypeRef: v1alpha1.LocalReference{Name: "n"}}, map[string]Promise{"n": promise(t, "gaudi-dra")})
	published := []resourcev1.ResourceSlice{
		sliceOf("gaudi.example.com", "open", resourcev1.Device{Name: "a"}, resourcev1.Device{Name: "b"}), sliceOf("gaudi.example.com", "gated", resourcev1.Device{Name: "a"}),
		{Spec: resourcev1.ResourceSliceSpec{Driver: "gaudi.example.com", AllNodes: ptr.To(true), Devices: []resourcev1.Device{{Name: "c"}}}},
	}
	found, err := Find(selector(offered), published, func(node string) bool { return node == "gated" })
	if err != nil || (found != Found{Admitted: 3, Gated: 1}) {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestClaimsAreCountedByClass(t *testing.T) {
	exactly := func(class string, count int64) resourcev1.DeviceRequest {
		return resourcev1.DeviceRequest{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count}}
	}
	all := exactly("a", 0)
	all.Exactly.AllocationMode = resourcev1.DeviceAllocationModeAll
	first := resourcev1.DeviceRequest{Name: "r", FirstAvailable: []resourcev1.DeviceSubRequest{
		{Name: "x", DeviceClassName: "a", Count: 1}, {Name: "y", DeviceClassName: "a", Count: 3}, {Name: "z", DeviceClassName: "b", Count: 2},
	}}
	claim := func(results []string, requests ...resourcev1.DeviceRequest) resourcev1.ResourceClaim {
		c := resourcev1.ResourceClaim{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: requests}}}
		for _, r := range results {
			if c.Status.Allocation == nil {
				c.Status.Allocation = &resourcev1.AllocationResult{}
			}
			c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{Request: r})
		}
		return c
	}
	for _, c := range []struct {
		claim resourcev1.ResourceClaim
		want  string
	}{
		{claim(nil, exactly("a", 2)), "a:{0 2}"},
		{claim(nil, all), "a:{0 32}"},
		{claim(nil, first), "a:{0 3} b:{0 2}"},
		{claim([]string{"r", "r"}, exactly("a", 2)), "a:{2 0}"},
		{claim([]string{"r/z", "r/z"}, first), "b:{2 0}"},
	} {
		if got := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(Count([]resourcev1.ResourceClaim{c.claim})), "map["), "]"); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

func TestOfTwoEntitlementsThatContradictEachOtherTheOlderOneHolds(t *testing.T) {
	namespaces := []Namespace{{Name: "legal", Labels: map[string]string{"tenant": "legal"}}, {Name: "kube-system"}}
	entitlement := func(minute int, tenant, class string, n v1alpha1.TenantNamespaces) v1alpha1.Entitlement {
		e := v1alpha1.Entitlement{Spec: v1alpha1.EntitlementSpec{Tenant: tenant, Namespaces: n, Classes: []v1alpha1.EntitledClass{{Name: class}}}}
		e.Namespace, e.Name, e.UID = "shared", fmt.Sprintf("e%d", minute), types.UID(fmt.Sprint(minute))
		e.CreationTimestamp.Time = time.Unix(int64(minute)*60, 0)
		return e
	}
	named := func(names ...string) v1alpha1.TenantNamespaces { return v1alpha1.TenantNamespaces{Names: names} }
	for _, c := range []struct {
		name         string
		older, newer v1alpha1.Entitlement
		want         string
	}{
		{"nothing in common", entitlement(1, "a", "x", named("n1")), entitlement(2, "b", "x", named("n2")), ""},
		{"the same tenant", entitlement(1, "a", "x", named("n1")), entitlement(2, "a", "y", named("n2")), "Entitlement shared/e1, which is older, is of tenant a too"},
		{"the same DeviceClass", entitlement(1, "a", "b-c", named("n1")), entitlement(2, "a-b", "c", named("n2")), "makes a DeviceClass a-b-c too"},
		{"the same name of a namespace", entitlement(1, "a", "x", named("n1", "n3")), entitlement(2, "b", "x", named("n3")), "has namespace n3 too"},
		{"a namespace by name and by label", entitlement(1, "a", "x", named("legal")), entitlement(2, "b", "x", v1alpha1.TenantNamespaces{
			Selector: NamespaceSelector(named("legal")),
		}), "has namespace legal too"},
	} {
		both := []v1alpha1.Entitlement{c.newer, c.older}
		if got := Conflict(&c.newer, both, namespaces); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if got := Conflict(&c.older, both, namespaces); got != "" {
			t.Errorf("%s: the older one has %q", c.name, got)
		}
	}
	if got, err := NamespacesOf(v1alpha1.TenantNamespaces{Selector: NamespaceSelector(named("legal", "kube-system"))}, namespaces); err != nil || !slices.Equal(got, []string{"legal"}) {
		t.Errorf("%v, %v: a selector must not match a namespace of Kubernetes", got, err)
	}
}

// TestTwoClassesOfOneResourceAddUp: a container that asks for nvidia.com/gpu cannot say of which NodeType.
func TestTwoClassesOfOneResourceAddUp(t *testing.T) {
	first := v1alpha1.EntitledClass{Name: "a", Kind: v1alpha1.DeviceResource, Resource: "nvidia.com/mig-1g.5gb", NodeTypeRef: v1alpha1.LocalReference{Name: "first"}, Devices: 3}
	again := first
	again.Name, again.NodeTypeRef.Name, again.Devices = "b", "second", 4
	e := &v1alpha1.Entitlement{Spec: v1alpha1.EntitlementSpec{Tenant: "legal", Namespaces: v1alpha1.TenantNamespaces{Names: []string{"legal"}}, Classes: []v1alpha1.EntitledClass{first, again}}}
	plan := Make(Input{Entitlement: e, Namespaces: []string{"legal"}, Promises: map[string]Promise{"first": promise(t, "a100-mig-part"), "second": promise(t, "a100-mig-part")}})
	for _, o := range plan.Objects {
		if quota, is := o.(*corev1.ResourceQuota); is {
			if got := quota.Spec.Hard["requests.nvidia.com/mig-1g.5gb"]; got.Value() != 7 {
				t.Errorf("the namespace may have %s", got.String())
			}
			return
		}
	}
	t.Error("there is no ResourceQuota")
}
