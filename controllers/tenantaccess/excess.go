package tenantaccess

import (
	"errors"
	"fmt"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// The first and the longest time for which a tenant is not used after it sent too much.
const (
	firstSuspension = time.Minute
	maxSuspension   = time.Hour
)

// excess says that a tenant sent too much.
type excess struct {
	// err is why the tenant cannot be used; nil: it can, or for another reason not.
	err *Error
	// until is when the tenant is tried again.
	until time.Time
	// times is how often in a row it sent too much.
	times int
}

// tooLarge returns the error of a tenant that sends too much, or nil if err is no such error.
func tooLarge(err error) *tooLargeError {
	var cause *tooLargeError
	if errors.As(err, &cause) {
		return cause
	}
	return nil
}

// suspend ends the use of the tenant for a while, because it sends, or because its caches keep, more than is taken from it. It stops the
// caches and lets go of their memory.
func (s *clientSet) suspend(what string, cause *tooLargeError) {
	now := s.options.Clock.Now()
	s.mu.Lock()
	if s.ctx.Err() != nil || now.Before(s.excess.until) {
		s.mu.Unlock()
		return
	}
	if now.Sub(s.excess.until) > maxSuspension {
		s.excess.times = 0
	}
	pause := min(maxSuspension, firstSuspension<<min(s.excess.times, 6))
	s.excess.times++
	s.excess.until = now.Add(pause)
	s.excess.err = &Error{Tenant: s.key, Reason: v1alpha1.ReasonTenantTooLarge, Err: fmt.Errorf(
		"%s: %w: %s; the cluster is not used meanwhile, and is tried again after %s", what, cause, cause.advice(), pause)}
	s.mu.Unlock()
	// The subscribers read the names of the Nodes from the cache once more.
	s.updateUsable()
	s.mu.Lock()
	defer s.mu.Unlock()
	stopWatches(s.nodes, s.slices)
	s.nodes, s.slices = nil, nil
	for _, of := range s.allOptional() {
		stopWatches(of.watch)
		of.watch = nil
	}
}

// suspension returns how long the tenant is still not used because it sent too much.
func (s *clientSet) suspension() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.excess.until.Sub(s.options.Clock.Now())
}

// isSuspended tells whether the tenant is not used because it sent too much. The caller must hold mu.
func (s *clientSet) isSuspended() bool {
	return s.excess.err != nil && s.options.Clock.Now().Before(s.excess.until)
}

// lost returns an error while the tenant does not answer or is not used because it sent too much, so that the calls of reconciles that
// have begun before fail at once.
func (s *clientSet) lost() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.isSuspended():
		return s.excess.err
	case s.failed != nil && s.failures >= failuresToLose:
		return s.failed
	}
	return nil
}
