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
	"github.com/ingot-dev/ingot/cloudinit/kubelet/script"
	"github.com/ingot-dev/ingot/controllers/plan/join"
)

// kubeconfigKey is the key of the Secret that has the kubeconfig.
const kubeconfigKey = "kubeconfig"

// observation is everything that one reconcile of a TenantCluster reads. observe sets all of it.
type observation struct {
	// tenant is nil where it does not exist.
	tenant *v1alpha1.TenantCluster
	// deleting is true if the TenantCluster is being deleted.
	deleting bool
	// kubeconfig is the content of the kubeconfig Secret; empty: the Secret or its key does not exist, or may not be read.
	kubeconfig []byte
	// denied is true if Ingot has no permission to read the Secret.
	denied bool
	// script is what was found of the join's script.
	script join.Script
	// machines are those that refer to the TenantCluster, sorted by name.
	machines []v1alpha1.Machine
	// entitlements are the names of those that refer to the TenantCluster, sorted.
	entitlements []string
}

// isNeeded reports whether something refers to the TenantCluster.
func (o observation) isNeeded() bool { return len(o.machines) > 0 || len(o.entitlements) > 0 }

func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName) (observation, error) {
	var tenant v1alpha1.TenantCluster
	if err := r.Client.Get(ctx, key, &tenant); err != nil {
		return observation{}, client.IgnoreNotFound(err)
	}
	obs := observation{tenant: &tenant, deleting: tenant.DeletionTimestamp != nil}
	err := obs.readUsers(ctx, r.Client, key)
	if err != nil {
		return observation{}, err
	}
	if obs.deleting && !obs.isNeeded() {
		// The cache may lack a Machine that was just created, which needs the kubeconfig to be drained, or an Entitlement.
		if err := obs.readUsers(ctx, r.APIReader, key); err != nil || !obs.isNeeded() {
			return obs, err
		}
	}
	var secret corev1.Secret
	err = r.APIReader.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: tenant.Spec.KubeconfigSecretRef.Name}, &secret)
	obs.denied = apierrors.IsForbidden(err)
	if err != nil && !apierrors.IsNotFound(err) && !obs.denied {
		return observation{}, fmt.Errorf("read the kubeconfig Secret: %w", err)
	}
	obs.kubeconfig = secret.Data[kubeconfigKey]
	obs.script, err = r.observeScript(ctx, &tenant)
	return obs, err
}

// readUsers reads what refers to the TenantCluster.
func (o *observation) readUsers(ctx context.Context, reader client.Reader, key types.NamespacedName) error {
	var err error
	if o.machines, err = machinesOf(ctx, reader, key); err != nil {
		return err
	}
	var list v1alpha1.EntitlementList
	if err := reader.List(ctx, &list, client.InNamespace(key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Entitlements: %w", err)
	}
	o.entitlements = nil
	for i := range list.Items {
		if list.Items[i].Spec.TenantClusterRef.Name == key.Name {
			o.entitlements = append(o.entitlements, list.Items[i].Name)
		}
	}
	slices.Sort(o.entitlements)
	return nil
}

// observeScript reads the script of the join, if it is one by script.
func (r *Reconciler) observeScript(ctx context.Context, tenant *v1alpha1.TenantCluster) (join.Script, error) {
	var out join.Script
	if tenant.Spec.Join.Script == nil {
		return out, nil
	}
	var secret corev1.Secret
	err := r.APIReader.Get(ctx, types.NamespacedName{Namespace: tenant.Namespace, Name: tenant.Spec.Join.Script.SecretRef.Name}, &secret)
	out.IsDenied = apierrors.IsForbidden(err)
	if err != nil && !apierrors.IsNotFound(err) && !out.IsDenied {
		return out, fmt.Errorf("read the Secret of the join's script: %w", err)
	}
	out.Text = secret.Data[v1alpha1.JoinScriptKey]
	out.Problem = script.Problem(out.Text)
	return out, nil
}

// machinesOf lists the Machines that refer to a TenantCluster, sorted by name. They belong to the cache and must not be
// changed.
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
