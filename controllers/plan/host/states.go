package host

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// register: the BMC answers and takes the credentials, else Problem had been set.
func (p *planner) register() {
	switch {
	case p.Host.ExternallyProvisioned:
		p.to(StateExternallyProvisioned)
	case p.Host.InspectionDisabled || p.d.Record.Inventory != nil:
		p.free()
	default:
		p.to(StateInspecting)
		p.inspect()
	}
}

func (p *planner) inspect() {
	if p.Host.InspectionDisabled && !p.running() {
		p.free()
		return
	}
	if p.work(inspection) {
		p.free()
	}
}

func (p *planner) available() {
	switch {
	case p.running():
		p.resume()
	case !p.clean():
		p.to(StateDeprovisioning)
	case p.asked() && p.Host.Online:
		p.to(StateProvisioning)
		if t := p.installation(); len(p.Host.UnsupportedHints) == 0 && !t.is(p.d.Record.Attempt, p.d.Record) {
			// The intent, in one write with the state; nothing acts on it before the state is provisioning.
			p.retryAsked()
			p.d.Record.Failures = 0
			p.begin(t)
		}
	case p.Host.Claimed:
		// Its Machine may wait for the power-off before it asks for another image.
		if p.Host.Online || p.power(hardware.PowerOff, false) {
			p.d.Requeue = p.steady()
		}
	case p.Host.ExternallyProvisioned:
		p.to(StateExternallyProvisioned)
	case p.Host.HasImage:
		p.fail(ProvisioningError, "NotClaimed", "spec.image is set and nobody has claimed the host: Ingot installs for Machines, so remove the image and create a Machine with spec.hostName")
		p.d.Requeue = p.steady()
	default:
		p.unclaimed()
	}
}

// resume finds the state of an attempt that was recorded before its state was.
func (p *planner) resume() {
	switch hardware.Operation(p.d.Record.Attempt.Operation) {
	case hardware.OpErase:
		p.to(StatePreparing)
	case hardware.OpInspect:
		p.to(StateInspecting)
	default:
		if p.asked() && p.Host.Online && p.installation().is(p.d.Record.Attempt, p.d.Record) {
			p.to(StateProvisioning)
			return
		}
		p.cancel()
	}
}

// unclaimed serves what people ask of a host in the pool.
func (p *planner) unclaimed() {
	switch {
	case p.Host.Erase != "":
		p.eraseAsked()
	case p.Host.InspectionAsked && !p.Host.InspectionDisabled:
		p.begin(inspection)
		p.d.DropAnnotations = []Annotation{AnnotationInspect}
		p.to(StateInspecting)
	default:
		p.d.Requeue = p.steady()
	}
}

// eraseAsked begins the erase that an annotation asks for.
func (p *planner) eraseAsked() {
	mode := v1alpha1.EraseMode(p.Host.Erase)
	if mode != v1alpha1.EraseMetadata && mode != v1alpha1.EraseFull {
		p.fail(PreparationError, "EraseModeInvalid", fmt.Sprintf("annotation %s is %q: set it to Metadata or Full, or remove it", v1alpha1.AnnotationErase, p.Host.Erase))
		p.d.Requeue = p.steady()
		return
	}
	p.begin(erasure(PreparationError, mode))
	p.to(StatePreparing)
}

func (p *planner) prepare() {
	a := p.d.Record.Attempt
	if a == nil || a.Operation != string(hardware.OpErase) {
		p.free()
		return
	}
	if p.work(erasure(PreparationError, a.Erase)) {
		p.d.DropAnnotations = []Annotation{AnnotationErase}
		p.free()
	}
}

func (p *planner) provision() {
	switch {
	case !p.Host.HasImage || !p.Host.Claimed || p.Spec.Machine == nil:
		// Released, or never meant: whatever was written is to be erased.
		if p.running() {
			p.cancel()
			return
		}
		p.to(StateDeprovisioning)
	case !p.Host.Online:
		if p.running() {
			p.cancel()
		} else if p.power(hardware.PowerOff, false) {
			p.d.Requeue = p.steady()
		}
	case !p.asked():
		// Claim and record are being written by the machine controller and do not agree yet.
		p.d.Requeue = p.Timeouts.Poll
	case len(p.Host.UnsupportedHints) > 0 && !p.running():
		p.fail(ProvisioningError, "RootDeviceHintsUnsupported", fmt.Sprintf("spec.rootDeviceHints has %s, which the installer cannot follow: "+
			"select the disk by deviceName, serialNumber, wwn, model or minSizeGigabytes", strings.Join(p.Host.UnsupportedHints, ", ")))
		p.d.Requeue = p.steady()
	default:
		if p.work(p.installation()) {
			p.to(StateProvisioned)
		}
	}
}

func (p *planner) provisioned() {
	r := &p.d.Record
	if !p.Host.HasImage {
		p.to(StateDeprovisioning)
		return
	}
	if p.claimed() && p.Spec.Image != nil {
		if r.Installed == nil {
			// The record was lost: what the Machine says it has is taken to be there.
			r.Installed = p.installed(p.Now)
		}
		if in := r.Installed; p.Host.Online && (in.MachineUID != p.Spec.Machine.UID || in.Attempt != p.Spec.Attempt || in.Checksum != p.Spec.Image.Checksum) {
			// Another attempt, or another image: in place, without an erase, since the disks stay with the Machine.
			p.to(StateProvisioning)
			return
		}
	}
	p.holdPower()
}

// holdPower makes the power what spec.online and the reboot annotations ask for.
func (p *planner) holdPower() {
	if p.Host.Online && !p.Host.Reboot {
		if p.power(hardware.PowerOn, false) {
			p.d.Requeue = p.settling()
		}
		return
	}
	graceful := !p.Host.Online || !p.Host.RebootHard
	if p.power(hardware.PowerOff, graceful) {
		p.d.Requeue = p.steady()
		if p.Host.RebootOnce {
			p.d.DropAnnotations = []Annotation{AnnotationReboot}
			p.d.Requeue = time.Millisecond
		}
	}
}

func (p *planner) external() {
	if !p.Host.ExternallyProvisioned {
		p.d.Record.LastTenant, p.d.Record.Erased = UnknownTenant, nil
		p.to(StateDeprovisioning)
		return
	}
	p.holdPower()
}

func (p *planner) deprovision() {
	a := p.d.Record.Attempt
	switch {
	case p.clean() && !p.running():
		p.free()
	case p.running() && a.Operation != string(hardware.OpErase):
		p.cancel()
	case !p.running() && !p.eraseBegun() && !p.power(hardware.PowerOff, true):
		// Nothing touches the disks before the BMC confirms power-off.
	default:
		p.eraseDisks()
	}
}

func (p *planner) eraseDisks() {
	mode := p.eraseMode()
	if mode == v1alpha1.EraseNone && !p.running() {
		r := &p.d.Record
		number := int64(0)
		if r.Attempt != nil {
			number = r.Attempt.Number
		}
		r.Erased = &v1alpha1.EraseEvidence{Mode: mode, Attempt: number, At: metav1.NewMicroTime(p.Now), Tenant: r.LastTenant}
		r.Installed, r.Failures = nil, 0
		p.free()
		return
	}
	if p.work(erasure(ProvisioningError, mode)) {
		p.free()
	}
}

// eraseBegun says whether an erase has been tried since the last installation and has not succeeded.
func (p *planner) eraseBegun() bool {
	a := p.d.Record.Attempt
	return a != nil && a.Operation == string(hardware.OpErase) && a.State != string(hardware.AttemptSucceeded)
}

// eraseMode is what the Machine asks for, else the provider; never weaker than what was begun, and never None
// when the content is unknown.
func (p *planner) eraseMode() v1alpha1.EraseMode {
	mode := p.Spec.Erase
	if mode == "" {
		mode = p.ErasePolicy
	}
	if mode == "" || p.d.Record.LastTenant == UnknownTenant && mode == v1alpha1.EraseNone {
		mode = v1alpha1.EraseMetadata
	}
	if p.eraseBegun() && strength[p.d.Record.Attempt.Erase] > strength[mode] {
		mode = p.d.Record.Attempt.Erase
	}
	return mode
}

var strength = map[v1alpha1.EraseMode]int{v1alpha1.EraseNone: 0, v1alpha1.EraseMetadata: 1, v1alpha1.EraseFull: 2}

// remove lets a deleted host go that nobody has: clean, and off if we have ever worked on it.
func (p *planner) remove() {
	switch {
	case p.Host.Status.State == StateDeleting, p.d.Record.Attempt == nil && p.clean():
		p.gone()
	case p.running():
		p.d.Status.State = StateDeprovisioning
		if p.Problem != nil {
			p.problem()
		} else if p.d.Record.Attempt.Operation == string(hardware.OpErase) {
			p.deprovision()
		} else {
			p.cancel()
		}
	case !p.clean():
		p.d.Status.State = StateDeprovisioning
		if p.Problem != nil {
			p.problem()
			p.hintDetach()
			return
		}
		p.deprovision()
		p.hintDetach()
	default:
		p.powerOffBeforeDelete()
	}
}

func (p *planner) hintDetach() {
	if e := p.d.Record.Error; e != nil {
		p.fail(p.d.Status.ErrorType, e.Reason, e.Message+"; the host is deleted when its disks are erased: to give it up as it is, annotate it with baremetalhost.metal3.io/detached")
	}
}

func (p *planner) powerOffBeforeDelete() {
	if p.Problem != nil {
		// It is clean, and a server that nobody reaches needs no care of ours.
		p.gone()
		return
	}
	p.d.Status.State = StatePoweringOff
	if p.power(hardware.PowerOff, false) || errorReason(p.Record.Error) == string(hardware.ReasonPowerOffIgnored) {
		p.gone()
	}
}

// gone shows that the host goes, and then lets it.
func (p *planner) gone() {
	p.clearError()
	p.d.Action = Action{}
	if p.Host.Status.State == StateDeleting {
		p.d.DropFinalizer = true
		return
	}
	p.to(StateDeleting)
}
