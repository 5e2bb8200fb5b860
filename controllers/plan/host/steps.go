package host

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

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
	{"accept ingot.dev/tpm-key", (*planner).acceptTPMKey},
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
	return actionResult(Action{Kind: ActionCancel, Attempt: p.attempt(w)}, p.Timeouts.PollInterval)
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
