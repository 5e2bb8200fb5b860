package remainingnode

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
	"github.com/ingot-dev/ingot/test/loopback"
	"github.com/ingot-dev/ingot/test/management"
	"github.com/ingot-dev/ingot/test/tenantcalls"
)

var server *management.Server

func TestMain(m *testing.M) { os.Exit(management.Main(m, &server)) }

// newNode creates a Node in the tenant's cluster, which is the management cluster itself.
func newNode(t *testing.T, name, providerID string, finalizers ...string) *corev1.Node {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers}, Spec: corev1.NodeSpec{ProviderID: providerID}}
	server.Create(t, node)
	return node
}

func hasNode(t *testing.T, name string) bool {
	t.Helper()
	err := server.Client.Get(t.Context(), client.ObjectKey{Name: name}, &corev1.Node{})
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return !apierrors.IsNotFound(err)
}

func TestANodeThatRemainedIsDeletedWhenItsTenantIsBack(t *testing.T) {
	namespace := server.Namespace(t)
	tenant := types.NamespacedName{Namespace: namespace, Name: "research"}
	entry := func(name string) v1alpha1.ReleasedNode {
		return v1alpha1.ReleasedNode{Tenant: tenant.String(), Name: name, MachineUID: types.UID("uid-" + name), Since: metav1.NowMicro()}
	}
	server.Create(t, &v1alpha1.TenantCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: tenant.Name}, Spec: v1alpha1.TenantClusterSpec{
		KubeconfigSecretRef: v1alpha1.LocalReference{Name: "admin"}, Join: v1alpha1.JoinSpec{TLSBootstrap: &v1alpha1.EndpointJoin{}},
	}})
	newNode(t, "left", "ingot://uid-left/2")
	newNode(t, "another", "ingot://uid-of-another-machine/1")
	byUID := newNode(t, "by-uid", "cloud://7")
	newNode(t, "kept", "ingot://uid-kept/1", "example.com/kept")
	newNode(t, "running", "ingot://uid-running/1")
	left, running := &v1alpha1.HostRecord{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "server-00"}}, &v1alpha1.HostRecord{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "server-01"}}
	left.Spec.RemainingNodes = []v1alpha1.ReleasedNode{entry("kept"), entry("left"), entry("another"), entry("by-uid"), entry("never-was")}
	left.Spec.RemainingNodes[3].UID = byUID.UID
	// The release of this one is not complete: its server may still be on.
	running.Spec.RemainingNodes = []v1alpha1.ReleasedNode{entry("running")}
	running.Spec.Machine = &v1alpha1.MachineReference{Namespace: namespace, Name: "running", UID: "uid-running"}
	server.Create(t, left, running)

	var calls tenantcalls.Recorder
	t.Cleanup(func() { calls.Check(t) })
	tenants := tenantaccess.New(tenantaccess.Options{PrivateNetworks: loopback.Networks(), Scheme: server.Scheme, Log: logr.Discard(), WrapTransport: calls.Wrap})
	server.Run(t, func(mgr ctrl.Manager) error {
		if err := mgr.Add(tenants); err != nil {
			return err
		}
		return (&Reconciler{Client: mgr.GetClient(), Tenants: tenants, Recorder: mgr.GetEventRecorder("remainingnode"), Clock: clock.RealClock{}}).SetupWithManager(mgr)
	})
	// The tenant cannot be used until the registry has its kubeconfig.
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(left), left); err != nil || len(left.Spec.RemainingNodes) != 5 {
		t.Fatalf("before the tenant is back: %v, %+v", err, left.Spec)
	}
	if err := tenants.Set(t.Context(), tenant, server.Cluster.Kubeconfig()); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the Nodes are settled but for the one with a finalizer", func() bool {
		if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(left), left); err != nil {
			t.Fatal(err)
		}
		return len(left.Spec.RemainingNodes) == 1 && left.Spec.RemainingNodes[0].Name == "kept" && !hasNode(t, "left") && !hasNode(t, "by-uid")
	})
	if !hasNode(t, "another") || !hasNode(t, "running") {
		t.Error("the Node of another machine, or of a server that may run, was deleted")
	}
	// Only its name speaks for it: it may be of another machine, or the one that remained where a cloud provider sets the providerID.
	newNode(t, "unproven", "vcluster://unproven")
	before := left.DeepCopy()
	left.Spec.RemainingNodes = append(left.Spec.RemainingNodes, entry("unproven"), entry("never-was"))
	if err := server.Client.Patch(t.Context(), left, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the entry behind the unproven one is settled", func() bool {
		return server.Client.Get(t.Context(), client.ObjectKeyFromObject(left), left) == nil && slices.Equal(names(left), []string{"kept", "unproven"})
	})
	management.Eventually(t, "an event says that nothing proves the Node", func() bool {
		var list eventsv1.EventList
		if err := server.Client.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Reason == v1alpha1.ReasonRemainingNodeUnproven && strings.Contains(e.Note, "Node unproven of TenantCluster") && strings.Contains(e.Note, `seen providerID "vcluster://unproven"`)
		})
	})
	if !hasNode(t, "unproven") {
		t.Error("a Node that is not proven to be the one that remained was deleted")
	}
	kept := &corev1.Node{}
	management.Eventually(t, "the deletion of the kept Node is requested", func() bool {
		return server.Client.Get(t.Context(), client.ObjectKey{Name: "kept"}, kept) == nil && kept.DeletionTimestamp != nil
	})
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(running), running); err != nil || !slices.Equal([]string{"running"}, names(running)) {
		t.Errorf("%v, %v", err, names(running))
	}
	if err := server.Client.Patch(t.Context(), kept, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
}

// TestAFailingEntryDoesNotHoldUpTheOthers lets the first entry name a Node that no API server finds or deletes: the request itself is an error.
func TestAFailingEntryDoesNotHoldUpTheOthers(t *testing.T) {
	namespace := server.Namespace(t)
	tenant := types.NamespacedName{Namespace: namespace, Name: "research"}
	server.Create(t, &v1alpha1.TenantCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: tenant.Name}, Spec: v1alpha1.TenantClusterSpec{
		KubeconfigSecretRef: v1alpha1.LocalReference{Name: "admin"}, Join: v1alpha1.JoinSpec{TLSBootstrap: &v1alpha1.EndpointJoin{}},
	}})
	newNode(t, "behind", "ingot://uid-behind/1")
	record := &v1alpha1.HostRecord{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "server-00"}}
	for _, name := range []string{"bad/name", "behind"} {
		record.Spec.RemainingNodes = append(record.Spec.RemainingNodes, v1alpha1.ReleasedNode{Tenant: tenant.String(), Name: name, MachineUID: types.UID("uid-" + name), Since: metav1.NowMicro()})
	}
	server.Create(t, record)
	tenants := tenantaccess.New(tenantaccess.Options{PrivateNetworks: loopback.Networks(), Scheme: server.Scheme, Log: logr.Discard()})
	if err := tenants.Set(t.Context(), tenant, server.Cluster.Kubeconfig()); err != nil {
		t.Fatal(err)
	}
	server.Run(t, func(mgr ctrl.Manager) error {
		if err := mgr.Add(tenants); err != nil {
			return err
		}
		r := &Reconciler{Client: mgr.GetClient(), Tenants: tenants, Recorder: mgr.GetEventRecorder("remainingnode"), Clock: clock.RealClock{}}
		return ctrl.NewControllerManagedBy(mgr).Named("remainingnode-failing").For(&v1alpha1.HostRecord{}).WatchesRawSource(tenants.TenantSource("remainingnode-failing", r.recordsOf)).Complete(r)
	})
	management.Eventually(t, "the Node behind the failing entry is deleted and its entry removed", func() bool {
		if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(record), record); err != nil {
			t.Fatal(err)
		}
		return !hasNode(t, "behind") && slices.Equal([]string{"bad/name"}, names(record))
	})
}

func names(r *v1alpha1.HostRecord) (out []string) {
	for _, n := range r.Spec.RemainingNodes {
		out = append(out, n.Name)
	}
	return out
}
