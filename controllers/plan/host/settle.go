package host

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// settle takes over what the installer reports of the current attempt, and draws the consequences of its end once:
// EndedAt says that they are drawn.
func (p *planner) settle() {
	a := p.d.Record.Attempt
	if a == nil {
		return
	}
	if p.Observed != nil && p.Observed.Attempt != nil && p.Observed.Attempt.Number == a.Number && a.EndedAt == nil && !p.onTheWay(p.Observed.Attempt) {
		takeOver(a, p.Observed.Attempt, p.Now)
	}
	if a.State == string(hardware.AttemptRunning) || a.EndedAt != nil {
		return
	}
	if a.Operation == string(hardware.OpErase) && a.State == string(hardware.AttemptSucceeded) && p.seen() != hardware.PowerOff {
		return
	}
	p.account(a)
}

// onTheWay: the attempt runs, and its installer keeps in this very record how far it is. What differs was written there after
// the record was read, and to write it again would only be refused.
func (p *planner) onTheWay(o *hardware.AttemptStatus) bool {
	return p.running() && o.State == hardware.AttemptRunning
}

func takeOver(a *v1alpha1.HostAttempt, o *hardware.AttemptStatus, now time.Time) {
	if a.Step != string(o.Step) && o.Step != "" {
		at := metav1.NewMicroTime(now)
		a.Step, a.StepAt = string(o.Step), &at
	}
	if o.State != "" {
		a.State = string(o.State)
	}
	a.DoneBytes, a.TotalBytes, a.Boots = o.DoneBytes, o.TotalBytes, int32(o.Boots)
	a.Reason, a.Message = string(o.Reason), AttemptMessage(o.Message)
}

// The limits of HostAttempt.message, HostError.message and HostRecordStatus.retrySeen, in bytes.
const (
	maxMessage = 4096
	maxError   = 8192
	maxRetry   = 256
)

// AttemptMessage is as much of a message as HostAttempt.message takes.
func AttemptMessage(text string) string { return cut(text, maxMessage) }

// cut ends a text at a character: half of one would be replaced on its way to the API server, and differ for ever.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}

// account draws the consequences of an attempt's end.
func (p *planner) account(a *v1alpha1.HostAttempt) {
	r := &p.d.Record
	now := metav1.NewMicroTime(p.Now)
	a.EndedAt = &now
	if a.State != string(hardware.AttemptSucceeded) {
		if a.Reason != string(hardware.ReasonCancelled) {
			r.Failures++
		}
		p.d.Events = append(p.d.Events, Event{Warning: true, Reason: a.Reason, Action: a.Operation, Message: a.Message})
		return
	}
	r.Failures = 0
	switch hardware.Operation(a.Operation) {
	case hardware.OpInspect:
		r.Inventory = &v1alpha1.HostInventory{}
		if p.Observed != nil && p.Observed.Inventory != nil {
			r.Inventory = Inventory(*p.Observed.Inventory)
		}
	case hardware.OpInstall:
		r.Installed, r.Erased = p.installedBy(a), nil
	case hardware.OpErase:
		r.Installed = nil
		r.Erased = &v1alpha1.EraseEvidence{Mode: a.Erase, Attempt: a.Number, At: now, Tenant: r.LastTenant}
	}
	p.d.Events = append(p.d.Events, Event{Reason: a.Operation + "Succeeded", Action: a.Operation,
		Message: "took " + p.Now.Sub(a.StartedAt.Time).Round(time.Second).String()})
}

func (p *planner) installedBy(a *v1alpha1.HostAttempt) *v1alpha1.HostInstalled {
	i := &v1alpha1.HostInstalled{MachineUID: a.MachineUID, Attempt: a.MachineAttempt, At: metav1.NewMicroTime(p.Now)}
	if a.Image != nil {
		i.Checksum = a.Image.Checksum
	}
	if m := p.Spec.Machine; m != nil && m.UID == a.MachineUID && p.Spec.Attempt == a.MachineAttempt {
		i.Revision = p.Spec.Revision
	}
	return i
}

// installed is what the Machine that has the host says is on it.
func (p *planner) installed(at time.Time) *v1alpha1.HostInstalled {
	return &v1alpha1.HostInstalled{MachineUID: p.Spec.Machine.UID, Attempt: p.Spec.Attempt, Revision: p.Spec.Revision,
		Checksum: p.Spec.Image.Checksum, At: metav1.NewMicroTime(at)}
}
