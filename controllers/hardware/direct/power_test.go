package direct

import (
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

func TestPowerRequestsFollowFromPowerAndTime(t *testing.T) {
	on, off := hardware.PowerOn, hardware.PowerOff
	for _, c := range []struct {
		reason       string
		want         hardware.PowerState
		graceful     bool
		power        hardware.PowerState
		after, asked time.Duration
		ask          hardware.PowerAction
		ignored      hardware.Reason
	}{
		{reason: "no request for a state that is reached", want: off, power: off, asked: -1},
		{reason: "the power is cut at once", want: off, power: on, asked: -1, ask: hardware.TurnOff},
		{reason: "and again at every call", want: off, power: on, after: 2 * time.Second, ask: hardware.TurnOff},
		{reason: "an unknown power is not off", want: off, power: hardware.PowerUnknown, asked: -1, ask: hardware.TurnOff},
		{reason: "until it counts as ignored, and is asked for again", want: off, power: on, after: 3 * time.Minute, ask: hardware.TurnOff, ignored: hardware.ReasonPowerOffIgnored},
		{reason: "an operating system is asked to stop", want: off, graceful: true, power: on, asked: -1, ask: hardware.ShutDown},
		{reason: "once", want: off, graceful: true, power: on, after: time.Minute},
		{reason: "and gets its time", want: off, graceful: true, power: hardware.PowerTurningOff, after: 119 * time.Second},
		{reason: "then its power is cut", want: off, graceful: true, power: on, after: 2 * time.Minute, ask: hardware.TurnOff},
		{reason: "which has its own time", want: off, graceful: true, power: on, after: 4 * time.Minute, ask: hardware.TurnOff},
		{reason: "and is ignored after both", want: off, graceful: true, power: on, after: 5 * time.Minute, ask: hardware.TurnOff, ignored: hardware.ReasonPowerOffIgnored},
		{reason: "power-on is asked for", want: on, power: off, asked: -1, ask: hardware.TurnOn},
		{reason: "and given time", want: on, power: off, after: 29 * time.Second},
		{reason: "and asked for again", want: on, power: off, after: 30 * time.Second, ask: hardware.TurnOn},
		{reason: "counted from when it was asked for last", want: on, power: off, after: 50 * time.Second, asked: 30 * time.Second},
		{reason: "powering on is not on", want: on, power: hardware.PowerTurningOn, after: 5 * time.Minute, asked: 299 * time.Second, ignored: hardware.ReasonPowerOnIgnored},
	} {
		t.Run(c.reason, func(t *testing.T) {
			asked := start.Add(c.asked)
			got := nextPowerRequest(hardware.PowerChange{Desired: c.want, Graceful: c.graceful, Since: start}, c.power, asked, start.Add(c.after), hardware.DefaultTimeouts())
			if got.action != c.ask || got.ignored != c.ignored {
				t.Errorf("asks for %q, ignored %q; expected %q, %q", got.action, got.ignored, c.ask, c.ignored)
			}
		})
	}
}
