package host

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// result is what a step returns: done, a waitResult or an actionResult.
type result struct {
	// isFinal is true when no further step runs.
	isFinal bool
	// reason says what the host waits for. When it is empty, the name of the step says it.
	reason string
	// requeueAfter is when to plan again.
	requeueAfter time.Duration
	action       Action
}

// done is the result of a step that has nothing to do.
var done = result{}

// waitResult returns the result of a step that waits.
func waitResult(reason string, requeueAfter time.Duration) result {
	return result{isFinal: true, reason: reason, requeueAfter: requeueAfter}
}

// actionResult returns the result of a step that calls the hardware.
func actionResult(action Action, requeueAfter time.Duration) result {
	return result{isFinal: true, requeueAfter: requeueAfter, action: action}
}

// atOnce is the delay to the next plan after something was written that the next plan depends on.
const atOnce = time.Millisecond

// step is one thing that a state does or waits for.
type step struct {
	name string
	run  func(*planner) result
}

// attemptSteps make the attempt of a state, and make another one after a failure.
var attemptSteps = []step{
	{"accept ingot.dev/retry", (*planner).acceptRetryAnnotation},
	{"accept ingot.dev/root-disk", (*planner).acceptRootDisk},
	{"accept other requirements on the hardware", (*planner).acceptOtherRequirements},
	{"write the intent to the record", (*planner).waitForRecord},
	{"cancel another attempt", (*planner).cancelOtherAttempt},
	{"begin the attempt", (*planner).beginFirstAttempt},
	{"power off after the erase", (*planner).powerOffAfterErase},
	{"call the installer", (*planner).callInstaller},
	{"report the failure", (*planner).reportFailure},
	{"power off after the failure", (*planner).powerOffAfterFailure},
	{"wait for ingot.dev/retry", (*planner).waitForManualRetry},
	{"wait for the end of the pause", (*planner).waitForRetryPause},
	{"begin another attempt", (*planner).beginNextAttempt},
}

// stateSteps lists the steps of each state. They run while no edge leads out of the state, in this order, until one waits or acts. The name of
// a step is in the log when the host waits for it.
var stateSteps = map[metal3.ProvisioningState][]step{
	metal3.StateInspecting: attemptSteps,
	metal3.StateAvailable: {
		{"write the intent to the record", (*planner).waitForRecord},
		{"cancel an attempt that is not needed", (*planner).cancelUnusedAttempt},
		{"power off a claimed host", (*planner).powerOffClaimedHost},
		{"refuse an image without a Machine", (*planner).refuseUnclaimedImage},
		{"wait for the boot service", (*planner).holdRequestedAttempt},
		{"refuse an unknown erase mode", (*planner).refuseEraseMode},
		{"wait for a claim", (*planner).waitInPool},
	},
	metal3.StatePreparing: attemptSteps,
	metal3.StateProvisioning: append([]step{
		{"cancel the installation of a released host", (*planner).cancelAfterRelease},
		{"keep the host powered off", (*planner).keepPoweredOff},
		{"wait until claim and record name one Machine", (*planner).waitForConsistentClaim},
		{"refuse root device hints", (*planner).refuseRootDeviceHints},
	}, attemptSteps...),
	metal3.StateProvisioned:           powerSteps,
	metal3.StateExternallyProvisioned: powerSteps,
	metal3.StateDeprovisioning: append([]step{
		{"wait for a grant", (*planner).waitForGrant},
		{"power off before the erase", (*planner).powerOffBeforeErase},
	}, attemptSteps...),
	metal3.StatePoweringOffBeforeDelete: {{"power off before the deletion", (*planner).powerOff}},
	metal3.StateDeleting:                {{"wait for the removal", (*planner).waitForRemoval}},
}

// powerSteps set the power as spec.online and the reboot annotations request.
var powerSteps = []step{
	{"power off", (*planner).powerOffIfRequested},
	{"remove the reboot annotation", (*planner).removeRebootAnnotation},
	{"wait while the host is off", (*planner).waitWhileOff},
	{"power on", (*planner).powerOn},
	{"wait while the host is on", (*planner).waitWhileOn},
}

// runSteps runs the steps of the state and writes the result of the last one into the Decision.
func (p *planner) runSteps() {
	if p.isNewlyAvailable() && p.nextEdge() != nil {
		p.d.RequeueAfter, p.d.WaitingFor = atOnce, "the state to be written"
		return
	}
	for _, s := range stateSteps[p.tableState()] {
		r := s.run(p)
		if !r.isFinal {
			continue
		}
		p.d.Action, p.d.RequeueAfter, p.d.WaitingFor = r.action, r.requeueAfter, cmp.Or(r.reason, s.name)
		return
	}
	p.d.RequeueAfter = p.idleInterval()
}

func (p planner) isNewlyAvailable() bool {
	return p.tableState() == metal3.StateAvailable && p.Host.Status.State != p.d.Status.State
}

func (p *planner) waitInPool() result { return waitResult("", p.idleInterval()) }

// waitForRemoval has a deleted host planned again at once. A host that is claimed again while its BMC cannot be read waits for the BMC.
func (p *planner) waitForRemoval() result {
	if p.mustBeDeleted() || p.isAbandoned() {
		return waitResult("", atOnce)
	}
	return waitResult("the BMC to be read", p.idleInterval())
}

// cancel cancels the open attempt.
func (p *planner) cancel() result {
	w := p.d.Record.Wanted
	return actionResult(Action{Kind: ActionCancel, Attempt: hardware.Attempt{Number: w.Number, Deadline: w.Deadline.Time}}, p.Timeouts.PollInterval)
}

func (p *planner) cancelUnusedAttempt() result {
	if p.isIdle() {
		return done
	}
	return p.cancel()
}

func (p *planner) cancelAfterRelease() result {
	if p.isIdle() || !p.isReleased() {
		return done
	}
	return p.cancel()
}

// powerOffClaimedHost powers off an available host whose Machine has spec.online set to false. The Machine may wait for the confirmed
// power-off before it requests another image.
func (p *planner) powerOffClaimedHost() result {
	switch {
	case !p.Host.Claimed:
		return done
	case p.Host.Online:
		return waitResult("its Machine to request an image", p.idleInterval())
	}
	if r := p.powerOff(); r.isFinal {
		return r
	}
	return waitResult("its Machine to request an image", p.idleInterval())
}

func (p *planner) refuseUnclaimedImage() result {
	if !p.Host.HasImage {
		return done
	}
	p.setError(metal3.ProvisioningError, "NotClaimed", "spec.image is set and nobody has claimed the host: Ingot installs for Machines, so remove the image and create a Machine with spec.hostName")
	return waitResult("spec.image to be removed", p.idleInterval())
}

func (p *planner) refuseEraseMode() result {
	if p.Host.Erase == "" {
		return done
	}
	p.setError(metal3.PreparationError, "EraseModeInvalid", fmt.Sprintf("annotation %s is %q: set it to Metadata or Full, or remove it", v1alpha1.AnnotationErase, p.Host.Erase))
	return waitResult("another erase mode", p.idleInterval())
}

// keepPoweredOff keeps a host off whose Machine has spec.online set to false, before anything is installed.
func (p *planner) keepPoweredOff() result {
	switch {
	case p.Host.Online:
		return done
	case !p.isIdle():
		return p.cancel()
	}
	if r := p.powerOff(); r.isFinal {
		return r
	}
	return waitResult("spec.online", p.idleInterval())
}

// waitForConsistentClaim waits while the machine controller has written one of claim and record and not yet the other.
func (p *planner) waitForConsistentClaim() result {
	if p.isImageRequested() {
		return done
	}
	return waitResult("", p.Timeouts.PollInterval)
}

func (p *planner) refuseRootDeviceHints() result {
	if len(p.Host.UnsupportedHints) == 0 || !p.isIdle() {
		return done
	}
	p.setError(metal3.ProvisioningError, "RootDeviceHintsUnsupported", fmt.Sprintf("spec.rootDeviceHints has %s, which the installer cannot follow: "+
		"select the disk by %s", strings.Join(p.Host.UnsupportedHints, ", "), hintNames(p.SupportedHints)))
	return waitResult("other root device hints", p.idleInterval())
}

func hintNames(hints []hardware.Hint) string {
	names := make([]string, len(hints))
	for i, hint := range hints {
		names[i] = string(hint)
	}
	return strings.Join(names, ", ")
}

// powerOffBeforeErase waits for the confirmed power-off before an erase begins. Without it: the tenant's system still runs while its disks are
// erased, and writes its caches to them afterwards.
func (p *planner) powerOffBeforeErase() result {
	if !p.isIdle() || p.hasUnfinishedErase() {
		return done
	}
	return p.setPower(hardware.PowerOff, true)
}

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

func (p *planner) powerOn() result { return p.setPower(hardware.PowerOn, false) }

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
		left := claimPeriod - p.Now.Sub(p.GenerationObservedAt)
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
		!p.Host.HasImage && !p.GenerationObservedAt.IsZero() && p.Now.Sub(p.GenerationObservedAt) < claimPeriod && p.isStayingIn(metal3.StateAvailable)
}

// isStayingIn reports whether the host is in the state before and after this Decision.
func (p planner) isStayingIn(s metal3.ProvisioningState) bool {
	return p.Host.Status.State == s && p.d.Status.State == s
}
