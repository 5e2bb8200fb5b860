package tenant

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// kubeconfigKey of the Secret.
const kubeconfigKey = "kubeconfig"

// observation is what a reconcile knows.
type observation struct {
	// tenant is nil when it is gone.
	tenant   *v1alpha1.TenantCluster
	deleting bool
	// kubeconfig is empty when the Secret or its key is missing.
	kubeconfig []byte
	// denied: the Secret may be there, but Ingot has no right to read it.
	denied bool
	// machines that refer to the tenant, by name.
	machines []v1alpha1.Machine
}

func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName) (observation, error) {
	var tenant v1alpha1.TenantCluster
	if err := r.Client.Get(ctx, key, &tenant); err != nil {
		return observation{}, client.IgnoreNotFound(err)
	}
	seen := observation{tenant: &tenant, deleting: tenant.DeletionTimestamp != nil}
	var err error
	if seen.machines, err = machinesOf(ctx, r.Client, key); err != nil {
		return observation{}, err
	}
	if seen.deleting && len(seen.machines) == 0 {
		// A Machine that the cache has not seen yet needs the kubeconfig as well.
		seen.machines, err = machinesOf(ctx, r.Reader, key)
		if err != nil || len(seen.machines) == 0 {
			return seen, err
		}
	}
	var secret corev1.Secret
	err = r.Reader.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: tenant.Spec.KubeconfigSecretRef.Name}, &secret)
	seen.denied = apierrors.IsForbidden(err)
	if err != nil && !apierrors.IsNotFound(err) && !seen.denied {
		return observation{}, fmt.Errorf("read the kubeconfig Secret: %w", err)
	}
	seen.kubeconfig = secret.Data[kubeconfigKey]
	return seen, nil
}

// machinesOf lists the Machines that refer to a TenantCluster, by name. They are the cache's own.
func machinesOf(ctx context.Context, reader client.Reader, key types.NamespacedName) ([]v1alpha1.Machine, error) {
	var list v1alpha1.MachineList
	if err := reader.List(ctx, &list, client.InNamespace(key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Machines: %w", err)
	}
	var found []v1alpha1.Machine
	for i := range list.Items {
		if list.Items[i].Spec.TenantClusterRef.Name == key.Name {
			found = append(found, list.Items[i])
		}
	}
	slices.SortFunc(found, func(a, b v1alpha1.Machine) int { return cmp.Compare(a.Name, b.Name) })
	return found, nil
}
