package netboot

import (
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits of boot documents. A server that boots asks a few times at once and then waits at least 10 seconds; a wait script asks every 30 seconds.
const (
	// macBurst and macInterval limit the requests for the MAC address of one host: so many at once, then one in each interval.
	macBurst, macInterval = 10, 3 * time.Second
	// strangerBurst and strangerInterval limit the requests for all addresses that are nobody's.
	strangerBurst, strangerInterval = 200, 50 * time.Millisecond
	// maxBuckets is the number of buckets after which full ones are removed. Only addresses of hosts have one.
	maxBuckets = 1000
)

// take takes a token, or returns how long to wait for one.
func take(l *rate.Limiter, now time.Time) (wait time.Duration) {
	reservation := l.ReserveN(now, 1)
	if wait = reservation.DelayFrom(now); wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}

// documentLimits limits the requests for boot documents. Those for a host count for its MAC address alone, so that no flood of requests by
// strangers keeps a host from booting. Its memory is limited by the number of hosts.
type documentLimits struct {
	mu        sync.Mutex
	hosts     map[string]*rate.Limiter
	strangers *rate.Limiter
}

// takeKnown counts a request for a MAC address if it is known to be a host's. It returns how long to wait when there are too many.
func (l *documentLimits) takeKnown(mac string, now time.Time) (wait time.Duration, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter, known := l.hosts[mac]
	if !known {
		return 0, false
	}
	return take(limiter, now), true
}

// addHost counts the first request for the MAC address of a host.
func (l *documentLimits) addHost(mac string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.hosts) >= maxBuckets {
		maps.DeleteFunc(l.hosts, func(_ string, limiter *rate.Limiter) bool { return limiter.TokensAt(now) >= macBurst })
	}
	if l.hosts == nil {
		l.hosts = map[string]*rate.Limiter{}
	}
	limiter := rate.NewLimiter(rate.Every(macInterval), macBurst)
	take(limiter, now)
	l.hosts[mac] = limiter
}

// removeHost removes an address that is no host's any more.
func (l *documentLimits) removeHost(mac string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.hosts, mac)
}

// takeStranger counts a request for an address that is nobody's, and returns how long to wait when there are too many.
func (l *documentLimits) takeStranger(now time.Time) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.strangers == nil {
		l.strangers = rate.NewLimiter(rate.Every(strangerInterval), strangerBurst)
	}
	return take(l.strangers, now)
}
