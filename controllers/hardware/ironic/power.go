package ironic

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// SetPower implements hardware.Installer.
func (i *Installer) SetPower(ctx context.Context, host hardware.Host, change hardware.PowerChange) error {
	return named(i.setPower(ctx, host, change))
}

func (i *Installer) setPower(ctx context.Context, host hardware.Host, change hardware.PowerChange) error {
	if change.Desired != hardware.PowerOn && change.Desired != hardware.PowerOff || change.Since.IsZero() {
		return hardware.Errorf(hardware.Invalid, "set power", host.String(), "expected power On or Off and since when it is wanted")
	}
	n, asked, err := i.find(ctx, host)
	if err != nil || asked {
		return err
	}
	if n.uuid == "" {
		return i.adopt(ctx, call{host: host})
	}
	if refused := refusalOf(n, call{host: host, number: n.record.number}); refused != nil {
		return refused
	}
	isAsked := change.Desired != hardware.PowerOff || !i.powerOffs.askedAt(host.UID).Before(change.Since)
	request, ignored := nextPower(n, change, isAsked, i.options.Timeouts, i.options.Clock())
	if request {
		if err := i.requestPower(ctx, host, n, change, i.options.Clock()); err != nil {
			return cmp.Or(ignored, err)
		}
	}
	return ignored
}

// nextPower returns whether the change of power is to be requested, and an error when it was ignored. Ironic repeats its requests to the BMC itself. isAsked
// says that the power that Ironic tells is an answer of the BMC to this change: what Ironic only remembers is no reason to request nothing.
func nextPower(n node, change hardware.PowerChange, isAsked bool, timeouts hardware.Timeouts, now time.Time) (request bool, ignored error) {
	if powerOf(n) == change.Desired && isAsked {
		return false, nil
	}
	limit, reason := timeouts.PowerOn, hardware.ReasonPowerOnIgnored
	if change.Desired == hardware.PowerOff {
		limit, reason = timeouts.PowerOff, hardware.ReasonPowerOffIgnored
		if change.Graceful {
			limit += timeouts.GracefulOff
		}
	}
	if now.Sub(change.Since) > limit {
		ignored = &hardware.Error{
			Kind: hardware.Ignored, Reason: reason, Op: "set power", Target: n.name,
			Err: fmt.Errorf("expected power %s within %s, Ironic reports %s: %s", change.Desired, limit, powerOf(n), firstOf(troubleOf(n), "without an error")),
		}
	}
	return n.targetPower == "", ignored
}

// requestPower requests a change of power. A graceful one becomes a hard one when its time has passed, because Ironic leaves the server on then.
func (i *Installer) requestPower(ctx context.Context, host hardware.Host, n node, change hardware.PowerChange, now time.Time) error {
	service, _, err := i.client.open(ctx)
	if err != nil {
		return err
	}
	options := nodes.PowerStateOpts{Target: nodes.PowerOn}
	if change.Desired == hardware.PowerOff {
		options.Target = nodes.PowerOff
		if change.Graceful && now.Sub(change.Since) < i.options.Timeouts.GracefulOff {
			options.Target, options.Timeout = nodes.SoftPowerOff, int(i.options.Timeouts.GracefulOff/time.Second)
		}
	}
	if err := nodes.ChangePowerState(ctx, service, n.uuid, options).ExtractErr(); err != nil {
		return i.failed(asError(err, "request "+string(options.Target), host.String()))
	}
	n.targetPower = string(options.Target)
	i.powerOffs.note(host.UID, change.Desired == hardware.PowerOff, now)
	i.note(host, n, true)
	return nil
}

// failedPower begins what Ironic says of a change of power that has failed. Then it tells the power that it remembers from before.
const failedPower = "Failed to change power state"

// powerOffs are the requests of this process to power servers off, by the UIDs of the hosts. Ironic asks the BMC for each of them, also when it remembers that
// the server is off; the periodic synchronization of the power, by default once a minute, is all that it does by itself.
type powerOffs struct {
	mu       sync.Mutex
	asked    map[string]time.Time
	answered map[string]time.Time
}

// note keeps that a change of power was requested now. What the BMC has answered before is no answer to it.
func (p *powerOffs) note(uid string, isOff bool, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.answered, uid)
	delete(p.asked, uid)
	if !isOff {
		return
	}
	if p.asked == nil {
		p.asked, p.answered = map[string]time.Time{}, map[string]time.Time{}
	}
	p.asked[uid] = now
}

// listed takes the requests as answered whose change the node, as a later list has it, has completed.
func (p *powerOffs) listed(uid string, n node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, isAsked := p.asked[uid]
	if !isAsked || n.targetPower != "" {
		return
	}
	delete(p.asked, uid)
	if n.power == "power off" && !strings.HasPrefix(n.lastError, failedPower) {
		p.answered[uid] = at
	}
}

// askedAt returns when the last request to power the server off was made that the BMC has answered; zero: none of this process.
func (p *powerOffs) askedAt(uid string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answered[uid]
}
