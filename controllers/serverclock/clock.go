package serverclock

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

const (
	// MaxDifference is how far two clocks may differ: the Date of an answer has whole seconds, and an answer may be slow.
	MaxDifference = time.Minute
	// sameDifference is how far the differences of two answers may be apart that come from one clock.
	sameDifference = 10 * time.Second
	// agreementTime is how long all answers must agree with each other before the clock is set to them.
	agreementTime = time.Minute
	// followInterval is how often the clock follows the API server's by followStep at most: that is faster than any clock drifts, and as slow as clocks are
	// slewed by NTP.
	followInterval = time.Minute
	followStep     = time.Second
)

// Clock implements clock.PassiveClock. Its methods may be called by many at once.
type Clock struct {
	wall    func() time.Time
	elapsed func() time.Duration
	// start is the time of steady at which elapsed was 0.
	start time.Time

	mu sync.Mutex
	// zero is the time at which elapsed was 0, as the clock has it. isSet says that an answer has set it.
	zero  time.Time
	isSet bool
	// since is since when the clock is certain.
	since time.Time
	// parting is the difference of the answers that do not agree with the clock; nil: the last answer agrees.
	parting *parting
	// followed is when the clock followed the API server's last.
	followed time.Duration
	// wallOff is how far the wall clock of this machine was from the last answer.
	wallOff time.Duration
}

// parting is what answers say that do not agree with the clock.
type parting struct {
	difference time.Duration
	began      time.Duration
}

// New returns a clock that shows the wall clock's time until the first answer. elapsed is a monotonic clock.
func New(wall func() time.Time, elapsed func() time.Duration) *Clock {
	now := wall().Round(0)
	zero := now.Add(-elapsed())
	return &Clock{wall: wall, elapsed: elapsed, start: zero, zero: zero, since: now}
}

// System returns a clock of this machine.
func System() *Clock {
	began := time.Now()
	return New(time.Now, func() time.Duration { return time.Since(began) })
}

// Now returns the time.
func (c *Clock) Now() time.Time { return c.Watched().Now }

// Since returns the time that has passed since then.
func (c *Clock) Since(then time.Time) time.Duration { return c.Now().Sub(then) }

// Watched returns the time and since when it is certain.
func (c *Clock) Watched() watched.Clock {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if c.parting != nil {
		return watched.Clock{Now: now, Since: now}
	}
	return watched.Clock{Now: now, Since: c.since}
}

func (c *Clock) now() time.Time { return c.zero.Add(c.elapsed()) }

// Of returns the time of a clock and since when it is certain. Any other clock than a Clock, as tests have it, is certain always.
func Of(c clock.PassiveClock) watched.Clock {
	if known, ok := c.(*Clock); ok {
		return known.Watched()
	}
	return watched.Clock{Now: c.Now()}
}

// Steady returns a time that only measures what passes in this process: it goes on as the monotonic clock does, whatever the clocks are set to, and is not the time
// of day. Any other clock than a Clock, as tests have it, is steady.
func Steady(c clock.PassiveClock) time.Time {
	if known, ok := c.(*Clock); ok {
		return known.steady()
	}
	return c.Now()
}

func (c *Clock) steady() time.Time { return c.start.Add(c.elapsed()) }

// Note compares the clock with the Date of an answer.
func (c *Clock) Note(date time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	date = date.Add(time.Second / 2) // it has whole seconds
	at := c.elapsed()
	c.wallOff = c.wall().Round(0).Sub(date)
	if !c.isSet {
		c.isSet, c.zero, c.followed = true, date.Add(-at), at
		c.since = date
		return
	}
	difference := date.Sub(c.now())
	switch p := c.parting; {
	case difference.Abs() <= MaxDifference:
		if p != nil {
			c.parting, c.since = nil, c.now()
		}
		c.follow(difference, at)
	case p == nil || (difference-p.difference).Abs() > sameDifference:
		c.parting = &parting{difference: difference, began: at}
	case at-p.began >= agreementTime:
		c.zero, c.parting = c.zero.Add(difference), nil
		c.since = c.now()
	}
}

// follow moves the clock a little towards the API server's.
func (c *Clock) follow(difference, at time.Duration) {
	if at-c.followed < followInterval || difference.Abs() < followStep {
		return
	}
	c.followed = at
	c.zero = c.zero.Add(max(min(difference, followStep), -followStep))
}

// Resume says that the clock was certain since then. It changes nothing where that is not before what the clock knows itself, or the clock is in doubt.
func (c *Clock) Resume(since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parting == nil && since.Before(c.since) {
		c.since = since
	}
}

// Problem says in words which clocks differ by more than MaxDifference; empty: none do.
func (c *Clock) Problem() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.parting != nil:
		return fmt.Sprintf("the API server's clock, or that of one of several, is %s %s than this manager has counted: no drain ends, and no Machine counts as broken, because of the time until they agree; set the clocks of the API servers by one source of time",
			c.parting.difference.Abs().Round(time.Second), laterOrEarlier(c.parting.difference))
	case c.isSet && c.wallOff.Abs() > MaxDifference:
		return fmt.Sprintf("the clock of the manager's machine is %s %s than the API server's: the manager goes by the API server's; certificates are still judged by the machine's clock, so set it by the same source of time",
			c.wallOff.Abs().Round(time.Second), laterOrEarlier(c.wallOff))
	}
	return ""
}

func laterOrEarlier(difference time.Duration) string {
	if difference > 0 {
		return "later"
	}
	return "earlier"
}

// Wrap returns a transport that notes the time of each answer.
func (c *Clock) Wrap(next http.RoundTripper) http.RoundTripper { return noting{c, next} }

// noting is the transport of Wrap.
type noting struct {
	clock *Clock
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (n noting) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := n.next.RoundTrip(request)
	if err != nil {
		return response, err
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		n.clock.Note(date)
	}
	return response, nil
}

// WrappedRoundTripper lets client-go find the transport below.
func (n noting) WrappedRoundTripper() http.RoundTripper { return n.next }

// Timers returns the clock of Steady with timers, which pass as the monotonic clock does.
func (c *Clock) Timers() clock.Clock { return timed{c, clock.RealClock{}} }

// timed is the clock of Timers.
type timed struct {
	clock  *Clock
	timers clock.RealClock
}

func (t timed) Now() time.Time { return t.clock.steady() }

func (t timed) Since(then time.Time) time.Duration { return t.Now().Sub(then) }

func (t timed) After(d time.Duration) <-chan time.Time { return t.timers.After(d) }

func (t timed) NewTimer(d time.Duration) clock.Timer { return t.timers.NewTimer(d) }

func (t timed) Sleep(d time.Duration) { t.timers.Sleep(d) }

func (t timed) Tick(d time.Duration) <-chan time.Time { return t.timers.Tick(d) }
