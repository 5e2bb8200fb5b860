package tenant

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
)

// connect hands the kubeconfig to the registry and asks how the tenant is.
func (r *Reconciler) connect(ctx context.Context, seen observation) (*tenantaccess.Access, error) {
	key := client.ObjectKeyFromObject(seen.tenant)
	if seen.denied {
		r.Registry.Remove(key)
		return nil, &tenantaccess.Error{Tenant: key, Reason: v1alpha1.ReasonKubeconfigDenied, Err: fmt.Errorf(
			"the Secret %s/%s must not be read: bind ClusterRole ingot-manager-tenants to Ingot's service account by a RoleBinding in this namespace, "+
				"as config/samples/00-namespaces.yaml does", key.Namespace, seen.tenant.Spec.KubeconfigSecretRef.Name)}
	}
	if len(seen.kubeconfig) == 0 {
		r.Registry.Remove(key)
		return nil, &tenantaccess.Error{Tenant: key, Reason: v1alpha1.ReasonKubeconfigMissing, Err: fmt.Errorf(
			"the Secret %s/%s with the key %s is expected and not there: create it", key.Namespace, seen.tenant.Spec.KubeconfigSecretRef.Name, kubeconfigKey)}
	}
	if err := r.Registry.Set(ctx, key, seen.kubeconfig); err != nil {
		return nil, err
	}
	return r.Registry.For(key)
}
