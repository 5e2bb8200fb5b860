package machine_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

func TestARollWaitsForItsPodsAndReimagesTheSameHost(t *testing.T) {
	r, next := readyRig(t)
	ctx := t.Context()
	pod, budget := r.protectedPod()
	before, first := r.machine(r.namespace), r.node(r.namespace)
	written := r.writes.total()
	r.want(r.namespace, next)
	management.Eventually(t, "the roll names the pod and the budget that keep it past its time", func() bool {
		c := r.condition(r.namespace, v1alpha1.ConditionReady)
		return c.Reason == v1alpha1.ReasonDrainTimedOut && strings.Contains(c.Message, "1 pod to leave: "+client.ObjectKeyFromObject(pod).String()) &&
			strings.Contains(c.Message, "PodDisruptionBudget "+client.ObjectKeyFromObject(budget).String())
	})
	if err := server.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil || pod.DeletionTimestamp != nil {
		t.Fatalf("the pod was forced: %v, %v", pod.DeletionTimestamp, err)
	}
	if h, record := r.host("server-00"); !h.Spec.Online || record.Spec.Attempt != 1 || !r.node(r.namespace).Spec.Unschedulable {
		t.Error("while a pod remains the host must run, and the Node be cordoned")
	}

	r.allow(budget)
	management.Eventually(t, "the pod is evicted", func() bool {
		r.poke(r.namespace)
		return server.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod) == nil && pod.DeletionTimestamp != nil
	})
	if err := server.Client.Delete(ctx, pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the host is asked to power off", func() bool {
		r.poke(r.namespace)
		h, _ := r.host("server-00")
		return !h.Spec.Online
	})
	if h, record := r.host("server-00"); h.Spec.Image == nil || record.Spec.Attempt != 1 || r.node(r.namespace).UID != first.UID {
		t.Error("before the power-off is confirmed the Node must be there and the disk untouched")
	}
	r.play("server-00")
	h, record := r.awaitInstallation(2)
	if h.Spec.ConsumerRef.UID != before.UID || !strings.HasSuffix(h.Spec.Image.URL, "image-2.raw.zst") || record.Spec.Revision != next || !strings.HasSuffix(record.Spec.Image.URL, "image-2.raw.zst") {
		t.Errorf("the host is asked for %+v, its record for %+v", h.Spec, record.Spec)
	}
	if err := server.Client.Get(ctx, client.ObjectKey{Name: r.namespace}, &corev1.Node{}); !apierrors.IsNotFound(err) {
		t.Errorf("the old Node is still there: %v", err)
	}
	r.install(r.namespace, 2)
	s := r.machine(r.namespace).Status
	if s.Phase != v1alpha1.MachineReady || s.Attempt != 2 || s.Revision != next || *s.HostRef != *before.Status.HostRef || s.NodeRef.UID == first.UID {
		t.Errorf("after the roll the Machine is %s with attempt %d of %s on %v, Node %v", s.Phase, s.Attempt, s.Revision, s.HostRef, s.NodeRef)
	}
	t.Logf("the roll took %d mutating requests to the management cluster", r.writes.total()-written)
	if n := r.node(r.namespace); n.Labels[v1alpha1.LabelRevision] != next || n.Spec.Unschedulable {
		t.Errorf("the new Node has labels %v, cordoned %v", n.Labels, n.Spec.Unschedulable)
	}
}

func TestABadImageIsUndoneWhileItIsBeingInstalled(t *testing.T) {
	r := newRig(t, 1)
	next := r.addRevision(2, "1.37.0")
	r.start()
	r.addMachine(r.namespace)
	r.awaitInstallation(1)
	r.play("server-00")
	first := string(r.token(r.machine(r.namespace)).Data["token-id"])
	firstClaim, claim := &corev1.Secret{}, &corev1.Secret{}
	if err := server.Client.Get(t.Context(), r.key("server-00-claim"), firstClaim); err != nil {
		t.Fatal(err)
	}
	r.want(r.namespace, next)
	management.Eventually(t, "the host is asked to power off", func() bool { h, _ := r.host("server-00"); return !h.Spec.Online })
	if tokens := r.tokens(r.machine(r.namespace)); len(tokens) != 0 {
		t.Errorf("%d tokens of the first attempt are left", len(tokens))
	}
	if _, record := r.host("server-00"); record.Spec.Attempt != 1 {
		t.Error("the next attempt was asked for before the running one was stopped")
	}
	r.play("server-00")
	_, record := r.awaitInstallation(2)
	r.play("server-00")
	token := r.token(r.machine(r.namespace))
	if id := string(token.Data["token-id"]); id == first || record.Spec.Revision != next {
		t.Errorf("the second attempt has token %s after %s, revision %s", id, first, record.Spec.Revision)
	}
	if err := server.Client.Get(t.Context(), r.key("server-00-claim"), claim); err != nil || !strings.Contains(string(claim.Data["userData"]), string(token.Data["token-secret"])) {
		t.Errorf("the claim Secret is not the second attempt's: %v", err)
	}
	if bytes.Equal(claim.Data["metaData"], firstClaim.Data["metaData"]) {
		t.Errorf("cloud-init would take the second attempt for the first: %s", claim.Data["metaData"])
	}
	r.finishInstallation(r.namespace, 2)
}

func TestARollThatIsCalledOffLeavesItsNodeAsItWas(t *testing.T) {
	r, next := readyRig(t)
	_, _ = r.protectedPod()
	first := r.node(r.namespace)
	h, _ := r.host("server-00")
	r.want(r.namespace, next)
	management.Eventually(t, "the Node is cordoned", func() bool { return r.node(r.namespace).Spec.Unschedulable })
	r.want(r.namespace, r.machine(r.namespace).Status.Revision)
	management.Eventually(t, "the Machine is Ready and its Node takes pods again", func() bool {
		n := r.node(r.namespace)
		return r.machine(r.namespace).Status.Phase == v1alpha1.MachineReady && !n.Spec.Unschedulable && n.Annotations[v1alpha1.AnnotationCordoned] == "" && n.UID == first.UID
	})
	after, _ := r.host("server-00")
	if r.machine(r.namespace).Status.Attempt != 1 || after.Generation != h.Generation {
		t.Errorf("attempt %d, host %+v", r.machine(r.namespace).Status.Attempt, after.Spec)
	}
}

func TestARollThatCannotSucceedDrainsNothing(t *testing.T) {
	r, _ := readyRig(t)
	tooNew := r.addRevision(3, "1.99.0")
	for _, c := range []struct{ revision, reason, says string }{
		{r.namespace + "-9", v1alpha1.ReasonWaitingForNodeType, "it does not exist"},
		{tooNew, v1alpha1.ReasonVersionSkew, "newer than the tenant's API server"},
	} {
		r.want(r.namespace, c.revision)
		management.Eventually(t, "the Machine says why it is not rolled to "+c.revision, func() bool {
			u := r.condition(r.namespace, v1alpha1.ConditionUpToDate)
			return u.Reason == c.reason && strings.Contains(u.Message, c.revision) && strings.Contains(u.Message, c.says)
		})
	}
	if m := r.machine(r.namespace); m.Status.Phase != v1alpha1.MachineReady || r.node(r.namespace).Spec.Unschedulable {
		t.Errorf("the Machine is %s, its Node cordoned %v", m.Status.Phase, r.node(r.namespace).Spec.Unschedulable)
	}
}

func TestSettingsOfKubeletThatTheJoinCannotApplyAreRefused(t *testing.T) {
	r, _ := readyRig(t)
	withSettings := r.addRevision(3, "1.37.0", func(_ *v1alpha1.OSImage, revision *v1alpha1.NodeTypeRevision) {
		revision.Spec.Kubelet = &runtime.RawExtension{Raw: []byte(`{"maxPods":64}`)}
	})
	tenant := &v1alpha1.TenantCluster{ObjectMeta: r.meta("research")}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"join":{"tlsBootstrap":null,"script":{"secretRef":{"name":"join"}}}}}`))
	if err := server.Client.Patch(t.Context(), tenant, patch); err != nil {
		t.Fatal(err)
	}
	r.want(r.namespace, withSettings)
	management.Eventually(t, "the Machine says why it is not rolled", func() bool {
		u := r.condition(r.namespace, v1alpha1.ConditionUpToDate)
		return u.Reason == v1alpha1.ReasonKubeletUnsupported && strings.Contains(u.Message, "cannot be applied by the join script") && strings.Contains(u.Message, withSettings)
	})
	if r.node(r.namespace).Spec.Unschedulable {
		t.Error("its Node is drained for it")
	}
}

// readyRig has one Machine, named as the namespace since its Node is of the whole cluster. It is Ready, and its evictions are
// late at once. next names another revision to roll to.
func readyRig(t *testing.T) (r *rig, next string) {
	t.Helper()
	r = newRig(t, 1)
	nodeType := &v1alpha1.NodeType{}
	if err := server.Client.Get(t.Context(), types.NamespacedName{Name: r.namespace}, nodeType); err != nil {
		t.Fatal(err)
	}
	nodeType.Spec.Rollout = &v1alpha1.RolloutPolicy{Drain: &v1alpha1.DrainSpec{Timeout: &metav1.Duration{Duration: time.Second}}}
	if err := server.Client.Update(t.Context(), nodeType); err != nil {
		t.Fatal(err)
	}
	next = r.addRevision(2, "1.37.0")
	r.start()
	r.addMachine(r.namespace)
	r.awaitInstallation(1)
	r.install(r.namespace, 1)
	return r, next
}

// install plays what follows when an installation was asked for, until the Machine is Ready.
func (r *rig) install(name string, attempt int) {
	r.t.Helper()
	r.play("server-00")
	r.finishInstallation(name, attempt)
}

// finishInstallation ends an installation under way, and lets its node join.
func (r *rig) finishInstallation(name string, attempt int) {
	r.t.Helper()
	r.play("server-00")
	management.Eventually(r.t, "the Machine is Joining", func() bool { return r.machine(name).Status.Phase == v1alpha1.MachineJoining })
	m := r.machine(name)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: fmt.Sprintf("ingot://%s/%d", m.UID, attempt),
		Taints: []corev1.Taint{{Key: v1alpha1.DefaultGateTaintKey, Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{BootID: "boot-" + fmt.Sprint(attempt)}}}
	server.Create(r.t, node)
	r.t.Cleanup(func() {
		if err := client.IgnoreNotFound(server.Client.Delete(context.Background(), node)); err != nil {
			r.t.Error(err)
		}
	})
	management.Eventually(r.t, "the Machine is Validating", func() bool { return r.machine(name).Status.Phase == v1alpha1.MachineValidating })
	r.judge(name, v1alpha1.Verdict{Result: v1alpha1.CheckPass, Admitted: true, NodeUID: node.UID, BootID: node.Status.NodeInfo.BootID, Revision: m.Status.Revision, Rendering: m.Status.Rendering})
	management.Eventually(r.t, "the Machine is Ready and its Node furnished", func() bool {
		return r.machine(name).Status.Phase == v1alpha1.MachineReady && r.node(name).Labels[v1alpha1.LabelMachineUID] == string(m.UID)
	})
}

// awaitInstallation waits until the host is asked to install the attempt.
func (r *rig) awaitInstallation(attempt int64) (*metal3.BareMetalHost, *v1alpha1.HostRecord) {
	r.t.Helper()
	management.Eventually(r.t, fmt.Sprintf("attempt %d is asked for", attempt), func() bool {
		h, record := r.host("server-00")
		return h.Spec.Image != nil && h.Spec.Online && record.Spec.Attempt == attempt
	})
	return r.host("server-00")
}

func (r *rig) node(name string) *corev1.Node {
	r.t.Helper()
	n := &corev1.Node{}
	if err := server.Client.Get(r.t.Context(), client.ObjectKey{Name: name}, n); err != nil {
		r.t.Fatal(err)
	}
	return n
}

func (r *rig) condition(name, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(r.machine(name).Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func (r *rig) want(name, revision string) {
	r.t.Helper()
	patch := fmt.Sprintf(`{"spec":{"revision":%q}}`, revision)
	if err := server.Client.Patch(r.t.Context(), r.machine(name), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		r.t.Fatal(err)
	}
}

// poke makes the controller look now; pods are not watched.
func (r *rig) poke(name string) {
	r.t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"poked":%q}}}`, time.Now())
	if err := server.Client.Patch(r.t.Context(), r.machine(name), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		r.t.Fatal(err)
	}
}

// protectedPod is a pod on the Machine's Node, and the budget that keeps it there.
func (r *rig) protectedPod() (*corev1.Pod, *policyv1.PodDisruptionBudget) {
	r.t.Helper()
	object := r.meta("tenants-own")
	object.Labels = map[string]string{"app": "training"}
	pod := &corev1.Pod{ObjectMeta: object, Spec: corev1.PodSpec{NodeName: r.namespace, Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	one := intstr.FromInt32(1)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: r.meta("training"), Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: object.Labels},
	}}
	server.Create(r.t, budget, pod)
	return pod, budget
}

// allow makes the budget let its pod go.
func (r *rig) allow(budget *policyv1.PodDisruptionBudget) {
	r.t.Helper()
	patch := []byte(`{"spec":{"minAvailable":0}}`)
	if err := server.Client.Patch(r.t.Context(), budget, client.RawPatch(types.MergePatchType, patch)); err != nil {
		r.t.Fatal(err)
	}
}
