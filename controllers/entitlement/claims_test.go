package entitlement

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

// allocate creates a claim and gives it a device, as the scheduler does.
func (r *rig) allocate(name string) *resourcev1.ResourceClaim {
	r.t.Helper()
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: r.tenant, Name: name}, Spec: exactly(r.tenant + "-h100")}
	if err := server.Client.Create(r.t.Context(), claim); err != nil {
		r.t.Fatal(err)
	}
	claim.Status.Allocation = &resourcev1.AllocationResult{
		Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: "gpu.nvidia.com", Pool: "node-1", Device: name}}},
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"node-1"}}},
		}}},
	}
	if err := server.Client.Status().Update(r.t.Context(), claim); err != nil {
		r.t.Fatal(err)
	}
	return claim
}

func (r *rig) end(claim *resourcev1.ResourceClaim) {
	r.t.Helper()
	if err := server.Client.Delete(r.t.Context(), claim); err != nil {
		r.t.Fatal(err)
	}
}

// reports returns the events of claims, such as "ClaimBegan claim training".
func (r *rig) reports() []string {
	r.t.Helper()
	var list eventsv1.EventList
	if err := server.Client.List(r.t.Context(), &list, client.InNamespace(r.namespace)); err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for _, e := range list.Items {
		if strings.HasPrefix(e.Reason, "Claim") && e.Regarding.Name == "legal" {
			_, rest, _ := strings.Cut(e.Note, "claim "+r.tenant+"/")
			name, _, _ := strings.Cut(rest, " ")
			out = append(out, e.Reason+" "+name)
		}
	}
	slices.Sort(out)
	return out
}

func (r *rig) awaitReports(what string, want ...string) {
	r.t.Helper()
	slices.Sort(want)
	var got []string
	defer func() {
		if r.t.Failed() {
			r.t.Logf("the events are %v, and not %v", got, want)
		}
	}()
	management.Eventually(r.t, what, func() bool { got = r.reports(); return slices.Equal(got, want) })
}

// TestEachClaimIsReportedOnce has a claim of every kind: one that was there before, that begins, that begins and ends within one look, that ends while no manager
// runs, and that begins then.
func TestEachClaimIsReportedOnce(t *testing.T) {
	addNodeType(t, "h100-dra")
	r := newRig(t)
	stop := r.enforced(class("h100", "h100-dra", v1alpha1.DeviceGPU, 20))
	management.Eventually(t, "the class can be claimed", func() bool { return r.try(exactly(r.tenant+"-h100")) == nil })

	staying, ending := r.allocate("staying"), r.allocate("ending")
	r.end(r.allocate("short"))
	began := []string{"ClaimBegan staying", "ClaimBegan ending", "ClaimBegan short", "ClaimEnded short"}
	r.awaitReports("what begins and ends is reported", began...)
	management.Eventually(t, "the claims are remembered", func() bool { return len(r.read("legal").Status.Holdings) == 2 })
	for _, h := range r.read("legal").Status.Holdings {
		if h.Namespace != r.tenant || h.Node != "node-1" || h.Devices[r.tenant+"-h100"] != 1 || h.UID == "" || h.Since.IsZero() {
			t.Errorf("%+v", h)
		}
	}
	stop()

	r.end(ending)
	r.allocate("new")
	stop = r.start(server.Cluster.Kubeconfig())
	began = append(began, "ClaimEnded ending", "ClaimBegan new")
	r.awaitReports("what has changed while no manager ran is reported, and nothing else", began...)
	stop()

	// The manager ended before it could write the status: the events are there already.
	before := r.read("legal")
	after := before.DeepCopy()
	after.Status.Holdings = nil
	if err := server.Client.Status().Patch(t.Context(), after, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	r.start(server.Cluster.Kubeconfig())
	management.Eventually(t, "the claims are remembered again", func() bool { return len(r.read("legal").Status.Holdings) == 2 })
	r.awaitReports("nothing is reported twice", began...)
	r.end(staying)
	r.awaitReports("a claim that was there before ends", append(began, "ClaimEnded staying")...)
}

// TestAClaimOfSomebodyElseIsNotReported has a claim in a namespace of no tenant.
func TestAClaimOfSomebodyElseIsNotReported(t *testing.T) {
	addNodeType(t, "h100-dra")
	r := newRig(t)
	r.enforced(class("h100", "h100-dra", v1alpha1.DeviceGPU, 20))
	elsewhere := *r
	elsewhere.tenant = server.Namespace(t)
	claim := elsewhere.allocate("theirs")
	t.Cleanup(func() { _ = server.Client.Delete(context.Background(), claim) })
	r.allocate("ours")
	r.awaitReports("only the tenant's own is reported", "ClaimBegan ours")
}

// waits returns what waits, such as "Pod QuotaExceeded 2".
func (r *rig) waits() []string {
	var out []string
	for _, w := range r.read("legal").Status.Waits {
		out = append(out, fmt.Sprintf("%s %s %d", w.Kind, w.Reason, w.Count))
	}
	return out
}

// withTemplate has the pod use a claim of the template "gpu".
func withTemplate(s *corev1.PodSpec) {
	s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("gpu")}}
	s.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
}

// TestWhatWaitsForDevicesIsSaid has one claim that no pod asks for, two pods of a template of which the quota allows one, and one that asks for a resource.
func TestWhatWaitsForDevicesIsSaid(t *testing.T) {
	addNodeType(t, "h100-dra")
	addNodeType(t, "a100-mig-part")
	r := newRig(t)
	all := classes()
	all[0].Devices = 2
	r.enforced(all...)
	management.Eventually(t, "the quota is at work", func() bool { return r.try(exactly(r.tenant+"-h100", count(3))) != nil })
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: r.tenant, Name: "gpu"}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: exactly(r.tenant + "-h100")}}
	unused := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: r.tenant, Name: "unused"}, Spec: exactly(r.tenant + "-h100")}
	server.Create(t, template, unused)
	add := func(name string, change func(*corev1.PodSpec)) {
		server.Create(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.tenant, Name: name}, Spec: pod(change)})
	}
	// Otherwise the devices of other tests go to these pods.
	t.Cleanup(func() {
		for _, o := range []client.Object{&corev1.Pod{}, &resourcev1.ResourceClaim{}} {
			if err := server.Client.DeleteAllOf(context.Background(), o, client.InNamespace(r.tenant), client.GracePeriodSeconds(0)); err != nil {
				t.Error(err)
			}
		}
	})
	add("first", withTemplate)
	management.Eventually(t, "the first pod has its claim", func() bool {
		var p corev1.Pod
		return server.Client.Get(t.Context(), client.ObjectKey{Namespace: r.tenant, Name: "first"}, &p) == nil && len(p.Status.ResourceClaimStatuses) == 1
	})
	add("second", withTemplate)
	add("plugin", asks("nvidia.com/mig-1g.5gb", 3))
	add("without", func(*corev1.PodSpec) {})
	want := []string{"Pod QuotaExceeded 1", "Pod Unschedulable 2", "ResourceClaim Unallocated 1", "ResourceClaim Unused 1"}
	var got []string
	defer func() { t.Logf("%v, wanted %v", got, want) }()
	management.Eventually(t, "all that waits is counted", func() bool {
		r.nudge()
		r.awaitCondition("legal", v1alpha1.ConditionEnforced, v1alpha1.ReasonEnforced)
		got = r.waits()
		return slices.Equal(got, want)
	})
	for _, w := range r.read("legal").Status.Waits {
		says := map[v1alpha1.WaitReason]string{v1alpha1.WaitQuotaExceeded: "exceeded quota: ingot-" + r.tenant + ", requested: ", v1alpha1.WaitUnschedulable: "nodes"}[w.Reason]
		if !strings.Contains(w.Message, says) || w.Since.IsZero() || !strings.HasPrefix(w.Longest, r.tenant+"/") {
			t.Errorf("%+v, expected the message to have %q", w, says)
		}
		if w.Reason == v1alpha1.WaitQuotaExceeded && (!strings.HasPrefix(w.Message, says) || !strings.Contains(w.Message, "limited: ") || !strings.HasSuffix(w.Message, r.tenant+"-h100.deviceclass.resource.k8s.io/devices=2")) {
			t.Errorf("the message says less, or more, than why: %s", w.Message)
		}
	}
	for _, c := range r.read("legal").Status.Classes {
		if wanted := map[string]int32{"h100": 2, "mig-1g": 3}[c.Name]; c.Pending != wanted || c.Allocated != 0 {
			t.Errorf("class %s: %d pending and %d allocated, expected %d and none", c.Name, c.Pending, c.Allocated, wanted)
		}
	}
}
