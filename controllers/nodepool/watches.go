package nodepool

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/join"
	"github.com/ingot-dev/ingot/controllers/plan/quota"
	"github.com/ingot-dev/ingot/controllers/step"
)

// watch adds the objects whose changes start a reconcile.
func (r *Reconciler) watch(b *builder.Builder) *builder.Builder {
	return b.For(&v1alpha1.NodePool{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&v1alpha1.Machine{}, builder.WithPredicates(step.CreatedOrDeleted)).
		Watches(&v1alpha1.Machine{}, enqueueLater).
		Watches(&v1alpha1.NodeType{}, handler.EnqueueRequestsFromMapFunc(r.ofNodeType), builder.WithPredicates(predicate.Or(targetChanged, hostsCame))).
		Watches(&v1alpha1.NodeQuota{}, handler.EnqueueRequestsFromMapFunc(r.inNamespace), builder.WithPredicates(quotaGaveWay)).
		Watches(&v1alpha1.TenantCluster{}, handler.EnqueueRequestsFromMapFunc(r.ofTenant), builder.WithPredicates(tenantChanged))
}

// hostsCame lets through a NodeType for which more hosts are free than before. Hosts themselves are not watched: the NodeType's controller does that and
// counts them at most every few seconds.
var hostsCame = step.OnUpdate(func(before, after *v1alpha1.NodeType) bool {
	return after.Status.Hosts.Available > before.Status.Hosts.Available
})

// quotaGaveWay lets through a NodeQuota that may have room for more Machines than before.
var quotaGaveWay = step.OnUpdate(quota.HasMoreRoom)

// tenantChanged leaves out the updates of a TenantCluster except the beginning of its deletion, another identity of its cluster, on which depends
// which hosts are free for the pool, that another cluster answers or has ceased to, and another way to join.
var tenantChanged = step.OnUpdate(func(before, after *v1alpha1.TenantCluster) bool {
	return before.DeletionTimestamp == nil && after.DeletionTimestamp != nil || before.Status.ClusterUID != after.Status.ClusterUID ||
		isClusterChanged(before) != isClusterChanged(after) || join.CanApplySettings(before.Spec.Join) != join.CanApplySettings(after.Spec.Join)
})

// targetChanged leaves out changes of the counts in a NodeType's status.
var targetChanged = step.OnUpdate(func(before, after *v1alpha1.NodeType) bool {
	return before.Generation != after.Generation || before.Status.Stable() != after.Status.Stable() || before.Status.Target() != after.Status.Target()
})

// enqueueLater enqueues the pool of a changed Machine after step.CountingInterval, and at once where the Machine's deletion began.
var enqueueLater = handler.Funcs{UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	machine, isMachine := e.ObjectNew.(*v1alpha1.Machine)
	if !isMachine || v1alpha1.NodePoolOf(machine) == "" {
		return
	}
	key := types.NamespacedName{Namespace: machine.Namespace, Name: v1alpha1.NodePoolOf(machine)}
	if e.ObjectNew.GetDeletionTimestamp() != nil && e.ObjectOld.GetDeletionTimestamp() == nil {
		q.Add(reconcile.Request{NamespacedName: key})
		return
	}
	q.AddAfter(reconcile.Request{NamespacedName: key}, step.CountingInterval)
}}

func (r *Reconciler) ofNodeType(ctx context.Context, changed client.Object) []reconcile.Request {
	return r.pools(ctx, func(pool *v1alpha1.NodePool) bool { return pool.Spec.NodeTypeRef.Name == changed.GetName() })
}

func (r *Reconciler) ofTenant(ctx context.Context, changed client.Object) []reconcile.Request {
	return r.pools(ctx, func(pool *v1alpha1.NodePool) bool { return pool.Spec.TenantClusterRef.Name == changed.GetName() }, client.InNamespace(changed.GetNamespace()))
}

func (r *Reconciler) inNamespace(ctx context.Context, changed client.Object) []reconcile.Request {
	return r.pools(ctx, func(*v1alpha1.NodePool) bool { return true }, client.InNamespace(changed.GetNamespace()))
}

// pools returns a request for each NodePool that matches.
func (r *Reconciler) pools(ctx context.Context, matches func(*v1alpha1.NodePool) bool, options ...client.ListOption) []reconcile.Request {
	var pools v1alpha1.NodePoolList
	if err := r.Client.List(ctx, &pools, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		log.FromContext(ctx).Error(err, "Listing the NodePools of a changed object")
		return nil
	}
	var requests []reconcile.Request
	for i := range pools.Items {
		if matches(&pools.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&pools.Items[i])})
		}
	}
	return requests
}
