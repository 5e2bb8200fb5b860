package rollout

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

// share makes the management cluster itself the hall's shared cluster, with an Entitlement of the tenant legal whose class h100 has the budget; nil: none.
func (h *hall) share(t *testing.T, kubeconfig []byte, maxUnavailable *int32) {
	t.Helper()
	server.Create(t, &v1alpha1.Entitlement{ObjectMeta: metav1.ObjectMeta{Namespace: h.name, Name: "legal"}, Spec: v1alpha1.EntitlementSpec{
		TenantClusterRef: v1alpha1.LocalReference{Name: "research"}, Tenant: "legal", Namespaces: v1alpha1.TenantNamespaces{Names: []string{h.name}},
		Classes: []v1alpha1.EntitledClass{{Name: "h100", NodeTypeRef: v1alpha1.LocalReference{Name: h.name}, Kind: v1alpha1.DeviceGPU, Devices: 100, MaxUnavailable: maxUnavailable}},
	}})
	key := types.NamespacedName{Namespace: h.name, Name: "research"}
	// In a manager the controller of Entitlements asks for it.
	tenants.WatchClaims(key, true)
	if err := tenants.Set(t.Context(), key, kubeconfig); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tenants.Remove(key) })
	management.Eventually(t, "the shared cluster is read", func() bool {
		access, err := tenants.For(key)
		return err == nil && access.SlicesServed && (access.WatchedClaims.Watched || len(access.WatchedClaims.Denied) > 0)
	})
}

// node returns the name of a Machine's node. All halls are in one cluster.
func (h *hall) node(machine string) string { return h.name + "-" + machine }

// hold has a claim of the class hold so many devices of a Machine's node. A claim that no pod holds would lose its allocation.
func (h *hall) hold(t *testing.T, machine string, devices int) {
	t.Helper()
	node := h.node(machine)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: h.name, Name: machine}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "registry.example/none"}}, SchedulerName: "nobody",
		ResourceClaims: []corev1.PodResourceClaim{{Name: "r", ResourceClaimName: ptr.To(machine)}},
	}}
	server.Create(t, pod)
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: h.name, Name: machine}, Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
		Requests: []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{
			DeviceClassName: "legal-h100", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(devices),
		}}},
	}}, Status: resourcev1.ResourceClaimStatus{
		Allocation: &resourcev1.AllocationResult{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		}}}},
		ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: pod.UID}},
	}}
	for i := range devices {
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{
			Request: "r", Driver: "gpu.nvidia.com", Pool: node, Device: "gpu-" + string(rune('0'+i)),
		})
	}
	server.Create(t, claim)
}

// free takes the devices from the claim of a Machine's node, as when its pod is evicted.
func (h *hall) free(t *testing.T, machine string) {
	t.Helper()
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: h.name, Name: machine}}
	if err := server.Client.Status().Patch(t.Context(), claim, client.RawPatch(types.MergePatchType, []byte(`{"status":{"allocation":null,"reservedFor":null}}`))); err != nil {
		t.Fatal(err)
	}
}

// nodeOn is machineIn with a node.
func nodeOn(h *hall, name, revision string) *v1alpha1.Machine {
	m := machineIn(h, name, revision)
	m.Status.NodeRef = &v1alpha1.NodeReference{Name: h.node(name), UID: "n"}
	return m
}

// becomes patches the status of a Machine.
func (h *hall) becomes(t *testing.T, name string, change func(*v1alpha1.MachineStatus)) {
	t.Helper()
	var m v1alpha1.Machine
	if err := server.Client.Get(t.Context(), client.ObjectKey{Namespace: h.name, Name: name}, &m); err != nil {
		t.Fatal(err)
	}
	before := m.DeepCopy()
	m.Status.ObservedGeneration = m.Generation
	change(&m.Status)
	if err := server.Client.Status().Patch(t.Context(), &m, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// steps reconciles until nothing more is started or named, and fails if a Machine is started before the status counts what is held on its node.
func (h *hall) steps(t *testing.T, rollout string, counts map[string]int32) (started []string) {
	t.Helper()
	for range 8 {
		read := h.rollout(t, rollout).Status.InUse
		before := h.asked(t)
		reconcileOnce(t, server.Client, rollout)
		for _, name := range h.asked(t) {
			if slices.Contains(before, name) {
				continue
			}
			started = append(started, name)
			want := v1alpha1.DevicesInUse{Machine: h.name + "/" + name, DeviceClass: "legal-h100", Devices: counts[name], Claims: 1}
			if counts[name] > 0 && !slices.Contains(read, want) {
				t.Errorf("%s is started, and the status read before counts %v", name, read)
			}
		}
	}
	return started
}

// asked returns the names of the Machines that were told to move.
func (h *hall) asked(t *testing.T) (names []string) {
	t.Helper()
	for _, m := range h.machines(t) {
		if m.Spec.Revision != "" {
			names = append(names, m.Name)
		}
	}
	return names
}

func (h *hall) ready(t *testing.T, rollout, condition string) metav1.Condition {
	t.Helper()
	found := meta.FindStatusCondition(h.rollout(t, rollout).Status.Conditions, condition)
	if found == nil {
		return metav1.Condition{}
	}
	return *found
}

func TestATenantsBudgetHoldsASecondMachineUntilTheFirstOneIsBack(t *testing.T) {
	h := newHall(t, 0, policy(2, atOnce))
	h.share(t, server.Cluster.Kubeconfig(), ptr.To(int32(3)))
	h.targets(t, "a", "b")
	name := h.own(t, h.name+"-b-1", "a", "b").Name
	server.Create(t, nodeOn(h, "m1", "a"), nodeOn(h, "m2", "a"), nodeOn(h, "m3", "a"))
	counts := map[string]int32{"m1": 2, "m2": 3, "m3": 4}
	for machine, devices := range counts {
		h.hold(t, machine, int(devices))
	}
	arrives := func(machine string) {
		h.becomes(t, machine, func(s *v1alpha1.MachineStatus) {
			s.Revision, s.Phase, s.Conditions = "b", v1alpha1.MachineReady, condition(metav1.ConditionTrue, v1alpha1.ReasonReady)
		})
	}
	if started := h.steps(t, name, counts); !slices.Equal(started, []string{"m1"}) {
		t.Fatalf("%v are started, want the canary", started)
	}
	arrives("m1")
	h.free(t, "m1")
	if started := h.steps(t, name, counts); !slices.Equal(started, []string{"m2"}) {
		t.Fatalf("%v are started, want the only one whose devices fit", started)
	}
	if in := h.rollout(t, name).Status.InUse; len(in) != 1 || in[0].Devices != 3 {
		t.Errorf("in use are %v: m1 is back", in)
	}
	// Its pods are gone, and its claim has no devices any more: they are unavailable all the same.
	h.becomes(t, "m2", func(s *v1alpha1.MachineStatus) {
		s.Phase, s.NodeRef, s.Conditions = v1alpha1.MachineProvisioning, nil, condition(metav1.ConditionFalse, v1alpha1.ReasonProvisioning)
	})
	h.free(t, "m2")
	h.free(t, "m3")
	counts["m3"] = 0
	server.Create(t, nodeOn(h, "m4", "a"))
	h.hold(t, "m4", 1)
	if started := h.steps(t, name, counts); !slices.Equal(started, []string{"m3"}) {
		t.Errorf("%v are started: on m3 nothing is held, and on m4 one device too many", started)
	}
	arrives("m3")
	h.steps(t, name, counts)
	message := "class legal-h100: 1 device is held on " + h.node("m4") + ", 3 are unavailable until other Machines are Ready, and at most 3 may be: wait for those or mend them, or raise maxUnavailable of the class in Entitlement " + h.name + "/legal"
	if c := h.ready(t, name, v1alpha1.ConditionReady); !strings.Contains(c.Message, message) {
		t.Errorf("it says %q", c.Message)
	}
	if c := h.ready(t, name, v1alpha1.ConditionTenantsHaveRoom); c.Reason != v1alpha1.ReasonDevicesHeld || c.Status != metav1.ConditionFalse {
		t.Errorf("%+v", c)
	}
	arrives("m2")
	if started := h.steps(t, name, map[string]int32{"m4": 1}); !slices.Equal(started, []string{"m4"}) {
		t.Errorf("%v are started, want m4 once m2 is back", started)
	}
	arrives("m4")
	h.steps(t, name, nil)
	if s := h.rollout(t, name).Status; s.Phase != v1alpha1.RolloutDone || len(s.InUse) > 0 || meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionTenantsHaveRoom) != nil {
		t.Errorf("%s, in use %v", s.Phase, s.InUse)
	}
}

func TestWhileTheClaimsCannotBeReadNoMachineIsMovedWhereATenantHasABudget(t *testing.T) {
	kubeconfig, subject := server.LimitedKubeconfig(t)
	h := newHall(t, 0, policy(2, atOnce))
	h.share(t, kubeconfig, ptr.To(int32(8)))
	h.targets(t, "a", "b")
	name := h.own(t, h.name+"-b-1", "a", "b").Name
	server.Create(t, nodeOn(h, "m1", "a"))
	h.hold(t, "m1", 2)
	if started := h.steps(t, name, nil); len(started) > 0 {
		t.Fatalf("%v are started", started)
	}
	text := h.ready(t, name, v1alpha1.ConditionReady).Message
	if !strings.Contains(text, "the claims of TenantCluster "+h.name+"/research cannot be read, and a class of an Entitlement there has a maxUnavailable: the kubeconfig's user may not list resourceclaims, "+
		"watch resourceclaims: an administrator of the shared cluster applies what ingot tenant add --entitlements --tenant-side prints") {
		t.Errorf("it says %q", text)
	}
	if c := h.ready(t, name, v1alpha1.ConditionTenantsHaveRoom); c.Reason != v1alpha1.ReasonClaimsUnreadable || c.Status != metav1.ConditionUnknown {
		t.Errorf("%+v", c)
	}
	if result := reconcileOnce(t, server.Client, name); result.RequeueAfter <= 0 {
		t.Error("nothing looks again")
	}
	t.Run("and goes on when they can be read", func(t *testing.T) {
		server.Create(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "claims"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceclaims"}, Verbs: []string{"list", "watch"}},
		}}, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "claims"}, Subjects: []rbacv1.Subject{subject}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "claims"}})
		var started []string
		management.Eventually(t, "it is started", func() bool {
			started = h.steps(t, name, map[string]int32{"m1": 2})
			return len(started) > 0
		})
	})
}

func TestClaimsThatCannotBeReadStopNothingWithoutABudget(t *testing.T) {
	h := newHall(t, 0, policy(2, atOnce))
	server.Create(t, &v1alpha1.Entitlement{ObjectMeta: metav1.ObjectMeta{Namespace: h.name, Name: "legal"}, Spec: v1alpha1.EntitlementSpec{
		TenantClusterRef: v1alpha1.LocalReference{Name: "research"}, Tenant: "legal", Namespaces: v1alpha1.TenantNamespaces{Names: []string{h.name}},
		Classes: []v1alpha1.EntitledClass{{Name: "h100", NodeTypeRef: v1alpha1.LocalReference{Name: h.name}, Kind: v1alpha1.DeviceGPU, Devices: 100}},
	}})
	h.targets(t, "a", "b")
	name := h.own(t, h.name+"-b-1", "a", "b").Name
	server.Create(t, nodeOn(h, "m1", "a"))
	if started := h.steps(t, name, nil); len(started) != 1 || len(h.rollout(t, name).Status.InUse) > 0 {
		t.Errorf("%v are started, in use %v", started, h.rollout(t, name).Status.InUse)
	}
}

// TestWhatIsHeldIsCountedWithoutABudgetToo: the claim gets its devices when the Machine is chosen already.
func TestWhatIsHeldIsCountedWithoutABudgetToo(t *testing.T) {
	h := newHall(t, 0, policy(1, atOnce))
	h.share(t, server.Cluster.Kubeconfig(), nil)
	h.targets(t, "a", "b")
	name := h.own(t, h.name+"-b-1", "a", "b").Name
	server.Create(t, nodeOn(h, "m1", "a"))
	reconcileOnce(t, server.Client, name)
	if s := h.rollout(t, name).Status; len(s.InProgress) != 1 || len(s.InUse) > 0 {
		t.Fatalf("in progress %v, in use %v", s.InProgress, s.InUse)
	}
	h.hold(t, "m1", 2)
	if started := h.steps(t, name, map[string]int32{"m1": 2}); len(started) != 1 {
		t.Errorf("%v are started", started)
	}
	if c := h.ready(t, name, v1alpha1.ConditionTenantsHaveRoom); c.Type != "" {
		t.Errorf("%+v where no class has a budget", c)
	}
}

func TestWhatTheRolloutOfAnotherNodeTypeTakesAwayCountsToo(t *testing.T) {
	h, other := newHall(t, 0, policy(2, atOnce)), newHall(t, 0, policy(2, atOnce))
	h.share(t, server.Cluster.Kubeconfig(), ptr.To(int32(3)))
	theirs := nodeOn(h, "theirs", "x")
	theirs.Spec.NodeTypeRef.Name, theirs.Spec.Revision = other.name, "y"
	server.Create(t, theirs)
	other.targets(t, "x", "y")
	first := other.own(t, other.name+"-y-1", "x", "y")
	first.Status = v1alpha1.RolloutStatus{
		Phase: v1alpha1.RolloutRolling, InProgress: []string{h.name + "/theirs"},
		InUse: []v1alpha1.DevicesInUse{{Machine: h.name + "/theirs", DeviceClass: "legal-h100", Devices: 2, Claims: 2}},
	}
	if err := server.Client.Status().Update(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	h.targets(t, "a", "b")
	name := h.own(t, h.name+"-b-1", "a", "b").Name
	server.Create(t, nodeOn(h, "m1", "a"))
	h.hold(t, "m1", 2)
	if started := h.steps(t, name, nil); len(started) > 0 {
		t.Fatalf("%v are started", started)
	}
	if text := h.ready(t, name, v1alpha1.ConditionReady).Message; !strings.Contains(text, "class legal-h100: 2 devices are held on "+h.node("m1")+", 2 are unavailable until other Machines are Ready, and at most 3 may be") {
		t.Errorf("it says %q", text)
	}
	// The list in the cache lags: it does not have what this manager has written a moment ago.
	lagging := interceptor.NewClient(mustWatch(t), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := c.List(ctx, list, options...)
			if rollouts, is := list.(*v1alpha1.RolloutList); is {
				for i := range rollouts.Items {
					rollouts.Items[i].Status.InUse = nil
				}
			}
			return err
		},
	})
	for range 3 {
		reconcileOnce(t, lagging, name)
	}
	if asked := h.asked(t); !slices.Equal(asked, []string{"theirs"}) || len(h.rollout(t, name).Status.InProgress) > 0 {
		t.Errorf("%v are started, in progress %v", asked, h.rollout(t, name).Status.InProgress)
	}
	first.Status.InUse = nil
	if err := server.Client.Status().Update(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if started := h.steps(t, name, map[string]int32{"m1": 2}); !slices.Equal(started, []string{"m1"}) {
		t.Errorf("%v are started", started)
	}
}

// The pods of a node leave while it is drained, and their claims with them.
func TestTenantsLoseNoMoreThanTheirBudgetWhileAManagerWorks(t *testing.T) {
	manage(t)
	h := newHall(t, 3, policy(2, atOnce))
	h.share(t, server.Cluster.Kubeconfig(), ptr.To(int32(2)))
	h.filled(t, 3)
	for _, m := range h.machines(t) {
		h.hold(t, m.Name, 2)
	}
	// The NodeType and the pool allow two Machines at once, the tenant one.
	h.budget = 1
	h.use(t, "new")
	freed := map[string]bool{}
	h.until(t, "all have moved", func() bool {
		for _, m := range h.machines(t) {
			if m.Status.Phase == v1alpha1.MachineProvisioning && !freed[m.Name] {
				freed[m.Name] = true
				h.free(t, m.Name)
			}
		}
		all := h.rollouts(t)
		return len(all) == 1 && all[0].Status.Phase == v1alpha1.RolloutDone
	})
	if len(freed) != 3 {
		t.Errorf("%v were moved", freed)
	}
}
