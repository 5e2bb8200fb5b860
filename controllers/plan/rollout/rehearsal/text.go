package rehearsal

import (
	"fmt"
	"strings"
	"time"
)

// Text is the story as prose, a line for each thing that happened, with the time of day; later days are named.
func Text(begin time.Time, lines []Line) string {
	var b strings.Builder
	day := 0
	for _, l := range lines {
		if d := int(l.At.Sub(begin.Truncate(24*time.Hour)) / (24 * time.Hour)); d != day {
			day = d
			fmt.Fprintf(&b, "day %d\n", day+1)
		}
		fmt.Fprintf(&b, "%s %s\n", l.At.Format("15:04"), l.Text)
	}
	return b.String()
}

// Plain is a duration in days, hours and minutes: 10m, 1h30m, 2d4h.
func Plain(d time.Duration) string {
	d = d.Round(time.Minute)
	days, hours, minutes := int(d/(24*time.Hour)), int(d/time.Hour)%24, int(d/time.Minute)%60
	var b strings.Builder
	for _, part := range []struct {
		n    int
		unit string
	}{{days, "d"}, {hours, "h"}, {minutes, "m"}} {
		if part.n > 0 {
			fmt.Fprint(&b, part.n, part.unit)
		}
	}
	if b.Len() == 0 {
		return "0m"
	}
	return b.String()
}
