package tenant

import (
	"context"
	"fmt"

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
	// tenant is nil when it is gone or going.
	tenant *v1alpha1.TenantCluster
	// kubeconfig is empty when the Secret or its key is missing.
	kubeconfig []byte
	// denied: the Secret may be there, but Ingot has no right to read it.
	denied   bool
	machines int32
}

func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName) (observation, error) {
	var tenant v1alpha1.TenantCluster
	if err := r.Client.Get(ctx, key, &tenant); err != nil {
		return observation{}, client.IgnoreNotFound(err)
	}
	if tenant.DeletionTimestamp != nil {
		return observation{}, nil
	}
	seen := observation{tenant: &tenant}
	var secret corev1.Secret
	err := r.Reader.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: tenant.Spec.KubeconfigSecretRef.Name}, &secret)
	seen.denied = apierrors.IsForbidden(err)
	if err != nil && !apierrors.IsNotFound(err) && !seen.denied {
		return observation{}, fmt.Errorf("read the kubeconfig Secret: %w", err)
	}
	seen.kubeconfig = secret.Data[kubeconfigKey]
	var machines v1alpha1.MachineList
	if err := r.Client.List(ctx, &machines, client.InNamespace(key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return observation{}, fmt.Errorf("list Machines: %w", err)
	}
	for i := range machines.Items {
		if machines.Items[i].Spec.TenantClusterRef.Name == key.Name {
			seen.machines++
		}
	}
	return seen, nil
}
