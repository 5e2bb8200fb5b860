package lifecycle

import (
	"fmt"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// mustPowerOff reports whether spec.powerOff asks for the host to be off.
func (s scope) mustPowerOff() bool { return s.Machine.Spec.PowerOff && s.hasHost() }

// isPowerOffWanted reports whether the server is powered off, or kept off, because spec.powerOff asks for it, and not for a roll. A power-off
// that is begun is finished also when the field is cleared meanwhile. Without it: the request to power off is delayed, the field is
// cleared, and the Machine goes back to Validating; then the request arrives, and the server goes off under its pods.
func (s scope) isPowerOffWanted() bool {
	switch {
	case s.Machine.Status.Phase != v1alpha1.MachineDraining || s.Machine.Status.PowerOffRequestedAt != nil:
		return false
	case s.Machine.Spec.PowerOff:
		return true
	default:
		return s.isPowerOnDue()
	}
}

// hasPowerOffRecord reports whether status.powerOff was written in this phase Draining. One of an earlier phase is kept until the Machine is
// Ready again.
func (f Facts) hasPowerOffRecord() bool {
	s := f.Machine.Status
	return s.Phase == v1alpha1.MachineDraining && s.PowerOff != nil && s.PowerOff.RequestedAt.Time.Equal(f.phaseStart())
}

// isPowerOnDue reports whether spec.powerOff was cleared after its power-off was begun, and what is installed goes on: it had joined, and no
// roll can begin in its place.
func (s scope) isPowerOnDue() bool {
	m := s.Machine
	return !m.Spec.PowerOff && s.hasPowerOffRecord() && m.Status.PowerOffRequestedAt == nil && m.Status.NodeRef != nil && !s.mustRoll()
}

// canPowerOn reports whether the Machine goes back to Validating, where its host is powered on. It requires that the request to power off was
// sent, so that the request to power on is the last one.
func (s scope) canPowerOn() bool { return s.hasHost() && s.isPowerOnDue() && !s.Host.Online }

// isInstallationDue reports whether a drain ends with an installation. The field that it requires is written only for a roll, or for a Machine
// that had not joined. Without it: spec.powerOff is cleared after the tenant has deleted the Node of a server that is off, and the host is
// installed again, although nobody asked for another revision: what the tenant keeps on its disk is lost.
func (s scope) isInstallationDue() bool {
	return !s.Machine.Spec.PowerOff && s.Machine.Status.PowerOffRequestedAt != nil
}

// planPowerOffRecord writes into the status that the host will be requested to power off, and which boot of the Node ends with that.
func (s scope) planPowerOffRecord() result {
	if s.hasPowerOffRecord() {
		return done
	}
	return timestampResult(powerOffBegun, s.powerOffReport())
}

func (s scope) planPowerOffConfirmation() result {
	if s.Machine.Status.PowerOff.ConfirmedAt != nil {
		return done
	}
	return timestampResult(powerOffConfirmed, s.poweredOffReport())
}

// waitWhilePoweredOff ends the steps while spec.powerOff is set. The Machine has no deadline then.
func (s scope) waitWhilePoweredOff() result {
	if !s.Machine.Spec.PowerOff {
		return done
	}
	return waitResult(s.poweredOffReport())
}

func (s scope) poweredOffReport() report {
	message := "the server of host " + s.hostName() + " is off, because spec.powerOff is set"
	if p := s.Machine.Status.PowerOff; p != nil && p.ConfirmedAt != nil {
		message += "; its BMC confirmed that at " + p.ConfirmedAt.UTC().Format(time.RFC3339)
	}
	return report{reason: v1alpha1.ReasonPoweredOff, waitingFor: "spec.powerOff to be cleared", message: message + "; to power it on: " + s.powerOnHint()}
}

// powerOnHint returns the command that clears spec.powerOff.
func (s scope) powerOnHint() string {
	return fmt.Sprintf("ingot drain -n %s %s --undo", s.Machine.Namespace, s.Machine.Name)
}

// drainPurpose names in a message what the Node is drained for.
func (s scope) drainPurpose() string {
	if s.isPowerOffWanted() {
		return "power-off"
	}
	return "roll"
}

// callOffHint returns the command that calls the drain off.
func (s scope) callOffHint() string {
	if s.isPowerOffWanted() {
		return s.powerOnHint()
	}
	return "ingot rollout undo " + s.Machine.Spec.NodeTypeRef.Name
}

// planPowerOn requests the host to be on after spec.powerOff was cleared. A host that an administrator has set to online false is left as it is:
// somebody may be working on it.
func (s scope) planPowerOn() result {
	if s.Machine.Status.PowerOff == nil || s.Machine.Spec.PowerOff || s.Host.Online {
		return done
	}
	if s.isSameServer() {
		return s.waitForOneHost()
	}
	return actionResult(Action{Kind: PowerOn}, report{
		reason: v1alpha1.ReasonServerOff, waitingFor: "the server to be on", message: "host " + s.hostName() + " is being powered on",
	}).withRequeue()
}

// kubeletSilence is longer than the tenant's API server takes to miss a kubelet: 50 seconds by default.
const kubeletSilence = 2 * time.Minute

// isBootAfterPowerOff reports whether the verdict is about a boot after the power-off that spec.powerOff asked for. Where the BMC never
// confirmed that power-off the boot before may still run, and it may be unknown which boot that was: a verdict then counts when the BMC has
// reported for kubeletSilence that the server is on, because the Node of a server that had gone off meanwhile is not Ready by then.
func (f Facts) isBootAfterPowerOff() bool {
	p, v := f.Machine.Status.PowerOff, f.Machine.Status.Verdict
	switch {
	case p == nil:
		return true
	case p.ConfirmedAt != nil && p.BootID != "":
		return v != nil && v.BootID != p.BootID
	default:
		since, isOn := f.poweredOnSince()
		return isOn && f.Elapsed(since) >= kubeletSilence
	}
}

// poweredOnSince returns since when the BMC reports On for the newest request after the power-off, and whether it does.
func (f Facts) poweredOnSince() (time.Time, bool) {
	h := f.Host
	if h == nil || !h.Online {
		return time.Time{}, false
	}
	if !f.mustHaveRecord() {
		return f.phaseStart(), h.PoweredOn && (h.ObservedGeneration == nil || h.hasOperatorSeenSpec())
	}
	p := h.powerState()
	if p == nil || p.State != string(hardware.PowerOn) || p.ObservedGeneration < h.Generation {
		return time.Time{}, false
	}
	return p.ObservedAt.Time, true
}

// powerState returns the power as the HostRecord has it, or nil when it is not known.
func (h *Host) powerState() *v1alpha1.HostPower {
	if h.Record == nil {
		return nil
	}
	return h.Record.Status.Power
}

// isServerOff reports whether the BMC reports that the server with this Machine's system is off. Where the HostRecord says that it is being
// powered on, the BMC reported Off before. What was observed before the end of the installation says nothing, because an installer
// switches the power.
func (s scope) isServerOff() bool {
	h := s.Host
	if h == nil || h.State != metal3.StateProvisioned {
		return false
	}
	if !s.mustHaveRecord() {
		return !h.PoweredOn
	}
	p := h.powerState()
	if p == nil || h.Record.Status.Installed == nil || p.ObservedAt.Time.Before(h.Record.Status.Installed.At.Time) {
		return false
	}
	return p.State == string(hardware.PowerOff) || p.State == string(hardware.PowerTurningOn)
}

// powerOnPatience is how long a server that has its image may take from the request to power it on until that it is off is reported. Every installation ends with
// this request, and a report is a write.
const powerOnPatience = time.Minute

// powerOnRest returns what is left of powerOnPatience for a server that is being powered on; 0: nothing, or nobody does that.
func (f Facts) powerOnRest() time.Duration {
	if f.Host == nil || !f.Host.Online {
		return 0
	}
	p := f.Host.powerState()
	if p == nil || p.State != string(hardware.PowerTurningOn) || f.Now.Before(p.ObservedAt.Time) {
		return 0
	}
	return max(powerOnPatience-f.Now.Sub(p.ObservedAt.Time), 0)
}

// serverOffMessage says since when the server is off, and what is done about it.
func (s scope) serverOffMessage() string {
	message, h := "the server of host "+s.hostName()+" is off", s.Host
	if p := h.powerState(); p != nil {
		message += fmt.Sprintf(": its BMC says so since %s", p.ObservedAt.UTC().Format(time.RFC3339))
	}
	switch reason, problem := s.hostProblem(); {
	case !h.Online && s.Machine.Status.PowerOff != nil:
		message += "; it is being powered on"
	case !h.Online:
		message += fmt.Sprintf("; spec.online of its BareMetalHost was set to false by hand: ingot drain -n %s %s --power-off, and %s after it, powers it on",
			s.Machine.Namespace, s.Machine.Name, s.powerOnHint())
	case reason != "":
		message += "; " + reason + ": " + problem
	default:
		message += "; it is being powered on"
	}
	return message
}

// confirmPowerOff writes into the status that the BMC has confirmed the power-off, when that happened only a moment ago.
func (p *planner) confirmPowerOff() {
	if off := p.d.Status.PowerOff; off.ConfirmedAt == nil && p.guards.isPoweredOff(p.Facts) {
		p.recordConfirmation()
	}
}

// recordConfirmation writes the time of the confirmation, and which boot has ended. That is not known while the tenant's API server does not
// answer, because the server may have rebooted since the Node was read last.
func (p *planner) recordConfirmation() {
	now := metav1.NewMicroTime(p.Now)
	p.d.Status.PowerOff.ConfirmedAt, p.d.Status.PowerOff.BootID = &now, p.Node.BootID
}

// extendDeadline moves the deadline of the phase that is entered.
func (p *planner) extendDeadline(by time.Duration) {
	if d := p.d.Status.Deadline; d != nil {
		later := metav1.NewMicroTime(d.Add(by))
		p.d.Status.Deadline = &later
	}
}

// setDrainingDeadline removes the deadline while the server is off as spec.powerOff asks, and sets one again when something else follows.
func (p *planner) setDrainingDeadline() {
	s := &p.d.Status
	switch {
	case s.Phase != v1alpha1.MachineDraining:
	case p.reason == v1alpha1.ReasonPoweredOff:
		s.Deadline = nil
	case s.Deadline == nil && p.Timeouts.Draining > 0:
		deadline := metav1.NewMicroTime(p.Now.Add(p.Timeouts.Draining))
		s.Deadline = &deadline
	}
}
