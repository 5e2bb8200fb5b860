package watched

import (
	"testing"
	"time"
)

func TestOnlyCertainTimeCounts(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for _, c := range []struct {
		about        string
		since        time.Time
		at           time.Time
		elapsed, ago time.Duration
	}{
		{"a time that was watched", ago(time.Hour), ago(time.Minute), time.Minute, time.Minute},
		{"one from before", ago(time.Minute), ago(time.Hour), time.Minute, time.Hour},
		{"one in the future", ago(time.Minute), ago(-24 * time.Hour), time.Minute, time.Minute},
		{"while the clock is in doubt", now, ago(time.Hour), 0, time.Hour},
		{"one in the future while the clock is in doubt", now, ago(-time.Hour), 0, 0},
		{"no doubt", time.Time{}, ago(time.Hour), time.Hour, time.Hour},
		{"one in the future and no doubt", time.Time{}, ago(-time.Hour), 0, 0},
		{"none", time.Time{}, time.Time{}, 0, 0},
	} {
		clock := Clock{Now: now, Since: c.since}
		if got := clock.Elapsed(c.at); got != c.elapsed {
			t.Errorf("%s: %s have certainly passed, expected %s", c.about, got, c.elapsed)
		}
		if got := clock.Ago(c.at); got != c.ago {
			t.Errorf("%s: %s ago, expected %s", c.about, got, c.ago)
		}
		if got := clock.Left(c.at, 2*time.Hour); got != 2*time.Hour-c.elapsed {
			t.Errorf("%s: %s are left", c.about, got)
		}
	}
	if clock := (Clock{Now: now}); !clock.IsOver(time.Time{}, now) || clock.IsOver(time.Time{}, now.Add(1)) || !clock.IsOver(ago(time.Hour), now) {
		t.Error("a deadline")
	}
}
