package tenant

import (
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
	"github.com/ingot-dev/ingot/test/loopback"
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
	awaitReady(t, key, v1alpha1.ReasonClusterChanged, ". The Machines: training-1; to be scaled to 0 first: NodePool training")
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

// TestAWrongKubeconfigIsCorrectedUnderMachinesThatHaveNotJoined corrects it while one Machine waits for a host, and tries to while one is being installed.
func TestAWrongKubeconfigIsCorrectedUnderMachinesThatHaveNotJoined(t *testing.T) {
	_, key := run(t, v1alpha1.JoinSpec{TLSBootstrap: &v1alpha1.EndpointJoin{}}, server.Cluster.Kubeconfig())
	tenant := awaitReady(t, key, v1alpha1.ReasonReady, "")
	own, waiting, installing := tenant.Status.ClusterUID, machine(key, "training-1", "training"), machine(key, "training-2", "training")
	waiting.Status.Phase = v1alpha1.MachinePending
	installing.Status.Phase, installing.Status.Attempt = v1alpha1.MachineProvisioning, 1
	server.Create(t, waiting, installing)
	before := tenant.DeepCopy()
	tenant.Status.ClusterUID = "the-wrong-cluster"
	if err := server.Client.Status().Patch(t.Context(), &tenant, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	nudge(t, key, "https://b.example.com")
	awaitReady(t, key, v1alpha1.ReasonClusterChanged, ". The Machines: training-2; ")
	if err := server.Client.Delete(t.Context(), installing); err != nil {
		t.Fatal(err)
	}
	awaitReady(t, key, v1alpha1.ReasonReady, "")
	if err := server.Client.Get(t.Context(), key, &tenant); err != nil || tenant.Status.ClusterUID != own || tenant.Status.Machines != 1 {
		t.Errorf("%+v, %v", tenant.Status, err)
	}
}

// TestATenantWhoseClusterMayNotBeReadSaysWhichRightItNeeds uses a user with all other rights, and does what the message says.
func TestATenantWhoseClusterMayNotBeReadSaysWhichRightItNeeds(t *testing.T) {
	kubeconfig, user := server.LimitedKubeconfig(t)
	_, key := runWith(t, tenantaccess.Options{PrivateNetworks: loopback.Networks(), ProbeInterval: time.Second}, v1alpha1.JoinSpec{TLSBootstrap: &v1alpha1.EndpointJoin{}}, kubeconfig)
	tenant := awaitReady(t, key, v1alpha1.ReasonClusterUnknown, "kubectl create role ingot-identity -n kube-system --verb=get --resource=namespaces")
	awaitReady(t, key, v1alpha1.ReasonClusterUnknown, "let the kubeconfig's user get the Service kube-system/kube-dns and the ConfigMap kube-system/kubelet-config")
	if !meta.IsStatusConditionTrue(tenant.Status.Conditions, v1alpha1.ConditionReady) || tenant.Status.ClusterUID != "" {
		t.Errorf("%+v", tenant.Status)
	}
	server.Create(t,
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "ingot-identity"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}}}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "ingot-identity"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "ingot-identity"},
			Subjects: []rbacv1.Subject{user},
		})
	management.Eventually(t, "the cluster is known", func() bool {
		nudge(t, key, "https://x"+strconv.FormatInt(time.Now().UnixNano(), 10)+".example.com")
		return server.Client.Get(t.Context(), key, &tenant) == nil && tenant.Status.ClusterUID == clusterUID(t)
	})
	awaitReady(t, key, v1alpha1.ReasonReady, "")
}
