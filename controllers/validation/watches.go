package validation

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// watch adds the objects whose changes start a reconcile.
func (r *Reconciler) watch(b *builder.Builder) *builder.Builder {
	return b.For(&v1alpha1.Machine{}).
		Watches(&v1alpha1.NodeTypeRendering{}, handler.EnqueueRequestsFromMapFunc(r.machinesWith), builder.WithPredicates(created)).
		Watches(&v1alpha1.NodeType{}, handler.EnqueueRequestsFromMapFunc(r.machinesOf), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(&r.shares).
		WatchesRawSource(r.Tenants.NodeSource("validation", machineOf))
}

// machineOf returns the Machine that a Node is named after.
func machineOf(tenant types.NamespacedName, node *corev1.Node) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: tenant.Namespace, Name: node.Name}}}
}

// machinesOf returns the Machines of a NodeType, whose declared resources may have changed.
func (r *Reconciler) machinesOf(ctx context.Context, nodeType client.Object) []reconcile.Request {
	return r.machinesWhere(ctx, func(m *v1alpha1.Machine) bool { return m.Spec.NodeTypeRef.Name == nodeType.GetName() })
}

func (r *Reconciler) machinesWhere(ctx context.Context, are func(*v1alpha1.Machine) bool) []reconcile.Request {
	var machines v1alpha1.MachineList
	if err := r.Client.List(ctx, &machines, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing Machines")
		return nil
	}
	var out []reconcile.Request
	for i := range machines.Items {
		if are(&machines.Items[i]) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&machines.Items[i])})
		}
	}
	return out
}

// created lets through the creation of renderings, which never change. A Machine may arrive in the cache before the rendering
// that it was installed with.
var created = predicate.Funcs{
	UpdateFunc: func(event.UpdateEvent) bool { return false },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}

// machinesWith returns the Machines that were installed with a rendering.
func (r *Reconciler) machinesWith(ctx context.Context, rendering client.Object) []reconcile.Request {
	return r.machinesWhere(ctx, func(m *v1alpha1.Machine) bool { return m.Status.Rendering == rendering.GetName() })
}
