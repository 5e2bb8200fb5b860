package main

import (
	"context"
	"math"
	"time"

	"github.com/ingot-dev/ingot/test/fleet"
)

const (
	// restTime is the time that the fleet gets to come to rest before it is measured.
	restTime = 30 * time.Second
	// sampleInterval is the interval at which memory and BMC counters are read.
	sampleInterval = time.Second
)

// steadyState is what was measured of a fleet that is left alone.
type steadyState struct {
	from, to sample
	// resident is the manager's resident memory in bytes, one value per sample.
	resident []int64
	reads    readStatistics
}

// measureSteadyState waits for the fleet to come to rest and then measures it.
func (f *fleetRun) measureSteadyState(ctx context.Context) error {
	f.Log("watching it for %s, after %s of rest", f.options.steady, restTime)
	if err := fleet.Pause(ctx, restTime); err != nil {
		return err
	}
	s := &steadyState{}
	var err error
	if s.from, err = f.takeSample(); err != nil {
		return err
	}
	for s.to = s.from; s.to.at.Sub(s.from.at) < f.options.steady; {
		counts, err := f.Rack.ReadCounts()
		if err != nil {
			return err
		}
		reads := map[string]int64{}
		for name, requests := range counts {
			reads[name] = requests.Reads
		}
		s.reads.add(time.Since(s.from.at), reads)
		if err := fleet.Pause(ctx, sampleInterval); err != nil {
			return err
		}
		if s.to, err = f.takeSample(); err != nil {
			return err
		}
		s.resident = append(s.resident, s.to.usage[manager].Resident)
	}
	s.reads.finish(s.to.at.Sub(s.from.at))
	f.steady = s
	return nil
}

// readStatistics tells how often BMCs are read. Requests to one BMC within a few seconds count as one read; logins and
// logouts do not count.
type readStatistics struct {
	requests int64
	// count is the number of reads, and gaps are the times between two reads of one BMC.
	count int
	gaps  []time.Duration
	// last is the last counter of each BMC. open is the longest time without a read at the beginning or the end of the
	// measurement.
	last map[string]bmcCounter
	open time.Duration
	// perMinute is the number of reads that began in each minute.
	perMinute []int
}

// bmcCounter is a BMC's number of requests, and when it last changed.
type bmcCounter struct {
	requests int64
	at       time.Duration
	// read is true when the BMC was read during the measurement, so that at is the time of a read.
	read bool
}

// add adds the BMCs' counters at a time since the beginning.
func (r *readStatistics) add(at time.Duration, counts map[string]int64) {
	if r.last == nil {
		r.last = map[string]bmcCounter{}
		for name, n := range counts {
			r.last[name] = bmcCounter{requests: n}
		}
		return
	}
	for name, n := range counts {
		before := r.last[name]
		if n == before.requests {
			continue
		}
		r.requests += n - before.requests
		r.last[name] = bmcCounter{requests: n, at: at, read: true}
		switch gap := at - before.at; {
		case !before.read:
			r.open = max(r.open, gap)
		case gap < 3*sampleInterval:
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

// finish takes into account the time from each BMC's last read to the end.
func (r *readStatistics) finish(at time.Duration) {
	for _, s := range r.last {
		r.open = max(r.open, at-s.at)
	}
}

// unreadBMCs returns the number of BMCs that were never read.
func (r *readStatistics) unreadBMCs() int {
	n := 0
	for _, s := range r.last {
		if !s.read {
			n++
		}
	}
	return n
}

// mean returns the mean of the numbers, or 0 if there are none.
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

// growthPerHour returns the slope of a regression line through memory samples, in bytes per hour. Garbage collections
// distort it less than the difference of two samples.
func growthPerHour(samples []int64, every time.Duration) float64 {
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
