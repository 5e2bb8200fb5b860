package host

import (
	"cmp"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

func (p *planner) powerOff() result { return p.setPower(hardware.PowerOff, false) }

// mustBeOn reports whether spec.online and the reboot annotations request that the host is on.
func (p planner) mustBeOn() bool { return p.Host.Online && !p.Host.Reboot }

func (p *planner) powerOffIfRequested() result {
	if p.mustBeOn() {
		return done
	}
	return p.setPower(hardware.PowerOff, !p.Host.Online || !p.Host.RebootHard)
}

func (p *planner) removeRebootAnnotation() result {
	if p.mustBeOn() || !p.Host.RebootOnce {
		return done
	}
	p.d.RemoveAnnotations = append(p.d.RemoveAnnotations, AnnotationReboot)
	return waitResult("", atOnce)
}

func (p *planner) waitWhileOff() result {
	if p.mustBeOn() {
		return done
	}
	return waitResult("", p.idleInterval())
}

// powerOn powers the server on. One that is off although nobody asked for that waits for its turn. Without it: the power of a hall is back, and a thousand
// servers begin to draw it in the same second.
func (p *planner) powerOn() result {
	before := p.Record.Power
	if p.observedPower() == hardware.PowerOff && before != nil && before.ObservedGeneration == p.Host.Generation && before.State != string(hardware.PowerTurningOn) {
		p.d.IsFoundOff = true
		if p.PowerOnWait > 0 {
			return waitResult("its turn to be powered on", p.PowerOnWait)
		}
	}
	return p.setPower(hardware.PowerOn, false)
}

// firstBootPeriod is how long a server may take to boot after an installation: a self-test trains the memory and takes minutes.
const firstBootPeriod = 20 * time.Minute

// waitWhileOn observes a host more often while it boots what was installed for the first time: a power loss in that time keeps its Machine
// waiting for the Node.
func (p *planner) waitWhileOn() result {
	in := p.d.Record.Installed
	if in == nil || p.Joined || p.Ago(in.At.Time) > firstBootPeriod {
		return waitResult("", p.idleInterval())
	}
	return waitResult("", p.idleInterval()/10)
}

// powerTransitions are the states that are recorded while a power change is in progress.
var powerTransitions = map[hardware.PowerState]hardware.PowerState{hardware.PowerOn: hardware.PowerTurningOn, hardware.PowerOff: hardware.PowerTurningOff}

// slowPowerChange is the time after which a power change in progress is observed less often.
const slowPowerChange = time.Minute

// setPower requests the power state, and returns done when the BMC confirms it. The record has PoweringOff or PoweringOn with the time of the
// first request. The installer decides how it requests the change, and when the change counts as ignored.
func (p *planner) setPower(desired hardware.PowerState, graceful bool) result {
	if p.observedPower() == desired && (desired != hardware.PowerOff || p.isPowerOffConfirmed()) {
		return done
	}
	p.powerTransition = powerTransitions[desired]
	// The record has microseconds. Every call for the same change must have the same time. Without it: the installer takes the second
	// call for another change.
	since, requeueAfter := p.Now.Truncate(time.Microsecond), p.Timeouts.PollInterval
	before := p.Record.Power
	if before != nil && before.State == string(p.powerTransition) && before.ObservedGeneration == p.Host.Generation && !before.ObservedAt.After(p.Now) {
		since = before.ObservedAt.Time
	}
	if p.Now.Sub(since) > slowPowerChange {
		requeueAfter = 5 * p.Timeouts.PollInterval
	}
	return actionResult(Action{Kind: ActionSetPower, Power: hardware.PowerChange{Desired: desired, Graceful: graceful, Since: since}}, requeueAfter)
}

// isPowerOffConfirmed reports whether an observed power-off is the BMC's answer to what the Machine has asked for in this generation. A service that
// installs may only remember it. Without it: somebody powers the server on by its button, Ironic remembers for up to a minute that it is off, and in that
// minute the Machine deletes the Node of a running server. A Machine that has just claimed its host has no Node, and its installation begins with whatever
// power it finds. Without that: every claim makes Ironic ask the BMC once more, while it has installations to begin.
func (p planner) isPowerOffConfirmed() bool {
	before := p.Record.Power
	switch {
	case p.Host.Online || !p.Host.Claimed || p.Observed == nil || !p.Observed.IsPowerRemembered, p.isJustClaimed():
		return true
	case before == nil || before.ObservedGeneration != p.Host.Generation:
		return false
	case before.State == string(hardware.PowerTurningOff):
		return !p.Observed.PowerAskedAt.Before(before.ObservedAt.Time)
	default:
		return before.State == string(hardware.PowerOff)
	}
}

// isJustClaimed reports whether nothing was installed yet, or asked for, for the Machine that has the host. From then on and until the host is returned its
// annotation ingot.dev/installation is there.
func (p planner) isJustClaimed() bool {
	return p.isStayingIn(metal3.StateAvailable) && p.Host.Installation == nil && p.d.Record.Installed == nil && !p.Host.HasImage
}

// recordPower writes the power state of this generation of the BareMetalHost into the record, with the time since when it is so.
func (p *planner) recordPower() {
	if p.isInstallerSwitchingPower() {
		return
	}
	if observed := p.observedPower(); observed != hardware.PowerUnknown {
		p.d.Status.PoweredOn = observed != hardware.PowerOff
	}
	state, before := string(p.powerToRecord()), p.Record.Power
	if p.isPowerUnchangedByClaim(state) {
		left := claimPeriod - p.Ago(p.GenerationObservedAt)
		p.d.RequeueAfter = min(cmp.Or(p.d.RequeueAfter, left), left)
		return
	}
	power := v1alpha1.HostPower{State: state, ObservedGeneration: p.Host.Generation, ObservedAt: microTime(p.Now)}
	if before != nil && before.State == power.State && before.ObservedGeneration == power.ObservedGeneration && !before.ObservedAt.After(p.Now) {
		power.ObservedAt = before.ObservedAt
	}
	p.d.Record.Power = &power
}

// powerToRecord returns the power change in progress, else the observed state.
func (p *planner) powerToRecord() hardware.PowerState {
	before := p.Record.Power
	switch {
	case p.powerTransition != "":
		return p.powerTransition
	case p.observedPower() == hardware.PowerOff && !p.isPowerOffConfirmed():
		return hardware.PowerUnknown
	case p.observedPower() != hardware.PowerUnknown:
		return p.observedPower()
	case before != nil && (before.State == string(hardware.PowerTurningOff) || before.State == string(hardware.PowerTurningOn)):
		return hardware.PowerState(before.State)
	}
	return hardware.PowerUnknown
}

// isInstallerSwitchingPower reports whether only the power state has changed, during an installation. An installer switches the power as its
// work needs and its progress reports that, so no write is made for it. Whoever needs the server off creates a new generation or sets
// spec.online to false, and then the power is recorded as it is, because an Off of this generation proves the power-off. Without it: a roll
// waits for the power-off of a host that is off already, and the Machine is stuck.
func (p planner) isInstallerSwitchingPower() bool {
	before := p.Record.Power
	if !p.Host.Online || before == nil || before.ObservedGeneration != p.Host.Generation || before.State != string(hardware.PowerOn) && before.State != string(hardware.PowerOff) {
		return false
	}
	return p.observedPower() != hardware.PowerUnknown && p.powerTransition == "" && !p.isIdle() && p.isStayingIn(metal3.StateProvisioning) &&
		equality.Semantic.DeepEqual(p.Record, p.d.Record)
}

// claimPeriod is how long a claim may take from the consumerRef to the image.
const claimPeriod = 5 * time.Second

// isPowerUnchangedByClaim reports whether a claim has just begun and the power is as it was before it. The claim is a new generation too, and
// its image follows at once; the power is recorded for the claim's generation only when the image does not follow.
func (p planner) isPowerUnchangedByClaim(state string) bool {
	before := p.Record.Power
	return before != nil && before.State == state && before.ObservedGeneration != p.Host.Generation && p.powerTransition == "" &&
		!p.Host.HasImage && !p.GenerationObservedAt.IsZero() && p.Ago(p.GenerationObservedAt) < claimPeriod && p.isStayingIn(metal3.StateAvailable)
}

// isStayingIn reports whether the host is in the state before and after this Decision.
func (p planner) isStayingIn(s metal3.ProvisioningState) bool {
	return p.Host.Status.State == s && p.d.Status.State == s
}
