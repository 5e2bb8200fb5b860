package remainingnode

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// watch adds the objects whose changes start a reconcile.
func (r *Reconciler) watch(b *builder.Builder) *builder.Builder {
	return b.For(&v1alpha1.HostRecord{}, builder.WithPredicates(predicate.GenerationChangedPredicate{}, predicate.NewPredicateFuncs(hasRemainingNodes))).
		WatchesRawSource(r.Tenants.TenantSource(name, r.recordsOf))
}

func hasRemainingNodes(o client.Object) bool {
	record, ok := o.(*v1alpha1.HostRecord)
	return ok && len(record.Spec.RemainingNodes) > 0
}

// recordsOf returns the HostRecords with Nodes that remained in the tenant's cluster, whose state has changed.
func (r *Reconciler) recordsOf(tenant types.NamespacedName) []reconcile.Request {
	var records v1alpha1.HostRecordList
	if err := r.Client.List(context.Background(), &records, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.Log.Error(err, "Listing the HostRecords with Nodes that remained", "TenantCluster", tenant)
		return nil
	}
	var out []reconcile.Request
	for i := range records.Items {
		if slices.ContainsFunc(records.Items[i].Spec.RemainingNodes, func(n v1alpha1.ReleasedNode) bool { return tenantOf(n) == tenant }) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&records.Items[i])})
		}
	}
	return out
}
