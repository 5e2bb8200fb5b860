package direct

import (
	"testing"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

func TestPowerRequestsFollowFromPowerAndTime(t *testing.T) {
	on, off := hardware.PowerOn, hardware.PowerOff
	for _, c := range []struct {
		reason           string
		want             hardware.PowerState
		graceful         bool
		power            hardware.PowerState
		after, requested time.Duration
		action           hardware.PowerAction
		ignored          hardware.Reason
	}{
		{reason: "no request for a state that is reached", want: off, power: off, requested: -1},
		{reason: "the power is cut at once", want: off, power: on, requested: -1, action: hardware.TurnOff},
		{reason: "and again at every call", want: off, power: on, after: 2 * time.Second, action: hardware.TurnOff},
		{reason: "an unknown power is not off", want: off, power: hardware.PowerUnknown, requested: -1, action: hardware.TurnOff},
		{reason: "until it counts as ignored, and is requested again", want: off, power: on, after: 3 * time.Minute, action: hardware.TurnOff, ignored: hardware.ReasonPowerOffIgnored},
		{reason: "an operating system is shut down", want: off, graceful: true, power: on, requested: -1, action: hardware.ShutDown},
		{reason: "once", want: off, graceful: true, power: on, after: time.Minute},
		{reason: "and gets its time", want: off, graceful: true, power: hardware.PowerTurningOff, after: 119 * time.Second},
		{reason: "then its power is cut", want: off, graceful: true, power: on, after: 2 * time.Minute, action: hardware.TurnOff},
		{reason: "which has its own time", want: off, graceful: true, power: on, after: 4 * time.Minute, action: hardware.TurnOff},
		{reason: "and is ignored after both", want: off, graceful: true, power: on, after: 5 * time.Minute, action: hardware.TurnOff, ignored: hardware.ReasonPowerOffIgnored},
		{reason: "power-on is requested", want: on, power: off, requested: -1, action: hardware.TurnOn},
		{reason: "and given time", want: on, power: off, after: 29 * time.Second},
		{reason: "and requested again", want: on, power: off, after: 30 * time.Second, action: hardware.TurnOn},
		{reason: "counted from the last request", want: on, power: off, after: 50 * time.Second, requested: 30 * time.Second},
		{reason: "powering on is not on", want: on, power: hardware.PowerTurningOn, after: 5 * time.Minute, requested: 299 * time.Second, ignored: hardware.ReasonPowerOnIgnored},
	} {
		t.Run(c.reason, func(t *testing.T) {
			requested := start.Add(c.requested)
			got := nextPowerRequest(hardware.PowerChange{Desired: c.want, Graceful: c.graceful, Since: start}, c.power, requested, start.Add(c.after), hardware.DefaultTimeouts())
			if got.action != c.action || got.ignored != c.ignored {
				t.Errorf("action %q, ignored %q; expected %q, %q", got.action, got.ignored, c.action, c.ignored)
			}
		})
	}
}
