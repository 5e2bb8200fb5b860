package remainingnode

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// deleteNode requests the deletion of the Node that was observed. The entry is removed by a reconcile that does not find the Node any more. A
// refusal is no error of this controller: it is told, and the Node stays in the HostRecord, where ingot hosts names it.
func (r *Reconciler) deleteNode(ctx context.Context, record *v1alpha1.HostRecord, obs observation) {
	entry := obs.facts.Entry
	if err := r.deletions.Try(ctx, obs.access.Client, obs.node, obs.facts.Now); err != nil {
		r.Recorder.Eventf(record, nil, corev1.EventTypeWarning, v1alpha1.ReasonNodeRemains, "DeleteNode", "Node %s of TenantCluster %s, which remained after a release, is not removed: %s; it is tried again", entry.Name, entry.Tenant, err)
		return
	}
	r.Recorder.Eventf(record, nil, corev1.EventTypeNormal, v1alpha1.ReasonRemainingNodeSettled, "DeleteNode", "Node %s of TenantCluster %s, which remained after a release: its deletion is requested", entry.Name, entry.Tenant)
	settledNodes.WithLabelValues("deleted").Inc()
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
