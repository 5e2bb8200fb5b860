package nodequota

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/quota"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// enqueue adds the NodeQuota of a Machine's namespace.
var enqueue handler.EventHandler = handler.Funcs{
	CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { addLater(e.Object, q) },
	UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { addLater(e.ObjectNew, q) },
	DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { addLater(e.Object, q) },
}

func addLater(machine client.Object, q queue) {
	q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: machine.GetNamespace(), Name: v1alpha1.NodeQuotaName}}, batchDelay)
}

// isCountedOtherwise reports whether a change of a Machine changes what the NodeQuota counts.
func isCountedOtherwise(before, after *v1alpha1.Machine) bool {
	return before.Status.Phase != after.Status.Phase || (before.Status.HostRef == nil) != (after.Status.HostRef == nil) || quota.IsWaiting(before) != quota.IsWaiting(after)
}
