package nodepool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

var server *management.Server

func TestMain(m *testing.M) { os.Exit(management.Main(m, &server)) }

func newPool(t *testing.T, nodeType string, replicas int32) *v1alpha1.NodePool {
	t.Helper()
	pool := &v1alpha1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Namespace: server.Namespace(t), Name: "training"},
		Spec: v1alpha1.NodePoolSpec{
			NodeTypeRef: v1alpha1.LocalReference{Name: nodeType}, TenantClusterRef: v1alpha1.LocalReference{Name: "research"}, Replicas: &replicas,
		},
	}
	createTenant(t, pool)
	server.Create(t, pool)
	return pool
}

func createTenant(t *testing.T, pool *v1alpha1.NodePool) *v1alpha1.TenantCluster {
	t.Helper()
	tenant := &v1alpha1.TenantCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: pool.Namespace, Name: pool.Spec.TenantClusterRef.Name},
		Spec: v1alpha1.TenantClusterSpec{
			KubeconfigSecretRef: v1alpha1.LocalReference{Name: "admin"}, Join: v1alpha1.JoinSpec{TLSBootstrap: &v1alpha1.EndpointJoin{Endpoint: "https://10.0.0.1:6443"}},
		},
	}
	server.Create(t, tenant)
	return tenant
}

// newHosts creates hosts that Machines of the NodeType could claim now.
func newHosts(t *testing.T, nodeType string, names ...string) {
	t.Helper()
	for _, name := range names {
		meta := metav1.ObjectMeta{Namespace: "hosts-of-" + nodeType, Name: name, Labels: map[string]string{"gpu-model": "h100"}}
		server.Create(t, &metal3.BareMetalHost{
			ObjectMeta: meta, Spec: metal3.BareMetalHostSpec{BMC: metal3.BMCDetails{Address: "redfish://" + nodeType + "-" + name + ".example.com"}},
			Status: metal3.BareMetalHostStatus{OperationalStatus: metal3.OperationalStatusOK, Provisioning: metal3.ProvisionStatus{State: metal3.StateAvailable}},
		}, &v1alpha1.HostRecord{ObjectMeta: meta, Status: v1alpha1.HostRecordStatus{Power: &v1alpha1.HostPower{State: "Off", ObservedGeneration: 1, ObservedAt: metav1.NowMicro()}}})
	}
}

// claim gives a Machine a host, as the machine controller does.
func claim(t *testing.T, m *v1alpha1.Machine, nodeType, name string) {
	t.Helper()
	host := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "hosts-of-" + nodeType, Name: name}}
	patch := fmt.Appendf(nil, `{"spec":{"consumerRef":{"apiVersion":"ingot.dev/v1alpha1","kind":"Machine","namespace":%q,"name":%q,"uid":%q}}}`, m.Namespace, m.Name, m.UID)
	if err := server.Client.Patch(t.Context(), host, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
	m.Status.Phase, m.Status.HostRef = v1alpha1.MachineProvisioning, &v1alpha1.NamespacedReference{Namespace: host.Namespace, Name: host.Name}
	if err := server.Client.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

func newNodeType(t *testing.T, name string) {
	t.Helper()
	nodeType := &v1alpha1.NodeType{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.NodeTypeSpec{
			ProviderRef: v1alpha1.LocalReference{Name: "hall-1"}, OSImageRef: v1alpha1.LocalReference{Name: "debian"},
			HostSelector: metav1.LabelSelector{MatchLabels: map[string]string{"gpu-model": "h100"}},
		},
		Status: v1alpha1.NodeTypeStatus{TargetRevision: name + "-new"},
	}
	nodeType.Spec.ProviderRef.Name = name
	// A namespace stays in a control plane without its controller, and the second run of a test finds it again.
	hosts := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "hosts-of-" + name}}
	if err := client.IgnoreAlreadyExists(server.Client.Create(t.Context(), hosts)); err != nil {
		t.Fatal(err)
	}
	provider := &v1alpha1.NodeProvider{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.NodeProviderSpec{
		HostNamespace: "hosts-of-" + name, Redfish: &v1alpha1.RedfishProvider{Netboot: v1alpha1.NetbootSpec{Address: "10.20.0.2"}},
	}}
	server.Create(t, nodeType, provider)
	t.Cleanup(func() {
		in := client.InNamespace(hosts.Name)
		_ = errors.Join(server.Client.Delete(context.Background(), nodeType), server.Client.Delete(context.Background(), provider),
			server.Client.DeleteAllOf(context.Background(), &metal3.BareMetalHost{}, in), server.Client.DeleteAllOf(context.Background(), &v1alpha1.HostRecord{}, in))
	})
}

// machines that stay: nobody is there who would give back a host, and let one go that was deleted.
func machines(t *testing.T, pool *v1alpha1.NodePool) []v1alpha1.Machine {
	t.Helper()
	var list v1alpha1.MachineList
	if err := server.Client.List(t.Context(), &list, client.InNamespace(pool.Namespace)); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(m v1alpha1.Machine) bool { return m.DeletionTimestamp != nil })
}

func makeReady(t *testing.T, m *v1alpha1.Machine, revision string) {
	t.Helper()
	m.Status.Revision, m.Status.HostRef = revision, &v1alpha1.NamespacedReference{Namespace: "metal", Name: m.Name}
	m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady, LastTransitionTime: metav1.Now()}}
	if err := server.Client.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

func scale(t *testing.T, pool *v1alpha1.NodePool, replicas int32) {
	t.Helper()
	to := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	if err := server.Client.SubResource("scale").Update(t.Context(), pool, client.WithSubResourceBody(to)); err != nil {
		t.Fatal(err)
	}
}

// run runs the controller.
func run(t *testing.T) {
	t.Helper()
	server.Run(t, func(mgr ctrl.Manager) error {
		r := &Reconciler{
			Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("nodepool"), Clock: clock.RealClock{},
			Suffix: func() string { return rand.String(5) },
		}
		return r.SetupWithManager(mgr)
	})
}

func TestAPoolGrowsBecomesReadyAndShrinksByWorth(t *testing.T) {
	newNodeType(t, "h100")
	newHosts(t, "h100", "a", "b", "c")
	run(t)
	pool := newPool(t, "h100", 3)
	foreign := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: pool.Namespace, Name: "by-hand", Labels: map[string]string{v1alpha1.LabelNodePool: pool.Name}},
		Spec:       v1alpha1.MachineSpec{NodeTypeRef: pool.Spec.NodeTypeRef, TenantClusterRef: pool.Spec.TenantClusterRef},
	}
	server.Create(t, foreign)
	management.Eventually(t, "there are three Machines of the pool beside the foreign one", func() bool { return len(machines(t, pool)) == 4 })
	var keep string
	for i, m := range machines(t, pool) {
		if m.Name == foreign.Name {
			continue
		}
		if !regexp.MustCompile(`^training-[a-z0-9]{5}$`).MatchString(m.Name) || m.Labels[v1alpha1.LabelNodeType] != "h100" || !metav1.IsControlledBy(&m, pool) {
			t.Errorf("Machine %+v", m.ObjectMeta)
		}
		revision := "h100-old"
		if keep == "" {
			keep, revision = m.Name, "h100-new"
		}
		makeReady(t, &machines(t, pool)[i], revision)
	}
	management.Eventually(t, "the pool is Ready", func() bool {
		var stored v1alpha1.NodePool
		err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(pool), &stored)
		return err == nil && meta.IsStatusConditionTrue(stored.Status.Conditions, v1alpha1.ConditionReady) &&
			stored.Status.Replicas == 3 && stored.Status.UpToDateReplicas == 1 && stored.Status.Selector == "ingot.dev/nodepool=training"
	})
	scale(t, pool, 1)
	management.Eventually(t, "the outdated Machines are gone", func() bool { return len(machines(t, pool)) == 2 })
	for _, m := range machines(t, pool) {
		if m.Name != keep && m.Name != foreign.Name {
			t.Errorf("%s remained, not %s", m.Name, keep)
		}
	}
}

func TestTheTargetIsWhatCountsAsUpToDate(t *testing.T) {
	replicas := int32(3)
	seen := observation{pool: &v1alpha1.NodePool{Spec: v1alpha1.NodePoolSpec{Replicas: &replicas}}, tenant: &v1alpha1.TenantCluster{}}
	for _, revision := range []string{"", "stable", "target"} {
		m := v1alpha1.Machine{Status: v1alpha1.MachineStatus{Revision: revision, HostRef: &v1alpha1.NamespacedReference{Name: "on"}}}
		if revision != "" {
			m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
		}
		m.Name = "on-" + revision
		seen.machines = append(seen.machines, m)
	}
	for name, c := range map[string]struct {
		status *v1alpha1.NodeTypeStatus
		want   int32
	}{
		"there is no NodeType":    {nil, 0},
		"nothing is asked for":    {&v1alpha1.NodeTypeStatus{}, 0},
		"a Rollout is on its way": {&v1alpha1.NodeTypeStatus{StableRevision: "stable", TargetRevision: "target"}, 1},
	} {
		seen.nodeType = nil
		if c.status != nil {
			seen.nodeType = &v1alpha1.NodeType{Status: *c.status}
		}
		after := seen.pool.DeepCopy()
		report(after, seen, time.Time{})
		if got := after.Status.UpToDateReplicas; got != c.want {
			t.Errorf("%s: %d are up to date, want %d", name, got, c.want)
		}
	}
	replicas, seen.nodeType = 1, &v1alpha1.NodeType{Status: v1alpha1.NodeTypeStatus{StableRevision: "stable", TargetRevision: "target"}}
	victims := decide(seen).Delete
	if len(victims) != 2 || victims[0].Name != "on-" || victims[1].Name != "on-stable" {
		t.Errorf("while a Rollout is on its way the pool gives up %+v: first who is not Ready, then who is outdated", victims)
	}
}

// reconciler works on clients of the test's choice.
func reconciler(cached client.Client) *Reconciler {
	number := 0
	return &Reconciler{
		Client: cached, APIReader: server.Client, Recorder: events.NewFakeRecorder(100), Clock: clock.RealClock{},
		Suffix: func() string { number++; return fmt.Sprintf("%05d", number) },
	}
}

// withoutIndexes leaves out the indexes of the cache, which a client without one does not have.
func withoutIndexes(options []client.ListOption) []client.ListOption {
	return slices.DeleteFunc(slices.Clone(options), func(o client.ListOption) bool { _, isIndex := o.(client.MatchingFields); return isIndex })
}

func TestACacheThatLagsCreatesNoMachineTwice(t *testing.T) {
	newNodeType(t, "lagging")
	newHosts(t, "lagging", "a", "b")
	pool := newPool(t, "lagging", 2)
	watching, err := client.NewWithWatch(server.Config, client.Options{Scheme: server.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	// A cache that has not seen any Machine yet.
	blind := interceptor.NewClient(watching, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		if _, ok := list.(*v1alpha1.MachineList); ok {
			return nil
		}
		return c.List(ctx, list, withoutIndexes(options)...)
	}})
	r := reconciler(blind)
	for range 3 {
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(pool)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(machines(t, pool)); n != 2 {
		t.Errorf("%d Machines, want 2", n)
	}
}

func TestACacheThatShowsAFormerWishDeletesNoMachine(t *testing.T) {
	newNodeType(t, "wished")
	newHosts(t, "wished", "a", "b", "c")
	pool := newPool(t, "wished", 1)
	former := pool.DeepCopy()
	scale(t, pool, 3)
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(pool)}
	watching, err := client.NewWithWatch(server.Config, client.Options{Scheme: server.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	listing := func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		return c.List(ctx, list, withoutIndexes(options)...)
	}
	if _, err := reconciler(interceptor.NewClient(watching, interceptor.Funcs{List: listing})).Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	// The next leader's cache has seen the Machines, and not yet what they were made for.
	lagging := interceptor.NewClient(watching, interceptor.Funcs{List: listing, Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
		if pool, ok := object.(*v1alpha1.NodePool); ok {
			former.DeepCopyInto(pool)
			return nil
		}
		return c.Get(ctx, key, object, options...)
	}})
	if _, err := reconciler(lagging).Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if n := len(machines(t, pool)); n != 3 {
		t.Errorf("%d Machines, want the 3 that are asked for", n)
	}
}

func TestAPoolWithoutItsNodeTypeCreatesNothing(t *testing.T) {
	pool := newPool(t, "gone", 2)
	if _, err := reconciler(server.Client).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(pool)}); err != nil {
		t.Fatal(err)
	}
	var stored v1alpha1.NodePool
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(pool), &stored); err != nil {
		t.Fatal(err)
	}
	ready := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionReady)
	if len(machines(t, pool)) != 0 || ready == nil || ready.Reason != v1alpha1.ReasonNodeTypeNotFound || !strings.Contains(ready.Message, "gone") {
		t.Errorf("%d Machines, %+v", len(machines(t, pool)), ready)
	}
}

func TestAPoolOfANodeTypeThatIsBeingDeletedCreatesNothing(t *testing.T) {
	newNodeType(t, "going")
	nodeType, change := &v1alpha1.NodeType{ObjectMeta: metav1.ObjectMeta{Name: "going"}}, func(finalizers string) client.Patch {
		return client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":`+finalizers+`}}`))
	}
	if err := server.Client.Patch(t.Context(), nodeType, change(`["ingot.dev/in-use"]`)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Client.Patch(context.Background(), nodeType, change("null")) })
	if err := server.Client.Delete(t.Context(), nodeType.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	pool := newPool(t, "going", 2)
	if _, err := reconciler(server.Client).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(pool)}); err != nil {
		t.Fatal(err)
	}
	var stored v1alpha1.NodePool
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(pool), &stored); err != nil {
		t.Fatal(err)
	}
	ready := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionReady)
	if len(machines(t, pool)) != 0 || ready == nil || ready.Reason != v1alpha1.ReasonNodeTypeDeleting {
		t.Errorf("%d Machines, %+v", len(machines(t, pool)), ready)
	}
}

// TestTheMachinesOfADeletedPoolAreReleasedUnlessTheyAreOrphaned: the garbage collector deletes them, and their finalizer keeps each of them
// until its host is back.
func TestTheMachinesOfADeletedPoolAreReleasedUnlessTheyAreOrphaned(t *testing.T) {
	newNodeType(t, "pooled")
	for _, cascade := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationOrphan} {
		pool := newPool(t, "pooled", 1)
		if _, err := reconciler(server.Client).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(pool)}); err != nil {
			t.Fatal(err)
		}
		if len(machines(t, pool)) != 1 {
			t.Fatal("it has no Machine")
		}
		waitForCollector(t, pool)
		if err := server.Client.Delete(t.Context(), pool, client.PropagationPolicy(cascade)); err != nil {
			t.Fatal(err)
		}
		management.Eventually(t, string(cascade), func() bool {
			left := machines(t, pool)
			if cascade == metav1.DeletePropagationOrphan {
				return len(left) == 1 && len(left[0].OwnerReferences) == 0
			}
			return len(left) == 0
		})
	}
}

// waitForCollector returns when the garbage collector knows the pool's Machines: it has collected one that was made after them. Without it, a pool is
// deleted before the collector has seen them, and they are not orphaned but collected, because their owner is gone.
func waitForCollector(t *testing.T, pool *v1alpha1.NodePool) {
	t.Helper()
	last := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: pool.Namespace, Name: pool.Name + "-of-nobody", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "NodePool", Name: pool.Name + "-gone", UID: "00000000-0000-4000-8000-000000000000",
		}}},
		Spec: v1alpha1.MachineSpec{NodeTypeRef: pool.Spec.NodeTypeRef, TenantClusterRef: pool.Spec.TenantClusterRef},
	}
	server.Create(t, last)
	management.Eventually(t, "the garbage collector collects a Machine whose owner never was", func() bool {
		return apierrors.IsNotFound(server.Client.Get(t.Context(), client.ObjectKeyFromObject(last), &v1alpha1.Machine{}))
	})
}

func TestARestoredPoolTakesItsMachinesAndMakesNoSecondSet(t *testing.T) {
	newNodeType(t, "restored")
	newHosts(t, "restored", "a", "b", "c", "d")
	pool := newPool(t, "restored", 2)
	watching, err := client.NewWithWatch(server.Config, client.Options{Scheme: server.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	r := reconciler(interceptor.NewClient(watching, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		return c.List(ctx, list, withoutIndexes(options)...)
	}}))
	reconcile := func() {
		t.Helper()
		for range 2 {
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(pool)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	reconcile()
	made := machines(t, pool)
	var backup v1alpha1.NodePool
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(pool), &backup); err != nil {
		t.Fatal(err)
	}
	waitForCollector(t, pool)
	if err := server.Client.Delete(t.Context(), pool, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the earlier pool is gone", func() bool {
		return apierrors.IsNotFound(server.Client.Get(t.Context(), client.ObjectKeyFromObject(pool), &v1alpha1.NodePool{}))
	})
	byHand := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: pool.Namespace, Name: "by-hand", Labels: map[string]string{v1alpha1.LabelNodePool: pool.Name}},
		Spec:       v1alpha1.MachineSpec{NodeTypeRef: pool.Spec.NodeTypeRef, TenantClusterRef: pool.Spec.TenantClusterRef},
	}
	again := &v1alpha1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: pool.Namespace, Name: pool.Name, Annotations: backup.Annotations}, Spec: backup.Spec}
	server.Create(t, byHand, again)
	reconcile()
	after := machines(t, pool)
	if len(after) != 3 {
		t.Errorf("%d Machines, want the two that there were and the one made by hand", len(after))
	}
	for i := range after {
		if isOwned := metav1.IsControlledBy(&after[i], again); isOwned != (after[i].Name != byHand.Name) {
			t.Errorf("Machine %s is the pool's: %t", after[i].Name, isOwned)
		}
	}
	// Who takes a Machine out of the pool now has taken it out.
	taken := after[slices.IndexFunc(after, func(m v1alpha1.Machine) bool { return m.Name == made[0].Name })]
	taken.OwnerReferences = nil
	if err := server.Client.Update(t.Context(), &taken); err != nil {
		t.Fatal(err)
	}
	reconcile()
	if after = machines(t, pool); len(after) != 4 {
		t.Errorf("%d Machines: the one that was taken out of the pool was taken back", len(after))
	}
}

// TestAPoolSaysThatItsTenantCannotBeUsed: its Machines stay Ready meanwhile, and none of them is seen.
func TestAPoolSaysThatItsTenantCannotBeUsed(t *testing.T) {
	newNodeType(t, "unseen")
	newHosts(t, "unseen", "a")
	run(t)
	pool := newPool(t, "unseen", 1)
	management.Eventually(t, "there is the Machine", func() bool { return len(machines(t, pool)) == 1 })
	makeReady(t, &machines(t, pool)[0], "unseen-new")
	isReady := func(want metav1.ConditionStatus, reason, message string) func() bool {
		return func() bool {
			var stored v1alpha1.NodePool
			if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(pool), &stored); err != nil {
				return false
			}
			c := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionReady)
			return c != nil && c.Status == want && c.Reason == reason && strings.Contains(c.Message, message) && stored.Status.ReadyReplicas == 1
		}
	}
	management.Eventually(t, "the pool is Ready", isReady(metav1.ConditionTrue, v1alpha1.ReasonReady, "all 1 Machines are Ready"))
	m := machines(t, pool)[0]
	for _, reason := range []string{v1alpha1.ReasonWaitingForTenant, v1alpha1.ReasonReady} {
		m.Status.Conditions[0].Reason = reason
		if err := server.Client.Status().Update(t.Context(), &m); err != nil {
			t.Fatal(err)
		}
		if reason == v1alpha1.ReasonWaitingForTenant {
			management.Eventually(t, "the pool says that its tenant cannot be used", isReady(metav1.ConditionUnknown, reason, "TenantCluster "+pool.Namespace+"/research cannot be used"))
		}
	}
	management.Eventually(t, "the pool is Ready again", isReady(metav1.ConditionTrue, v1alpha1.ReasonReady, ""))
}
