package tenantaccess

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// tenantShare: a tenant always gets one of so many parts of a controller's workers.
const tenantShare = 4

// roundTime is how long all the calls of one reconcile to its tenant may take together. The evictions of a node with hundreds of pods
// take some seconds. What is left is done by the next reconcile.
const roundTime = 30 * time.Second

// loan is how long a round may go on before a borrowed worker is taken back. Most rounds have ended by then; what is interrupted is done a second time.
const loan = 2 * time.Second

// errTakenBack is why a round ends that had a borrowed worker.
var errTakenBack = errors.New("its worker was borrowed, and another tenant needs it: the reconcile is repeated")

// Shares divides the workers of a controller whose reconciles call tenants: while others wait, no tenant has more than a quarter of them
// and more than they have. Idle workers are lent, and taken back by ending the calls that are under way for two seconds or more. Add it to the controller as a
// source. The zero value gives each tenant one worker. The TenantClusters of a namespace are one tenant.
//
// Without it: a tenant with a hundred Machines answers each request after nine of the ten seconds that a request may take. It is not
// silent, its reconciles soon occupy all workers, and the Machines of all other tenants wait for it.
// If each TenantCluster had its own part: whoever may create them in a namespace makes four that stall, and occupies all workers again.
type Shares struct {
	// Workers is how many objects the controller reconciles at the same time.
	Workers int
	// Tenants, if set, says which tenants stall. They borrow nothing.
	Tenants *Registry

	mu     sync.Mutex
	queue  workqueue.TypedRateLimitingInterface[reconcile.Request]
	places *places
	// rounds are those of each tenant whose places were not taken back, the oldest first.
	rounds map[string][]*Round
	// called are the requests for which a place is set aside.
	called map[claim]bool
}

// claim is a request and the tenant that it needs a worker for.
type claim struct {
	tenant  string
	request reconcile.Request
}

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
	stop    context.CancelCauseFunc
	end     func()
	began   time.Time
}

// Begin occupies a worker for a reconcile of the request. If the tenant has no worker left, it returns nil: the reconcile must end at once,
// without a repetition, and the request is sent to the queue when there is a worker for it. Each reconcile that may call Begin must call
// Skip when it ends.
func (s *Shares) Begin(ctx context.Context, tenant types.NamespacedName, request reconcile.Request) *Round {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.places == nil {
		s.places, s.rounds, s.called = newPlaces(s.Workers), map[string][]*Round{}, map[claim]bool{}
	}
	name := tenant.Namespace
	switch own := (claim{name, request}); {
	case s.called[own]:
		delete(s.called, own)
	case s.places.hasRoom(name, s.canBorrow):
		s.places.held[name]++
	default:
		s.places.enqueue(name, request)
		if s.canBorrow(name) {
			s.takeBack(s.places.surplus(name, true))
		}
		return nil
	}
	s.takeBack(s.places.surplus(name, false))
	counted, forget := withRound(ctx)
	limited, cancel := context.WithTimeoutCause(counted, roundTime, fmt.Errorf("the calls of one reconcile to TenantCluster %s took longer than %s", tenant, roundTime))
	r := &Round{began: time.Now()}
	r.Context, r.stop = context.WithCancelCause(limited)
	r.end = func() {
		cancel()
		r.stop(nil)
		forget()
		s.leave(name, r)
	}
	s.rounds[name] = append(s.rounds[name], r)
	return r
}

// canBorrow tells whether a tenant may have more than its quarter. One that stalls may not. The caller must hold mu.
func (s *Shares) canBorrow(tenant string) bool {
	return s.Tenants == nil || !s.Tenants.isStalling(tenant)
}

// takeBack ends the youngest round of a tenant, if there is one. The caller must hold mu.
func (s *Shares) takeBack(tenant string) {
	rounds := s.rounds[tenant]
	if len(rounds) == 0 {
		return
	}
	youngest := rounds[len(rounds)-1]
	time.AfterFunc(max(0, loan-time.Since(youngest.began)), func() { youngest.stop(errTakenBack) })
	s.rounds[tenant] = rounds[:len(rounds)-1]
	s.places.leaving[tenant]++
}

// Interrupted returns why calls of the round have failed if that says nothing about the tenant; nil: no such call has failed. The reconcile
// must then end with this error, and must not conclude anything.
//
// Without it: the answer to a list of Nodes finds no room beside those of other namespaces, the tenant counts as unreachable, and a release
// goes on without removing its Node.
// If it held for room that the tenant's own namespace takes: a tenant whose watches never end their events keeps each release from its drain
// time-out, and the hosts for ever.
func (r *Round) Interrupted() error { return InterruptionOf(r.Context) }

// InterruptionOf returns the same for the context of a round.
func InterruptionOf(calls context.Context) error {
	if cause := context.Cause(calls); errors.Is(cause, errTakenBack) {
		return cause
	}
	if r, isRound := calls.Value(roundKey{}).(*round); isRound {
		return r.interruption()
	}
	return nil
}

// End lets go of the worker and of what was received in the round.
func (r *Round) End() { r.end() }

// Skip lets go of the places that are set aside for a request whose reconcile needed none.
//
// Without it: a Machine waits for a worker and is deleted. Its reconcile ends before it calls its tenant, and the Machines that wait after
// it are never called.
func (s *Shares) Skip(request reconcile.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other := range s.called {
		if other.request == request {
			delete(s.called, other)
			s.places.leave(other.tenant, false)
			s.call()
		}
	}
}

// leave lets go of a worker, and calls requests that waited.
func (s *Shares) leave(tenant string, r *Round) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.rounds[tenant], r)
	if at >= 0 {
		s.rounds[tenant] = slices.Delete(s.rounds[tenant], at, at+1)
	}
	if len(s.rounds[tenant]) == 0 {
		delete(s.rounds, tenant)
	}
	s.places.leave(tenant, at < 0)
	s.call()
}

// call sends the requests for which there is room, and sets their places aside. The caller must hold mu.
//
// Without places that are set aside: requests that have just come take them, and those that waited are refused again and again.
func (s *Shares) call() {
	for s.queue != nil {
		tenant, request, found := s.places.next(s.canBorrow)
		if !found {
			return
		}
		s.called[claim{tenant, request}] = true
		s.queue.Add(request)
	}
}
