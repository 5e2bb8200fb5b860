package tenant

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

func TestTheClustersDNSIsFoundAndWhatToLookAtIsTold(t *testing.T) {
	tls := v1alpha1.JoinSpec{TLSBootstrap: &v1alpha1.EndpointJoin{}}
	_, key := run(t, tls, server.Cluster.Kubeconfig())
	awaitReady(t, key, v1alpha1.ReasonReady, "will resolve no Service")
	awaitReady(t, key, v1alpha1.ReasonReady, "https://127.0.0.1")

	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kubelet-config"}, Data: map[string]string{"kubelet": "clusterDNS: [10.96.0.10]\nclusterDomain: tenant.example\n"}}
	server.Create(t, config)
	t.Cleanup(func() { _ = server.Client.Delete(context.Background(), config) })
	_, later := run(t, tls, server.Cluster.Kubeconfig())
	management.Eventually(t, "the DNS of the cluster's kubelets is found", func() bool {
		var tenant v1alpha1.TenantCluster
		if err := server.Client.Get(t.Context(), later, &tenant); err != nil {
			t.Fatal(err)
		}
		found := tenant.Status.ClusterDNS
		return found != nil && slices.Equal(found.Addresses, []string{"10.96.0.10"}) && found.Domain == "tenant.example" &&
			meta.IsStatusConditionTrue(tenant.Status.Conditions, v1alpha1.ConditionReady)
	})
}
