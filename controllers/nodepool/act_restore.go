package nodepool

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// takeOver makes the pool the owner of the Machines that have its label, NodeType and tenant and no controller: backup tools drop it. Without it: a
// restored pool has no Machines and makes as many again as there are, on other hosts. Who wants to take a Machine out of its pool removes the
// label too.
func (r *Reconciler) takeOver(ctx context.Context, pool *v1alpha1.NodePool) error {
	var list v1alpha1.MachineList
	if err := r.Client.List(ctx, &list, client.InNamespace(pool.Namespace), client.MatchingLabels{v1alpha1.LabelNodePool: pool.Name}); err != nil {
		return fmt.Errorf("list Machines: %w", err)
	}
	for i := range list.Items {
		m := &list.Items[i]
		isOurs := m.Spec.NodeTypeRef == pool.Spec.NodeTypeRef && m.Spec.TenantClusterRef == pool.Spec.TenantClusterRef
		if !isOurs || m.DeletionTimestamp != nil || metav1.GetControllerOfNoCopy(m) != nil {
			continue
		}
		before := m.DeepCopy()
		if err := controllerutil.SetControllerReference(pool, m, r.Client.Scheme()); err != nil {
			return fmt.Errorf("own Machine %s: %w", m.Name, err)
		}
		if err := r.Client.Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("take over Machine %s: %w", m.Name, err)
		}
	}
	return nil
}
