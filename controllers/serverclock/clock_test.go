package serverclock

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

// machine is the manager's machine: a wall clock that may be set, and a monotonic one.
type machine struct {
	wall    time.Time
	elapsed time.Duration
}

func (m *machine) pass(d time.Duration) { m.wall, m.elapsed = m.wall.Add(d), m.elapsed+d }

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newClock() (*machine, *Clock) {
	m := &machine{wall: noon, elapsed: 7 * time.Hour}
	return m, New(func() time.Time { return m.wall }, func() time.Duration { return m.elapsed })
}

// hear has one answer a second for so long, of an API server whose clock is off from the true time by so much.
func hear(m *machine, c *Clock, trueTime func() time.Time, off ...time.Duration) func(time.Duration) {
	n := 0
	return func(long time.Duration) {
		for end := m.elapsed + long; m.elapsed < end; {
			m.pass(time.Second)
			c.Note(trueTime().Add(off[n%len(off)]).Truncate(time.Second))
			n++
		}
	}
}

func TestTheWallClockOfTheMachineChangesNothing(t *testing.T) {
	m, c := newClock()
	start := m.elapsed
	trueTime := func() time.Time { return noon.Add(m.elapsed - start) }
	listen := hear(m, c, trueTime, 0)
	listen(time.Minute)
	began := c.Watched()
	for _, jump := range []time.Duration{24 * time.Hour, -48 * time.Hour} {
		m.wall = m.wall.Add(jump)
		listen(time.Minute)
		if off := c.Now().Sub(trueTime()); off.Abs() > time.Second {
			t.Errorf("the machine's clock was set by %s: the time is off by %s", jump, off)
		}
		if got := c.Watched(); !got.Since.Equal(began.Since) {
			t.Errorf("the machine's clock was set by %s: certain since %s, before since %s", jump, got.Since, began.Since)
		}
		if problem := c.Problem(); !strings.Contains(problem, "the clock of the manager's machine is 24h0m") {
			t.Errorf("the machine's clock was set by %s: %q", jump, problem)
		}
	}
}

func TestTheFirstAnswerSetsTheClock(t *testing.T) {
	m, c := newClock()
	m.wall = m.wall.Add(30 * time.Hour)
	c.Note(noon)
	if w := c.Watched(); w.Now.Sub(noon).Abs() > time.Second || w.Since.After(w.Now) || w.Now.Sub(w.Since) > time.Second {
		t.Errorf("the first answer says %s: %+v", noon, w)
	}
}

func TestAnAPIServersClockThatIsSetMakesTheTimeBeginAnew(t *testing.T) {
	for _, jump := range []time.Duration{24 * time.Hour, -24 * time.Hour, 2 * time.Minute} {
		m, c := newClock()
		start := m.elapsed
		trueTime := func() time.Time { return noon.Add(m.elapsed - start) }
		hear(m, c, trueTime, 0)(time.Hour)
		after := hear(m, c, trueTime, jump)
		after(30 * time.Second)
		if w := c.Watched(); !w.Since.Equal(w.Now) {
			t.Errorf("%s: %s counts as certain while two clocks differ", jump, w.Now.Sub(w.Since))
		}
		if !strings.Contains(c.Problem(), "API server's clock") {
			t.Errorf("%s: problem %q", jump, c.Problem())
		}
		after(time.Minute)
		w := c.Watched()
		if off := w.Now.Sub(trueTime().Add(jump)); off.Abs() > time.Second {
			t.Errorf("%s: all answers agree for a minute, and the time is off by %s", jump, off)
		}
		if certain := w.Now.Sub(w.Since); certain > 40*time.Second {
			t.Errorf("%s: %s counts as certain", jump, certain)
		}
		// A drain that began ten minutes before is not over, whichever way the clock went.
		if elapsed := w.Elapsed(noon.Add(50 * time.Minute)); elapsed > 40*time.Second {
			t.Errorf("%s: %s of a drain counts as passed", jump, elapsed)
		}
		after(time.Hour)
		if problem := c.Problem(); strings.Contains(problem, "API server's clock, or") || c.Watched().Elapsed(noon) < time.Hour {
			t.Errorf("%s: an hour later: %q, %+v", jump, problem, c.Watched())
		}
	}
}

func TestAPIServersThatDisagreeLeaveNoTimeCertain(t *testing.T) {
	m, c := newClock()
	start := m.elapsed
	trueTime := func() time.Time { return noon.Add(m.elapsed - start) }
	hear(m, c, trueTime, 0)(time.Minute)
	listen := hear(m, c, trueTime, 0, 0, 5*time.Minute)
	for range 20 {
		listen(time.Minute)
		if w := c.Watched(); w.Now.Sub(w.Since) > 3*time.Second || w.Now.Sub(trueTime()).Abs() > time.Second {
			t.Fatalf("one of three API servers is 5m late: %+v at %s", w, trueTime())
		}
	}
}

func TestTheClockFollowsAnAPIServerThatDrifts(t *testing.T) {
	m, c := newClock()
	start := m.elapsed
	// 1 part in 1,000 is more than any clock drifts.
	drifting := func() time.Time { return noon.Add((m.elapsed - start) * 1001 / 1000) }
	hear(m, c, drifting, 0)(48 * time.Hour)
	if off := c.Now().Sub(drifting()); off.Abs() > 3*time.Second || c.Watched().Elapsed(noon) < 47*time.Hour {
		t.Errorf("after two days of drift the time is off by %s, certain: %+v", off, c.Watched())
	}
}

func TestTheTimeOfEachAnswerIsNoted(t *testing.T) {
	m, c := newClock()
	_ = m
	answer := roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{Header: http.Header{"Date": {"Sun, 01 Mar 2026 18:00:00 GMT"}}}, nil
	})
	if _, err := c.Wrap(answer).RoundTrip(nil); err != nil {
		t.Fatal(err)
	}
	if off := c.Now().Sub(noon.Add(6 * time.Hour)); off.Abs() > time.Second {
		t.Errorf("the time is off by %s", off)
	}
	for _, header := range []string{"", "yesterday"} {
		answer = func(*http.Request) (*http.Response, error) {
			return &http.Response{Header: http.Header{"Date": {header}}}, nil
		}
		if _, err := c.Wrap(answer).RoundTrip(nil); err != nil {
			t.Fatal(err)
		}
	}
	if off := c.Now().Sub(noon.Add(6 * time.Hour)); off.Abs() > time.Second {
		t.Errorf("after answers without a date the time is off by %s", off)
	}
	if (watched.Clock{Now: m.wall}) != Of(fixed{m.wall}) {
		t.Error("a clock of a test is certain always")
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type fixed struct{ now time.Time }

func (f fixed) Now() time.Time                     { return f.now }
func (f fixed) Since(then time.Time) time.Duration { return f.now.Sub(then) }

// TestTheSteadyTimeIsNeverSet: what waits for its turn in this process would wait for a day.
func TestTheSteadyTimeIsNeverSet(t *testing.T) {
	m, c := newClock()
	start := m.elapsed
	off := 24 * time.Hour
	listen := hear(m, c, func() time.Time { return noon.Add(m.elapsed - start + off) }, 0)
	began := Steady(c)
	listen(time.Minute)
	off = 0 // the API server's clock is set right
	listen(3 * time.Minute)
	if passed := Steady(c).Sub(began); passed != 4*time.Minute {
		t.Errorf("%s have passed, expected four minutes", passed)
	}
	if !c.Now().Before(noon.Add(time.Hour)) {
		t.Errorf("the clock was not set: %s", c.Now())
	}
	if got := c.Timers().Now(); !got.Equal(Steady(c)) {
		t.Errorf("the time of the timers is %s", got)
	}
}
