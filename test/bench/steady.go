package main

import (
	"context"
	"math"
	"time"
)

const (
	// quiet is how long the fleet may take to come to rest before it is watched.
	quiet = 30 * time.Second
	// look is the interval at which memory and BMCs are looked at.
	look = time.Second
)

// steady is a fleet that is left alone.
type steady struct {
	from, to mark
	// resident is the manager's memory at every look.
	resident []int64
	reads    reads
}

// watch watches.
func (f *fleet) watch(ctx context.Context) error {
	say(f.progress, "watching it for %s, after %s of rest", f.options.steady, quiet)
	if err := pause(ctx, quiet); err != nil {
		return err
	}
	s := &steady{}
	var err error
	if s.from, err = f.mark(); err != nil {
		return err
	}
	for s.to = s.from; s.to.at.Sub(s.from.at) < f.options.steady; {
		counts, err := f.rack.reads()
		if err != nil {
			return err
		}
		s.reads.see(time.Since(s.from.at), counts)
		if err := pause(ctx, look); err != nil {
			return err
		}
		if s.to, err = f.mark(); err != nil {
			return err
		}
		s.resident = append(s.resident, s.to.usage[manager].Resident)
	}
	s.reads.end(s.to.at.Sub(s.from.at))
	f.steady = s
	return nil
}

// reads is when BMCs were read. Requests that follow each other within seconds are one read; logins and logouts are none.
type reads struct {
	requests int64
	// count of reads, and the gaps between two of one BMC.
	count int
	gaps  []time.Duration
	// last is what was seen of each BMC. open is the longest time for which one was not read at either end of the watch,
	// where the gap is longer than what was seen of it.
	last map[string]seen
	open time.Duration
	// perMinute are the reads that began in each minute.
	perMinute []int
}

type seen struct {
	requests int64
	at       time.Duration
	// read: at is a read's and not the beginning's.
	read bool
}

// see takes the BMCs' counters, so long after the beginning.
func (r *reads) see(at time.Duration, counts map[string]int64) {
	if r.last == nil {
		r.last = map[string]seen{}
		for name, n := range counts {
			r.last[name] = seen{requests: n}
		}
		return
	}
	for name, n := range counts {
		before := r.last[name]
		if n == before.requests {
			continue
		}
		r.requests += n - before.requests
		r.last[name] = seen{requests: n, at: at, read: true}
		switch gap := at - before.at; {
		case !before.read:
			r.open = max(r.open, gap)
		case gap < 3*look:
			continue // still the same one
		default:
			r.gaps = append(r.gaps, gap)
		}
		r.count++
		for minute := int(at / time.Minute); len(r.perMinute) <= minute; {
			r.perMinute = append(r.perMinute, 0)
		}
		r.perMinute[int(at/time.Minute)]++
	}
}

// end looks at the time from each BMC's last read on.
func (r *reads) end(at time.Duration) {
	for _, s := range r.last {
		r.open = max(r.open, at-s.at)
	}
}

// never counts the BMCs that were not read at all.
func (r *reads) never() int {
	n := 0
	for _, s := range r.last {
		if !s.read {
			n++
		}
	}
	return n
}

// mean of the numbers; 0 for none.
func mean(of []int64) float64 {
	if len(of) == 0 {
		return 0
	}
	sum := 0.0
	for _, n := range of {
		sum += float64(n)
	}
	return sum / float64(len(of))
}

// growth is the slope of a line through memory samples, in bytes per hour: less deceived by collections than two samples.
func growth(samples []int64, every time.Duration) float64 {
	n := float64(len(samples))
	middle, average := (n-1)/2, mean(samples)
	var up, across float64
	for i, s := range samples {
		d := float64(i) - middle
		up += d * (float64(s) - average)
		across += d * d
	}
	if across == 0 {
		return 0
	}
	perLook := up / across
	return perLook * float64(time.Hour) / math.Max(float64(every), 1)
}
