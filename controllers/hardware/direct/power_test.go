package direct

import (
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

func TestAChangeOfPowerIsDecidedInOnePlace(t *testing.T) {
	on, off := hardware.PowerOn, hardware.PowerOff
	for _, c := range []struct {
		reason       string
		want         hardware.PowerState
		graceful     bool
		seen         hardware.PowerState
		after, asked time.Duration
		ask          hardware.PowerAction
		ignored      hardware.Reason
	}{
		{reason: "what is the case is not asked for", want: off, seen: off, asked: -1},
		{reason: "the power is cut at once", want: off, seen: on, asked: -1, ask: hardware.TurnOff},
		{reason: "and again at every look", want: off, seen: on, after: 2 * time.Second, ask: hardware.TurnOff},
		{reason: "an unknown power is not off", want: off, seen: hardware.PowerUnknown, asked: -1, ask: hardware.TurnOff},
		{reason: "until it counts as ignored, and is asked for again", want: off, seen: on, after: 3 * time.Minute, ask: hardware.TurnOff, ignored: hardware.ReasonPowerOffIgnored},
		{reason: "an operating system is asked to stop", want: off, graceful: true, seen: on, asked: -1, ask: hardware.ShutDown},
		{reason: "once", want: off, graceful: true, seen: on, after: time.Minute},
		{reason: "and gets its time", want: off, graceful: true, seen: hardware.PowerTurningOff, after: 119 * time.Second},
		{reason: "then its power is cut", want: off, graceful: true, seen: on, after: 2 * time.Minute, ask: hardware.TurnOff},
		{reason: "which has its own time", want: off, graceful: true, seen: on, after: 4 * time.Minute, ask: hardware.TurnOff},
		{reason: "and is ignored after both", want: off, graceful: true, seen: on, after: 5 * time.Minute, ask: hardware.TurnOff, ignored: hardware.ReasonPowerOffIgnored},
		{reason: "power-on is asked for", want: on, seen: off, asked: -1, ask: hardware.TurnOn},
		{reason: "and given time", want: on, seen: off, after: 29 * time.Second},
		{reason: "and asked for again", want: on, seen: off, after: 30 * time.Second, ask: hardware.TurnOn},
		{reason: "counted from when it was asked for last", want: on, seen: off, after: 50 * time.Second, asked: 30 * time.Second},
		{reason: "powering on is not on", want: on, seen: hardware.PowerTurningOn, after: 5 * time.Minute, asked: 299 * time.Second, ignored: hardware.ReasonPowerOnIgnored},
	} {
		t.Run(c.reason, func(t *testing.T) {
			asked := start.Add(c.asked)
			got := nextPower(hardware.PowerChange{Desired: c.want, Graceful: c.graceful, Since: start}, c.seen, asked, start.Add(c.after), hardware.DefaultTimeouts())
			if got.ask != c.ask || got.ignored != c.ignored {
				t.Errorf("asks for %q, ignored %q; expected %q, %q", got.ask, got.ignored, c.ask, c.ignored)
			}
		})
	}
}
