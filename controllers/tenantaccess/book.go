package tenantaccess

import (
	"cmp"
	"fmt"
	"sync"

	"golang.org/x/time/rate"
)

// managerMemory is what the manager needs for itself, beside what it holds of tenants: its caches of the management cluster and its code.
const managerMemory = 130 << 20

// weightFactor is how many times the truth an estimate of a meter usually is.
const weightFactor = 2

// arrivingFactor is how many times its budget a tenant's answers may take together, from their arrival until the end of the reconcile
// that asked, as a meter estimates them.
const arrivingFactor = 2

// fewNamespaces: the reserve is divided among the namespaces that have TenantClusters, and among this many if they are fewer.
const fewNamespaces = 8

// TotalMemory returns how much of the memory limit of the process (GOMEMLIMIT) is for the tenants, for Options.TotalMemory; 0: there is no
// limit.
func TotalMemory(limit int64) int64 {
	if limit >= 1<<50 {
		return 0
	}
	return max(limit-managerMemory, limit/2)
}

// bound is one of the limits that a number of bytes may exceed.
type bound uint8

const (
	noBound bound = iota
	clusterBound
	namespaceBound
	totalBound
)

// remedies say who must do what where a bound is in the way. That of a cluster has the usual advice.
var remedies = map[bound]string{
	namespaceBound: "the owner of the namespace must delete TenantClusters or reduce what their clusters have, or an administrator must raise tenants.memory and the memory of the manager (GOMEMLIMIT)",
	totalBound:     "an administrator must raise the memory of the manager (GOMEMLIMIT)",
}

// pool counts one kind of bytes of all clusters.
//
// Without the bound of a namespace: whoever may create TenantClusters in a namespace creates fifty that lead to one server, and each may take
// a whole budget. Without the reserve: two such namespaces take all there is, and what a small tenant needs is refused.
type pool struct {
	// cluster, namespace and total are the limits.
	cluster, namespace, total int64
	// reserve is the part of total that only the first bytes of each namespace take, the same number for each.
	reserve int64

	// namespaces is how many have TenantClusters.
	namespaces int
	held       map[string]int64
}

// newPool returns a pool in which nothing is counted. No namespace has more than half of it, and a quarter of it is the reserve.
func newPool(cluster, namespace, total int64) pool {
	namespace = min(namespace, total/2)
	return pool{cluster: min(cluster, namespace), namespace: namespace, total: total, reserve: total / 4, held: map[string]int64{}}
}

// floor returns how much every namespace has of the reserve.
func (p *pool) floor() int64 { return p.reserve / int64(max(p.namespaces, fewNamespaces)) }

// refuses returns which bound does not allow that a cluster that has own bytes gets more.
func (p *pool) refuses(own int64, namespace string, added int64) bound {
	switch all := p.held[namespace] + added; {
	case added <= 0:
		return noBound
	case own+added > p.cluster:
		return clusterBound
	case all > p.namespace:
		return namespaceBound
	case all > p.floor() && p.unreserved(namespace, added) > p.total-p.reserve:
		return totalBound
	}
	return noBound
}

// unreserved returns what all namespaces would have beyond their part of the reserve.
func (p *pool) unreserved(namespace string, added int64) int64 {
	floor := p.floor()
	sum := max(0, p.held[namespace]+added-floor)
	for other, held := range p.held {
		if other != namespace {
			sum += max(0, held-floor)
		}
	}
	return sum
}

// add records a change of what a namespace has.
func (p *pool) add(namespace string, added int64) {
	if p.held[namespace] += added; p.held[namespace] == 0 {
		delete(p.held, namespace)
	}
}

// all returns what all namespaces have.
func (p *pool) all() int64 {
	var sum int64
	for _, held := range p.held {
		sum += held
	}
	return sum
}

// explain says which bound was exceeded, what was seen and what was expected. own and added are the bytes of the cluster.
func (p *pool) explain(broken bound, what, namespace string, own, added int64) string {
	switch broken {
	case clusterBound:
		return fmt.Sprintf("%s the tenant is %s, and its budget is %s (tenants.memory of the manager's configuration)", what, mebibytes(own), mebibytes(p.cluster))
	case namespaceBound:
		return fmt.Sprintf("%s all TenantClusters of namespace %s is %s, and their limit together is %s", what, namespace, mebibytes(p.held[namespace]+added), mebibytes(p.namespace))
	default:
		return fmt.Sprintf("%s all tenants is %s, and the limit is %s (from GOMEMLIMIT), of which %s are kept free for namespaces that have less than %s",
			what, mebibytes(p.all()+added), mebibytes(p.total), mebibytes(p.reserve), mebibytes(p.floor()))
	}
}

// The limits on the bytes of all watches of a namespace's clusters, which are as many times those of one cluster.
const namespacePace = 2

// book counts what the manager holds of all tenants. The TenantClusters of a namespace are one tenant.
type book struct {
	mu sync.Mutex
	// kept is what the caches hold, in bytes of memory. arriving is what is being read and worked on, as meters estimate it.
	kept, arriving pool
	tenants        map[string]*tenantEntry
	accounts       map[*account]bool
}

// tenantEntry is what the book has of one namespace.
type tenantEntry struct {
	clusters int
	pace     *rate.Limiter
}

// newBook returns a book in which nothing is counted. memory is the budget of one cluster, and total is for all; 0: five budgets. Three
// fifths of it are for what is kept.
func newBook(memory, total int64) *book {
	if total <= 0 {
		total = 5 * memory
	}
	kept := total / 5 * 3
	return &book{
		kept: newPool(memory, 2*memory, kept), arriving: newPool(arrivingFactor*memory, arrivingFactor*memory*3/2, (total-kept)*weightFactor),
		tenants: map[string]*tenantEntry{}, accounts: map[*account]bool{},
	}
}

// open returns an account for a cluster of a namespace, in which nothing is counted yet. giveWay may be nil.
func (b *book) open(namespace string, giveWay func(cause *tooLargeError)) *account {
	b.mu.Lock()
	defer b.mu.Unlock()
	entry := b.tenants[namespace]
	if entry == nil {
		entry = &tenantEntry{pace: rate.NewLimiter(namespacePace*watchBytesPerSecond, namespacePace*watchByteBurst)}
		b.tenants[namespace] = entry
	}
	entry.clusters++
	b.count()
	a := &account{book: b, namespace: namespace, giveWay: giveWay, pace: rate.NewLimiter(watchBytesPerSecond, watchByteBurst), shared: entry.pace, kept: map[string]int64{}}
	b.accounts[a] = true
	return a
}

// heaviest returns the cluster that keeps most, of the namespace that keeps most, if that is more than the claimant would have; nil: there is none. The
// caller must hold mu.
func (b *book) heaviest(claimant string, added int64) *account {
	var heaviest *account
	for a := range b.accounts {
		if a.giveWay == nil || a.keptBytes() == 0 || b.kept.held[a.namespace] <= b.kept.held[claimant]+added {
			continue
		}
		if heaviest == nil || cmp.Or(cmp.Compare(b.kept.held[a.namespace], b.kept.held[heaviest.namespace]), cmp.Compare(a.keptBytes(), heaviest.keptBytes())) > 0 {
			heaviest = a
		}
	}
	return heaviest
}

// makeRoom lets the heaviest cluster give way to the claimant. The caller must hold mu.
func (b *book) makeRoom(heaviest *account, claimant string, added int64) {
	cause := &tooLargeError{
		what: fmt.Sprintf("its namespace keeps %s, more than others, and %s", mebibytes(b.kept.held[heaviest.namespace]),
			b.kept.explain(totalBound, "with what others need, all that is kept of", claimant, 0, added)),
		remedy: remedies[totalBound],
	}
	heaviest.isGivingWay = true
	b.kept.add(heaviest.namespace, -heaviest.keptBytes())
	clear(heaviest.kept)
	// It takes the locks of the client set, whose events come here.
	go heaviest.giveWay(cause)
}

// leave records that an account of a namespace was closed. The caller must hold mu.
func (b *book) leave(namespace string) {
	if b.tenants[namespace].clusters--; b.tenants[namespace].clusters == 0 {
		delete(b.tenants, namespace)
	}
	b.count()
}

// count tells the pools how many namespaces there are. The caller must hold mu.
func (b *book) count() { b.kept.namespaces, b.arriving.namespaces = len(b.tenants), len(b.tenants) }
