package direct

import (
	"context"
	"fmt"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
)

// powerRequest is what to do now about a change of power.
type powerRequest struct {
	// action is the request to send to the BMC; empty: none.
	action hardware.PowerAction
	// ignored is the reason for which the change has failed, once its time-out has passed.
	ignored hardware.Reason
}

// nextPowerRequest decides about a change of power, for attempts and for SetPower. power is the state that the BMC reports;
// lastRequested is the time at which this change was last requested, as far as it is known.
//
// A forced power-off is requested at every call, because cutting the power twice does no harm. A graceful shutdown is requested once,
// and the power is cut when GracefulOff has passed. A power-on is requested again at intervals, because BMCs accept it and drop it, and
// not at every call: some BMCs implement it as a push on the power button, and a second push switches the server off.
func nextPowerRequest(c hardware.PowerChange, power hardware.PowerState, lastRequested, now time.Time, t hardware.Timeouts) powerRequest {
	var request powerRequest
	notRequested := lastRequested.Before(c.Since)
	switch {
	case power == c.Desired:
	case c.Desired == hardware.PowerOn:
		if notRequested || !now.Before(lastRequested.Add(t.PowerOnRetry)) {
			request.action = hardware.TurnOn
		}
		if !now.Before(c.Since.Add(t.PowerOn)) {
			request.ignored = hardware.ReasonPowerOnIgnored
		}
	case c.Graceful && now.Before(c.Since.Add(t.GracefulOff)):
		if notRequested {
			request.action = hardware.ShutDown
		}
	default:
		request.action = hardware.TurnOff
		timeout := t.PowerOff
		if c.Graceful {
			timeout += t.GracefulOff
		}
		if !now.Before(c.Since.Add(timeout)) {
			request.ignored = hardware.ReasonPowerOffIgnored
		}
	}
	return request
}

// SetPower implements hardware.Installer. The time of the last request is not stored: after a restart the change is requested once more.
func (i *Installer) SetPower(ctx context.Context, host hardware.Host, change hardware.PowerChange) error {
	op := "set power " + string(change.Desired)
	if change.Desired != hardware.PowerOn && change.Desired != hardware.PowerOff || change.Since.IsZero() {
		return hardware.Errorf(hardware.Invalid, op, host.String(), "expected power On or Off and since when it is wanted")
	}
	power, err := i.readPower(ctx, host)
	if err != nil {
		return err
	}
	now := i.options.Clock()
	request := nextPowerRequest(change, power, i.lastRequestTime(host, change), now, i.options.Timeouts)
	var requestErr error
	if request.action != "" {
		// The medium of an attempt that the boot service has ended may still be inserted.
		i.takeOutAtEnd(ctx, host, netboot.Session{})
		i.options.Log.Info("set power", "host", host.String(), "ask", string(request.action), "reason", string(request.ignored))
		if requestErr = i.requestPower(ctx, host, request.action); requestErr == nil {
			i.recordRequest(host, change, now)
		}
	}
	if request.ignored == "" || needsPerson(requestErr) {
		return requestErr
	}
	answer := ""
	if requestErr != nil {
		answer = fmt.Sprintf(" (asked again, it answers: %v)", requestErr)
	}
	return &hardware.Error{Kind: hardware.Ignored, Reason: request.ignored, Op: op, Target: host.String(), Err: fmt.Errorf(
		"power %s is wanted since %s and the BMC still reports %s%s: look at its log and at the server", change.Desired, change.Since.UTC().Format("15:04:05Z"), power, answer)}
}

// needsPerson reports whether the BMC refused for a reason that only a person can correct. Such an error says more than a passed
// time-out and is returned instead of it.
func needsPerson(err error) bool {
	switch hardware.KindOf(err) {
	case hardware.Unauthorized, hardware.Invalid, hardware.Unsupported:
		return true
	}
	return false
}

// requestPower sends the request to the BMC. Where the BMC has no graceful shutdown, the power is cut instead.
func (i *Installer) requestPower(ctx context.Context, host hardware.Host, action hardware.PowerAction) error {
	err := i.setPower(ctx, host, action)
	if action == hardware.ShutDown && hardware.KindOf(err) == hardware.Unsupported {
		return i.setPower(ctx, host, hardware.TurnOff)
	}
	return err
}

// requestRecord is a change of power and the time at which it was last requested.
type requestRecord struct {
	change hardware.PowerChange
	at     time.Time
}

// lastRequestTime returns when this process last requested the change; zero when it has not.
func (i *Installer) lastRequestTime(host hardware.Host, change hardware.PowerChange) time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	if last := i.requests[host.UID]; !last.at.After(i.options.Clock()) && last.change.Desired == change.Desired && last.change.Graceful == change.Graceful && last.change.Since.Equal(change.Since) {
		return last.at
	}
	return time.Time{}
}

func (i *Installer) recordRequest(host hardware.Host, change hardware.PowerChange, now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.requests[host.UID] = requestRecord{change: change, at: now}
}

// readPower returns the power state that the BMC reports.
func (i *Installer) readPower(ctx context.Context, host hardware.Host) (hardware.PowerState, error) {
	bmc, err := i.options.BMCs.OpenBMC(ctx, host.BMC)
	if err != nil {
		return hardware.PowerUnknown, err
	}
	return bmc.PowerState(ctx)
}

// observedPower is a power and when it was read.
type observedPower struct {
	power hardware.PowerState
	at    time.Time
}

// powerMemory is how long the power that Observe has read is as good for the call that follows as one that is read again: a host is polled that often.
const powerMemory = 2 * time.Second

// keepPower keeps the power for the call that follows.
func (i *Installer) keepPower(host hardware.Host, power hardware.PowerState) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.powers[host.UID] = observedPower{power, i.options.Clock()}
}

// takePower returns the power that Observe has read just now, once, or reads it.
func (i *Installer) takePower(ctx context.Context, host hardware.Host) (hardware.PowerState, error) {
	i.mu.Lock()
	kept, isKept := i.powers[host.UID]
	delete(i.powers, host.UID)
	i.mu.Unlock()
	if age := i.options.Clock().Sub(kept.at); isKept && age >= 0 && age < powerMemory {
		return kept.power, nil
	}
	return i.readPower(ctx, host)
}

func (i *Installer) setPower(ctx context.Context, host hardware.Host, action hardware.PowerAction) error {
	bmc, err := i.options.BMCs.OpenBMC(ctx, host.BMC)
	if err != nil {
		return err
	}
	return bmc.SetPower(ctx, action)
}
