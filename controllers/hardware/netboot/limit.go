package netboot

import (
	"math"
	"sync"
	"time"
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

// bucket is a token bucket.
type bucket struct {
	tokens float64
	at     time.Time
}

// take takes a token, or returns how long to wait for one.
func (b *bucket) take(now time.Time, burst int, interval time.Duration) (wait time.Duration) {
	b.fill(now, burst, interval)
	if b.tokens >= 1 {
		b.tokens--
		return 0
	}
	return time.Duration((1 - b.tokens) * float64(interval))
}

// fill adds the tokens for the time that has passed.
func (b *bucket) fill(now time.Time, burst int, interval time.Duration) {
	if b.at.IsZero() {
		b.tokens = float64(burst)
	} else if passed := now.Sub(b.at); passed > 0 {
		b.tokens = math.Min(float64(burst), b.tokens+float64(passed)/float64(interval))
	}
	b.at = now
}

// documentLimits limits the requests for boot documents. Those for a host count for its MAC address alone, so that no flood of requests by
// strangers keeps a host from booting. Its memory is limited by the number of hosts.
type documentLimits struct {
	mu        sync.Mutex
	hosts     map[string]*bucket
	strangers bucket
}

// takeKnown counts a request for a MAC address if it is known to be a host's. It returns how long to wait when there are too many.
func (l *documentLimits) takeKnown(mac string, now time.Time) (wait time.Duration, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, known := l.hosts[mac]
	if !known {
		return 0, false
	}
	return b.take(now, macBurst, macInterval), true
}

// addHost counts the first request for the MAC address of a host.
func (l *documentLimits) addHost(mac string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.hosts) >= maxBuckets {
		for key, b := range l.hosts {
			if b.fill(now, macBurst, macInterval); b.tokens >= macBurst {
				delete(l.hosts, key)
			}
		}
	}
	if l.hosts == nil {
		l.hosts = map[string]*bucket{}
	}
	b := &bucket{}
	b.take(now, macBurst, macInterval)
	l.hosts[mac] = b
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
	return l.strangers.take(now, strangerBurst, strangerInterval)
}
