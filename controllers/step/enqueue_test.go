package step

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestWhatIsUrgentComesFirst(t *testing.T) {
	concerned := func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
	}
	handler := EnqueueFirst(concerned, func(_ context.Context, r reconcile.Request) bool { return r.Name >= "m" })
	changed := func(q workqueue.TypedRateLimitingInterface[reconcile.Request], names ...string) {
		for _, name := range names {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "2"}}
			handler.Update(t.Context(), event.UpdateEvent{ObjectOld: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}, ObjectNew: object}, q)
		}
	}
	taken := func(q workqueue.TypedRateLimitingInterface[reconcile.Request], n int) (names []string) {
		for range n {
			request, _ := q.Get()
			names = append(names, request.Name)
			q.Done(request)
		}
		return names
	}

	prioritized := priorityqueue.New[reconcile.Request]("urgent")
	defer prioritized.ShutDown()
	prioritized.Add(reconcile.Request{NamespacedName: client.ObjectKey{Name: "z"}}) // it is moved
	changed(prioritized, "a", "b", "y", "z")
	if got, want := taken(prioritized, 4), []string{"y", "z", "a", "b"}; !slices.Equal(slices.Sorted(slices.Values(got[:2])), want[:2]) || !slices.Equal(got[2:], want[2:]) {
		t.Errorf("expected %v first and then %v, seen %v", want[:2], want[2:], got)
	}

	plain := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer plain.ShutDown()
	changed(plain, "a", "y")
	if got, want := taken(plain, 2), []string{"a", "y"}; !slices.Equal(got, want) {
		t.Errorf("a queue without priorities: expected %v, seen %v", want, got)
	}
}
