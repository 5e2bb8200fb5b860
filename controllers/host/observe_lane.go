package host

import (
	"context"
	"sync"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	plan "github.com/ingot-dev/ingot/controllers/plan/host"
	"github.com/ingot-dev/ingot/controllers/step"
)

// laneShare: every lane but LaneWork may use one of so many parts of the workers. There are three of them, so a part is always left to
// LaneWork.
const laneShare = 4

// lanes counts the workers that each lane occupies.
//
// Without it: a hundred BMCs accept connections and answer nothing; each call to one of them blocks its worker for 30 seconds; soon they block
// all workers, and the power-off that a node must be fenced by waits for minutes, although its own BMC answers at once.
type lanes struct {
	mu       sync.Mutex
	occupied map[plan.Lane]int
}

// enter occupies a worker in the lane and returns the function that leaves the lane, or nil when the lane has no worker left.
func (l *lanes) enter(lane plan.Lane, workers int) func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lane != plan.LaneWork && l.occupied[lane] >= max(workers/laneShare, 1) {
		return nil
	}
	if l.occupied == nil {
		l.occupied = map[plan.Lane]int{}
	}
	l.occupied[lane]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.occupied[lane]--
	}
}

// reconcileInLane reconciles the host when its lane has a worker for it, and else later.
func (r *Reconciler) reconcileInLane(ctx context.Context, provider *v1alpha1.NodeProvider, host *metal3.BareMetalHost, record *v1alpha1.HostRecord) (reconcile.Result, error) {
	facts := plan.Facts{Host: hostFacts(host), Spec: record.Spec, Record: record.Status}
	leave := r.lanes.enter(plan.LaneOf(facts), r.workers())
	if leave == nil {
		// The pause differs from host to host, so that they do not all return at once.
		pause := time.Duration((0.5 + r.Jitter()) * float64(5*r.Timeouts.PollInterval))
		return step.Wait("other hosts whose BMCs may not answer occupy their part of the workers", pause).Result()
	}
	defer leave()
	return r.reconcileHost(ctx, provider, host, record)
}
