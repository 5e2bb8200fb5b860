package nodetype

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// settle gathers events: a hall of servers that install reports progress all the time, and counting each time that
// one of them does would be counting all day.
const settle = time.Second

// revisionsChanged: the status names other revisions or renderings now, on which the Rollout between them is made.
var revisionsChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, ok1 := e.ObjectOld.(*v1alpha1.NodeType)
	after, ok2 := e.ObjectNew.(*v1alpha1.NodeType)
	return ok1 && ok2 && (before.Status.Stable() != after.Status.Stable() || before.Status.Target() != after.Status.Target())
}}

// phaseChanged leaves out how far a Rollout is: only its end concerns the NodeType.
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

// soon enqueues the concerned NodeTypes a little later.
func (r *Reconciler) soon(is concern) handler.EventHandler {
	enqueue := func(ctx context.Context, changed client.Object, q queue) {
		var nodeTypes v1alpha1.NodeTypeList
		if err := r.Client.List(ctx, &nodeTypes, client.UnsafeDisableDeepCopy); err != nil {
			log.FromContext(ctx).Error(err, "Listing the NodeTypes that an object concerns")
			return
		}
		for i := range nodeTypes.Items {
			if is(&nodeTypes.Items[i], changed) {
				q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: nodeTypes.Items[i].Name}}, settle)
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
