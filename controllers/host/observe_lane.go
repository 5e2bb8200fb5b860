package host

import (
	"context"
	"slices"
	"sync"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	plan "github.com/ingot-dev/ingot/controllers/plan/host"
	"github.com/ingot-dev/ingot/controllers/step"
)

// laneShare: every lane but LaneWork may use one of so many parts of the workers. There are three of them, so a part is always left to
// LaneWork.
const laneShare = 4

// lanes counts the workers that each lane occupies, and wakes the hosts that wait for one. Add it to the controller as a source, which starts it.
//
// Without it: a hundred BMCs accept connections and answer nothing; each call to one of them blocks its worker for 30 seconds; soon they block
// all workers, and the power-off that a node must be fenced by waits for minutes, although its own BMC answers at once.
type lanes struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	// occupied are the workers of each lane, with those that are set aside for called requests.
	occupied map[plan.Lane]int
	// waiting are the requests that found no worker, the oldest first.
	waiting map[plan.Lane][]reconcile.Request
	// called are requests that were sent to the queue, with the lane in which a worker is set aside for them.
	called map[reconcile.Request]plan.Lane
}

// String returns the name of the source in logs.
func (l *lanes) String() string { return "hosts that waited for a worker of their lane" }

// Start implements source.Source: the queue gets the requests that waited.
func (l *lanes) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue, l.occupied, l.waiting, l.called = queue, map[plan.Lane]int{}, map[plan.Lane][]reconcile.Request{}, map[reconcile.Request]plan.Lane{}
	return nil
}

// enter occupies a worker in the lane and returns the function that leaves the lane. When the lane has no worker left it returns nil, and sends the request to
// the queue when it has one.
func (l *lanes) enter(lane plan.Lane, request reconcile.Request, workers int) func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	own, isCalled := l.called[request]
	switch {
	case isCalled && own == lane:
		delete(l.called, request)
	case lane != plan.LaneWork && l.occupied[lane] >= max(workers/laneShare, 1):
		if !slices.Contains(l.waiting[lane], request) {
			l.waiting[lane] = append(l.waiting[lane], request)
		}
		return nil
	default:
		l.occupied[lane]++
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.leave(lane)
	}
}

// skip passes on the worker that is set aside for a request whose reconcile has not entered that lane. Each reconcile calls it when it ends.
//
// Without it: a host waits and is deleted, and those that wait after it are never called.
func (l *lanes) skip(request reconcile.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lane, isCalled := l.called[request]; isCalled {
		delete(l.called, request)
		l.leave(lane)
	}
}

// leave gives a worker of the lane to the request that has waited longest. The caller must hold mu.
func (l *lanes) leave(lane plan.Lane) {
	waiting := l.waiting[lane]
	if len(waiting) == 0 {
		l.occupied[lane]--
		return
	}
	l.waiting[lane] = waiting[1:]
	l.called[waiting[0]] = lane
	l.queue.Add(waiting[0])
}

// reconcileInLane reconciles the host when its lane has a worker for it, and else when it has one.
func (r *Reconciler) reconcileInLane(ctx context.Context, provider *v1alpha1.NodeProvider, host *metal3.BareMetalHost, record *v1alpha1.HostRecord) (reconcile.Result, error) {
	facts := plan.Facts{Host: hostFacts(host), Spec: record.Spec, Record: record.Status}
	leave := r.lanes.enter(plan.LaneOf(facts), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(host)}, r.workers())
	if leave == nil {
		return step.Done().Result()
	}
	defer leave()
	return r.reconcileHost(ctx, provider, host, record)
}
