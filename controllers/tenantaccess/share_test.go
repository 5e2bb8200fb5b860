package tenantaccess

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
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

func TestATenantHasAQuarterOfTheWorkersAndTheRestWaitsInOrder(t *testing.T) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	s := Shares{Workers: 8}
	if err := s.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	busy, other := types.NamespacedName{Namespace: "busy", Name: "t"}, types.NamespacedName{Namespace: "other", Name: "t"}
	first, second := s.Begin(t.Context(), busy, requestOf(busy, 1)), s.Begin(t.Context(), busy, requestOf(busy, 2))
	if first == nil || second == nil {
		t.Fatal("a tenant has less than a quarter of eight workers")
	}
	for _, n := range []int{3, 4, 3} {
		if s.Begin(t.Context(), busy, requestOf(busy, n)) != nil {
			t.Fatal("a tenant has more than a quarter of the workers")
		}
	}
	if s.Begin(t.Context(), types.NamespacedName{Namespace: "busy", Name: "second"}, requestOf(busy, 4)) != nil {
		t.Fatal("a second TenantCluster of the namespace brings it more workers")
	}
	if _, isLimited := first.Context.Deadline(); !isLimited {
		t.Error("the calls of a reconcile have no deadline")
	}
	if s.Begin(t.Context(), other, requestOf(other, 1)) == nil {
		t.Error("another tenant waits")
	}
	for _, want := range []int{3, 4} {
		if queue.Len() != 0 {
			t.Error("a request is sent before a worker is free")
		}
		if first.End(); queue.Len() != 1 {
			t.Fatalf("%d requests are sent for the worker that is free", queue.Len())
		}
		request, _ := queue.Get()
		if request != requestOf(busy, want) {
			t.Errorf("%s is sent before m-%d", request, want)
		}
		if first = s.Begin(t.Context(), busy, request); first == nil {
			t.Fatal("the free worker cannot be used")
		}
	}
	first.End()
	second.End()
	if queue.Len() != 0 || len(s.occupied) != 1 || len(s.waiting)+len(s.isKnown) != 0 {
		t.Errorf("%d requests remain: %+v", queue.Len(), s.waiting)
	}
	if new(Shares).Begin(t.Context(), busy, requestOf(busy, 1)) == nil {
		t.Error("with one worker nothing is done for a tenant")
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
				round := shares.Begin(ctx, tenant, request)
				if round == nil {
					return reconcile.Result{RequeueAfter: BusyPause}, nil
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
	eventually(t, "the stalling tenant has its part", func() bool { return stalled.Load() == workers/tenantShare })
	for n := range many {
		queue.Add(requestOf(good, n))
	}
	eventually(t, "all of the other tenant is done", func() bool { return done.Load() == many })
	if stalled.Load() != workers/tenantShare {
		t.Errorf("%d workers call the tenant that stalls", stalled.Load())
	}
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
				return err != nil && strings.Contains(err.Error(), errNoResponse.Error())
			})
			stalls.Store(false)
			usable(t, r, tenantKey)
		})
	}
}
