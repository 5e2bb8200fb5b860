package tenant

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
)

// connect gives the kubeconfig to the registry and returns the access to the tenant, or why there is none.
func (r *Reconciler) connect(ctx context.Context, obs observation) (*tenantaccess.Access, error) {
	key := client.ObjectKeyFromObject(obs.tenant)
	if obs.deleting && len(obs.kubeconfig) == 0 {
		// The Secret, or the permission to read it, was deleted before the TenantCluster, as when a directory of manifests is deleted.
		// The kubeconfig that was read before is used until the TenantCluster is gone or the manager restarts.
		if access, err := r.Tenants.For(key); !isMissing(err) {
			return access, err
		}
	}
	if obs.denied {
		r.Tenants.Remove(key)
		return nil, &tenantaccess.Error{Tenant: key, Reason: v1alpha1.ReasonKubeconfigDenied, Err: fmt.Errorf(
			"the Secret %s/%s must not be read: bind ClusterRole ingot-manager-tenants to Ingot's service account by a RoleBinding in this namespace, "+
				"as config/samples/00-namespaces.yaml does", key.Namespace, obs.tenant.Spec.KubeconfigSecretRef.Name)}
	}
	if len(obs.kubeconfig) == 0 {
		r.Tenants.Remove(key)
		return nil, &tenantaccess.Error{Tenant: key, Reason: v1alpha1.ReasonKubeconfigMissing, Err: fmt.Errorf(
			"the Secret %s/%s with the key %s is expected and not there: create it", key.Namespace, obs.tenant.Spec.KubeconfigSecretRef.Name, kubeconfigKey)}
	}
	r.Tenants.Expect(key, obs.tenant.Status.ClusterUID)
	r.Tenants.WatchRequests(key, obs.tenant.Spec.MustApproveServingCertificates())
	if err := r.Tenants.Set(ctx, key, obs.kubeconfig); err != nil {
		return nil, err
	}
	access, err := r.Tenants.For(key)
	if !hasReason(err, v1alpha1.ReasonClusterChanged) || slices.ContainsFunc(obs.machines, canHaveJoined) {
		return access, err
	}
	return r.acceptCluster(ctx, key, err)
}

// acceptCluster accepts another cluster than before where no Machine can have a Node in the first one: the first kubeconfig was the wrong one, and is
// corrected before anything joined. The Machines are listed at the API server, because the cache may lack one that has a Node there.
func (r *Reconciler) acceptCluster(ctx context.Context, key types.NamespacedName, changed error) (*tenantaccess.Access, error) {
	machines, err := machinesOf(ctx, r.APIReader, key)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(machines, canHaveJoined) {
		return nil, changed
	}
	r.Tenants.Expect(key, "")
	return r.Tenants.For(key)
}

// canHaveJoined reports whether the Machine may have a Node in the cluster that was behind the kubeconfig before. An attempt is written before its
// installation is requested. A Machine without a status is new, or was made again from a backup that has none and runs a node.
func canHaveJoined(m v1alpha1.Machine) bool {
	return m.Status.Phase == "" || m.Status.Attempt > 0 || m.Status.NodeRef != nil
}

// isMissing tells whether the registry has no kubeconfig of the tenant.
func isMissing(err error) bool {
	return hasReason(err, v1alpha1.ReasonKubeconfigMissing)
}

func hasReason(err error, reason string) bool {
	var typed *tenantaccess.Error
	return errors.As(err, &typed) && typed.Reason == reason
}

// addFinalizer adds the finalizer before any Machine can depend on the TenantCluster.
func (r *Reconciler) addFinalizer(ctx context.Context, tenant *v1alpha1.TenantCluster) error {
	before := tenant.DeepCopy()
	controllerutil.AddFinalizer(tenant, v1alpha1.TenantFinalizer)
	if err := r.Client.Patch(ctx, tenant, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("add finalizer: %w", err)
	}
	return nil
}

// removeFinalizer lets the deletion of the TenantCluster complete.
func (r *Reconciler) removeFinalizer(ctx context.Context, tenant *v1alpha1.TenantCluster) error {
	before := tenant.DeepCopy()
	if !controllerutil.RemoveFinalizer(tenant, v1alpha1.TenantFinalizer) {
		return nil
	}
	err := r.Client.Patch(ctx, tenant, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove finalizer: %w", err)
	}
	return nil
}
