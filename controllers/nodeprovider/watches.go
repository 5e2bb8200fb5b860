package nodeprovider

import (
	"context"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/step"
)

// watch adds the objects whose changes start a reconcile.
func (r *Reconciler) watch(b *builder.Builder) *builder.Builder {
	return b.For(&v1alpha1.NodeProvider{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.providersOf(client.Object.GetName)), builder.WithPredicates(predicate.AnnotationChangedPredicate{})).
		Watches(&metal3.BareMetalHost{}, handler.EnqueueRequestsFromMapFunc(r.providersOf(client.Object.GetNamespace)), builder.WithPredicates(foreignChanged))
}

// foreignChanged lets an update of a BareMetalHost through if a baremetal-operator begins or ceases to serve it. Every new and every deleted one
// passes: a host that is deleted has lost the operator's finalizer before, and the namespace may be free then.
var foreignChanged = step.OnUpdate(func(before, after *metal3.BareMetalHost) bool { return isForeign(before) != isForeign(after) })

// providersOf maps an object to the NodeProviders whose host namespace the function returns for it.
func (r *Reconciler) providersOf(namespace func(client.Object) string) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		var providers v1alpha1.NodeProviderList
		if err := r.Client.List(ctx, &providers, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Listing the NodeProviders of a namespace", "namespace", namespace(o))
			return nil
		}
		var requests []reconcile.Request
		for i := range providers.Items {
			if providers.Items[i].Spec.HostNamespace == namespace(o) {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&providers.Items[i])})
			}
		}
		return requests
	}
}
