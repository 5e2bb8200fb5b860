package tenantaccess

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/time/rate"
)

// The limits on what is taken from a tenant at once, in bytes as a meter estimates them. The API server itself accepts no request for
// an object above 3 MiB, and etcd stores none above 1.5 MiB. The largest honest objects are ResourceSlices with 128 devices.
const (
	maxErrorWeight    = 256 << 10
	maxProbeWeight    = 2 << 20
	maxObjectWeight   = 8 << 20
	maxResponseWeight = 16 << 20
)

// maxKeptObject is the limit of one object in a cache, in bytes of memory. A trimmed ResourceSlice with 128 devices has a few hundred
// kilobytes.
const maxKeptObject = 1 << 20

// The limits on the bytes of all watches of a tenant together. The Nodes of 5000 kubelets, each of which reports 30 kilobytes every 10
// seconds, are 15 MiB in a second; most report every 5 minutes. The burst is for the objects that exist already.
//
// Without it: a tenant sends events of eight megabytes one after the other, and the manager decodes them on a whole core.
const (
	watchBytesPerSecond = 16 << 20
	watchByteBurst      = 64 << 20
)

// arrivingFactor is how many times its budget a tenant's answers may take together, from their arrival until the end of the reconcile
// that asked. An estimate of a meter is about twice the truth.
const arrivingFactor = 2

// tooLargeError says that a tenant sends more than is taken from it, or that more of it would be kept than its budget allows.
type tooLargeError struct{ what string }

// Error says what was too large, and the limit.
func (e *tooLargeError) Error() string { return e.what }

// account counts what the manager holds of one tenant.
type account struct {
	// budget is the limit of what the caches keep.
	budget int64
	// pace is how many bytes of watches are read.
	pace *rate.Limiter

	mu       sync.Mutex
	kept     map[string]int64
	arriving int64
}

// newAccount returns an account in which nothing is counted yet.
func newAccount(budget int64) *account {
	return &account{budget: budget, pace: rate.NewLimiter(watchBytesPerSecond, watchByteBurst), kept: map[string]int64{}}
}

// keep records how much the cache of a kind holds. It returns an error if all caches together hold more than the budget.
func (a *account) keep(plural string, objects int, bytes int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept[plural] = bytes
	var all int64
	for _, each := range a.kept {
		all += each
	}
	if all <= a.budget {
		return nil
	}
	return &tooLargeError{fmt.Sprintf("%d %s take %s of memory, all that is kept of the tenant %s, and its budget is %s (tenants.memory of the manager's configuration)",
		objects, plural, mebibytes(bytes), mebibytes(all), mebibytes(a.budget))}
}

// forget records that the cache of a kind was stopped.
func (a *account) forget(plural string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.kept, plural)
}

// receive adds to what is arriving. It returns an error if that is more than arrivingFactor times the budget.
func (a *account) receive(weight int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.arriving += weight
	if limit := arrivingFactor * a.budget; a.arriving > limit {
		return &tooLargeError{fmt.Sprintf("the answers that are being worked on take more than %s of memory", mebibytes(limit))}
	}
	return nil
}

// release takes back what receive has added.
func (a *account) release(weight int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.arriving -= weight
}

// mebibytes writes a size for messages.
func mebibytes(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// ledger has the sizes of the objects in one cache, by name.
type ledger struct {
	account *account
	plural  string

	mu       sync.Mutex
	isClosed bool
	sizes    map[string]int64
	total    int64
	// next has the objects of a list that is still being read, which will replace the others; nil: none is.
	next      map[string]int64
	nextTotal int64
}

// begin starts a list that will replace the objects of the ledger.
func (l *ledger) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isClosed {
		l.next, l.nextTotal = map[string]int64{}, 0
	}
}

// commit ends the list that begin has started.
func (l *ledger) commit() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isClosed {
		return nil
	}
	if l.next != nil {
		l.sizes, l.total, l.next, l.nextTotal = l.next, l.nextTotal, nil, 0
	}
	return l.account.keep(l.plural, len(l.sizes), l.total)
}

// put records the size of an object, and returns an error if it or all of them are too large. While a list is read anew, the cache
// holds the old objects too: the larger of the two counts.
func (l *ledger) put(name string, size int64) error {
	if size > maxKeptObject {
		return &tooLargeError{fmt.Sprintf("one of its %s takes %s of memory, and the limit is %s", l.plural, mebibytes(size), mebibytes(maxKeptObject))}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isClosed {
		return nil
	}
	if l.next != nil {
		l.nextTotal += size - l.next[name]
		l.next[name] = size
	} else {
		l.total += size - l.sizes[name]
		l.sizes[name] = size
	}
	return l.account.keep(l.plural, max(len(l.sizes), len(l.next)), max(l.total, l.nextTotal))
}

// drop records that an object was deleted.
func (l *ledger) drop(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next != nil {
		l.nextTotal -= l.next[name]
		delete(l.next, name)
		return
	}
	l.total -= l.sizes[name]
	delete(l.sizes, name)
}

// close forgets the objects, because the cache was stopped and its memory is let go. Later changes are not counted.
func (l *ledger) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isClosed, l.sizes, l.next, l.total, l.nextTotal = true, map[string]int64{}, nil, 0, 0
	l.account.forget(l.plural)
}

// round counts what arrives for one reconcile, so that a list counts with all its pages until the reconcile has ended.
type round struct {
	mu       sync.Mutex
	received map[*account]int64
}

type roundKey struct{}

// withRound returns a context in which the answers to requests count until end is called.
func withRound(ctx context.Context) (counted context.Context, end func()) {
	r := &round{received: map[*account]int64{}}
	return context.WithValue(ctx, roundKey{}, r), r.end
}

func (r *round) add(a *account, weight int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.received[a] += weight
}

func (r *round) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for a, weight := range r.received {
		a.release(weight)
	}
	clear(r.received)
}
