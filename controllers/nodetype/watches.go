package nodetype

import (
	"context"
	"maps"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/step"
)

// batchDelay delays reconciles after changes of what a NodeType refers to, so that several changes cause one reconcile.
const batchDelay = time.Second

// watch adds the objects whose changes start a reconcile.
func (r *Reconciler) watch(b *builder.Builder) *builder.Builder {
	return b.For(&v1alpha1.NodeType{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, revisionsChanged))).
		Owns(&v1alpha1.NodeTypeRevision{}, builder.WithPredicates(unlessCounted)).
		Watches(&v1alpha1.NodeTypeRendering{}, r.enqueueSoon(isAny), builder.WithPredicates(unlessCounted)).
		Owns(&v1alpha1.Rollout{}, builder.WithPredicates(phaseChanged)).
		Watches(&v1alpha1.OSImage{}, r.enqueueSoon(hasImage)).
		Watches(&v1alpha1.NodeProvider{}, r.enqueueSoon(hasProvider), builder.WithPredicates(providerChanged)).
		Watches(&v1alpha1.Machine{}, r.enqueueLater(hasMachine)).
		Watches(&metal3.BareMetalHost{}, r.enqueueLater(isAny)).
		Watches(&v1alpha1.HostRecord{}, r.enqueueLater(isAny)).
		Watches(&corev1.Namespace{}, r.enqueueSoon(isAny), builder.WithPredicates(predicate.AnnotationChangedPredicate{}))
}

// revisionsChanged lets through the NodeTypes whose status names other revisions or renderings than before: a Rollout may have
// to be created.
var revisionsChanged = step.OnUpdate(func(before, after *v1alpha1.NodeType) bool {
	return before.Status.Stable() != after.Status.Stable() || before.Status.Target() != after.Status.Target()
})

// providerChanged leaves out the updates of the status of a NodeProvider of which a NodeType tells nothing: when its services were asked, and by whom it is used.
var providerChanged = step.OnUpdate(func(before, after *v1alpha1.NodeProvider) bool {
	return before.Generation != after.Generation || step.HasOtherProtection(before, after) || before.BootProblem() != after.BootProblem() ||
		step.NotReadyReason(before.Status.Conditions) != step.NotReadyReason(after.Status.Conditions)
})

// unlessCounted leaves out the updates of the status of a revision or a rendering: it has nothing but the count of its users.
var unlessCounted = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld, e.ObjectNew
	return before.GetGeneration() != after.GetGeneration() || step.HasOtherProtection(before, after) || !maps.Equal(before.GetLabels(), after.GetLabels()) ||
		!maps.Equal(before.GetAnnotations(), after.GetAnnotations()) || !equality.Semantic.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences())
}}

// phaseChanged leaves out the progress of a Rollout within a phase.
var phaseChanged = step.OnUpdate(func(before, after *v1alpha1.Rollout) bool {
	return before.Status.Phase != after.Status.Phase
})

// match tells whether a changed object affects a NodeType.
type match func(nodeType *v1alpha1.NodeType, changed client.Object) bool

// hasImage tells whether the changed object is the OSImage of the NodeType.
func hasImage(nodeType *v1alpha1.NodeType, changed client.Object) bool {
	return nodeType.Spec.OSImageRef.Name == changed.GetName()
}

// hasProvider tells whether the changed object is the NodeProvider of the NodeType.
func hasProvider(nodeType *v1alpha1.NodeType, changed client.Object) bool {
	return nodeType.Spec.ProviderRef.Name == changed.GetName()
}

// hasMachine tells whether the changed object is a Machine of the NodeType.
func hasMachine(nodeType *v1alpha1.NodeType, changed client.Object) bool {
	machine, ok := changed.(*v1alpha1.Machine)
	return ok && machine.Spec.NodeTypeRef.Name == nodeType.Name
}

// isAny matches every NodeType.
func isAny(*v1alpha1.NodeType, client.Object) bool { return true }

// enqueueSoon returns a handler that enqueues the NodeTypes that match the changed object after batchDelay.
func (r *Reconciler) enqueueSoon(matches match) handler.EventHandler {
	return r.enqueueAfter(batchDelay, matches)
}

// enqueueLater returns a handler that enqueues the NodeTypes that match the changed object after step.CountingInterval.
func (r *Reconciler) enqueueLater(matches match) handler.EventHandler {
	return r.enqueueAfter(step.CountingInterval, matches)
}

func (r *Reconciler) enqueueAfter(pause time.Duration, matches match) handler.EventHandler {
	return step.EnqueueAfter(pause, func(ctx context.Context, changed client.Object) (requests []reconcile.Request) {
		var nodeTypes v1alpha1.NodeTypeList
		if err := r.Client.List(ctx, &nodeTypes, client.UnsafeDisableDeepCopy); err != nil {
			log.FromContext(ctx).Error(err, "Listing the NodeTypes that an object concerns")
			return nil
		}
		for i := range nodeTypes.Items {
			if matches(&nodeTypes.Items[i], changed) {
				requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: nodeTypes.Items[i].Name}})
			}
		}
		return requests
	})
}
