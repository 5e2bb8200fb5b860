package rollout

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/grants"
)

// targets patches the NodeType's status.
func (h *hall) targets(t *testing.T, stable, target string) *v1alpha1.NodeType {
	t.Helper()
	after := h.nodeType(t)
	before := after.DeepCopy()
	after.Status.StableRevision, after.Status.TargetRevision = stable, target
	after.Status.Conditions = condition(metav1.ConditionTrue, v1alpha1.ReasonReady)
	if err := server.Client.Status().Patch(t.Context(), after, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	return after
}

func (h *hall) own(t *testing.T, name, from, to string) *v1alpha1.Rollout {
	t.Helper()
	made := &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.RolloutSpec{
		NodeTypeRef: v1alpha1.LocalReference{Name: h.name}, From: from, To: to,
	}}
	if err := controllerutil.SetControllerReference(h.nodeType(t), made, server.Scheme); err != nil {
		t.Fatal(err)
	}
	server.Create(t, made)
	return made
}

func machineIn(h *hall, name, revision string) *v1alpha1.Machine {
	return &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.name, Name: name},
		Spec:       v1alpha1.MachineSpec{NodeTypeRef: v1alpha1.LocalReference{Name: h.name}, TenantClusterRef: v1alpha1.LocalReference{Name: "research"}},
		Status: v1alpha1.MachineStatus{
			Revision: revision, Phase: v1alpha1.MachineReady, HostRef: &v1alpha1.NamespacedReference{Namespace: h.name, Name: "host-" + name},
			Conditions: condition(metav1.ConditionTrue, v1alpha1.ReasonReady),
		},
	}
}

// lagging reads objects of one kind as they were, as a cache does that lags.
func lagging(t *testing.T, stale func(key client.ObjectKey, object client.Object) bool) client.Client {
	t.Helper()
	return interceptor.NewClient(mustWatch(t), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if stale(key, object) {
				return nil
			}
			return c.Get(ctx, key, object, options...)
		},
	})
}

func reconcileOnce(t *testing.T, cached client.Client, rollout string) ctrl.Result {
	t.Helper()
	r := &Reconciler{Client: cached, APIReader: server.Client, Tenants: tenants, Grants: &grants.Desk{Clock: clock.RealClock{}}, Recorder: events.NewFakeRecorder(100), Clock: clock.RealClock{}}
	result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: rollout}})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func (h *hall) rollout(t *testing.T, name string) *v1alpha1.Rollout {
	t.Helper()
	var stored v1alpha1.Rollout
	if err := server.Client.Get(t.Context(), client.ObjectKey{Name: name}, &stored); err != nil {
		t.Fatal(err)
	}
	return &stored
}

func TestACacheThatStillShowsTheFormerTargetEndsNoRollout(t *testing.T) {
	h := newHall(t, 0, policy(1, atOnce))
	former := h.targets(t, "a", "a")
	h.targets(t, "a", "b")
	h.own(t, h.name+"-b-1", "a", "b")
	cached := lagging(t, func(_ client.ObjectKey, object client.Object) bool {
		nodeType, is := object.(*v1alpha1.NodeType)
		if is {
			former.DeepCopyInto(nodeType)
		}
		return is
	})
	if result := reconcileOnce(t, cached, h.name+"-b-1"); result.RequeueAfter <= 0 {
		t.Errorf("result %+v: nothing looks again", result)
	}
	if phase := h.rollout(t, h.name+"-b-1").Status.Phase; phase.IsFinal() {
		t.Fatalf("it is %s", phase)
	}
	h.targets(t, "a", "c")
	reconcileOnce(t, server.Client, h.name+"-b-1")
	if phase := h.rollout(t, h.name+"-b-1").Status.Phase; phase != v1alpha1.RolloutSuperseded {
		t.Errorf("it is %q though the NodeType wants another revision", phase)
	}
}

func TestAStaleRolloutOrMachineStartsNothing(t *testing.T) {
	h := newHall(t, 0, policy(1, atOnce))
	h.targets(t, "a", "b")
	name := h.own(t, h.name+"-b-1", "a", "b").Name
	server.Create(t, machineIn(h, "m1", "a"), machineIn(h, "m2", "a"))
	before := h.rollout(t, name)
	stale := lagging(t, func(_ client.ObjectKey, object client.Object) bool {
		rollout, is := object.(*v1alpha1.Rollout)
		if is {
			before.DeepCopyInto(rollout)
		}
		return is
	})
	reconcileOnce(t, server.Client, name)
	named := h.rollout(t, name)
	if len(named.Status.InProgress) != 1 || h.count(t, hasDesiredRevision("")) != 2 {
		t.Fatalf("the first step names %v and %d Machines were left alone: who is started is named first", named.Status.InProgress, h.count(t, hasDesiredRevision("")))
	}
	// Whoever sees nothing named names somebody and starts nobody, and that status is refused.
	reconcileOnce(t, stale, name)
	if now := h.rollout(t, name); now.ResourceVersion != named.ResourceVersion || h.count(t, hasDesiredRevision("")) != 2 {
		t.Errorf("a stale Rollout was written: %+v", now.Status)
	}
	// The Machine changes between the look and the start.
	changing := interceptor.NewClient(mustWatch(t), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if m, is := object.(*v1alpha1.Machine); is {
				other := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}}
				if err := c.Patch(ctx, other, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"changed":"meanwhile"}}}`))); err != nil {
					return err
				}
			}
			return c.Patch(ctx, object, patch, options...)
		},
	})
	if result := reconcileOnce(t, changing, name); result.RequeueAfter <= 0 || h.count(t, hasDesiredRevision("")) != 2 {
		t.Errorf("result %+v: a Machine that changed meanwhile was started", result)
	}
	reconcileOnce(t, server.Client, name)
	if n := h.count(t, hasDesiredRevision("b")); n != 1 {
		t.Errorf("%d Machines were started, want the one that was named", n)
	}
	for range 3 {
		reconcileOnce(t, server.Client, name)
	}
	if n := h.count(t, hasDesiredRevision("b")); n != 1 {
		t.Errorf("%d Machines were started while the first is on its way", n)
	}
}

func TestARolloutBeginsWhenTheOneBeforeItHasLetGo(t *testing.T) {
	h := newHall(t, 0, policy(1, atOnce))
	h.targets(t, "a", "b")
	first := h.own(t, h.name+"-b-1", "a", "b").Name
	server.Create(t, machineIn(h, "m1", "a"), machineIn(h, "m2", "a"))
	reconcileOnce(t, server.Client, first)
	named := h.rollout(t, first).Status.InProgress
	h.targets(t, "a", "c")
	second := h.own(t, h.name+"-c-2", "a", "c").Name
	of := func(rollout string) int {
		return h.count(t, func(m *v1alpha1.Machine) bool { return m.Labels[v1alpha1.LabelRollout] == rollout })
	}
	for range 3 {
		reconcileOnce(t, server.Client, second)
	}
	if s := h.rollout(t, second).Status; s.Phase != v1alpha1.RolloutPending || of(second) != 0 {
		t.Fatalf("it is %s and has marked %d Machines before the first one has let go", s.Phase, of(second))
	}
	reconcileOnce(t, server.Client, first)
	if s := h.rollout(t, first).Status; s.Phase != v1alpha1.RolloutSuperseded || len(named) != 1 {
		t.Fatalf("the first one is %s, and had named %v", s.Phase, named)
	}
	reconcileOnce(t, server.Client, second)
	if of(second) != 1 || h.count(t, hasDesiredRevision("")) != 2 {
		t.Errorf("%d Machines are marked, %d were left alone: what the first had named is marked before anything", of(second), h.count(t, hasDesiredRevision("")))
	}
	for range 6 {
		reconcileOnce(t, server.Client, second)
	}
	if n := h.count(t, hasDesiredRevision("c")); n != 1 || of(second) != 1 {
		t.Errorf("%d Machines were started, %d are marked: the budget is one", n, of(second))
	}
}

func TestNothingIsBegunWhileTheNodeTypeMakesNoNodes(t *testing.T) {
	h := newHall(t, 0, policy(1, atOnce))
	nodeType := h.targets(t, "a", "b")
	name := h.own(t, h.name+"-b-1", "a", "b").Name
	server.Create(t, machineIn(h, "m1", "a"))
	before := nodeType.DeepCopy()
	nodeType.Status.Conditions = condition(metav1.ConditionFalse, v1alpha1.ReasonOSImageNotReady)
	if err := server.Client.Status().Patch(t.Context(), nodeType, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		reconcileOnce(t, server.Client, name)
	}
	ready := meta.FindStatusCondition(h.rollout(t, name).Status.Conditions, v1alpha1.ConditionReady)
	if h.count(t, hasDesiredRevision("")) != 1 || ready == nil || !strings.Contains(ready.Message, v1alpha1.ReasonOSImageNotReady) {
		t.Errorf("it says %+v", ready)
	}
	h.targets(t, "a", "b")
	for range 3 {
		reconcileOnce(t, server.Client, name)
	}
	if h.count(t, hasDesiredRevision("b")) != 1 {
		t.Error("it does not go on when the NodeType is Ready again")
	}
}

func mustWatch(t *testing.T) client.WithWatch {
	t.Helper()
	watching, err := client.NewWithWatch(server.Config, client.Options{Scheme: server.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return watching
}
