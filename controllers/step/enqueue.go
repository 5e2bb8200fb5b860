package step

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// CountingInterval is how often the objects that a status counts are counted again while they change. Many servers that are being installed
// change all the time, and each changed count is a write.
const CountingInterval = 5 * time.Second

// EnqueueAfter returns a handler that enqueues after the pause what the changed object concerns. What is enqueued already keeps its time, so many changes cause
// one reconcile.
func EnqueueAfter(pause time.Duration, concerned handler.MapFunc) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	enqueue := func(ctx context.Context, changed client.Object, q queue) {
		for _, request := range concerned(ctx, changed) {
			q.AddAfter(request, pause)
		}
	}
	return handler.Funcs{
		CreateFunc:  func(ctx context.Context, e event.CreateEvent, q queue) { enqueue(ctx, e.Object, q) },
		UpdateFunc:  func(ctx context.Context, e event.UpdateEvent, q queue) { enqueue(ctx, e.ObjectNew, q) },
		DeleteFunc:  func(ctx context.Context, e event.DeleteEvent, q queue) { enqueue(ctx, e.Object, q) },
		GenericFunc: func(ctx context.Context, e event.GenericEvent, q queue) { enqueue(ctx, e.Object, q) },
	}
}
