package direct

import (
	"context"
	"fmt"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// powerStep is what is to be done now about a change of power.
type powerStep struct {
	// ask is what to ask of the BMC; "" is nothing.
	ask hardware.PowerAction
	// ignored is why the change failed, when its time is over.
	ignored hardware.Reason
}

// nextPower decides about a change of power, within attempts and outside them. seen is the power as the BMC reports it, and asked
// is when this change was last asked for, as far as is known.
//
// Power-off is cut again at every look: cutting the power twice does no harm. An operating system is asked to stop once, and its
// power is cut when GracefulOff is over. Power-on is asked for again at intervals, since BMCs accept it and drop it, and a server
// whose power button is pushed twice goes off.
func nextPower(c hardware.PowerChange, seen hardware.PowerState, asked, now time.Time, t hardware.Timeouts) powerStep {
	var next powerStep
	never := asked.Before(c.Since)
	switch {
	case seen == c.Desired:
	case c.Desired == hardware.PowerOn:
		if never || !now.Before(asked.Add(t.PowerOnRetry)) {
			next.ask = hardware.TurnOn
		}
		if !now.Before(c.Since.Add(t.PowerOn)) {
			next.ignored = hardware.ReasonPowerOnIgnored
		}
	case c.Graceful && now.Before(c.Since.Add(t.GracefulOff)):
		if never {
			next.ask = hardware.ShutDown
		}
	default:
		next.ask = hardware.TurnOff
		limit := t.PowerOff
		if c.Graceful {
			limit += t.GracefulOff
		}
		if !now.Before(c.Since.Add(limit)) {
			next.ignored = hardware.ReasonPowerOffIgnored
		}
	}
	return next
}

// SetPower implements hardware.Installer. When a change was last asked for is not kept: after a restart it is asked for once more.
func (i *Installer) SetPower(ctx context.Context, host hardware.Host, change hardware.PowerChange) error {
	op := "set power " + string(change.Desired)
	if change.Desired != hardware.PowerOn && change.Desired != hardware.PowerOff || change.Since.IsZero() {
		return hardware.Errorf(hardware.Invalid, op, host.String(), "expected power On or Off and since when it is wanted")
	}
	seen, err := i.power(ctx, host)
	if err != nil {
		return err
	}
	now := i.options.Clock()
	next := nextPower(change, seen, i.askedAt(host, change), now, i.options.Timeouts)
	var refused error
	if next.ask != "" {
		i.options.Log.Info("set power", "host", host.String(), "ask", string(next.ask), "reason", string(next.ignored))
		if refused = i.askPower(ctx, host, next.ask); refused == nil {
			i.noteAsked(host, change, now)
		}
	}
	if next.ignored == "" || needsPerson(refused) {
		return refused
	}
	answer := ""
	if refused != nil {
		answer = fmt.Sprintf(" (asked again, it answers: %v)", refused)
	}
	return &hardware.Error{Kind: hardware.Ignored, Reason: next.ignored, Op: op, Target: host.String(), Err: fmt.Errorf(
		"power %s is wanted since %s and the BMC still reports %s%s: look at its log and at the server", change.Desired, change.Since.UTC().Format("15:04:05Z"), seen, answer)}
}

// needsPerson says whether the BMC refused for a reason that only a person can mend, which is worth more than that time is over.
func needsPerson(refused error) bool {
	switch hardware.KindOf(refused) {
	case hardware.Unauthorized, hardware.Invalid, hardware.Unsupported:
		return true
	}
	return false
}

// askPower asks the BMC. One that knows no graceful shutdown is asked to cut the power instead.
func (i *Installer) askPower(ctx context.Context, host hardware.Host, action hardware.PowerAction) error {
	err := i.setPower(ctx, host, action)
	if action == hardware.ShutDown && hardware.KindOf(err) == hardware.Unsupported {
		return i.setPower(ctx, host, hardware.TurnOff)
	}
	return err
}

// asked is a change of power and when it was last asked for.
type asked struct {
	change hardware.PowerChange
	at     time.Time
}

// askedAt is when this process last asked for the change; zero when it has not.
func (i *Installer) askedAt(host hardware.Host, change hardware.PowerChange) time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	if last := i.asked[host.UID]; last.change.Desired == change.Desired && last.change.Graceful == change.Graceful && last.change.Since.Equal(change.Since) {
		return last.at
	}
	return time.Time{}
}

func (i *Installer) noteAsked(host hardware.Host, change hardware.PowerChange, now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked[host.UID] = asked{change: change, at: now}
}
