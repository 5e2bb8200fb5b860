package tenant

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

// clusterUID is the uid of the Namespace kube-system of the test's cluster, as an administrator reads it.
func clusterUID(t *testing.T) types.UID {
	t.Helper()
	var namespace corev1.Namespace
	if err := server.Client.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, &namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.UID
}

func TestATenantIsItsClusterAndAnotherOneIsNotAcceptedUnderItsMachines(t *testing.T) {
	registry, key := run(t, v1alpha1.JoinSpec{TLSBootstrap: &v1alpha1.EndpointJoin{}}, server.Cluster.Kubeconfig())
	tenant := awaitReady(t, key, v1alpha1.ReasonReady, "")
	own := clusterUID(t)
	if tenant.Status.ClusterUID != own {
		t.Fatalf("clusterUID %q, expected %q", tenant.Status.ClusterUID, own)
	}
	if access, err := registry.For(key); err != nil || access.ClusterUID != own {
		t.Fatalf("the registry says %+v, %v", access, err)
	}

	held := machine(key, "training-1", "training")
	server.Create(t, held)
	before := tenant.DeepCopy()
	tenant.Status.ClusterUID = "the-first-cluster"
	if err := server.Client.Status().Patch(t.Context(), &tenant, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	nudge(t, key, "https://b.example.com")
	tenant = awaitReady(t, key, v1alpha1.ReasonClusterChanged, "joined the cluster the-first-cluster")
	if tenant.Status.ClusterUID != "the-first-cluster" {
		t.Errorf("clusterUID %q", tenant.Status.ClusterUID)
	}
	if _, err := registry.For(key); err == nil || !strings.Contains(err.Error(), "nothing is drained") {
		t.Errorf("another cluster can be used: %v", err)
	}

	if err := server.Client.Delete(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	awaitReady(t, key, v1alpha1.ReasonReady, "")
	management.Eventually(t, "the other cluster is accepted when no Machine is left", func() bool {
		return server.Client.Get(t.Context(), key, &tenant) == nil && tenant.Status.ClusterUID == own
	})
	if _, err := registry.For(key); err != nil {
		t.Error(err)
	}
}
