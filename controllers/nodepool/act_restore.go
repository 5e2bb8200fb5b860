package nodepool

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/step"
)

// takeOver makes a pool that was created again from a backup the owner of the Machines that it made, which backup tools drop, and registers every
// pool under its uid. Without it: a restored pool has no Machines and makes as many again as there are, on other hosts. A Machine with the pool's
// label that somebody made or took out of the pool is not taken while the pool is the one that it was.
func (r *Reconciler) takeOver(ctx context.Context, pool *v1alpha1.NodePool) error {
	if pool.Annotations[v1alpha1.AnnotationRegisteredAs] == v1alpha1.RegisteredAs(pool) || pool.DeletionTimestamp != nil {
		return nil
	}
	if v1alpha1.IsRestored(pool) {
		if err := r.takeOverMachines(ctx, pool); err != nil {
			return err
		}
	}
	return step.Register(ctx, r.Client, pool)
}

// takeOverMachines reads the Machines from the API server, because it does so once.
func (r *Reconciler) takeOverMachines(ctx context.Context, pool *v1alpha1.NodePool) error {
	var list v1alpha1.MachineList
	if err := r.APIReader.List(ctx, &list, client.InNamespace(pool.Namespace), client.MatchingLabels{v1alpha1.LabelNodePool: pool.Name}); err != nil {
		return fmt.Errorf("list Machines: %w", err)
	}
	for i := range list.Items {
		m := &list.Items[i]
		if !isOfEarlierPool(m, pool) {
			continue
		}
		if err := step.TakeOver(ctx, r.Client, pool, m); err != nil {
			return err
		}
	}
	return nil
}

// isOfEarlierPool reports whether an earlier object of the pool's name made the Machine. The owner reference, where a restore kept it, has that
// object's uid.
func isOfEarlierPool(m *v1alpha1.Machine, pool *v1alpha1.NodePool) bool {
	if m.DeletionTimestamp != nil || m.Spec.NodeTypeRef != pool.Spec.NodeTypeRef || m.Spec.TenantClusterRef != pool.Spec.TenantClusterRef {
		return false
	}
	owner := metav1.GetControllerOfNoCopy(m)
	return strings.HasPrefix(m.Name, pool.Name+"-") && (owner == nil || v1alpha1.NodePoolOf(m) == pool.Name && owner.UID != pool.UID)
}
