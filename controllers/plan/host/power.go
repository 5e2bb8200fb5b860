package host

import (
	"fmt"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// change is a change of power: what it is recorded as while it is under way, and how it is asked for.
type change struct {
	want, transition hardware.PowerState
	first, force     hardware.PowerAction
	// patience is how long the first request may take before force is asked for; limit is when the whole becomes an error.
	patience, limit time.Duration
	ignored         hardware.Reason
}

func (p *planner) changeTo(want hardware.PowerState, graceful bool) change {
	if want == hardware.PowerOn {
		return change{want, hardware.PowerTurningOn, hardware.TurnOn, hardware.TurnOn, 0, p.Timeouts.PowerChange, hardware.ReasonPowerOnIgnored}
	}
	c := change{want, hardware.PowerTurningOff, hardware.TurnOff, hardware.TurnOff, 0, p.Timeouts.PowerChange, hardware.ReasonPowerOffIgnored}
	if graceful {
		c.first, c.patience = hardware.ShutDown, p.Timeouts.GracefulOff
		c.limit += c.patience
	}
	return c
}

// power brings the power to On or Off and says whether the BMC confirms it. Since when the change is under way is kept in the
// record as PoweringOff or PoweringOn. A graceful power-off gives the operating system its time first.
func (p *planner) power(want hardware.PowerState, graceful bool) bool {
	if p.seen() == want {
		return true
	}
	if p.d.Requeue == 0 {
		p.d.Requeue = p.Timeouts.Poll
	}
	c := p.changeTo(want, graceful)
	p.changing = c.transition
	before := p.Record.Power
	if before == nil || before.State != string(c.transition) || before.ObservedGeneration != p.Host.Generation {
		p.setPower(c.first)
		return false
	}
	waited := p.Now.Sub(before.ObservedAt.Time)
	if waited < c.patience {
		return false
	}
	// Asked again and again: BMCs accept a change and drop it.
	p.setPower(c.force)
	p.d.Requeue = 5 * p.Timeouts.Poll
	if waited >= c.limit {
		p.fail(PowerManagementError, string(c.ignored), fmt.Sprintf("the BMC was asked for power %s at %s and still reports %s: look at its log and at the server",
			want, before.ObservedAt.UTC().Format("15:04:05Z"), p.seen()))
		p.d.Requeue = p.Timeouts.RetryBase
	}
	return false
}

func (p *planner) setPower(action hardware.PowerAction) {
	p.d.Action = Action{Kind: ActionSetPower, Power: action}
}
