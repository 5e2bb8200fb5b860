package redfish

import (
	"sync"
	"time"
)

// line is the way to one BMC, which all sessions there share: one request at a time, and none while the BMC asks to be left alone.
type line struct {
	// gate is a channel of capacity 1, so that a request can stop waiting when its context ends.
	gate chan struct{}

	mu   sync.Mutex
	held *heldError
}

func newLine() *line { return &line{gate: make(chan struct{}, 1)} }

// heldError is returned for requests that are not sent because the BMC asked to be tried again later.
type heldError struct {
	until time.Time
	// cause is the answer in which the BMC asked for it.
	cause string
}

// Error returns the answer of the BMC, which has the time, so that a repeated failure has the same text as the first.
func (e *heldError) Error() string { return e.cause }

// check returns an error while the BMC asks not to be tried.
func (l *line) check(now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil || !now.Before(l.held.until) {
		l.held = nil
		return nil
	}
	return l.held
}

// hold stops further requests until the time that the refusal names, if it names one. text is the refusal without secrets: it is shown to
// callers with other credentials too.
func (l *line) hold(r *refusal, text string) {
	if r.notBefore.IsZero() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = &heldError{until: r.notBefore, cause: text}
}
