package remainingnode

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// deleteNode deletes the Node that was observed. The entry is removed by the next reconcile, which does not find the Node any more.
func (r *Reconciler) deleteNode(ctx context.Context, obs observation) error {
	if err := client.IgnoreNotFound(obs.access.Client.Delete(ctx, obs.node, client.Preconditions{UID: &obs.node.UID})); err != nil {
		return fmt.Errorf("delete Node %s, which remained in TenantCluster %s: %w", obs.node.Name, obs.facts.Entry.Tenant, err)
	}
	settledNodes.WithLabelValues("deleted").Inc()
	return nil
}

// forgetNode removes the entry from the HostRecord, under the resource version that was read: the machine controller writes the same spec.
func (r *Reconciler) forgetNode(ctx context.Context, record *v1alpha1.HostRecord, at int) error {
	before := record.DeepCopy()
	record.Spec.RemainingNodes = slices.Delete(slices.Clone(record.Spec.RemainingNodes), at, at+1)
	if err := r.Client.Patch(ctx, record, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("remove an entry of a Node from the HostRecord: %w", err)
	}
	settledNodes.WithLabelValues("forgotten").Inc()
	return nil
}
