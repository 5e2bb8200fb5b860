package entitlement

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
	"github.com/ingot-dev/ingot/test/loopback"
	"github.com/ingot-dev/ingot/test/management"
)

// hand is a controller without a manager, that a test starts by hand.
type hand struct {
	*rig
	reconciler *Reconciler
	clock      *testingclock.FakePassiveClock
	// lines are those of its log.
	lines []string
}

// byHand returns a controller that can reach the shared cluster.
func (r *rig) byHand() *hand {
	r.t.Helper()
	tenants := tenantaccess.New(tenantaccess.Options{PrivateNetworks: loopback.Networks(), Scheme: server.Scheme, Log: logr.Discard()})
	ctx := r.t.Context()
	go func() { _ = tenants.Start(ctx) }()
	cluster := types.NamespacedName{Namespace: r.namespace, Name: "shared"}
	if err := tenants.Set(ctx, cluster, server.Cluster.Kubeconfig()); err != nil {
		r.t.Fatal(err)
	}
	management.Eventually(r.t, "the shared cluster is reached", func() bool { _, err := tenants.For(cluster); return err == nil })
	clock := testingclock.NewFakePassiveClock(time.Now())
	return &hand{rig: r, clock: clock, reconciler: &Reconciler{Client: server.Client, Tenants: tenants, Recorder: events.NewFakeRecorder(100), Clock: clock}}
}

// look reconciles the Entitlement half a minute later.
func (h *hand) look() { h.t.Helper(); h.lookAfter(rereadAfter) }

func (h *hand) lookAfter(d time.Duration) {
	h.t.Helper()
	h.clock.SetTime(h.clock.Now().Add(d))
	ctx := log.IntoContext(h.t.Context(), funcr.New(func(_, line string) { h.lines = append(h.lines, line) }, funcr.Options{}))
	request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: h.namespace, Name: "legal"}}
	if _, err := h.reconciler.Reconcile(ctx, request); err != nil {
		h.t.Fatal(err)
	}
}

// settle looks until the Entitlement is enforced and every object was seen as it should be.
func (h *hand) settle() {
	h.t.Helper()
	management.Eventually(h.t, "it is enforced", func() bool { h.lookAfter(0); return isEnforced(h.read("legal")) })
	h.look()
}

func isEnforced(e *v1alpha1.Entitlement) bool {
	return meta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionEnforced)
}

// said returns the Events of a reason.
func (h *hand) said(reason string) []string {
	h.t.Helper()
	var list eventsv1.EventList
	if err := server.Client.List(h.t.Context(), &list, client.InNamespace(h.namespace)); err != nil {
		h.t.Fatal(err)
	}
	var out []string
	for _, e := range list.Items {
		if e.Reason == reason {
			out = append(out, e.Type+" "+e.Note)
		}
	}
	return out
}

// published returns the Events that the controller has published by its recorder.
func (h *hand) published() []string {
	var out []string
	for recorder := h.reconciler.Recorder.(*events.FakeRecorder); len(recorder.Events) > 0; {
		out = append(out, <-recorder.Events)
	}
	return out
}

// TestAServerMayTakeAMomentToUseAPolicy: it takes claims for about a second after the policy was written.
func TestAServerMayTakeAMomentToUseAPolicy(t *testing.T) {
	r := newRig(t)
	r.entitle()
	h := r.byHand()
	reasons := map[string]bool{}
	management.Eventually(t, "it is enforced", func() bool {
		h.lookAfter(0)
		e := r.read("legal")
		if c := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionEnforced); c != nil {
			reasons[c.Reason] = true
		}
		return isEnforced(e)
	})
	if !reasons[v1alpha1.ReasonNotProvedYet] || reasons[v1alpha1.ReasonNotRefused] {
		t.Errorf("before it was enforced, the reasons were %v", reasons)
	}
	for _, event := range h.published() {
		if strings.HasPrefix(event, "Warning") {
			t.Errorf("nothing is wrong with a new Entitlement: %s", event)
		}
	}
}

// TestWhatIsPutRightLeavesATraceAndIsProvedAgain changes and deletes objects of the fence as an administrator of the shared cluster may.
func TestWhatIsPutRightLeavesATraceAndIsProvedAgain(t *testing.T) {
	addNodeType(t, "h100-dra")
	r := newRig(t)
	r.entitle(class("h100", "h100-dra", v1alpha1.DeviceGPU, 2))
	h := r.byHand()
	h.settle()
	if got := h.said(v1alpha1.ReasonFenceChanged); len(got) > 0 {
		t.Fatalf("nobody has changed anything: %v", got)
	}
	edit := func(o client.Object, name client.ObjectKey, change func()) {
		t.Helper()
		if err := server.Client.Get(t.Context(), name, o); err != nil {
			t.Fatal(err)
		}
		change()
		if err := server.Client.Update(t.Context(), o, client.FieldOwner("kubectl-edit")); err != nil {
			t.Fatal(err)
		}
	}
	claims := client.ObjectKey{Name: "ingot-claims-" + r.tenant}
	for _, c := range []struct {
		name   string
		tamper func()
		want   []string
	}{
		{"the policy is gutted", func() {
			policy := &admissionv1.ValidatingAdmissionPolicy{}
			edit(policy, claims, func() { policy.Spec.Validations = policy.Spec.Validations[1:] })
		}, []string{"ValidatingAdmissionPolicy ingot-claims-", "by the field manager kubectl-edit at ", "spec.validations has 4 entries and should have 5"}},
		{"the quota is raised", func() {
			quota := &corev1.ResourceQuota{}
			edit(quota, client.ObjectKey{Namespace: r.tenant, Name: "ingot-" + r.tenant}, func() {
				for name := range quota.Spec.Hard {
					quota.Spec.Hard[name] = resource.MustParse("100")
				}
			})
		}, []string{"ResourceQuota ingot-" + r.tenant + " of namespace " + r.tenant, "kubectl-edit", " is 100 and should be 2"}},
		{"the class selects everything", func() {
			selected, err := r.deviceClass(r.tenant + "-h100")
			if err != nil {
				t.Fatal(err)
			}
			edit(selected, client.ObjectKeyFromObject(selected), func() { selected.Spec.Selectors[0].CEL.Expression = "true" })
		}, []string{"DeviceClass " + r.tenant + "-h100", "kubectl-edit", "spec.selectors[0].cel.expression is true and should be "}},
		{"the binding is deleted", func() {
			if err := server.Client.Delete(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: claims.Name}}); err != nil {
				t.Fatal(err)
			}
		}, []string{"ValidatingAdmissionPolicyBinding ingot-claims-", "was deleted in the shared cluster"}},
	} {
		c.tamper()
		before := len(h.said(v1alpha1.ReasonFenceChanged))
		h.lines = nil
		h.look()
		all := h.said(v1alpha1.ReasonFenceChanged)
		if len(all) != before+1 {
			t.Errorf("%s: %d events are new", c.name, len(all)-before)
			continue
		}
		for _, want := range append(c.want, "Warning ") {
			if !slices.ContainsFunc(all, func(text string) bool { return strings.Contains(text, want) }) {
				t.Errorf("%s: no event says %q: %v", c.name, want, all)
			}
			if want != "Warning " && !slices.ContainsFunc(h.lines, func(line string) bool { return strings.Contains(line, want) }) {
				t.Errorf("%s: no line of the log says %q: %v", c.name, want, h.lines)
			}
		}
		if last := h.reconciler.probes.last(r.read("legal").UID); last.at.Before(h.clock.Now()) && last.since.IsZero() {
			t.Errorf("%s: no claim was tried again: %+v", c.name, last)
		}
		h.settle()
	}
	r.change(func(e *v1alpha1.Entitlement) { e.Spec.Classes[0].Devices = 3 })
	h.settle()
	if got := h.said(v1alpha1.ReasonFenceChanged); len(got) != 4 {
		t.Errorf("a change of the Entitlement itself is nobody's tampering: %v", got)
	}
	h.reconciler.placed, h.reconciler.probes = placed{}, probes{}
	if err := server.Client.Delete(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: claims.Name}}); err != nil {
		t.Fatal(err)
	}
	h.look()
	if got := h.said(v1alpha1.ReasonFenceChanged); len(got) != 5 {
		t.Errorf("a binding that was deleted while no manager ran: %v", got)
	}
}

func TestWhatDiffersIsNamedByItsPath(t *testing.T) {
	object := func(spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}, "spec": spec}}
	}
	wanted := object(map[string]any{"a": "1", "list": []any{"x"}, "empty": map[string]any{}})
	for _, c := range []struct {
		spec map[string]any
		want string
	}{
		{map[string]any{"a": "1", "list": []any{"x"}}, ""},
		{map[string]any{"a": "1", "list": []any{"x"}, "more": map[string]any{}}, ""},
		{map[string]any{"a": "2", "list": []any{"x"}}, "spec.a is 2 and should be 1"},
		{map[string]any{"list": []any{"y"}}, "spec.a is absent and should be 1; spec.list[0] is y and should be x"},
		{map[string]any{"a": []any{}, "list": "x"}, "spec.a is set and should be 1; spec.list is x and should be set"},
		{map[string]any{"a": "1", "more": "3"}, "spec.list has 0 entries and should have 1; spec.more is 3 and should be absent"},
		{map[string]any{"b": "1", "c": "1", "d": "1"}, "spec.a is absent and should be 1; spec.b is 1 and should be absent; spec.c is 1 and should be absent; 2 more differences"},
		{map[string]any{"a": "\x1b" + strings.Repeat("y", 200), "list": []any{"x"}}, "spec.a is ?" + strings.Repeat("y", 60) + "... and should be 1"},
	} {
		if got := differencesText(wanted, object(c.spec)); got != c.want {
			t.Errorf("%v: %q, want %q", c.spec, got, c.want)
		}
	}
}

// TestTheEndOfAFenceIsSaidWhereThereWasOne deletes an Entitlement whose TenantCluster never was, and one in the ordinary way.
func TestTheEndOfAFenceIsSaidWhereThereWasOne(t *testing.T) {
	r := newRig(t)
	r.entitle()
	h := r.byHand()
	gone := func() {
		t.Helper()
		if err := server.Client.Delete(t.Context(), r.read("legal")); err != nil {
			t.Fatal(err)
		}
		h.look()
		if err := server.Client.Get(t.Context(), client.ObjectKey{Namespace: r.namespace, Name: "legal"}, &v1alpha1.Entitlement{}); !apierrors.IsNotFound(err) {
			t.Fatalf("the Entitlement is still there: %v", err)
		}
	}
	h.settle()
	h.published()
	h.lines = nil
	gone()
	want := "Normal FenceRemoved the fence of tenant " + r.tenant + " is gone from the shared cluster"
	if got := h.published(); len(got) != 1 || !strings.HasPrefix(got[0], want) {
		t.Errorf("%v, want %q", got, want)
	}
	if got := strings.Join(h.lines, " "); !strings.Contains(got, "is gone from the shared cluster") {
		t.Errorf("the log says %s", got)
	}
	if err := server.Client.Delete(t.Context(), &v1alpha1.TenantCluster{ObjectMeta: r.meta("shared")}); err != nil {
		t.Fatal(err)
	}
	r.entitle()
	h.look()
	h.look()
	h.published()
	gone()
	if got := h.published(); len(got) > 0 {
		t.Errorf("nothing was ever made, and %v", got)
	}
}

// TestTheRowsOfARollAgree has a Machine that is being installed, and then its node.
func TestTheRowsOfARollAgree(t *testing.T) {
	addNodeType(t, "h100-dra")
	r := newRig(t)
	server.Create(t, &v1alpha1.Machine{ObjectMeta: r.meta("m1"), Spec: v1alpha1.MachineSpec{
		NodeTypeRef: v1alpha1.LocalReference{Name: "h100-dra"}, TenantClusterRef: v1alpha1.LocalReference{Name: "shared"},
	}, Status: v1alpha1.MachineStatus{Phase: v1alpha1.MachineProvisioning}})
	r.entitle(class("h100", "h100-dra", v1alpha1.DeviceGPU, 2))
	h := r.byHand()
	h.reconciler.news = make(chan event.GenericEvent, 9)
	h.settle()
	if c := meta.FindStatusCondition(r.awaitClass("h100", v1alpha1.ReasonNodesUnderWay).Conditions, v1alpha1.ConditionAvailable); !strings.Contains(c.Message, "1 of 1 Machines of NodeType h100-dra are being installed or rolled (1 Provisioning)") {
		t.Error(c.Message)
	}
	h.look()
	if len(h.reconciler.news) > 0 {
		t.Error("nothing has changed, and the other Entitlements are told")
	}
	addNode(t, r.namespace+"-open", 1)
	management.Eventually(t, "the devices are seen", func() bool { h.look(); return r.read("legal").Status.Classes[0].Admitted == 1 })
	if len(h.reconciler.news) == 0 {
		t.Error("the other Entitlements of the cluster are not told of its devices")
	}
}
