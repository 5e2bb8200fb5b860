package remainingnode

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
	"github.com/ingot-dev/ingot/test/loopback"
	"github.com/ingot-dev/ingot/test/management"
)

// TestAnotherClusterSaysNothingOfANodeThatRemained has three Nodes that are not in the cluster that answers: one was left in this cluster, one in another,
// and one in a cluster that a version before did not note.
func TestAnotherClusterSaysNothingOfANodeThatRemained(t *testing.T) {
	namespace := server.Namespace(t)
	tenant := types.NamespacedName{Namespace: namespace, Name: "research"}
	system := &corev1.Namespace{}
	if err := server.Client.Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		t.Fatal(err)
	}
	server.Create(t, &v1alpha1.TenantCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: tenant.Name}, Spec: v1alpha1.TenantClusterSpec{
		KubeconfigSecretRef: v1alpha1.LocalReference{Name: "admin"}, Join: v1alpha1.JoinSpec{TLSBootstrap: &v1alpha1.EndpointJoin{}},
	}})
	record := &v1alpha1.HostRecord{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "server-00"}}
	for name, cluster := range map[string]types.UID{"here": system.UID, "unknown": "", "elsewhere": "another-cluster"} {
		record.Spec.RemainingNodes = append(record.Spec.RemainingNodes, v1alpha1.ReleasedNode{
			Tenant: tenant.String(), ClusterUID: cluster, Name: name, MachineUID: types.UID("uid-" + name), Since: metav1.NowMicro(),
		})
	}
	server.Create(t, record)
	tenants := tenantaccess.New(tenantaccess.Options{PrivateNetworks: loopback.Networks(), Scheme: server.Scheme, Log: logr.Discard()})
	server.Run(t, func(mgr ctrl.Manager) error { return mgr.Add(tenants) })
	if err := tenants.Set(t.Context(), tenant, server.Cluster.Kubeconfig()); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the tenant can be used", func() bool { _, err := tenants.For(tenant); return err == nil })
	clock, told := clocktesting.NewFakePassiveClock(time.Now()), events.NewFakeRecorder(100)
	r := &Reconciler{Client: server.Client, Tenants: tenants, Recorder: told, Clock: clock}
	left := func() []string {
		t.Helper()
		for range 4 {
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(record)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(record), record); err != nil {
			t.Fatal(err)
		}
		return names(record)
	}
	tells := func(text string) bool {
		for len(told.Events) > 0 {
			if strings.Contains(<-told.Events, text) {
				return true
			}
		}
		return false
	}
	if got := left(); !slices.Equal(got, []string{"elsewhere"}) {
		t.Fatalf("left are %v", got)
	}
	if !tells("RemainingNodeElsewhere Node elsewhere of TenantCluster " + tenant.String() + " may have remained after a release: expected the cluster another-cluster") {
		t.Error("nobody is told")
	}
	clock.SetTime(clock.Now().Add(31 * 24 * time.Hour))
	if got := left(); len(got) != 0 {
		t.Errorf("after a month: %v", got)
	}
	if !tells("nobody knows whether it is still there") {
		t.Error("the entry is removed with another reason")
	}
}
