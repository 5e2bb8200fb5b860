package host

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// result is what a step came to: the next step, a wait, or a call to the hardware. Make one with next, wait or act.
type result struct {
	// ends says that no further step is taken.
	ends bool
	// reason says what is waited for; empty: what the step is for.
	reason string
	// after is when to look again.
	after  time.Duration
	action Action
}

func next() result { return result{} }

func wait(reason string, after time.Duration) result {
	return result{ends: true, reason: reason, after: after}
}

func act(action Action, after time.Duration) result {
	return result{ends: true, after: after, action: action}
}

// soon is when to look again after an intent was recorded.
const soon = time.Millisecond

// step is one part of a state's work.
type step struct {
	name string
	take func(*planner) result
}

// attemptSteps bring the attempt of a state to its end, and try it again.
var attemptSteps = []step{
	{"take note of a retry", (*planner).noteRetry},
	{"record the intent alone", (*planner).recordIntent},
	{"cancel other work", (*planner).cancelOther},
	{"want the attempt", (*planner).wantFirst},
	{"power off after the erase", (*planner).powerOffErased},
	{"ask the installer", (*planner).askInstaller},
	{"show the failure", (*planner).showFailure},
	{"power off after the failure", (*planner).powerOffFailed},
	{"await a person", (*planner).awaitPerson},
	{"await the end of the pause", (*planner).awaitPause},
	{"want another attempt", (*planner).wantAgain},
}

// work is what is done in each state while no edge leads out of it: the steps are taken in order until one waits or acts.
var work = map[State][]step{
	StateInspecting: attemptSteps,
	StateAvailable: {
		{"record the intent alone", (*planner).recordIntent},
		{"cancel what nobody wants any more", (*planner).cancelUnderWay},
		{"power off a claimed host", (*planner).powerOffClaimed},
		{"refuse an image without a Machine", (*planner).refuseImage},
		{"refuse an unknown erase mode", (*planner).refuseEraseMode},
		{"rest in the pool", (*planner).rest},
	},
	StatePreparing: attemptSteps,
	StateProvisioning: append([]step{
		{"cancel for the release", (*planner).cancelReleased},
		{"hold the host off", (*planner).holdOff},
		{"await that claim and record agree", (*planner).awaitAgreement},
		{"refuse root device hints", (*planner).refuseHints},
	}, attemptSteps...),
	StateProvisioned:           powerSteps,
	StateExternallyProvisioned: powerSteps,
	StateDeprovisioning: append([]step{
		{"power off before the erase", (*planner).powerOffBeforeErase},
	}, attemptSteps...),
	StatePoweringOff: {{"power off before the host goes", (*planner).powerOff}},
	StateDeleting:    {{"show that the host goes", (*planner).awaitRemoval}},
}

// powerSteps make the power what spec.online and the reboot annotations ask for.
var powerSteps = []step{
	{"power off", (*planner).powerOffAsked},
	{"end a reboot's power-off", (*planner).endReboot},
	{"stay off", (*planner).stayOff},
	{"power on", (*planner).powerOn},
	{"rest while it runs", (*planner).restRunning},
}

// takeSteps does the work of the state.
func (p *planner) takeSteps() {
	if p.isNewlyAvailable() && p.nextEdge() != nil {
		p.d.Requeue, p.d.WaitsFor = soon, "the state to be written"
		return
	}
	for _, s := range work[p.tableState()] {
		r := s.take(p)
		if !r.ends {
			continue
		}
		p.d.Action, p.d.Requeue, p.d.WaitsFor = r.action, r.after, cmp.Or(r.reason, s.name)
		return
	}
	p.d.Requeue = p.steady()
}

func (p *planner) isNewlyAvailable() bool {
	return p.tableState() == StateAvailable && p.Host.Status.State != p.d.Status.State
}

func (p *planner) rest() result { return wait("", p.steady()) }

// awaitRemoval looks at once at a host that goes. One that is wanted again, and whose BMC cannot be read, waits for that.
func (p *planner) awaitRemoval() result {
	if p.isDeleted() || p.isGivenUp() {
		return wait("", soon)
	}
	return wait("the BMC to be read", p.steady())
}

// cancel ends the attempt that is under way.
func (p *planner) cancel() result {
	w := p.d.Record.Wanted
	return act(Action{Kind: ActionCancel, Attempt: hardware.Attempt{Number: w.Number, Deadline: w.Deadline.Time}}, p.Timeouts.Poll)
}

func (p *planner) cancelUnderWay() result {
	if p.isIdle() {
		return next()
	}
	return p.cancel()
}

func (p *planner) cancelReleased() result {
	if p.isIdle() || !p.isUnwanted() {
		return next()
	}
	return p.cancel()
}

// powerOffClaimed: the Machine of an available host may wait for the power-off before it asks for another image.
func (p *planner) powerOffClaimed() result {
	switch {
	case !p.Host.Claimed:
		return next()
	case p.Host.Online:
		return wait("its Machine to ask for an image", p.steady())
	}
	if r := p.powerOff(); r.ends {
		return r
	}
	return wait("its Machine to ask for an image", p.steady())
}

func (p *planner) refuseImage() result {
	if !p.Host.HasImage {
		return next()
	}
	p.fail(ProvisioningError, "NotClaimed", "spec.image is set and nobody has claimed the host: Ingot installs for Machines, so remove the image and create a Machine with spec.hostName")
	return wait("spec.image to be removed", p.steady())
}

func (p *planner) refuseEraseMode() result {
	if p.Host.Erase == "" {
		return next()
	}
	p.fail(PreparationError, "EraseModeInvalid", fmt.Sprintf("annotation %s is %q: set it to Metadata or Full, or remove it", v1alpha1.AnnotationErase, p.Host.Erase))
	return wait("another erase mode", p.steady())
}

// holdOff keeps a host off whose Machine wants it off before anything is installed.
func (p *planner) holdOff() result {
	switch {
	case p.Host.Online:
		return next()
	case !p.isIdle():
		return p.cancel()
	}
	if r := p.powerOff(); r.ends {
		return r
	}
	return wait("spec.online", p.steady())
}

// awaitAgreement: claim and record are being written by the machine controller and do not agree yet.
func (p *planner) awaitAgreement() result {
	if p.isAsked() {
		return next()
	}
	return wait("", p.Timeouts.Poll)
}

func (p *planner) refuseHints() result {
	if len(p.Host.UnsupportedHints) == 0 || !p.isIdle() {
		return next()
	}
	p.fail(ProvisioningError, "RootDeviceHintsUnsupported", fmt.Sprintf("spec.rootDeviceHints has %s, which the installer cannot follow: "+
		"select the disk by deviceName, serialNumber, wwn, model or minSizeGigabytes", strings.Join(p.Host.UnsupportedHints, ", ")))
	return wait("other root device hints", p.steady())
}

// powerOffBeforeErase: nothing touches the disks before the BMC confirms power-off.
func (p *planner) powerOffBeforeErase() result {
	if !p.isIdle() || p.isEraseBegun() {
		return next()
	}
	return p.bringPower(hardware.PowerOff, true)
}

func (p *planner) powerOff() result { return p.bringPower(hardware.PowerOff, false) }

// mustBeOn says whether spec.online and the reboot annotations ask for power.
func (p *planner) mustBeOn() bool { return p.Host.Online && !p.Host.Reboot }

func (p *planner) powerOffAsked() result {
	if p.mustBeOn() {
		return next()
	}
	return p.bringPower(hardware.PowerOff, !p.Host.Online || !p.Host.RebootHard)
}

func (p *planner) endReboot() result {
	if p.mustBeOn() || !p.Host.RebootOnce {
		return next()
	}
	p.d.DropAnnotations = []Annotation{AnnotationReboot}
	return wait("", soon)
}

func (p *planner) stayOff() result {
	if p.mustBeOn() {
		return next()
	}
	return wait("", p.steady())
}

func (p *planner) powerOn() result { return p.bringPower(hardware.PowerOn, false) }

// firstBoot is how long after an installation a server may take to come up: a self-test trains the memory and takes minutes.
const firstBoot = 20 * time.Minute

// restRunning looks sooner at a host that boots what was installed for the first time, since a power loss then keeps a Machine
// waiting for its Node.
func (p *planner) restRunning() result {
	in := p.d.Record.Installed
	if in == nil || p.Joined || p.Now.Sub(in.At.Time) > firstBoot {
		return wait("", p.steady())
	}
	return wait("", p.steady()/10)
}
