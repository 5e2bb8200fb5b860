// Package watched measures time from stored times so that a clock that jumps, or was wrong when a time was stored, causes no act.
//
// A stored time is a reading of a wall clock, and so is the time now. Their difference is a duration only if nobody has set the clock in between. Package
// serverclock tells since when that is certain. What ends in an act that cannot be undone (a power-off under pods, an installation, the deletion of a
// Node) is decided by Elapsed, which counts only from then on. What ends in a message, or in another try, is decided by Ago.
//
// Times of two clocks (the management cluster's, a tenant's, a BMC's, an agent's) are never compared: identities decide instead.
package watched

import "time"

// Clock is the time of a decision.
type Clock struct {
	// Now is the time.
	Now time.Time
	// Since is since when the clock is known not to have been set. It is Now while that is in doubt, and zero where no doubt is possible.
	Since time.Time
}

// Elapsed returns how much of the time since the stored time has certainly passed. It is never negative.
func (c Clock) Elapsed(at time.Time) time.Duration {
	if at.Before(c.Since) || at.After(c.Now) {
		at = c.Since
	}
	return c.between(at)
}

// Ago returns how long ago the stored time was. One in the future is of a clock that was wrong: it counts as the beginning of the time that is certain.
func (c Clock) Ago(at time.Time) time.Duration {
	if at.After(c.Now) {
		at = c.Since
	}
	return c.between(at)
}

// Present returns the stored time by the clock as it is now: one in the future is of a clock that was wrong, and counts as the beginning of the time that is
// certain. The zero Clock returns every time as it is.
func (c Clock) Present(at time.Time) time.Time {
	if c.Now.IsZero() || !at.After(c.Now) {
		return at
	}
	if c.Since.IsZero() {
		return c.Now
	}
	return c.Since
}

// Deadline returns a stored deadline by the clock as it is now: as long after Present(began) as it is after began.
func (c Clock) Deadline(began, deadline time.Time) time.Time {
	return deadline.Add(c.Present(began).Sub(began))
}

func (c Clock) between(at time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}
	return max(c.Now.Sub(at), 0)
}

// IsOver reports whether certainly as much time has passed since began as lies between began and the deadline. Where began is zero, the clock alone says it.
func (c Clock) IsOver(began, deadline time.Time) bool {
	if began.IsZero() {
		return !c.Now.Before(deadline)
	}
	return c.Elapsed(began) >= deadline.Sub(began)
}

// Left returns how much of the duration since began is certainly still to come, as IsOver counts it. It is never negative.
func (c Clock) Left(began time.Time, duration time.Duration) time.Duration {
	return max(duration-c.Elapsed(began), 0)
}
