package host

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	plan "github.com/ingot-dev/ingot/controllers/plan/host"
)

// newLanes returns lanes and the queue of their requests.
func newLanes(t *testing.T) (*lanes, workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	t.Helper()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	l := &lanes{}
	if err := l.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	return l, queue
}

func named(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

func TestALaneLeavesWorkersToTheOthers(t *testing.T) {
	const workers = 8
	l, _ := newLanes(t)
	var leave []func()
	for _, lane := range []plan.Lane{plan.LaneRoutine, plan.LaneTrial, plan.LaneSuspect} {
		for n := range workers / laneShare {
			done := l.enter(lane, named(fmt.Sprint(lane, n)), workers)
			if done == nil {
				t.Fatalf("lane %s has less than its part", lane)
			}
			leave = append(leave, done)
		}
		if l.enter(lane, named(string(lane)), workers) != nil {
			t.Errorf("lane %s has more than its part", lane)
		}
	}
	for n := range workers - len(leave) {
		if l.enter(plan.LaneWork, named("work"), workers) == nil {
			t.Fatalf("%d workers are free, and work waits", workers-len(leave)-n)
		}
	}
	leave[0]()
	if l.enter(plan.LaneRoutine, named(string(plan.LaneRoutine)), workers) == nil {
		t.Error("a worker that has left its lane is counted for ever")
	}
	one, _ := newLanes(t)
	if one.enter(plan.LaneSuspect, named("a"), 1) == nil {
		t.Error("with one worker nothing is done for a silent BMC")
	}
}

// TestWhoWaitsForALaneIsCalledInTurn: a worker that is left is set aside for the host that has waited longest, and passed on by one that has no need of it.
func TestWhoWaitsForALaneIsCalledInTurn(t *testing.T) {
	l, queue := newLanes(t)
	enter := func(name string) func() { return l.enter(plan.LaneTrial, named(name), laneShare) }
	next := func() string {
		if queue.Len() == 0 {
			return "nobody"
		}
		request, _ := queue.Get()
		queue.Done(request)
		return request.Name
	}
	leave := enter("a")
	for _, name := range []string{"b", "c", "d", "b"} {
		if enter(name) != nil {
			t.Fatalf("%s has a worker beside a", name)
		}
	}
	leave()
	if got := next(); got != "b" || enter("e") != nil {
		t.Fatalf("%s is called, or its worker is taken meanwhile; expected b", got)
	}
	l.skip(named("b")) // it was deleted
	if got := next(); got != "c" {
		t.Fatalf("after b, which needs no worker, %s is called; expected c", got)
	}
	if leave = enter("c"); leave == nil {
		t.Fatal("c was called and has no worker")
	}
	l.skip(named("c"))
	if got := next(); got != "nobody" {
		t.Errorf("%s is called beside c", got)
	}
	if l.enter(plan.LaneWork, named("d"), laneShare) == nil {
		t.Error("work waits")
	}
	leave()
	if got := next(); got != "d" {
		t.Fatalf("%s is called, expected d", got)
	}
	enter("d")()
	if got := next(); got != "e" {
		t.Fatalf("%s is called, expected e", got)
	}
	enter("e")()
	if leave = enter("a"); leave == nil || len(l.called) != 0 {
		t.Errorf("a worker is lost, or set aside for %v", l.called)
	}
}
