package cmdline

import (
	"testing"
	"time"
)

func TestAClockThatCannotBeRightIsCorrected(t *testing.T) {
	made := time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		clock   time.Time
		isWrong bool
	}{
		"right":                   {made, false},
		"boot took a minute":      {made.Add(time.Minute), false},
		"a long self-test":        {made.Add(50 * time.Minute), false},
		"a little behind":         {made.Add(-4 * time.Second), false},
		"behind":                  {made.Add(-6 * time.Second), true},
		"empty battery":           {time.Unix(0, 0), true},
		"empty battery, 2000":     {time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), true},
		"local time in the east":  {made.Add(2 * time.Hour), true},
		"local time in the west":  {made.Add(-8 * time.Hour), true},
		"a year ahead":            {made.AddDate(1, 0, 0), true},
		"beyond what a RTC knows": {time.Date(2106, 2, 7, 0, 0, 0, 0, time.UTC), true},
	} {
		right, isWrong := Arguments{Time: made}.CorrectTime(c.clock)
		if isWrong != c.isWrong || isWrong && !right.Equal(made) || !isWrong && !right.Equal(c.clock) {
			t.Errorf("%s: %s, %t", name, right, isWrong)
		}
	}
	if _, isWrong := (Arguments{}).CorrectTime(time.Unix(0, 0)); isWrong {
		t.Error("a command line without a time corrects the clock")
	}
}

func TestTheRestOfAnAttemptIsADuration(t *testing.T) {
	made := time.Unix(1000, 0)
	for want, a := range map[time.Duration]Arguments{
		time.Hour: {Time: made, Deadline: made.Add(time.Hour)},
		0:         {Deadline: made},
	} {
		if got := a.Remaining(); got != want {
			t.Errorf("%s, expected %s", got, want)
		}
	}
	if got := (Arguments{Time: made, Deadline: made.Add(-time.Hour)}).Remaining(); got != 0 {
		t.Errorf("%s", got)
	}
}
