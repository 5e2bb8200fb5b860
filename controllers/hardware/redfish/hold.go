package redfish

import (
	"slices"
	"sync"
	"time"
)

// line is the way to one BMC, which all sessions there share: one request at a time, and none while the BMC asks to be left alone.
type line struct {
	// gate is a channel of capacity 1, so that a request can stop waiting when its context ends.
	gate chan struct{}

	mu   sync.Mutex
	held *heldError
	// isSwept is true when the sessions that an earlier process left at the BMC were looked for.
	isSwept bool
	// refusesContext is true when the BMC refuses the member Context of a new session.
	refusesContext bool
	// stale are the paths of sessions that this process has made and could not end.
	stale []string
	// slots says whose the sessions of a BMC are whose slots are full, and slotsAt when they were listed.
	slots   string
	slotsAt time.Time
	// orders are the boot orders that are to be put back, by the path of the system. awaited is since when something is awaited.
	orders  map[string][]string
	awaited map[string]time.Time
	// late are the overrides that were accepted and not shown, by the home of their place. undisabled are the resources whose override cannot be disabled.
	late       map[string]lateOverride
	undisabled map[string]bool
	// softOffs are the requests of power-offs that are not forced, by the path of the system.
	softOffs map[string]softOff
	// insertions are the images that slots for virtual media were asked to insert, by the path of the slot.
	insertions map[string]insertion
}

// needsSweep reports whether the sessions that an earlier process left are still to be looked for.
func (l *line) needsSweep() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.isSwept
}

// keepSwept keeps that the sessions that an earlier process left were looked for.
func (l *line) keepSwept() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isSwept = true
}

// maxStale is how many sessions are kept that could not be ended.
const maxStale = 16

// keepStale keeps the path of a session that could not be ended.
func (l *line) keepStale(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if path != "" && len(l.stale) < maxStale && !slices.Contains(l.stale, path) {
		l.stale = append(l.stale, path)
	}
}

// takeStale returns the paths of the sessions that could not be ended, and forgets them.
func (l *line) takeStale() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	stale := l.stale
	l.stale = nil
	return stale
}

// slotsNote returns what was said last about the sessions of the BMC, and whether that is recent.
func (l *line) slotsNote(now time.Time) (note string, isRecent bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.slots, l.slots != "" && now.Sub(l.slotsAt) < listPause
}

// keepSlotsNote keeps what is said about the sessions of the BMC.
func (l *line) keepSlotsNote(note string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slots, l.slotsAt = note, now
}

// canTakeContext reports whether the BMC is not known to refuse the member Context.
func (l *line) canTakeContext() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.refusesContext
}

// keepContextRefused keeps that the BMC refuses the member Context.
func (l *line) keepContextRefused() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refusesContext = true
}

func newLine() *line {
	return &line{
		gate: make(chan struct{}, 1), orders: map[string][]string{}, awaited: map[string]time.Time{}, late: map[string]lateOverride{}, undisabled: map[string]bool{},
		softOffs: map[string]softOff{}, insertions: map[string]insertion{},
	}
}

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
