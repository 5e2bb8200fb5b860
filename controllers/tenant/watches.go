package tenant

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/step"
)

// watch adds the objects whose changes start a reconcile.
func (r *Reconciler) watch(b *builder.Builder) *builder.Builder {
	return b.For(&v1alpha1.TenantCluster{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, finalizersChanged))).
		Watches(&v1alpha1.Machine{}, step.EnqueueAfter(step.CountingInterval, ofMachine), builder.WithPredicates(step.CreatedOrDeleted)).
		Watches(&v1alpha1.Entitlement{}, handler.EnqueueRequestsFromMapFunc(ofEntitlement), builder.WithPredicates(step.CreatedOrDeleted)).
		WatchesRawSource(r.Tenants.TenantSource("tenant", func(tenant types.NamespacedName) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: tenant}}
		}))
}

// finalizersChanged lets through updates of the finalizers, which do not change the generation.
var finalizersChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return !slices.Equal(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers())
}}

func ofMachine(_ context.Context, object client.Object) []reconcile.Request {
	machine, ok := object.(*v1alpha1.Machine)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: machine.Namespace, Name: machine.Spec.TenantClusterRef.Name}}}
}

func ofEntitlement(_ context.Context, object client.Object) []reconcile.Request {
	entitlement, ok := object.(*v1alpha1.Entitlement)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: entitlement.Namespace, Name: entitlement.Spec.TenantClusterRef.Name}}}
}
