package host

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/event"
	"github.com/ingot-dev/ingot/controllers/plan/inventory"
)

// concludeAttempt writes the outcome of the recorded attempt, when that has ended, and adds an event for it.
func (p *planner) concludeAttempt() {
	wasOpen := !p.isIdle()
	p.recordOutcome(&p.d.Record)
	w := p.d.Record.Wanted
	switch {
	case !wasOpen || !p.isIdle():
	case w.Outcome == v1alpha1.AttemptFailed:
		p.d.Events = append(p.d.Events, event.Warning(w.Reason, w.Operation, w.Message))
	default:
		message := "took " + p.Ago(w.Since.Time).Round(time.Second).String()
		if w.Message != "" {
			message += "; " + w.Message
		}
		p.d.Events = append(p.d.Events, event.Normal(w.Operation+"Succeeded", w.Operation, message))
		if w.Operation == string(hardware.OpInstall) && p.Host.RootDisk != "" {
			p.d.RemoveAnnotations = append(p.d.RemoveAnnotations, AnnotationRootDisk)
		}
	}
}

// attemptStatus returns the installer's status of the attempt, or nil when the installer has none.
func (f Facts) attemptStatus(w *v1alpha1.WantedAttempt) *hardware.AttemptStatus {
	if w == nil || f.Observed == nil || f.Observed.Attempt == nil || f.Observed.Attempt.Number != w.Number {
		return nil
	}
	return f.Observed.Attempt
}

// recordOutcome writes the outcome of the recorded attempt and what follows from it: what is installed, erased, inventoried. It changes
// nothing while the attempt is open, and nothing after its outcome is written.
func (f Facts) recordOutcome(r *v1alpha1.HostRecordStatus) {
	w, status := r.Wanted, f.attemptStatus(r.Wanted)
	switch {
	case !w.IsOpen():
	case status != nil && status.State == hardware.AttemptFailed:
		f.recordFailure(r, status.Step, status.Reason, status.Message)
	case f.mustConfirmPowerOff(r):
		// Only the power-off is missing, even after the deadline: another erase would not bring it.
	case status != nil && status.State == hardware.AttemptSucceeded:
		f.recordSuccess(r, *status)
	case f.IsOver(w.Since.Time, w.Deadline.Add(f.Timeouts.BMCGrace)):
		f.recordTimeout(r)
	}
}

// mustConfirmPowerOff reports whether the attempt is an erase that has succeeded while the BMC has not confirmed the power-off. Only both
// together are the proof of an erase. Without it: the installer reports success, the server is still on, and the system that it booted before writes to the
// disks after the erase.
func (f Facts) mustConfirmPowerOff(r *v1alpha1.HostRecordStatus) bool {
	w, status := r.Wanted, f.attemptStatus(r.Wanted)
	return w.IsOpen() && w.Operation == string(hardware.OpErase) && status != nil && status.State == hardware.AttemptSucceeded && f.observedPower() != hardware.PowerOff
}

// recordTimeout ends an attempt that its installer has not ended, because the installer cannot be asked or refuses to begin.
func (f Facts) recordTimeout(r *v1alpha1.HostRecordStatus) {
	step := hardware.StepPoweringOff
	if status := f.attemptStatus(r.Wanted); status != nil {
		step = status.Step
	} else if kept := r.Progress(); kept != nil {
		step = hardware.Step(kept.Step)
	}
	message := fmt.Sprintf("the deadline passed at step %s and the installer did not say why", step)
	if f.Problem != nil {
		message = fmt.Sprintf("the deadline passed at step %s; %s: %s", step, f.Problem.Reason, f.Problem.Message)
	}
	f.recordFailure(r, step, hardware.ReasonDeadlineExceeded, message)
}

func (f Facts) recordFailure(r *v1alpha1.HostRecordStatus, step hardware.Step, reason hardware.Reason, message string) {
	w := f.endAttempt(r, v1alpha1.AttemptFailed)
	w.Step, w.Reason, w.Message = string(step), string(reason), input.Line(message, v1alpha1.MaxAttemptMessage)
	if reason != hardware.ReasonCancelled {
		r.Failures++
	}
}

func (f Facts) recordSuccess(r *v1alpha1.HostRecordStatus, status hardware.AttemptStatus) {
	w := f.endAttempt(r, v1alpha1.AttemptSucceeded)
	keepTPM(r)
	r.Failures, w.Message = 0, input.Line(status.Message, v1alpha1.MaxAttemptMessage)
	switch hardware.Operation(w.Operation) {
	case hardware.OpInspect:
		if w.IsAgentInspection() {
			return
		}
		var read hardware.Inventory
		if f.Observed.Inventory != nil {
			read = *f.Observed.Inventory
		}
		// A BMC may report a disk that was taken out for a while, so only an agent proves that one is there again.
		inventory.Update(r, read, false)
	case hardware.OpInstall:
		r.Installed, r.Erased = installed(w, f.Spec), nil
		r.Installed.RootDisk = inventory.RecordDisk(status.RootDisk)
	case hardware.OpErase:
		r.Installed = nil
		r.Erased = &v1alpha1.EraseProof{Mode: w.Erase, Attempt: w.Number, At: *w.EndedAt, Tenant: r.LastTenant, Channel: v1alpha1.AgentChannel(status.Channel), TPM: v1alpha1.TPMProof(status.TPM.Proof),
			Disks: inventory.EraseEvidence(status.Evidence, r.Disks)}
	}
}

// endAttempt writes the outcome of the attempt and its time, and takes over the inventory of an agent that has registered.
func (f Facts) endAttempt(r *v1alpha1.HostRecordStatus, outcome v1alpha1.AttemptOutcome) *v1alpha1.WantedAttempt {
	isReadByBMC := r.Wanted.Operation == string(hardware.OpInspect) && !r.Wanted.IsAgentInspection()
	if a := r.Progress(); !isReadByBMC && a != nil && (a.Inventory != nil || a.Agent != nil) {
		inventory.TakeOver(r)
	}
	now := metav1.NewMicroTime(f.Now)
	r.Wanted.Outcome, r.Wanted.EndedAt = outcome, &now
	return r.Wanted
}

// installed returns what an installation has left on the disk.
func installed(w *v1alpha1.WantedAttempt, spec v1alpha1.HostRecordSpec) *v1alpha1.HostInstalled {
	i := &v1alpha1.HostInstalled{MachineUID: w.MachineUID, Attempt: w.MachineAttempt, At: *w.EndedAt}
	if w.Image != nil {
		i.Checksum = w.Image.Checksum
	}
	if m := spec.Machine; m != nil && m.UID == w.MachineUID && spec.Attempt == w.MachineAttempt {
		i.Revision = spec.Revision
	}
	return i
}
