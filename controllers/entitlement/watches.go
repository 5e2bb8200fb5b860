package entitlement

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/step"
)

// watch adds the objects whose changes start a reconcile.
func (r *Reconciler) watch(b *builder.Builder) *builder.Builder {
	changed := predicate.Or(predicate.GenerationChangedPredicate{}, step.OnUpdate(isTakenOver))
	return b.For(&v1alpha1.Entitlement{}, builder.WithPredicates(changed)).
		// An Entitlement that was contradicted goes on when the older one is changed or gone.
		Watches(&v1alpha1.Entitlement{}, handler.EnqueueRequestsFromMapFunc(r.all), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.NodeType{}, handler.EnqueueRequestsFromMapFunc(r.all), builder.WithPredicates(step.OnUpdate(hasOtherPromise))).
		WatchesRawSource(source.Channel(r.news, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
			return r.ofCluster(clusterOf(o.(*v1alpha1.Entitlement)))
		}))).
		WatchesRawSource(r.Tenants.TenantSource(name, r.ofCluster)).
		WatchesRawSource(r.Tenants.ClaimSource(name, claimDelay, r.ofClaim))
}

// tellOthers has the other Entitlements of a cluster looked at. Where too many clusters have news at once, the steady look does it.
func (r *Reconciler) tellOthers(e *v1alpha1.Entitlement) {
	select {
	case r.news <- event.GenericEvent{Object: e}:
	default:
	}
}

// claimDelay is how long a change of a claim waits for others, which are then looked at together.
const claimDelay = time.Second

// isTakenOver reports whether the manager has given the Entitlement its finalizer or its annotation.
func isTakenOver(before, after *v1alpha1.Entitlement) bool {
	return len(before.Finalizers) != len(after.Finalizers) || before.Annotations[v1alpha1.AnnotationRegisteredAs] != after.Annotations[v1alpha1.AnnotationRegisteredAs]
}

// hasOtherPromise reports whether a NodeType may promise something else than before.
func hasOtherPromise(before, after *v1alpha1.NodeType) bool {
	return before.Generation != after.Generation || before.Status.StableRendering != after.Status.StableRendering
}

func (r *Reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.requests(ctx, func(*v1alpha1.Entitlement) bool { return true })
}

func (r *Reconciler) ofCluster(tenant types.NamespacedName) []reconcile.Request {
	return r.requests(context.Background(), func(e *v1alpha1.Entitlement) bool {
		return e.Namespace == tenant.Namespace && e.Spec.TenantClusterRef.Name == tenant.Name
	})
}

func (r *Reconciler) requests(ctx context.Context, matches func(*v1alpha1.Entitlement) bool) []reconcile.Request {
	var list v1alpha1.EntitlementList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing Entitlements")
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if matches(&list.Items[i]) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}
