package host

import (
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// transitions are what a change of power is recorded as while it is under way.
var transitions = map[hardware.PowerState]hardware.PowerState{hardware.PowerOn: hardware.PowerTurningOn, hardware.PowerOff: hardware.PowerTurningOff}

// power wants the power On or Off and says whether the BMC confirms it. Since when is kept in the record as PoweringOff or
// PoweringOn; how the change is asked for, and when it counts as ignored, is the installer's.
func (p *planner) power(want hardware.PowerState, graceful bool) bool {
	if p.seen() == want {
		return true
	}
	since := p.Now
	before := p.Record.Power
	if before != nil && before.State == string(transitions[want]) && before.ObservedGeneration == p.Host.Generation {
		since = before.ObservedAt.Time
	}
	p.changing = transitions[want]
	p.d.Action = Action{Kind: ActionSetPower, Power: hardware.PowerChange{Want: want, Graceful: graceful, Since: since}}
	if p.d.Requeue == 0 {
		p.d.Requeue = p.Timeouts.Poll
		if p.Now.Sub(since) > longChange {
			p.d.Requeue = 5 * p.Timeouts.Poll
		}
	}
	return false
}

// longChange is after what time a change of power is looked at less often.
const longChange = time.Minute
