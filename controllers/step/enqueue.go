package step

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// CountingInterval is how often the objects that a status counts are counted again while they change. Many servers that are being installed
// change all the time, and each changed count is a write.
const CountingInterval = 5 * time.Second

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// EnqueueAfter returns a handler that enqueues after the pause what the changed object concerns. What is enqueued already keeps its time, so many changes cause
// one reconcile.
func EnqueueAfter(pause time.Duration, concerned handler.MapFunc) handler.EventHandler {
	return onEveryEvent(func(ctx context.Context, before, after client.Object, q queue) {
		if after == nil {
			after = before
		}
		for _, request := range concerned(ctx, after) {
			q.AddAfter(request, pause)
		}
	})
}

// firstPriority is above that of everything that is enqueued otherwise, which is 0.
const firstPriority = 1

// EnqueueFirst returns a handler that enqueues what the changed object concerns, and before everything else what isUrgent names. A request that is enqueued already
// is moved there.
func EnqueueFirst(concerned handler.MapFunc, isUrgent func(context.Context, reconcile.Request) bool) handler.EventHandler {
	return EnqueueFirstByChange(func(ctx context.Context, before, after client.Object) []reconcile.Request {
		if after == nil {
			after = before
		}
		return concerned(ctx, after)
	}, isUrgent)
}

// EnqueueFirstByChange returns a handler as EnqueueFirst does, by the object before and after its change. before is nil for a creation, after for a deletion.
func EnqueueFirstByChange(concerned func(ctx context.Context, before, after client.Object) []reconcile.Request, isUrgent func(context.Context, reconcile.Request) bool) handler.EventHandler {
	return onEveryEvent(func(ctx context.Context, before, after client.Object, q queue) {
		prioritized, hasPriorities := q.(priorityqueue.PriorityQueue[reconcile.Request])
		for _, request := range concerned(ctx, before, after) {
			if hasPriorities && isUrgent(ctx, request) {
				prioritized.AddWithOpts(priorityqueue.AddOpts{Priority: new(firstPriority)}, request)
			} else {
				q.Add(request)
			}
		}
	})
}

// onEveryEvent returns a handler that does the same for each event, with the object before and after it. Before a creation and after a deletion it is nil.
func onEveryEvent(enqueue func(ctx context.Context, before, after client.Object, q queue)) handler.EventHandler {
	return handler.Funcs{
		CreateFunc:  func(ctx context.Context, e event.CreateEvent, q queue) { enqueue(ctx, nil, e.Object, q) },
		UpdateFunc:  func(ctx context.Context, e event.UpdateEvent, q queue) { enqueue(ctx, e.ObjectOld, e.ObjectNew, q) },
		DeleteFunc:  func(ctx context.Context, e event.DeleteEvent, q queue) { enqueue(ctx, e.Object, nil, q) },
		GenericFunc: func(ctx context.Context, e event.GenericEvent, q queue) { enqueue(ctx, e.Object, e.Object, q) },
	}
}
