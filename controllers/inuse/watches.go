package inuse

import (
	"context"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/step"
)

// batchDelay delays the reconcile after a change, so that several changes cause one.
const batchDelay = time.Second

// everything is the one request: a reconcile does all objects.
var everything = reconcile.Request{NamespacedName: client.ObjectKey{Name: "everything"}}

var enqueue = step.EnqueueAfter(batchDelay, func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{everything} })

// watch adds the objects whose changes start a reconcile. Creations and deletions always do.
func (r *Reconciler) watch(b *builder.Builder) *builder.Builder {
	return b.
		Watches(&v1alpha1.NodeType{}, enqueue, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, protectionChanged, revisionsChanged))).
		Watches(&v1alpha1.NodeProvider{}, enqueue, builder.WithPredicates(protectionChanged)).
		Watches(&v1alpha1.OSImage{}, enqueue, builder.WithPredicates(protectionChanged)).
		Watches(&v1alpha1.NodeTypeRevision{}, enqueue, builder.WithPredicates(protectionChanged)).
		Watches(&v1alpha1.NodeTypeRendering{}, enqueue, builder.WithPredicates(protectionChanged)).
		Watches(&v1alpha1.Rollout{}, enqueue, builder.WithPredicates(phaseChanged)).
		Watches(&v1alpha1.NodePool{}, enqueue, builder.WithPredicates(protectionChanged)).
		Watches(&v1alpha1.Machine{}, enqueue, builder.WithPredicates(machineChanged)).
		Watches(&metal3.BareMetalHost{}, enqueue, builder.WithPredicates(hostChanged))
}

// protectionChanged lets updates through in which the object was deleted, or has other finalizers.
var protectionChanged = step.OnUpdate(step.HasOtherProtection)

var revisionsChanged = step.OnUpdate(func(before, after *v1alpha1.NodeType) bool {
	return before.Status.Stable() != after.Status.Stable() || before.Status.Target() != after.Status.Target()
})

var phaseChanged = step.OnUpdate(func(before, after *v1alpha1.Rollout) bool {
	return before.Status.Phase != after.Status.Phase || step.HasOtherProtection(before, after)
})

var machineChanged = step.OnUpdate(func(before, after *v1alpha1.Machine) bool {
	return before.Spec.Asked() != after.Spec.Asked() || before.Status.Installed() != after.Status.Installed() || step.HasOtherProtection(before, after)
})

var hostChanged = step.OnUpdate(func(before, after *metal3.BareMetalHost) bool {
	return v1alpha1.IsMachineRef(before.Spec.ConsumerRef) != v1alpha1.IsMachineRef(after.Spec.ConsumerRef) || step.HasOtherProtection(before, after)
})
