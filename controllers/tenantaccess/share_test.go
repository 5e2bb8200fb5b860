package tenantaccess

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

func requestOf(tenant types.NamespacedName, n int) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: tenant.Namespace, Name: fmt.Sprintf("m-%d", n)}}
}

// sharesRig is a controller's workers, without a controller: what the queue has is reconciled when a test says so.
type sharesRig struct {
	Shares
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func newSharesRig(t *testing.T, workers int) *sharesRig {
	t.Helper()
	r := &sharesRig{queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())}
	t.Cleanup(r.queue.ShutDown)
	r.Workers = workers
	if err := r.Start(t.Context(), r.queue); err != nil {
		t.Fatal(err)
	}
	return r
}

func namespaced(namespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: "t"}
}

// begin begins so many rounds of a tenant, and returns those that have a worker.
func (r *sharesRig) begin(t *testing.T, namespace string, first, count int) (begun []*Round) {
	for n := range count {
		if round := r.Begin(t.Context(), namespaced(namespace), requestOf(namespaced(namespace), first+n)); round != nil {
			begun = append(begun, round)
		}
	}
	return begun
}

// endInterrupted ends the rounds that were interrupted, as their reconciles do, and returns the others.
func endInterrupted(rounds []*Round) (rest []*Round, ended int) {
	time.Sleep(loan)
	synctest.Wait()
	for _, round := range rounds {
		if round.Interrupted() == nil {
			rest = append(rest, round)
			continue
		}
		round.End()
		ended++
	}
	return rest, ended
}

func TestIdleWorkersAreLentAndAQuarterStaysFreeForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newSharesRig(t, 16)
		busy := r.begin(t, "busy", 0, 100)
		if len(busy) != 12 {
			t.Fatalf("a tenant alone has %d of 16 workers", len(busy))
		}
		if _, isLimited := busy[0].Context.Deadline(); !isLimited {
			t.Error("the calls of a reconcile have no deadline")
		}
		// A second TenantCluster of the namespace brings it no more.
		if r.Begin(t.Context(), types.NamespacedName{Namespace: "busy", Name: "second"}, requestOf(namespaced("busy"), 200)) != nil {
			t.Error("a tenant borrows the last quarter")
		}
		// Nobody who comes waits for what is borrowed, and for each who comes a place is taken back.
		for i, other := range []string{"b", "c"} {
			if got := r.begin(t, other, 0, 4); len(got) != 4 {
				t.Fatalf("tenant %s has %d workers at once", other, len(got))
			}
			var ended int
			if busy, ended = endInterrupted(busy); ended != 4 || len(busy) != 8-4*i {
				t.Errorf("after tenant %s came, %d rounds were ended, %d go on", other, ended, len(busy))
			}
		}
		// With a quarter for each, nothing is taken back.
		if got := r.begin(t, "d", 0, 8); len(got) != 4 {
			t.Errorf("the fourth tenant has %d workers", len(got))
		}
		if _, ended := endInterrupted(busy); ended != 0 {
			t.Error("a tenant loses a place of its quarter")
		}
		if new(Shares).Begin(t.Context(), namespaced("a"), requestOf(namespaced("a"), 1)) == nil {
			t.Error("with one worker nothing is done for a tenant")
		}
	})
}

func TestWhileAnotherWaitsATenantHasNoMoreThanItAndTheRestComesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newSharesRig(t, 16)
		busy := r.begin(t, "busy", 0, 12)
		other := r.begin(t, "other", 0, 4)
		busy, _ = endInterrupted(busy)
		if r.begin(t, "other", 4, 1) != nil || r.queue.Len() != 0 {
			t.Fatal("a tenant borrows what was not given back yet")
		}
		var ended int
		if busy, ended = endInterrupted(busy); ended != 1 || r.queue.Len() != 1 {
			t.Fatalf("%d rounds were ended for a tenant that waits, and %d requests are sent", ended, r.queue.Len())
		}
		request, _ := r.queue.Get()
		// What has just come does not take the place of what waited.
		if r.begin(t, "busy", 50, 1) != nil {
			t.Error("the place of a request that waited is taken")
		}
		round := r.Begin(t.Context(), namespaced("other"), request)
		if request != requestOf(namespaced("other"), 4) || round == nil {
			t.Fatalf("%s is sent and has no worker", request)
		}
		for _, each := range append(append(busy, other...), round) {
			each.End()
		}
		// The request of the busy tenant is deleted meanwhile: its reconcile ends without a round.
		request, _ = r.queue.Get()
		r.queue.Done(request)
		r.Skip(request)
		if len(r.places.held)+len(r.places.waiting)+len(r.places.leaving)+len(r.called)+len(r.rounds) != 0 {
			t.Errorf("something remains: %+v", r.places)
		}
	})
}

func TestARequestThatNeedsNoWorkerAnyMoreHoldsUpNobody(t *testing.T) {
	r := newSharesRig(t, 4)
	rounds := r.begin(t, "a", 0, 6)
	rounds[0].End()
	for n := 3; n < 6; n++ {
		request, _ := r.queue.Get()
		if request != requestOf(namespaced("a"), n) {
			t.Errorf("%s is sent before m-%d", request, n)
		}
		r.queue.Done(request)
		r.Skip(request)
	}
	if r.queue.Len() != 0 {
		t.Error("more is sent than waited")
	}
}

// TestABurstOfOneTenantCostsAtMostTwoReconcilesEach counts the reconciles of 300 Machines of a tenant that is alone, in rounds of the same length.
// With a quarter of the workers as a hard cap, 4 were served at a time, in 75 turns.
func TestABurstOfOneTenantCostsAtMostTwoReconcilesEach(t *testing.T) {
	const count = 300
	r := newSharesRig(t, 16)
	for n := range count {
		r.queue.Add(requestOf(namespaced("a"), n))
	}
	reconciles, done, turns := 0, 0, 0
	for ; r.queue.Len() > 0; turns++ {
		var turn []*Round
		for r.queue.Len() > 0 {
			request, _ := r.queue.Get()
			reconciles++
			if round := r.Begin(t.Context(), namespaced("a"), request); round != nil {
				turn = append(turn, round)
			}
			r.queue.Done(request)
			r.Skip(request)
		}
		for _, round := range turn {
			round.End()
			done++
		}
	}
	t.Logf("%d reconciles in %d turns", reconciles, turns)
	if done != count || reconciles > 2*count || turns != count/12 {
		t.Errorf("%d of %d are done after %d reconciles in %d turns", done, count, reconciles, turns)
	}
}

func TestATenantThatStalledBorrowsNothing(t *testing.T) {
	m := newMoody(t, "/api/v1/secrets", 10*time.Second, nil)
	usable(t, m.registry, tenantKey)
	begin := func() (count int) {
		r := newSharesRig(t, 16)
		r.Tenants = m.registry
		return len(r.begin(t, tenantKey.Namespace, 0, 20))
	}
	if got := begin(); got != 12 {
		t.Errorf("a tenant alone has %d of 16 workers", got)
	}
	set := m.registry.clientSets()[0]
	set.mu.Lock()
	set.countStall()
	set.mu.Unlock()
	if got := begin(); got != 4 {
		t.Errorf("a tenant that stalls has %d of 16 workers", got)
	}
	m.clock.Step(maxStallPause + time.Second)
	if got := begin(); got != 12 {
		t.Errorf("a tenant that stalled long ago has %d of 16 workers", got)
	}
}

// TestATenantThatStallsDelaysNoOther measures order: no call to the tenant that stalls returns before the reconciles of the other tenant
// are done, because their timeout is longer than the test.
func TestATenantThatStallsDelaysNoOther(t *testing.T) {
	const workers, many = 8, 100
	var stalls atomic.Bool
	var stalled atomic.Int64
	release := make(chan struct{})
	inner := gatekeeper(t, func(string) int { return 0 })
	proxy, ca := newTLSServer(t, http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if stalls.Load() && strings.HasSuffix(request.URL.Path, "/secrets") {
			stalled.Add(1)
			stall(w, request, release)
			return
		}
		inner.ServeHTTP(w, request)
	}))
	r := newRegistry(t, Options{Timeout: time.Hour})
	bad, good := types.NamespacedName{Namespace: "bad", Name: "t"}, types.NamespacedName{Namespace: "good", Name: "t"}
	t.Cleanup(func() { close(release) })
	for key, kubeconfig := range map[types.NamespacedName][]byte{bad: configOf(proxy.URL, ca, "", "token: a"), good: server.Cluster.Kubeconfig()} {
		if err := r.Set(t.Context(), key, kubeconfig); err != nil {
			t.Fatal(err)
		}
		usable(t, r, key)
	}
	stalls.Store(true)
	shares := &Shares{Workers: workers}
	var done atomic.Int64
	requests := make(chan workqueue.TypedRateLimitingInterface[reconcile.Request], 1)
	server.Run(t, func(mgr ctrl.Manager) error {
		c, err := controller.New("shares", mgr, controller.Options{MaxConcurrentReconciles: workers, Reconciler: reconcile.Func(
			func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
				tenant := types.NamespacedName{Namespace: request.Namespace, Name: "t"}
				defer shares.Skip(request)
				round := shares.Begin(ctx, tenant, request)
				if round == nil {
					return reconcile.Result{}, nil
				}
				defer round.End()
				access, err := r.For(tenant)
				if err != nil {
					return reconcile.Result{}, nil
				}
				if err := access.Client.List(round.Context, &corev1.SecretList{}); err == nil {
					done.Add(1)
				}
				return reconcile.Result{}, nil
			})})
		if err != nil {
			return err
		}
		if err := c.Watch(shares); err != nil {
			return err
		}
		return c.Watch(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			requests <- queue
			return nil
		}))
	})
	queue := <-requests
	for n := range many {
		queue.Add(requestOf(bad, n))
	}
	eventually(t, "the stalling tenant has its part, and what it borrowed", func() bool { return stalled.Load() == workers-workers/tenantShare })
	for n := range many {
		queue.Add(requestOf(good, n))
	}
	eventually(t, "all of the other tenant is done", func() bool { return done.Load() == many })
}

// stall answers with the beginning of a list, and with nothing more until the client gives up or release is closed.
func stall(w http.ResponseWriter, request *http.Request, release <-chan struct{}) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"kind":"SecretList","apiVersion":"v1","items":[`))
	_ = http.NewResponseController(w).Flush()
	select {
	case <-release:
	case <-request.Context().Done():
	}
}

func TestATenantThatStallsInTheMiddleOfABodyIsSilent(t *testing.T) {
	for name, poison := range map[string]struct {
		path string
		do   func(context.Context, *Access) error
	}{
		"an answer": {"/api/v1/secrets", func(ctx context.Context, a *Access) error { return a.Client.List(ctx, &corev1.SecretList{}) }},
		"a version": {"/version", nil},
		"an event":  {"/api/v1/nodes", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var stalls atomic.Bool
			inner := gatekeeper(t, func(string) int { return 0 })
			proxy, ca := newTLSServer(t, http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
				// The probe too, so that the tenant stays lost.
				if stalls.Load() && (request.URL.Path == poison.path || request.URL.Path == "/version" && poison.do != nil) {
					stall(w, request, nil)
					return
				}
				inner.ServeHTTP(w, request)
			}))
			r := newRegistry(t, Options{Timeout: time.Second, ProbeInterval: 20 * time.Millisecond})
			stalls.Store(poison.do == nil)
			if err := r.Set(t.Context(), tenantKey, configOf(proxy.URL, ca, "", "token: a")); err != nil {
				t.Fatal(err)
			}
			if poison.do != nil {
				access := usable(t, r, tenantKey)
				stalls.Store(true)
				if err := poison.do(t.Context(), access); err == nil {
					t.Error("a body without an end is an answer")
				}
			}
			var err error
			defer func() { t.Log(err) }()
			eventually(t, "it is lost as a silent tenant is", func() bool {
				_, err = r.For(tenantKey)
				return errors.Is(err, errNoResponse)
			})
			stalls.Store(false)
			usable(t, r, tenantKey)
		})
	}
}
