package entitlement

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

// exactly is a claim of one device of a class.
func exactly(class string, change ...func(*resourcev1.ExactDeviceRequest)) resourcev1.ResourceClaimSpec {
	r := &resourcev1.ExactDeviceRequest{DeviceClassName: class}
	for _, c := range change {
		c(r)
	}
	return requests(resourcev1.DeviceRequest{Name: "r", Exactly: r})
}

func requests(all ...resourcev1.DeviceRequest) resourcev1.ResourceClaimSpec {
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: all}}
}

// firstOf is a claim of the first class of which there is a device.
func firstOf(classes ...string) resourcev1.ResourceClaimSpec {
	r := resourcev1.DeviceRequest{Name: "r"}
	for i, c := range classes {
		r.FirstAvailable = append(r.FirstAvailable, resourcev1.DeviceSubRequest{Name: fmt.Sprintf("s%d", i), DeviceClassName: c})
	}
	return requests(r)
}

func tolerates(t resourcev1.DeviceToleration) func(*resourcev1.ExactDeviceRequest) {
	return func(r *resourcev1.ExactDeviceRequest) { r.Tolerations = []resourcev1.DeviceToleration{t} }
}

// part asks for a part of a device.
func part(r *resourcev1.ExactDeviceRequest) {
	r.Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse("1Gi")}}
}

// tells adds parameters for a driver to a claim.
func tells(driver, parameters string, claim resourcev1.ResourceClaimSpec) resourcev1.ResourceClaimSpec {
	claim.Devices.Config = append(claim.Devices.Config, resourcev1.DeviceClaimConfiguration{DeviceConfiguration: resourcev1.DeviceConfiguration{
		Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: driver, Parameters: apiruntime.RawExtension{Raw: []byte(parameters)}},
	}})
	return claim
}

func count(n int64) func(*resourcev1.ExactDeviceRequest) {
	return func(r *resourcev1.ExactDeviceRequest) { r.Count = n }
}

func pod(change ...func(*corev1.PodSpec)) corev1.PodSpec {
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "registry.example/none"}}}
	for _, c := range change {
		c(&spec)
	}
	return spec
}

// asks sets the limit, and with it the request, of a resource.
func asks(name string, n int64) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		s.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceName(name): *resource.NewQuantity(n, resource.DecimalSI)}
	}
}

func podTolerates(t corev1.Toleration) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) { s.Tolerations = []corev1.Toleration{t} }
}

// TestTheSharedClusterRefusesWhatATenantIsNotEntitledTo creates each object in the namespace of the tenant. Nothing of it is kept. Quotas are exceeded
// by single objects.
func TestTheSharedClusterRefusesWhatATenantIsNotEntitledTo(t *testing.T) {
	addNodeType(t, "h100-dra")
	addNodeType(t, "a100-mig-part")
	r := newRig(t)
	r.entitle(classes()...)
	r.start(server.Cluster.Kubeconfig())
	r.awaitCondition("legal", v1alpha1.ConditionEnforced, v1alpha1.ReasonEnforced)
	mine := r.tenant + "-h100"
	// Without it the API server itself refuses adminAccess.
	r.labelNamespace(r.tenant, "resource.kubernetes.io/admin-access", "true")
	for _, other := range []string{"gpu.nvidia.com", "research-a100"} {
		c := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: other}}
		if err := server.Client.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Client.Delete(context.Background(), c) })
	}
	const gate = v1alpha1.DefaultGateTaintKey
	noClass, noGate, noResource := "claims of tenant "+r.tenant+" may name only these DeviceClasses, also in firstAvailable: "+mine, "may not tolerate the gate", "may ask only for these of the resources"
	const noParameters = "may give drivers only these parameters, with no members but apiVersion, kind, sharing and iommu: gpu.nvidia.com GpuConfig ("
	all := resourcev1.DeviceAllocationModeAll
	// A policy is enforced some moments after it was created.
	management.Eventually(t, "the policies are at work", func() bool {
		return r.try(exactly("gpu.nvidia.com")) != nil && r.try(pod(asks("nvidia.com/gpu", 1))) != nil && r.try(exactly(mine, count(3))) != nil
	})
	for _, c := range []struct {
		name string
		// object is the spec of a claim, and also of a template, or that of a Pod.
		object any
		// says is a part of the refusal; empty: it is allowed.
		says string
	}{
		{"the tenant's class", exactly(mine), ""},
		{"as many as the quota", exactly(mine, count(2)), ""},
		{"one more than the quota", exactly(mine, count(3)), "quota"},
		{"all devices, which count 32", exactly(mine, func(e *resourcev1.ExactDeviceRequest) { e.AllocationMode = all }), "quota"},
		{"two requests within the quota", requests(exactly(mine).Devices.Requests[0], named("r2", exactly(mine))), ""},
		{"two requests over the quota", requests(exactly(mine, count(2)).Devices.Requests[0], named("r2", exactly(mine))), "quota"},
		{"no request at all", requests(), ""},
		{"a class of another tenant by its guessed name", exactly("research-a100"), noClass},
		{"the vendor's class", exactly("gpu.nvidia.com"), noClass},
		{"a class that does not exist", exactly("nothing"), noClass},
		{"a name that begins as the tenant's", exactly(mine + "-2"), noClass},
		{"alternatives of the tenant's", firstOf(mine, mine), ""},
		{"the second alternative is another tenant's", firstOf(mine, "research-a100"), noClass},
		{"the first alternative is another tenant's", firstOf("research-a100", mine), noClass},
		{"the second request is another tenant's", requests(exactly(mine).Devices.Requests[0], named("r2", exactly("research-a100"))), noClass},
		{"the second request has an alternative of another tenant", requests(exactly(mine).Devices.Requests[0], named("r2", firstOf(mine, "research-a100"))), noClass},
		{"adminAccess", exactly(mine, func(e *resourcev1.ExactDeviceRequest) { e.AdminAccess = ptr.To(true) }), "may not use adminAccess"},
		{"adminAccess that is false", exactly(mine, func(e *resourcev1.ExactDeviceRequest) { e.AdminAccess = ptr.To(false) }), ""},
		{"a device toleration of the gate", exactly(mine, tolerates(resourcev1.DeviceToleration{Key: gate, Operator: resourcev1.DeviceTolerationOpExists})), noGate},
		{"a device toleration of everything", exactly(mine, tolerates(resourcev1.DeviceToleration{Operator: resourcev1.DeviceTolerationOpExists})), noGate},
		{"a device toleration of something else", exactly(mine, tolerates(resourcev1.DeviceToleration{Key: "example.com/a", Operator: resourcev1.DeviceTolerationOpExists})), ""},
		{"a device toleration of the gate in an alternative", requests(resourcev1.DeviceRequest{Name: "r", FirstAvailable: []resourcev1.DeviceSubRequest{{
			Name: "s", DeviceClassName: mine, Tolerations: []resourcev1.DeviceToleration{{Key: gate, Operator: resourcev1.DeviceTolerationOpExists}},
		}}}), noGate},
		{"the time slices of its own GPU", tells("gpu.nvidia.com", `{"apiVersion":"resource.nvidia.com/v1beta1","kind":"GpuConfig","sharing":{"strategy":"TimeSlicing"}}`, exactly(mine)), ""},
		{"parameters of a kind of device that no class has", tells("gpu.nvidia.com", `{"apiVersion":"resource.nvidia.com/v1beta1","kind":"VfioDeviceConfig"}`, exactly(mine)), noParameters},
		{"the channel of a ComputeDomain", tells("compute-domain.nvidia.com", `{"apiVersion":"resource.nvidia.com/v1beta1","kind":"ComputeDomainChannelConfig","domainID":"a"}`, exactly(mine)), noParameters},
		{"the parameters of the class to another driver", tells("gpu.example.com", `{"kind":"GpuConfig"}`, exactly(mine)), noParameters},
		{"parameters of no kind", tells("gpu.nvidia.com", `{"sharing":{}}`, exactly(mine)), noParameters},
		{"a kind that is no text", tells("gpu.nvidia.com", `{"kind":1}`, exactly(mine)), "denied request"},
		{"a second kind that a driver reads", tells("gpu.nvidia.com", `{"kind":"GpuConfig","Kind":"ComputeDomainChannelConfig"}`, exactly(mine)), noParameters},
		{"a second kind with the sign of Kelvin", tells("gpu.nvidia.com", "{\"kind\":\"GpuConfig\",\"\u212aind\":\"ComputeDomainChannelConfig\"}", exactly(mine)), noParameters},
		{"the second of two parameters", tells("gpu.example.com", `{"kind":"Any"}`, tells("gpu.nvidia.com", `{"kind":"GpuConfig"}`, exactly(mine))), noParameters},
		{"parameters for a part of a device", tells("gpu.nvidia.com", `{"kind":"GpuConfig"}`, exactly(mine, part)), "may give drivers no parameters for devices of which they ask a part"},
		{"a part of a device", exactly(mine, part), ""},

		{"a pod without devices", pod(), ""},
		{"a pod with cpu and memory", pod(asks("cpu", 1)), ""},
		{"a pod with a resource that is not shared out", pod(asks("example.com/thing", 1)), ""},
		{"a pod with the resource of the class", pod(asks("nvidia.com/mig-1g.5gb", 4)), ""},
		{"a pod with more than the quota", pod(asks("nvidia.com/mig-1g.5gb", 5)), "quota"},
		{"a pod with another profile", pod(asks("nvidia.com/mig-3g.20gb", 1)), noResource},
		{"a pod with whole GPUs", pod(asks("nvidia.com/gpu", 1)), noResource},
		{"a pod with shared GPUs", pod(asks("nvidia.com/gpu.shared", 1)), noResource},
		{"a pod with a vendor that no NodeType has", pod(asks("amd.com/gpu", 1)), noResource},
		{"a pod with a network device that NodeTypes promise", pod(asks("rdma/hca", 1)), noResource},
		{"a pod with the tenant's class as a resource", pod(asks("deviceclass.resource.kubernetes.io/"+mine, 2)), ""},
		{"a pod with too many of the class as a resource", pod(asks("deviceclass.resource.kubernetes.io/"+mine, 3)), "quota"},
		{"a pod with another class as a resource", pod(asks("deviceclass.resource.kubernetes.io/research-a100", 1)), noResource},
		{"an init container with whole GPUs", pod(func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{{Name: "i", Image: "registry.example/none", Resources: pod(asks("nvidia.com/gpu", 1)).Containers[0].Resources}}
		}), noResource},
		{"the second container with whole GPUs", pod(func(s *corev1.PodSpec) {
			s.Containers = append(s.Containers, corev1.Container{Name: "d", Image: "registry.example/none", Resources: pod(asks("nvidia.com/gpu", 1)).Containers[0].Resources})
		}), noResource},
		{"a pod that tolerates the gate", pod(podTolerates(corev1.Toleration{Key: gate, Operator: corev1.TolerationOpExists})), noGate},
		{"a pod that tolerates the gate's value", pod(podTolerates(corev1.Toleration{Key: gate, Operator: corev1.TolerationOpEqual})), noGate},
		{"a pod that tolerates everything", pod(podTolerates(corev1.Toleration{Operator: corev1.TolerationOpExists})), noGate},
		{"a pod that tolerates every NoSchedule", pod(podTolerates(corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})), noGate},
		{"a pod that tolerates something else", pod(podTolerates(corev1.Toleration{Key: "example.com/a", Operator: corev1.TolerationOpExists})), ""},
		{"a pod with a node", pod(func(s *corev1.PodSpec) { s.NodeName = "somewhere" }), "may not set spec.nodeName"},
	} {
		err := r.try(c.object)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
		spec, isClaim := c.object.(resourcev1.ResourceClaimSpec)
		if !isClaim || c.says == "quota" {
			continue // Templates have no quota: the claims that are made from them have.
		}
		if err := r.try(resourcev1.ResourceClaimTemplateSpec{Spec: spec}); (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("a template with %s: %v, want %q", c.name, err, c.says)
		}
	}
}

// labelNamespace sets a label of a namespace.
func (r *rig) labelNamespace(name, key, value string) {
	r.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := server.Client.Patch(r.t.Context(), namespace, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, key, value))); err != nil {
		r.t.Fatal(err)
	}
}

// TestAChangeOfAPodIsJudgedToo: tolerations may be added to a Pod that exists.
func TestAChangeOfAPodIsJudgedToo(t *testing.T) {
	r := newRig(t)
	r.enforced()
	management.Eventually(t, "the policies are at work", func() bool { return r.try(pod(asks("nvidia.com/gpu", 1))) != nil })
	for key, says := range map[string]string{v1alpha1.DefaultGateTaintKey: "may not tolerate the gate", "": "may not tolerate the gate", "example.com/a": ""} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.tenant, GenerateName: "changed-"}, Spec: pod()}
		if err := server.Client.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		before := p.DeepCopy()
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
		if err := server.Client.Patch(t.Context(), p, client.MergeFrom(before)); (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("toleration of key %q: %v, want %q", key, err, says)
		}
	}
}

// TestATenantMayHaveItsNamespacesByLabel has a label key of the site for its tenants, and no node yet.
func TestATenantMayHaveItsNamespacesByLabel(t *testing.T) {
	addNodeType(t, "h100-dra")
	r := newRig(t)
	for _, namespace := range []string{r.tenant, metav1.NamespaceSystem} {
		r.labelNamespace(namespace, "team", r.tenant)
	}
	server.Create(t, &v1alpha1.Entitlement{ObjectMeta: r.meta("legal"), Spec: v1alpha1.EntitlementSpec{
		TenantClusterRef: v1alpha1.LocalReference{Name: "shared"}, Tenant: r.tenant, TenantLabel: "example.com/owner",
		Namespaces: v1alpha1.TenantNamespaces{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": r.tenant}}},
		Classes:    []v1alpha1.EntitledClass{class("h100", "h100-dra", v1alpha1.DeviceGPU, 2)},
	}})
	r.start(server.Cluster.Kubeconfig())
	r.awaitCondition("legal", v1alpha1.ConditionEnforced, v1alpha1.ReasonEnforced)
	r.awaitClass("h100", v1alpha1.ReasonSelectsNothing)
	if c, err := r.deviceClass(r.tenant + "-h100"); err != nil || c.Labels["example.com/owner"] != r.tenant || c.Labels[v1alpha1.LabelTenant] != "" {
		t.Errorf("%+v, %v", c.Labels, err)
	}
	if n := r.read("legal").Status.Namespaces; n != 1 {
		t.Errorf("the tenant has %d namespaces, and kube-system is no tenant's", n)
	}
	management.Eventually(t, "the policies are at work", func() bool { return r.try(exactly("research-a100")) != nil })
	elsewhere := *r
	elsewhere.tenant = server.Namespace(t)
	if err := elsewhere.try(exactly("research-a100")); err != nil {
		t.Errorf("a namespace of nobody: %v", err)
	}
	r.labelNamespace(elsewhere.tenant, "team", r.tenant)
	management.Eventually(t, "a namespace that gets the label is fenced at once", func() bool { return elsewhere.try(exactly("research-a100")) != nil })
	if err := server.Client.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, GenerateName: "driver-"}, Spec: pod(podTolerates(corev1.Toleration{Operator: corev1.TolerationOpExists}))}, client.DryRunAll); err != nil {
		t.Errorf("a pod of the cluster itself: %v", err)
	}
}

// named returns the request of a claim under another name.
func named(name string, spec resourcev1.ResourceClaimSpec) resourcev1.DeviceRequest {
	out := spec.Devices.Requests[0]
	out.Name = name
	return out
}

// try creates an object and, if that is allowed, deletes it. A Pod is gone at once, so that no scheduler sees it.
func (r *rig) try(spec any) error {
	r.t.Helper()
	meta := metav1.ObjectMeta{Namespace: r.tenant, GenerateName: "try-"}
	var object client.Object
	switch s := spec.(type) {
	case resourcev1.ResourceClaimSpec:
		object = &resourcev1.ResourceClaim{ObjectMeta: meta, Spec: *s.DeepCopy()}
	case resourcev1.ResourceClaimTemplateSpec:
		object = &resourcev1.ResourceClaimTemplate{ObjectMeta: meta, Spec: *s.DeepCopy()}
	case corev1.PodSpec:
		object = &corev1.Pod{ObjectMeta: meta, Spec: *s.DeepCopy()}
	}
	// With dryRun nothing is charged to the quota for longer than the request.
	return server.Client.Create(r.t.Context(), object, client.DryRunAll)
}

func TestOnlyTheSchedulerBindsAndARunningClaimKeepsItsDevice(t *testing.T) {
	addNodeType(t, "h100-dra")
	r := newRig(t)
	addNode(t, r.namespace+"-gated", 1, corev1.Taint{Key: v1alpha1.DefaultGateTaintKey, Effect: corev1.TaintEffectNoSchedule})
	r.entitle(class("h100", "h100-dra", v1alpha1.DeviceGPU, 2))
	r.start(server.Cluster.Kubeconfig())
	r.awaitCondition("legal", v1alpha1.ConditionEnforced, v1alpha1.ReasonEnforced)
	if got := r.awaitClass("h100", v1alpha1.ReasonNodesNotAdmitted); got.Entitled != 2 || got.Admitted != 0 {
		t.Errorf("%+v", got)
	}
	management.Eventually(t, "the policies are at work", func() bool {
		return r.try(exactly("gpu.nvidia.com")) != nil && r.try(pod(asks("nvidia.com/gpu", 1))) != nil
	})

	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: r.tenant, Name: "training", Finalizers: []string{"example.com/kept"}}, Spec: exactly(r.tenant + "-h100")}
	worker := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.tenant, Name: "training"}, Spec: pod(func(s *corev1.PodSpec) {
		s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: ptr.To("training")}}
		s.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	})}
	server.Create(t, claim, worker)
	management.Eventually(t, "the scheduler says that it finds no node", func() bool {
		var p corev1.Pod
		return server.Client.Get(t.Context(), client.ObjectKeyFromObject(worker), &p) == nil && len(p.Status.Conditions) > 0 && p.Status.Conditions[0].Reason == corev1.PodReasonUnschedulable
	})
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: r.namespace + "-gated"}}
	if err := as(t, "legal-admin").SubResource("binding").Create(t.Context(), worker, binding); err == nil || !strings.Contains(err.Error(), "are bound by a scheduler alone: system:kube-scheduler") {
		t.Errorf("a tenant binds its pod to a gated node: %v", err)
	}
	config := rest.CopyConfig(server.Config)
	config.GroupVersion, config.APIPath, config.NegotiatedSerializer = &corev1.SchemeGroupVersion, "/api", serializer.NewCodecFactory(server.Scheme)
	raw, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	binding.Name, binding.Namespace, binding.ResourceVersion = worker.Name, r.tenant, ""
	if err := raw.Post().Namespace(r.tenant).Resource("bindings").Body(binding).Do(t.Context()).Error(); err == nil || !strings.Contains(err.Error(), "are bound by a scheduler alone") {
		t.Errorf("a tenant binds its pod by the older resource bindings: %v", err)
	}
	r.nudge()
	management.Eventually(t, "the claim is counted as pending", func() bool { return r.awaitClass("h100", v1alpha1.ReasonNodesNotAdmitted).Pending == 1 })

	addNode(t, r.namespace+"-open", 1)
	management.Eventually(t, "the real scheduler gives the device of the admitted node", func() bool {
		var p corev1.Pod
		return server.Client.Get(t.Context(), client.ObjectKeyFromObject(worker), &p) == nil && p.Spec.NodeName == r.namespace+"-open"
	})
	r.nudge()
	management.Eventually(t, "the claim is counted as allocated", func() bool {
		got := r.awaitClass("h100", v1alpha1.ReasonDevicesAvailable)
		return got.Allocated == 1 && got.Pending == 0 && got.Admitted == 1
	})

	r.change(func(e *v1alpha1.Entitlement) { e.Spec.Classes = nil })
	management.Eventually(t, "no new claim gets in", func() bool {
		err := r.try(exactly(r.tenant + "-h100"))
		return err != nil && strings.Contains(err.Error(), "also in firstAvailable: none")
	})
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil || claim.Status.Allocation == nil {
		t.Errorf("the claim that runs has lost its device: %v", err)
	}
	if message := r.awaitCondition("legal", v1alpha1.ConditionWithinLimits, v1alpha1.ReasonOverEntitled); !strings.Contains(message, "claims have 1 of "+r.tenant+"-h100, which is no class of the Entitlement") {
		t.Error(message)
	}
	e := r.read("legal")
	if c := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionReady); c.Message != "no classes: a fence with nothing in it" || len(e.Status.Holdings) != 1 || e.Status.Holdings[0].Devices[r.tenant+"-h100"] != 1 {
		t.Errorf("%s; what is held of a class that was taken away: %+v", c.Message, e.Status.Holdings)
	}
	before := claim.DeepCopy()
	claim.Finalizers = nil
	if err := server.Client.Patch(t.Context(), claim, client.MergeFrom(before)); err != nil {
		t.Errorf("the finalizer of a claim whose class was taken away cannot be removed: %v", err)
	}
}
