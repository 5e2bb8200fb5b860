// Package contest decides when Ingot places again what somebody else keeps removing from a Node, such as a taint.
//
// Without it: a program in the tenant's cluster removes each taint or label that it does not know. Ingot places it, the program removes it, and
// both write the Node as fast as they can for ever. Instead the first removals are answered at once, and after those the pauses grow. What was
// placed counts as accepted when it has stayed for Window.
//
// It is a pure decision: the time is a value, and whoever uses it stores the Placement.
package contest

import (
	"fmt"
	"time"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

const (
	// Window is how long what was placed must stay until its earlier removals are forgotten.
	Window = 10 * time.Minute
	// quickRemovals is how many removals are answered at once.
	quickRemovals = 3
	// firstPause and maxPause are the limits of the pause, which doubles with every removal. maxPause is shorter than Window, or what is removed
	// for ever would be placed at once again.
	firstPause, maxPause = 10 * time.Second, 5 * time.Minute
	// maxRemovals is the number at which the count stays.
	maxRemovals = 1000
	// maxWriter limits the name of a program that the tenant's API server reports, in bytes.
	maxWriter = 128
)

// Placement is when something was placed on a Node last, and what had happened to it before.
type Placement struct {
	// At is when it was placed.
	At time.Time
	// Removals is how often somebody else had removed it.
	Removals int32
	// RemovedBy is the program that had removed it last; empty: it is not known.
	RemovedBy string
}

// Contest is about one thing that Ingot keeps on a Node.
type Contest struct {
	clock   watched.Clock
	last    *Placement
	isThere bool
}

// New returns the Contest about something that was placed last as the Placement says; nil: it was not placed on this Node. isThere is true while
// it is on the Node.
func New(clock watched.Clock, last *Placement, isThere bool) Contest {
	if last != nil && clock.Ago(last.At) >= Window {
		last = nil
	}
	return Contest{clock: clock, last: last, isThere: isThere}
}

// Count returns the number of removals within the Window, with the one that is observed now.
func (c Contest) Count() int32 {
	switch {
	case c.last == nil:
		return 0
	case c.isThere:
		return c.last.Removals
	}
	return min(c.last.Removals+1, maxRemovals)
}

// IsContested reports whether others have removed it so often that it is reported.
func (c Contest) IsContested() bool { return c.Count() >= quickRemovals }

// IsRecent reports whether it was placed within the Window.
func (c Contest) IsRecent() bool { return c.last != nil }

// PauseLeft returns how long it must not be placed yet.
func (c Contest) PauseLeft() time.Duration {
	n := c.Count() - quickRemovals
	if n <= 0 {
		return 0
	}
	pause := maxPause
	if n < 10 {
		pause = min(firstPause<<(n-1), maxPause)
	}
	return max(pause-c.clock.Ago(c.last.At), 0)
}

// WindowLeft returns how long it must still stay until its removals are forgotten.
func (c Contest) WindowLeft() time.Duration {
	if c.last == nil {
		return 0
	}
	return max(Window-c.clock.Ago(c.last.At), 0)
}

// Next returns the Placement to store when it is placed now, after the writer has removed it.
func (c Contest) Next(writer string) Placement {
	p := Placement{At: c.clock.Now, Removals: c.Count()}
	if p.Removals > 0 {
		p.RemovedBy = input.Line(writer, maxWriter)
	}
	return p
}

// Text says how often it was removed, by whom, and when it is placed again. isPlaced is true if it is placed now, after the writer has
// removed it. The text does not change until it is placed the next time.
func (c Contest) Text(what string, isPlaced bool, writer string) string {
	count := c.Count()
	if !isPlaced {
		writer, count = c.last.RemovedBy, c.last.Removals // the next placement records what is observed now
	}
	if writer == "" {
		writer = "a program that the Node's managedFields do not name: the audit log of the tenant's API server has it"
	}
	when := "it is on the Node again"
	if pause := c.PauseLeft(); !isPlaced && !c.isThere && pause > 0 {
		when = "it is placed again at " + c.clock.Now.Add(pause).UTC().Format(time.TimeOnly+"Z")
	}
	return fmt.Sprintf("%s was removed %d times, last by %s; %s", what, count, input.Line(writer, maxWriter), when)
}
