package host

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// transitions are what a change of power is recorded as while it is under way.
var transitions = map[hardware.PowerState]hardware.PowerState{hardware.PowerOn: hardware.PowerTurningOn, hardware.PowerOff: hardware.PowerTurningOff}

// longChange is after what time a change of power is looked at less often.
const longChange = time.Minute

// bringPower wants the power On or Off, and goes on to the next step when the BMC confirms it. Since when it is wanted is kept in
// the record as PoweringOff or PoweringOn; how it is asked for, and when it counts as ignored, is the installer's to decide.
func (p *planner) bringPower(want hardware.PowerState, graceful bool) result {
	if p.seenPower() == want {
		return next()
	}
	p.changing = transitions[want]
	// The record keeps microseconds, and every call for the same change has the same time.
	since, after := p.Now.Truncate(time.Microsecond), p.Timeouts.Poll
	before := p.Record.Power
	if before != nil && before.State == string(p.changing) && before.ObservedGeneration == p.Host.Generation {
		since = before.ObservedAt.Time
	}
	if p.Now.Sub(since) > longChange {
		after = 5 * p.Timeouts.Poll
	}
	return act(Action{Kind: ActionSetPower, Power: hardware.PowerChange{Desired: want, Graceful: graceful, Since: since}}, after)
}

// seenPower is the power as the BMC says now.
func (p *planner) seenPower() hardware.PowerState {
	if p.Problem != nil || p.Observed == nil || p.Observed.Power == "" {
		return hardware.PowerUnknown
	}
	return p.Observed.Power
}

// recordPower keeps since when the power is as it is, for this generation of the BareMetalHost.
func (p *planner) recordPower() {
	if p.isInstallersPower() {
		return
	}
	if seen := p.seenPower(); seen != hardware.PowerUnknown {
		p.d.Status.PoweredOn = seen != hardware.PowerOff
	}
	state, before := string(p.recordedPower()), p.Record.Power
	if p.isPowerOfClaim(state) {
		left := claimTime - p.Now.Sub(p.GenerationSeen)
		p.d.Requeue = min(cmp.Or(p.d.Requeue, left), left)
		return
	}
	next := v1alpha1.HostPower{State: state, ObservedGeneration: p.Host.Generation, ObservedAt: microTime(p.Now)}
	if before != nil && before.State == next.State && before.ObservedGeneration == next.ObservedGeneration {
		next.ObservedAt = before.ObservedAt
	}
	p.d.Record.Power = &next
}

// recordedPower is the power to be recorded: the change that is under way, else what is seen.
func (p *planner) recordedPower() hardware.PowerState {
	before := p.Record.Power
	switch {
	case p.changing != "":
		return p.changing
	case p.seenPower() != hardware.PowerUnknown:
		return p.seenPower()
	case before != nil && (before.State == string(hardware.PowerTurningOff) || before.State == string(hardware.PowerTurningOn)):
		return hardware.PowerState(before.State)
	}
	return hardware.PowerUnknown
}

// isInstallersPower says whether nothing but the power differs during an installation. An installer switches it as its work needs,
// and its own progress tells of it, so that it is worth no write; whoever wants the server off makes a new generation, and gets its
// answer: while spec.online is false the power is recorded as it is, since an Off of this generation is a proof.
func (p *planner) isInstallersPower() bool {
	before := p.Record.Power
	if !p.Host.Online || before == nil || before.ObservedGeneration != p.Host.Generation || before.State != string(hardware.PowerOn) && before.State != string(hardware.PowerOff) {
		return false
	}
	return p.seenPower() != hardware.PowerUnknown && p.changing == "" && !p.isIdle() && p.isStayingIn(StateProvisioning) &&
		equality.Semantic.DeepEqual(p.Record, p.d.Record)
}

// claimTime is how long a claim may take from the consumerRef to the image.
const claimTime = 5 * time.Second

// isPowerOfClaim says whether the power is as it was before a claim. That is a new generation too, and is followed by the image at
// once; only when it is not, the power is confirmed for it.
func (p *planner) isPowerOfClaim(state string) bool {
	before := p.Record.Power
	return before != nil && before.State == state && before.ObservedGeneration != p.Host.Generation && p.changing == "" &&
		!p.Host.HasImage && !p.GenerationSeen.IsZero() && p.Now.Sub(p.GenerationSeen) < claimTime && p.isStayingIn(StateAvailable)
}

func (p *planner) isStayingIn(s State) bool { return p.Host.Status.State == s && p.d.Status.State == s }
