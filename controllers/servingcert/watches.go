package servingcert

import (
	"context"
	"maps"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
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
	return b.For(&v1alpha1.Machine{}, builder.WithPredicates(step.OnUpdate(isOtherNode))).
		Watches(&v1alpha1.TenantCluster{}, handler.EnqueueRequestsFromMapFunc(r.machinesOf), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&metal3.BareMetalHost{}, handler.EnqueueRequestsFromMapFunc(machineOnHost), builder.WithPredicates(step.OnUpdate(hasOtherAnnotations))).
		WatchesRawSource(&r.shares).
		WatchesRawSource(r.Tenants.RequestSource(name, machineOf))
}

// isOtherNode reports whether the Machine has another Node, or another phase, than before.
func isOtherNode(before, after *v1alpha1.Machine) bool {
	hadNode, hasNode := before.Status.NodeRef, after.Status.NodeRef
	return before.Status.Phase != after.Status.Phase || (hadNode == nil) != (hasNode == nil) || hadNode != nil && *hadNode != *hasNode
}

// hasOtherAnnotations reports whether the annotations of a host have changed: its addresses are among them.
func hasOtherAnnotations(before, after *metal3.BareMetalHost) bool {
	return !maps.Equal(before.Annotations, after.Annotations)
}

// machineOf returns the Machine that a node is named after.
func machineOf(tenant types.NamespacedName, node string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: tenant.Namespace, Name: node}}}
}

// machineOnHost returns the Machine that has a host.
func machineOnHost(_ context.Context, object client.Object) []reconcile.Request {
	host, ok := object.(*metal3.BareMetalHost)
	if !ok || !v1alpha1.IsMachineRef(host.Spec.ConsumerRef) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: host.Spec.ConsumerRef.Namespace, Name: host.Spec.ConsumerRef.Name}}}
}

// machinesOf returns the Machines that refer to a TenantCluster.
func (r *Reconciler) machinesOf(ctx context.Context, tenant client.Object) []reconcile.Request {
	var machines v1alpha1.MachineList
	if err := r.Client.List(ctx, &machines, client.InNamespace(tenant.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing Machines")
		return nil
	}
	var out []reconcile.Request
	for i := range machines.Items {
		if machines.Items[i].Spec.TenantClusterRef.Name == tenant.GetName() {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&machines.Items[i])})
		}
	}
	return out
}
