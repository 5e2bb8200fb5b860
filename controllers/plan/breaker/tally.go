package breaker

import (
	"slices"
	"time"

	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

// key is an act in a domain.
type key struct {
	act    Act
	domain Domain
}

// tally is what is due and done of one act in one domain.
type tally struct {
	key
	servers int
	// faults are since when its servers fail, by object. One that was granted within Window is in done.
	faults map[string]time.Time
	done   map[string]time.Time
	// failedAt are the times of faults in order. unknown is how many faults have none, and earlier how many failed before the time of the clock was certain.
	failedAt         []time.Time
	unknown, earlier int
	clock            watched.Clock
}

// tallies are those of all acts in all domains.
type tallies map[key]*tally

// newTallies counts what is due and done.
func newTallies(f Facts) tallies {
	all := tallies{}
	read := map[*Group]bool{}
	for _, a := range f.Asks {
		for _, g := range a.Groups {
			t := all.of(key{a.Act, g.Domain}, f.Clock)
			t.servers = max(t.servers, g.Servers)
			t.faults[a.Object] = a.At
			if read[g] {
				continue
			}
			read[g] = true
			for _, fault := range g.Failing {
				t.faults[fault.Object] = fault.At
			}
		}
	}
	for _, g := range f.Grants {
		for _, d := range g.Domains {
			if t, isAsked := all[key{g.Act, d}]; isAsked && f.Elapsed(g.At) < Window {
				t.done[g.Object] = g.At
			}
		}
	}
	for _, t := range all {
		t.sort()
	}
	return all
}

func (all tallies) of(k key, clock watched.Clock) *tally {
	if all[k] == nil {
		all[k] = &tally{key: k, faults: map[string]time.Time{}, done: map[string]time.Time{}, clock: clock}
	}
	return all[k]
}

// hasGrant reports whether the same was granted to the same object within Window. A manager that was restarted asks again for what it had been granted, and the
// object is no further one.
func (all tallies) hasGrant(a Ask) bool {
	return slices.ContainsFunc(a.Groups, func(g *Group) bool {
		_, isDone := all[key{a.Act, g.Domain}].done[a.Object]
		return isDone
	})
}

// grant counts an ask among what is done.
func (all tallies) grant(a Ask, now time.Time) {
	for _, g := range a.Groups {
		t := all[key{a.Act, g.Domain}]
		if _, isDone := t.done[a.Object]; !isDone {
			t.done[a.Object] = now
			t.sort()
		}
	}
}

// sort sorts the times of the faults that were not granted.
func (t *tally) sort() {
	t.failedAt, t.unknown, t.earlier = t.failedAt[:0], 0, 0
	for object, at := range t.faults {
		if _, isDone := t.done[object]; isDone {
			continue
		}
		switch {
		case at.IsZero():
			t.unknown++
		case t.isEarlier(at):
			t.earlier++
		default:
			t.failedAt = append(t.failedAt, at)
		}
	}
	slices.SortFunc(t.failedAt, time.Time.Compare)
}

// isEarlier reports whether a time is from before the time of the clock was certain: it can be compared with no other of then, and with those since only in that it
// was before them. One in the future is of a clock that was wrong.
func (t *tally) isEarlier(at time.Time) bool {
	return at.Before(t.clock.Since) || at.After(t.clock.Now)
}

// dueWith returns how many faults may be of one cause with one of that time.
func (t *tally) dueWith(at time.Time) int {
	since := t.clock.Since
	from, to := at.Add(-Window), at.Add(Window)
	switch {
	case at.IsZero():
		return t.unknown + t.earlier + len(t.failedAt)
	case t.isEarlier(at):
		from, to = since, since.Add(Window)
	}
	due := t.unknown
	if t.isEarlier(at) || at.Before(since.Add(Window)) {
		due += t.earlier
	}
	first, _ := slices.BinarySearchFunc(t.failedAt, from, time.Time.Compare)
	last, _ := slices.BinarySearchFunc(t.failedAt, to, time.Time.Compare)
	return due + last - first
}

// cause returns what an ask has in common with others.
func (t *tally) cause(a Ask) Cause {
	due := t.dueWith(a.At)
	c := Cause{Act: a.Act, Domain: t.domain, Due: due, Done: len(t.done), Servers: max(t.servers, due)}
	c.Limit = Limit(c.Servers)
	if left := c.Limit - c.Due; left >= 0 && c.Done > left {
		done := make([]time.Time, 0, len(t.done))
		for _, at := range t.done {
			done = append(done, at)
		}
		slices.SortFunc(done, time.Time.Compare)
		c.Until = done[len(done)-left-1].Add(Window)
	}
	return c
}
