package ironic

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
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
	if n.record.host != host.UID {
		return i.adopt(ctx, call{host: host, number: n.record.number}, n)
	}
	if refused := refusalOf(n, call{host: host, number: n.record.number}); refused != nil {
		return refused
	}
	isAsked := !i.powers.askedAt(host.UID).Before(change.Since)
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
		seen := fmt.Sprintf("reports %s: %s", powerOf(n), firstOf(troubleOf(n), "without an error"))
		if powerOf(n) == change.Desired {
			seen = fmt.Sprintf("has answered no request for it, and the power %s that it tells may be older: look whether it is overloaded or cannot reach the BMC", powerOf(n))
		}
		ignored = &hardware.Error{
			Kind: hardware.Ignored, Reason: reason, Op: "set power", Target: n.name,
			Err: fmt.Errorf("expected power %s within %s, Ironic %s", change.Desired, limit, seen),
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
	i.powers.note(host.UID, change.Desired, now)
	i.note(host, n, true)
	return nil
}

// failedPower begins what Ironic says of a change of power that has failed. Then it tells the power that it remembers from before.
const failedPower = "Failed to change power state"

// powerRequests are the requests of this process for a power state, by the UIDs of the hosts. Ironic asks the BMC for each of them, also when it remembers that
// the server has that state; the periodic synchronization of the power, by default once a minute, is all that it does by itself.
type powerRequests struct {
	mu       sync.Mutex
	asked    map[string]powerRequest
	answered map[string]time.Time
}

type powerRequest struct {
	desired hardware.PowerState
	at      time.Time
}

// note keeps that a power state was requested. What the BMC has answered before is no answer to it.
func (p *powerRequests) note(uid string, desired hardware.PowerState, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked == nil {
		p.asked, p.answered = map[string]powerRequest{}, map[string]time.Time{}
	}
	delete(p.answered, uid)
	p.asked[uid] = powerRequest{desired, now}
}

// pending returns the hosts with a request that no list has completed yet.
func (p *powerRequests) pending() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.asked))
}

// listed takes the request as answered that the node, as a later list has it, has completed.
func (p *powerRequests) listed(uid string, n node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	request, isAsked := p.asked[uid]
	if !isAsked || n.targetPower != "" {
		return
	}
	delete(p.asked, uid)
	if powerOf(n) == request.desired && !strings.HasPrefix(n.lastError, failedPower) {
		p.answered[uid] = request.at
	}
}

// askedAt returns when the last request was made that the BMC has answered; zero: none of this process.
func (p *powerRequests) askedAt(uid string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answered[uid]
}
