package tenantaccess

import (
	"slices"
	"time"
)

// The first and the longest time for which a tenant is not probed after one more of its calls has stalled.
const (
	firstStallPause = 10 * time.Second
	maxStallPause   = 5 * time.Minute
)

// stalls counts the calls that stalled although the probes before them had succeeded.
//
// Without it: a tenant answers each probe and stalls each list of Pods. It is usable after every probe, the next reconcile waits for its
// timeout, and so on: its part of the workers does nothing else.
type stalls struct {
	// times is how many calls have stalled, each after the tenant was usable again.
	times int
	// until is before when the tenant is not probed.
	until time.Time
}

// countStall records that a call has stalled, and returns after which pause the tenant is probed; 0: at once. The count begins anew when
// no call has stalled for maxStallPause. An answer to another call does not end it, because a tenant may stall one kind of call only.
// Calls that stall during a pause were under way before it, and do not count. The caller must hold mu.
func (s *clientSet) countStall() time.Duration {
	now := s.options.Clock.Now()
	if now.Before(s.stalls.until) {
		return s.stalls.until.Sub(now)
	}
	var pause time.Duration
	if now.Sub(s.stalls.until) > maxStallPause {
		s.stalls.times = 0
	} else {
		pause = min(maxStallPause, firstStallPause<<min(s.stalls.times-1, 8))
	}
	s.stalls.times++
	s.stalls.until = now.Add(pause)
	return pause
}

// stallPause returns how long the tenant is still not probed because its calls stalled.
func (s *clientSet) stallPause() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stalls.until.Sub(s.options.Clock.Now())
}

// isStalling tells whether a tenant does not answer, or a call to one of its clusters has stalled in the last minutes.
func (r *Registry) isStalling(namespace string) bool {
	return slices.ContainsFunc(r.clientSets(), func(s *clientSet) bool { return s.key.Namespace == namespace && s.hasStalled() })
}

func (s *clientSet) hasStalled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failures >= failuresToLose || s.stalls.times > 0 && s.options.Clock.Now().Sub(s.stalls.until) <= maxStallPause
}
