package tenantaccess

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// tenantShare: a tenant may occupy one of so many parts of a controller's workers.
const tenantShare = 4

// roundTime is how long all the calls of one reconcile to its tenant may take together. The evictions of a node with hundreds of pods
// take some seconds. What is left is done by the next reconcile.
const roundTime = 30 * time.Second

// Shares divides the workers of a controller whose reconciles call tenants: no tenant occupies more than a quarter of them. Add it to
// the controller as a source. The zero value gives each tenant one worker. The TenantClusters of a namespace are one tenant.
//
// Without it: a tenant with a hundred Machines answers each request after nine of the ten seconds that a request may take. It is not
// silent, its reconciles soon occupy all workers, and the Machines of all other tenants wait for it.
// If each TenantCluster had its own part: whoever may create them in a namespace makes four that stall, and occupies all workers again.
type Shares struct {
	// Workers is how many objects the controller reconciles at the same time.
	Workers int

	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	// occupied and waiting have the namespaces of the TenantClusters as their keys.
	occupied map[string]int
	// waiting has the requests of each tenant that wait for one of its workers, in the order in which they came, each once.
	waiting map[string][]reconcile.Request
	isKnown map[reconcile.Request]bool
}

// BusyPause is after how long a reconcile for which Begin returned nil is to be repeated if no worker of the tenant calls it before.
// That is so if the request that was called instead needed no worker any more.
const BusyPause = 10 * time.Second

// String returns the name of the source in logs.
func (s *Shares) String() string { return "requests that waited for a worker of their tenant" }

// Start implements source.Source: the queue gets the requests that waited.
func (s *Shares) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = queue
	return nil
}

// Round is the part of a reconcile in which a tenant is called.
type Round struct {
	// Context is for the calls to the tenant. It has one deadline for all of them, and their answers count as one.
	Context context.Context
	count   *round
	end     func()
}

// Begin occupies one of the tenant's workers for a reconcile of the request. If the tenant occupies all of its workers, it returns nil:
// the reconcile must end at once with a repetition after BusyPause. The request is usually reconciled again earlier, when one of the
// workers is free.
func (s *Shares) Begin(ctx context.Context, tenant types.NamespacedName, request reconcile.Request) *Round {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.occupied == nil {
		s.occupied, s.waiting, s.isKnown = map[string]int{}, map[string][]reconcile.Request{}, map[reconcile.Request]bool{}
	}
	if s.occupied[tenant.Namespace] >= max(s.Workers/tenantShare, 1) {
		if !s.isKnown[request] {
			s.waiting[tenant.Namespace], s.isKnown[request] = append(s.waiting[tenant.Namespace], request), true
		}
		return nil
	}
	s.occupied[tenant.Namespace]++
	counted, forget := withRound(ctx)
	limited, cancel := context.WithTimeoutCause(counted, roundTime, fmt.Errorf("the calls of one reconcile to TenantCluster %s took longer than %s", tenant, roundTime))
	count, _ := limited.Value(roundKey{}).(*round)
	return &Round{Context: limited, count: count, end: func() {
		cancel()
		forget()
		s.leave(tenant.Namespace)
	}}
}

// Interrupted returns why calls of the round have failed if that says nothing about the tenant; nil: no such call has failed. The reconcile
// must then end with this error, and must not conclude anything.
//
// Without it: the answer to a list of Nodes finds no room beside those of other clusters, the tenant counts as unreachable, and a release
// goes on without removing its Node.
func (r *Round) Interrupted() error { return r.count.interruption() }

// End lets go of the worker and of what was received in the round.
func (r *Round) End() { r.end() }

// leave lets go of a worker, and sends the request that waited longest for it.
func (s *Shares) leave(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.occupied[tenant]--; s.occupied[tenant] == 0 {
		delete(s.occupied, tenant)
	}
	waiting := s.waiting[tenant]
	if len(waiting) == 0 || s.queue == nil {
		return
	}
	delete(s.isKnown, waiting[0])
	s.queue.Add(waiting[0])
	if s.waiting[tenant] = waiting[1:]; len(waiting) == 1 {
		delete(s.waiting, tenant)
	}
}
