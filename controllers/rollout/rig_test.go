package rollout

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/rand"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/grants"
	"github.com/ingot-dev/ingot/controllers/nodepool"
	"github.com/ingot-dev/ingot/controllers/nodeprovider"
	"github.com/ingot-dev/ingot/controllers/nodetype"
	"github.com/ingot-dev/ingot/controllers/plan/revisionrollout"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/test/loopback"
	"github.com/ingot-dev/ingot/test/management"
)

var server *management.Server

func TestMain(m *testing.M) { os.Exit(management.Main(m, &server)) }

// tenants are the clients of the TenantClusters. The tests of shared clusters give them kubeconfigs.
var tenants = tenantaccess.New(tenantaccess.Options{PrivateNetworks: loopback.Networks(), Log: logr.Discard(), Scheme: clientgoscheme.Scheme})

// manage runs a manager with the controllers of NodeProviders, NodeTypes, NodePools and Rollouts until the test ends.
func manage(t *testing.T) {
	t.Helper()
	manageAs(t, presentation.Resolve)
}

// manageAs is manage for a version of Ingot with another resolver. stop ends it.
func manageAs(t *testing.T, resolve presentation.Resolver) (stop func()) {
	t.Helper()
	return server.Run(t, func(mgr ctrl.Manager) error {
		c, direct, real := mgr.GetClient(), mgr.GetAPIReader(), clock.RealClock{}
		for _, controller := range []interface{ SetupWithManager(ctrl.Manager) error }{
			&nodeprovider.Reconciler{Client: c, Recorder: mgr.GetEventRecorder("nodeprovider"), Clock: real, CheckBoot: func(context.Context, v1alpha1.NetbootSpec) error { return nil },
				CheckInstaller: func(context.Context, *v1alpha1.NodeProvider) (string, error) { return "", nil }},
			&nodetype.Reconciler{Client: c, APIReader: direct, Recorder: mgr.GetEventRecorder("nodetype"), Clock: real, Resolve: resolve},
			&nodepool.Reconciler{Client: c, APIReader: direct, Recorder: mgr.GetEventRecorder("nodepool"), Clock: real, Suffix: func() string { return rand.String(5) }},
			&Reconciler{Client: c, APIReader: direct, Tenants: tenants, Grants: &grants.Desk{Clock: real}, Recorder: mgr.GetEventRecorder("rollout"), Clock: real},
		} {
			if err := controller.SetupWithManager(mgr); err != nil {
				return err
			}
		}
		return nil
	})
}

// hall is one NodeType with a pool of Machines for one tenant, whose life the test plays.
type hall struct {
	name string
	// budget is how many Machines may be unavailable; 0: not looked at.
	budget int
	// bad is the image that makes no node.
	bad string
	// isFull is true if no further Machine gets a host.
	isFull bool
	// dark is the revision whose nodes cannot be reached any more; empty: all can.
	dark string
	// dead is the name of the Machine whose server never makes a node again.
	dead string
}

func condition(is metav1.ConditionStatus, reason string) []metav1.Condition {
	return []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: is, Reason: reason, LastTransitionTime: metav1.Now()}}
}

// newHall makes everything but the Machines. The images are called after the hall: old, new and mended.
func newHall(t *testing.T, replicas int32, policy *v1alpha1.RolloutPolicy) *hall {
	t.Helper()
	h := &hall{name: server.Namespace(t)}
	objects := []client.Object{
		&v1alpha1.NodeProvider{ObjectMeta: metav1.ObjectMeta{Name: h.name}, Spec: v1alpha1.NodeProviderSpec{
			HostNamespace: h.name, Redfish: &v1alpha1.RedfishProvider{Netboot: v1alpha1.NetbootSpec{Address: "10.20.0.2"}},
		}},
		&v1alpha1.TenantCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: h.name, Name: "research"},
			Spec: v1alpha1.TenantClusterSpec{
				KubeconfigSecretRef: v1alpha1.LocalReference{Name: "kubeconfig"}, Join: v1alpha1.JoinSpec{TLSBootstrap: &v1alpha1.EndpointJoin{}},
			},
			Status: v1alpha1.TenantClusterStatus{Conditions: condition(metav1.ConditionTrue, v1alpha1.ReasonReady)},
		},
	}
	for i, image := range []string{"old", "new", "mended"} {
		checksum := "sha256:" + strings.Repeat(fmt.Sprintf("%02x", i), 32)
		objects = append(objects, &v1alpha1.OSImage{
			ObjectMeta: metav1.ObjectMeta{Name: h.name + "-" + image},
			Spec: v1alpha1.OSImageSpec{
				URL: "https://images.example.com/" + image, Checksum: checksum, Format: v1alpha1.FormatRawZstd, UserData: v1alpha1.UserDataCloudInit,
				OS: v1alpha1.OSImageOS{ID: "debian", Version: "13"}, Software: v1alpha1.OSImageSoftware{Kubelet: "1.37.0"},
			},
			Status: v1alpha1.OSImageStatus{Checksum: checksum, Conditions: condition(metav1.ConditionTrue, v1alpha1.ReasonReady)},
		})
	}
	pool := &v1alpha1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: h.name, Name: "pool"}, Spec: v1alpha1.NodePoolSpec{
		NodeTypeRef: v1alpha1.LocalReference{Name: h.name}, TenantClusterRef: v1alpha1.LocalReference{Name: "research"}, Replicas: &replicas,
		Rollout: &v1alpha1.NodePoolRollout{MaxUnavailable: ptr.To(intstr.FromInt32(2))},
	}}
	nodeType := &v1alpha1.NodeType{ObjectMeta: metav1.ObjectMeta{Name: h.name}, Spec: v1alpha1.NodeTypeSpec{
		ProviderRef: v1alpha1.LocalReference{Name: h.name}, OSImageRef: v1alpha1.LocalReference{Name: h.name + "-old"}, Rollout: policy,
		HostSelector: metav1.LabelSelector{MatchLabels: map[string]string{"gpu-model": "h100"}},
	}}
	server.Create(t, append(objects, nodeType, pool)...)
	t.Cleanup(func() { h.clear() })
	return h
}

// clear takes the hall away without collecting garbage: no collector runs.
func (h *hall) clear() {
	ctx := context.Background()
	_ = server.Client.Delete(ctx, &v1alpha1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: h.name, Name: "pool"}})
	_ = server.Client.Delete(ctx, &v1alpha1.NodeType{ObjectMeta: metav1.ObjectMeta{Name: h.name}})
	_ = server.Client.DeleteAllOf(ctx, &v1alpha1.Machine{}, client.InNamespace(h.name))
}

func (h *hall) nodeType(t *testing.T) *v1alpha1.NodeType {
	t.Helper()
	var stored v1alpha1.NodeType
	if err := server.Client.Get(t.Context(), client.ObjectKey{Name: h.name}, &stored); err != nil {
		t.Fatal(err)
	}
	return &stored
}

// change patches the NodeType's spec.
func (h *hall) change(t *testing.T, change func(*v1alpha1.NodeTypeSpec)) {
	t.Helper()
	after := h.nodeType(t)
	before := after.DeepCopy()
	change(&after.Spec)
	if err := server.Client.Patch(t.Context(), after, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func (h *hall) use(t *testing.T, image string) {
	t.Helper()
	h.change(t, func(s *v1alpha1.NodeTypeSpec) { s.OSImageRef.Name = h.name + "-" + image })
}

func (h *hall) scale(t *testing.T, replicas int32) {
	t.Helper()
	pool := &v1alpha1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: h.name, Name: "pool"}}
	change := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
	if err := server.Client.Patch(t.Context(), pool, client.RawPatch(types.MergePatchType, []byte(change))); err != nil {
		t.Fatal(err)
	}
}

// rollouts of the hall, the newest last.
func (h *hall) rollouts(t *testing.T) []v1alpha1.Rollout {
	t.Helper()
	var list v1alpha1.RolloutList
	if err := server.Client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	mine := slices.DeleteFunc(list.Items, func(r v1alpha1.Rollout) bool { return r.Spec.NodeTypeRef.Name != h.name })
	slices.SortFunc(mine, func(a, b v1alpha1.Rollout) int {
		return cmp.Compare(revisionrollout.Number(a.Name), revisionrollout.Number(b.Name))
	})
	return mine
}

func (h *hall) machines(t *testing.T) []v1alpha1.Machine {
	t.Helper()
	var list v1alpha1.MachineList
	if err := server.Client.List(t.Context(), &list, client.InNamespace(h.name)); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func ready(m *v1alpha1.Machine) bool {
	return meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionReady)
}

// play takes every Machine one step further in its life, once it has seen that the budget is kept.
func (h *hall) play(t *testing.T) {
	t.Helper()
	stable, all, down := h.nodeType(t).Status.Stable(), h.machines(t), 0
	for i := range all {
		if m := &all[i]; m.Status.HostRef != nil && !ready(m) || !m.Spec.Asked().IsZero() && m.Spec.Asked() != m.Status.Installed() {
			down++
		}
	}
	if h.budget > 0 && down > h.budget {
		t.Fatalf("%d Machines are unavailable, of at most %d", down, h.budget)
	}
	for i := range all {
		m := &all[i]
		if m.DeletionTimestamp != nil {
			h.letGo(t, m)
			continue
		}
		before := m.DeepCopy()
		h.live(m, cmp.Or(m.Spec.Asked(), m.Status.Installed(), stable))
		if m.Status.Phase == before.Status.Phase && m.Status.Installed() == before.Status.Installed() {
			continue
		}
		m.Status.ObservedGeneration = m.Generation
		// Two managers may make a Machine too many, and delete it again.
		err := server.Client.Status().Update(t.Context(), m)
		if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
	}
}

// letGo is the end of a Machine that is released.
func (h *hall) letGo(t *testing.T, m *v1alpha1.Machine) {
	t.Helper()
	m.Finalizers = nil
	err := server.Client.Update(t.Context(), m)
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		t.Fatal(err)
	}
}

// live is what the controllers of Machines and hosts make of one.
func (h *hall) live(m *v1alpha1.Machine, wanted v1alpha1.RenderedRevision) {
	s := &m.Status
	switch {
	case wanted.IsZero() || h.isFull && s.HostRef == nil:
		s.Phase = v1alpha1.MachinePending
	case s.Installed() != wanted:
		s.Revision, s.Rendering, s.Phase, s.Conditions = wanted.Revision, wanted.Rendering, v1alpha1.MachineProvisioning, condition(metav1.ConditionFalse, v1alpha1.ReasonProvisioning)
		s.NodeRef, s.HostRef = nil, &v1alpha1.NamespacedReference{Namespace: h.name, Name: "host-" + m.Name}
	case h.dark != "" && s.Revision == h.dark:
		s.Phase, s.Conditions = v1alpha1.MachineValidating, condition(metav1.ConditionFalse, v1alpha1.ReasonValidationTimedOut)
	case m.Name == h.dead && s.Phase == v1alpha1.MachineReady: // it is installed again
		s.Phase, s.Conditions = v1alpha1.MachineProvisioning, condition(metav1.ConditionFalse, v1alpha1.ReasonProvisioning)
	case h.bad != "" && wanted.Revision == h.bad || m.Name == h.dead:
		s.Phase, s.Conditions = v1alpha1.MachineJoining, condition(metav1.ConditionFalse, v1alpha1.ReasonJoinTimedOut)
	default:
		s.Phase, s.Conditions = v1alpha1.MachineReady, condition(metav1.ConditionTrue, v1alpha1.ReasonReady)
		s.NodeRef = &v1alpha1.NodeReference{Name: h.node(m.Name), UID: m.UID}
	}
	if n := len(s.Timeline); n == 0 || s.Timeline[n-1].Phase != s.Phase {
		s.Timeline = append(s.Timeline, v1alpha1.PhaseEntry{Phase: s.Phase, At: metav1.NowMicro()})
	}
}

// until plays on until something holds.
func (h *hall) until(t *testing.T, what string, is func() bool) {
	t.Helper()
	management.Eventually(t, what, func() bool { h.play(t); return is() })
}

// count of the Machines that a question is answered for with yes.
func (h *hall) count(t *testing.T, is func(*v1alpha1.Machine) bool) int {
	t.Helper()
	n, all := 0, h.machines(t)
	for i := range all {
		if is(&all[i]) {
			n++
		}
	}
	return n
}

// filled waits until so many Machines are Ready with the stable revision, and returns that.
func (h *hall) filled(t *testing.T, replicas int) string {
	t.Helper()
	var stable string
	h.until(t, "the pool is Ready with the stable revision", func() bool {
		stable = h.nodeType(t).Status.StableRevision
		return stable != "" && h.count(t, func(m *v1alpha1.Machine) bool { return ready(m) && m.Status.Revision == stable }) == replicas
	})
	return stable
}

// policy with a canary of one Machine that bakes so long.
func policy(maxUnavailable int32, bake time.Duration) *v1alpha1.RolloutPolicy {
	return &v1alpha1.RolloutPolicy{
		MaxUnavailable: ptr.To(intstr.FromInt32(maxUnavailable)), FailureBudget: ptr.To(int32(1)),
		Canary: &v1alpha1.CanarySpec{Machines: 1, Bake: &metav1.Duration{Duration: bake}},
	}
}

const (
	atOnce = time.Millisecond
	forNow = 1000 * time.Hour
)
