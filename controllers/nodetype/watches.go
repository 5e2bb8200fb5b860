package nodetype

import (
	"context"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
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
)

const (
	// batchDelay delays reconciles after changes of what a NodeType refers to, so that several changes cause one reconcile.
	batchDelay = time.Second
	// countingInterval gathers events that change what is counted: a hall of servers that install reports progress all the
	// time, and each count that differs is a write.
	countingInterval = 5 * time.Second
)

// watch adds the objects whose changes start a reconcile.
func (r *Reconciler) watch(b *builder.Builder) *builder.Builder {
	return b.For(&v1alpha1.NodeType{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, revisionsChanged))).
		Owns(&v1alpha1.NodeTypeRevision{}).
		Watches(&v1alpha1.NodeTypeRendering{}, r.soon(all)).
		Owns(&v1alpha1.Rollout{}, builder.WithPredicates(phaseChanged)).
		Watches(&v1alpha1.OSImage{}, r.soon(ofImage)).
		Watches(&v1alpha1.NodeProvider{}, r.soon(ofProvider)).
		Watches(&v1alpha1.Machine{}, r.counted(ofMachine)).
		Watches(&metal3.BareMetalHost{}, r.counted(all)).
		Watches(&v1alpha1.HostRecord{}, r.counted(all)).
		Watches(&corev1.Namespace{}, r.soon(all), builder.WithPredicates(predicate.AnnotationChangedPredicate{}))
}

// revisionsChanged lets through the NodeTypes whose status names other revisions or renderings than before: a Rollout may have
// to be created.
var revisionsChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, ok1 := e.ObjectOld.(*v1alpha1.NodeType)
	after, ok2 := e.ObjectNew.(*v1alpha1.NodeType)
	return ok1 && ok2 && (before.Status.Stable() != after.Status.Stable() || before.Status.Target() != after.Status.Target())
}}

// phaseChanged leaves out the progress of a Rollout within a phase.
var phaseChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, ok1 := e.ObjectOld.(*v1alpha1.Rollout)
	after, ok2 := e.ObjectNew.(*v1alpha1.Rollout)
	return ok1 && ok2 && before.Status.Phase != after.Status.Phase
}}

// concern tells whether a NodeType is concerned by a changed object.
type concern func(nodeType *v1alpha1.NodeType, changed client.Object) bool

func ofImage(nodeType *v1alpha1.NodeType, changed client.Object) bool {
	return nodeType.Spec.OSImageRef.Name == changed.GetName()
}

func ofProvider(nodeType *v1alpha1.NodeType, changed client.Object) bool {
	return nodeType.Spec.ProviderRef.Name == changed.GetName()
}

func ofMachine(nodeType *v1alpha1.NodeType, changed client.Object) bool {
	machine, ok := changed.(*v1alpha1.Machine)
	return ok && machine.Spec.NodeTypeRef.Name == nodeType.Name
}

func all(*v1alpha1.NodeType, client.Object) bool { return true }

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// soon enqueues the concerned NodeTypes after batchDelay.
func (r *Reconciler) soon(is concern) handler.EventHandler { return r.after(batchDelay, is) }

// counted enqueues the concerned NodeTypes after countingInterval.
func (r *Reconciler) counted(is concern) handler.EventHandler { return r.after(countingInterval, is) }

func (r *Reconciler) after(pause time.Duration, is concern) handler.EventHandler {
	enqueue := func(ctx context.Context, changed client.Object, q queue) {
		var nodeTypes v1alpha1.NodeTypeList
		if err := r.Client.List(ctx, &nodeTypes, client.UnsafeDisableDeepCopy); err != nil {
			log.FromContext(ctx).Error(err, "Listing the NodeTypes that an object concerns")
			return
		}
		for i := range nodeTypes.Items {
			if is(&nodeTypes.Items[i], changed) {
				q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: nodeTypes.Items[i].Name}}, pause)
			}
		}
	}
	return handler.Funcs{
		CreateFunc:  func(ctx context.Context, e event.CreateEvent, q queue) { enqueue(ctx, e.Object, q) },
		UpdateFunc:  func(ctx context.Context, e event.UpdateEvent, q queue) { enqueue(ctx, e.ObjectNew, q) },
		DeleteFunc:  func(ctx context.Context, e event.DeleteEvent, q queue) { enqueue(ctx, e.Object, q) },
		GenericFunc: func(ctx context.Context, e event.GenericEvent, q queue) { enqueue(ctx, e.Object, q) },
	}
}
