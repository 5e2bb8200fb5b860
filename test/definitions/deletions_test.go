package definitions_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

// tenantObjects makes a tenant's namespace with its objects, as the manager completes them.
func tenantObjects(t *testing.T, admin client.Client, namespace string) (*corev1.Secret, *v1alpha1.TenantCluster, *v1alpha1.NodePool, *v1alpha1.Machine) {
	t.Helper()
	meta := func(name string, finalizers ...string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Finalizers: finalizers}
	}
	ref := v1alpha1.LocalReference{Name: "research"}
	secret := &corev1.Secret{ObjectMeta: meta("admin")}
	tenant := &v1alpha1.TenantCluster{ObjectMeta: meta("research", v1alpha1.TenantFinalizer), Spec: v1alpha1.TenantClusterSpec{
		KubeconfigSecretRef: v1alpha1.LocalReference{Name: "admin"}, Join: v1alpha1.JoinSpec{TLSBootstrap: &v1alpha1.EndpointJoin{}},
	}}
	pool := &v1alpha1.NodePool{ObjectMeta: meta("training"), Spec: v1alpha1.NodePoolSpec{NodeTypeRef: ref, TenantClusterRef: ref}}
	machine := &v1alpha1.Machine{ObjectMeta: meta("training-1", v1alpha1.MachineFinalizer), Spec: v1alpha1.MachineSpec{NodeTypeRef: ref, TenantClusterRef: ref}}
	for _, o := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, secret, tenant, pool, machine} {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return secret, tenant, pool, machine
}

// isAsked reports whether the object is there and was asked to go.
func isAsked(t *testing.T, admin client.Client, o client.Object) bool {
	t.Helper()
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	return o.GetDeletionTimestamp() != nil
}

func isGone(t *testing.T, admin client.Client, o client.Object) bool {
	t.Helper()
	return apierrors.IsNotFound(admin.Get(t.Context(), client.ObjectKeyFromObject(o), o))
}

// release does what the manager does with a Machine, or a TenantCluster without Machines, that is being deleted, at its end.
func release(t *testing.T, manager client.Client, o client.Object) {
	t.Helper()
	if err := manager.Patch(t.Context(), o, merge(`{"metadata":{"finalizers":null}}`)); err != nil {
		t.Fatal(err)
	}
}

func testDeletedTenantNamespace(t *testing.T, admin, manager client.Client) {
	secret, tenant, pool, machine := tenantObjects(t, admin, "leaving")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "leaving"}}
	if err := admin.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the kubeconfig and the NodePool are gone, and Machine and TenantCluster are asked to go", func() bool {
		return isGone(t, admin, secret) && isGone(t, admin, pool) && isAsked(t, admin, machine) && isAsked(t, admin, tenant)
	})
	if !isAsked(t, admin, namespace) {
		t.Error("the namespace is not asked to go")
	}
	another := machine.DeepCopy()
	another.ObjectMeta = metav1.ObjectMeta{Namespace: "leaving", Name: "training-2"}
	if err := admin.Create(t.Context(), another); !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("another Machine: %v", err)
	}
	release(t, manager, machine)
	release(t, manager, tenant)
	management.Eventually(t, "the namespace goes with the last of them", func() bool { return isGone(t, admin, namespace) })
}

// testDeletedDefinition must be the last test of the API server.
func testDeletedDefinition(t *testing.T, admin, manager client.Client) {
	_, tenant, _, machine := tenantObjects(t, admin, "undefined")
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "machines.ingot.dev"}}
	if err := admin.Delete(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "each Machine is asked to go", func() bool { return isAsked(t, admin, machine) })
	if isAsked(t, admin, tenant) || !isAsked(t, admin, definition) {
		t.Error("the TenantCluster is asked to go, or the definition is not")
	}
	another := machine.DeepCopy()
	another.ObjectMeta = metav1.ObjectMeta{Namespace: "undefined", Name: "training-2"}
	if err := admin.Create(t.Context(), another); err == nil {
		t.Error("another Machine was made")
	}
	// The status can be written until the end: a release goes on.
	if err := admin.Status().Patch(t.Context(), machine, merge(`{"status":{"phase":"Releasing"}}`)); err != nil {
		t.Error(err)
	}
	var left v1alpha1.MachineList
	if err := admin.List(t.Context(), &left); err != nil {
		t.Fatal(err)
	}
	for i := range left.Items {
		release(t, manager, &left.Items[i])
	}
	management.Eventually(t, "the definition goes with the last Machine", func() bool { return isGone(t, admin, definition) })
}
