package tenantaccess

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestAnotherClusterThanTheExpectedOneIsNotUsed(t *testing.T) {
	var system corev1.Namespace
	if err := server.Client.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, &system); err != nil {
		t.Fatal(err)
	}
	r, key := newRegistry(t, Options{}), types.NamespacedName{Namespace: "team", Name: "research"}
	r.Expect(key, "another")
	if err := r.Set(t.Context(), key, server.Cluster.Kubeconfig()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the cluster is refused", func() bool { _, err := r.For(key); return reasonOf(err) == v1alpha1.ReasonClusterChanged })
	for _, expected := range []types.UID{system.UID, ""} {
		r.Expect(key, expected)
		if access := usable(t, r, key); access.ClusterUID != system.UID {
			t.Errorf("expecting %q: the cluster is %q", expected, access.ClusterUID)
		}
	}
	r.Expect(key, "another")
	if _, err := r.For(key); reasonOf(err) != v1alpha1.ReasonClusterChanged {
		t.Errorf("an expectation that is set later does not count: %v", err)
	}
}

// TestAClusterThatCannotBeToldIsUsedUnlessItWasKnownBefore uses a service account that may watch Nodes and ResourceSlices, and may not read Namespaces.
func TestAClusterThatCannotBeToldIsUsedUnlessItWasKnownBefore(t *testing.T) {
	r, key := newRegistry(t, Options{ProbeInterval: time.Second}), types.NamespacedName{Namespace: "team", Name: "limited"}
	kubeconfig, _ := server.LimitedKubeconfig(t)
	if err := r.Set(t.Context(), key, kubeconfig); err != nil {
		t.Fatal(err)
	}
	if access := usable(t, r, key); access.ClusterUID != "" {
		t.Errorf("the cluster is %q", access.ClusterUID)
	}
	r.Expect(key, "known-before")
	if _, err := r.For(key); reasonOf(err) != v1alpha1.ReasonTenantUnauthorized {
		t.Errorf("a cluster that cannot be told any more: %v", err)
	}
	// This is the right that ingot tenant add asks for: a Role in the namespace is enough.
	server.Create(t,
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "limited"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}}}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "limited"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "limited"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "limited"}},
		})
	eventually(t, "it is told with the right to get the Namespace", func() bool { _, err := r.For(key); return reasonOf(err) == v1alpha1.ReasonClusterChanged })
}
