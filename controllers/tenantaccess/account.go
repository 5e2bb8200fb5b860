package tenantaccess

import (
	"cmp"
	"context"
	"errors"
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

// tooLargeError says that a tenant sends more than is taken from it, or that more of it would be kept than a bound allows.
type tooLargeError struct {
	what string
	// remedy says who must do what; empty: the usual.
	remedy string
}

// Error says what was too large, and the limit.
func (e *tooLargeError) Error() string { return e.what }

// advice says who must do what.
func (e *tooLargeError) advice() string {
	return cmp.Or(e.remedy, "reduce what the cluster has of it, or raise tenants.memory and the memory of the manager")
}

// crowdedError says that an answer found no room beside others. Unless those are its own namespace's, which is one tenant, it says nothing about the
// tenant that was asked.
type crowdedError struct {
	what string
	// byItself is true if the TenantClusters of the namespace together leave no room.
	byItself bool
}

// Error says which limit was reached, and what is done.
func (e *crowdedError) Error() string { return e.what }

// isCrowded tells whether err is a crowdedError.
func isCrowded(err error) bool {
	var crowded *crowdedError
	return errors.As(err, &crowded)
}

// isCrowdedByOthers tells whether err says that the answer found no room beside other namespaces.
func isCrowdedByOthers(err error) bool {
	var crowded *crowdedError
	return errors.As(err, &crowded) && !crowded.byItself
}

// account counts what the manager holds of one cluster, in the book of all clusters.
type account struct {
	book      *book
	namespace string
	// pace and shared are how many bytes of watches are read, of the cluster and of its namespace.
	pace, shared *rate.Limiter

	// giveWay stops the caches and lets go of their memory, because others need it; nil: there are none.
	giveWay func(cause *tooLargeError)

	// The mu of the book guards the following. isGivingWay is true from the choice to give way until the caches are stopped.
	kept                  map[string]int64
	arriving              int64
	isClosed, isGivingWay bool
	// optional is the part of arriving that the cluster is used without.
	optional int64
}

// keep records how much the cache of a kind holds. If a bound does not allow it, keep returns an error and records nothing: what is
// refused is not kept, and must not be in the way of others. Where the bound of all is exceeded, the namespace that holds most gives way.
//
// Without that: two namespaces fill all the room, and whoever starts after them is refused, however little it needs beyond its floor.
func (a *account) keep(plural string, objects int, bytes int64) error {
	a.book.mu.Lock()
	defer a.book.mu.Unlock()
	if a.isClosed || a.isGivingWay {
		return nil
	}
	own, added := a.keptBytes(), bytes-a.kept[plural]
	broken := a.book.kept.refuses(own, a.namespace, added)
	for broken == totalBound {
		heaviest := a.book.heaviest(a.namespace, added)
		if heaviest == nil {
			break
		}
		a.book.makeRoom(heaviest, a.namespace, added)
		broken = a.book.kept.refuses(own, a.namespace, added)
	}
	if broken != noBound {
		return &tooLargeError{
			what:   fmt.Sprintf("%d %s take %s of memory, %s", objects, plural, mebibytes(bytes), a.book.kept.explain(broken, "all that is kept of", a.namespace, own+added, added)),
			remedy: remedies[broken],
		}
	}
	a.kept[plural] = bytes
	a.book.kept.add(a.namespace, added)
	return nil
}

// keptBytes returns what all caches hold. The caller must hold the mu of the book.
func (a *account) keptBytes() int64 {
	var all int64
	for _, each := range a.kept {
		all += each
	}
	return all
}

// lower records that the cache of a kind holds less than before. It changes nothing if it holds more.
func (a *account) lower(plural string, bytes int64) {
	a.book.mu.Lock()
	defer a.book.mu.Unlock()
	if less := a.kept[plural] - bytes; less > 0 {
		a.kept[plural] = bytes
		a.book.kept.add(a.namespace, -less)
	}
}

// forget records that the cache of a kind was stopped.
func (a *account) forget(plural string) {
	a.book.mu.Lock()
	defer a.book.mu.Unlock()
	a.book.kept.add(a.namespace, -a.kept[plural])
	delete(a.kept, plural)
	a.isGivingWay = false
}

// receive adds to what is arriving, or takes away from it. If a bound does not allow it, receive returns an error and adds nothing: what is
// refused is not decoded. Only the bound of the cluster makes it a *tooLargeError.
func (a *account) receive(weight int64) error {
	a.book.mu.Lock()
	defer a.book.mu.Unlock()
	return a.addArriving(weight)
}

// receiveOptional is receive for what the cluster is used without. Half of the cluster's bound is left to what it is not used without.
//
// Without that: a list of requests for certificates without end takes the whole bound, a probe that arrives meanwhile is what is refused, and the
// tenant with all its nodes is not used any more.
func (a *account) receiveOptional(weight int64) error {
	a.book.mu.Lock()
	defer a.book.mu.Unlock()
	if limit := a.book.arriving.cluster / 2; weight > 0 && a.optional+weight > limit {
		return &tooLargeError{what: fmt.Sprintf("the answers that are being worked on take more than %s of memory", mebibytes(limit))}
	}
	err := a.addArriving(weight)
	if err == nil {
		a.optional += weight
	}
	return err
}

// addArriving does what receive says. The caller must hold the mu of the book.
func (a *account) addArriving(weight int64) error {
	arriving := &a.book.arriving
	switch broken := arriving.refuses(a.arriving, a.namespace, weight); broken {
	case noBound:
		a.arriving += weight
		arriving.add(a.namespace, weight)
		return nil
	case clusterBound:
		return &tooLargeError{what: fmt.Sprintf("the answers that are being worked on take more than %s of memory", mebibytes(arriving.cluster))}
	default:
		return &crowdedError{byItself: broken == namespaceBound, what: "there is no room for an answer now: " +
			arriving.explain(broken, "all that is being worked on of", a.namespace, 0, weight) + ": the request is repeated; if that goes on, " + remedies[broken]}
	}
}

// release takes back what receive has added.
func (a *account) release(weight int64) { _ = a.receive(-weight) }

// close forgets what the caches hold, because the client set has ended. What is arriving is released by those who work on it.
func (a *account) close() {
	a.book.mu.Lock()
	defer a.book.mu.Unlock()
	if a.isClosed {
		return
	}
	a.isClosed = true
	a.book.kept.add(a.namespace, -a.keptBytes())
	clear(a.kept)
	delete(a.book.accounts, a)
	a.book.leave(a.namespace)
}

// mebibytes writes a size for messages.
func mebibytes(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// round counts what arrives for one reconcile, so that a list counts with all its pages until the reconcile has ended.
type round struct {
	mu       sync.Mutex
	received map[*account]int64
	// crowded is why an answer was refused that says nothing about the tenant.
	crowded error
}

type roundKey struct{}

// withRound returns a context in which the answers to requests count until end is called.
func withRound(ctx context.Context) (counted context.Context, end func()) {
	r := &round{received: map[*account]int64{}}
	return context.WithValue(ctx, roundKey{}, r), r.end
}

// receive adds to what arrives from a cluster.
func (r *round) receive(a *account, weight int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := a.receive(weight)
	switch {
	case err == nil:
		r.received[a] += weight
	case isCrowdedByOthers(err):
		r.crowded = err
	}
	return err
}

// interruption returns why an answer was refused that says nothing about the tenant.
func (r *round) interruption() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.crowded
}

func (r *round) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for a, weight := range r.received {
		a.release(weight)
	}
	clear(r.received)
}
