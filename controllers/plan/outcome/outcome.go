// Package outcome draws the consequences of the end of an attempt on a host: what is installed, what is proven to be erased, what
// was found, what failed. They are drawn once, from what any installer says; the outcome in HostRecord.status.wanted says that they
// are drawn.
package outcome

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/inventory"
)

// Facts are all that a conclusion depends on, beside the record.
type Facts struct {
	Now time.Time
	// Spec is the HostRecord's.
	Spec v1alpha1.HostRecordSpec
	// Observed is what the installer saw; nil when it was not or could not be asked.
	Observed *hardware.Observation
	// Power is what the BMC says now.
	Power hardware.PowerState
	// Problem is why the BMC could not be read; empty when it was.
	Problem string
	// Grace is how long after the deadline the installer may take to end the attempt.
	Grace time.Duration
}

// status is what the installer says of the attempt that is wanted; nil when it says nothing.
func (f Facts) status(w *v1alpha1.WantedAttempt) *hardware.AttemptStatus {
	if w == nil || f.Observed == nil || f.Observed.Attempt == nil || f.Observed.Attempt.Number != w.Number {
		return nil
	}
	return f.Observed.Attempt
}

// Conclude writes the outcome of the attempt that is wanted into the record, and what follows from it. It changes nothing while the
// attempt goes on, and nothing a second time.
func Conclude(r *v1alpha1.HostRecordStatus, f Facts) {
	w, status := r.Wanted, f.status(r.Wanted)
	switch {
	case !w.IsOpen():
	case status != nil && status.State == hardware.AttemptFailed:
		fail(r, f, status.Step, status.Reason, status.Message)
	case MustAwaitPowerOff(r, f):
		// Only the power-off is missing, whatever the deadline: doing the erase again would not bring it.
	case status != nil && status.State == hardware.AttemptSucceeded:
		succeed(r, f)
	case f.Now.After(w.Deadline.Add(f.Grace)):
		failOverdue(r, f)
	}
}

// MustAwaitPowerOff says whether the attempt is an erase that has succeeded, while the BMC does not confirm the power-off. It is proven
// only with that.
func MustAwaitPowerOff(r *v1alpha1.HostRecordStatus, f Facts) bool {
	w, status := r.Wanted, f.status(r.Wanted)
	return w.IsOpen() && w.Operation == string(hardware.OpErase) && status != nil && status.State == hardware.AttemptSucceeded && f.Power != hardware.PowerOff
}

// failOverdue ends an attempt that its installer has not ended: it cannot be asked, or refuses to begin.
func failOverdue(r *v1alpha1.HostRecordStatus, f Facts) {
	step := hardware.StepPoweringOff
	if status := f.status(r.Wanted); status != nil {
		step = status.Step
	} else if kept := r.Progress(); kept != nil {
		step = hardware.Step(kept.Step)
	}
	message := fmt.Sprintf("the deadline passed at step %s and the installer did not say why", step)
	if f.Problem != "" {
		message = fmt.Sprintf("the deadline passed at step %s; %s", step, f.Problem)
	}
	fail(r, f, step, hardware.ReasonDeadlineExceeded, message)
}

func fail(r *v1alpha1.HostRecordStatus, f Facts, step hardware.Step, reason hardware.Reason, message string) {
	w := end(r, f, v1alpha1.AttemptFailed)
	w.Step, w.Reason, w.Message = string(step), string(reason), v1alpha1.Clipped(message, v1alpha1.MaxAttemptMessage)
	if reason != hardware.ReasonCancelled {
		r.Failures++
	}
}

func succeed(r *v1alpha1.HostRecordStatus, f Facts) {
	w := end(r, f, v1alpha1.AttemptSucceeded)
	r.Failures = 0
	switch hardware.Operation(w.Operation) {
	case hardware.OpInspect:
		r.Inventory = &v1alpha1.HostInventory{}
		if f.Observed.Inventory != nil {
			r.Inventory = inventory.Record(*f.Observed.Inventory)
		}
	case hardware.OpInstall:
		r.Installed, r.Erased = installed(w, f.Spec), nil
	case hardware.OpErase:
		r.Installed = nil
		r.Erased = &v1alpha1.EraseEvidence{Mode: w.Erase, Attempt: w.Number, At: *w.EndedAt, Tenant: r.LastTenant}
	}
}

// end writes the outcome of the attempt.
func end(r *v1alpha1.HostRecordStatus, f Facts, outcome v1alpha1.AttemptOutcome) *v1alpha1.WantedAttempt {
	now := metav1.NewMicroTime(f.Now)
	r.Wanted.Outcome, r.Wanted.EndedAt = outcome, &now
	return r.Wanted
}

// installed is what an installation left on the disk.
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
