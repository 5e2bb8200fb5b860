package fleet

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/plan/inventory"
	"github.com/ingot-dev/ingot/controllers/plan/providerkind"
)

// text returns the diagnosis for a terminal.
func (d Diagnosis) text() string {
	var b strings.Builder
	fmt.Fprintln(&b, d.Summary)
	for _, c := range d.Conditions {
		fmt.Fprintf(&b, "  condition  %s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	for _, c := range d.Checks {
		fmt.Fprintf(&b, "  check      %s: %s, expected %s, observed %s\n", c.Name, c.Result, c.Expected, orDash(c.Observed))
	}
	d.writeHost(&b)
	for _, c := range d.FailingCalls {
		fmt.Fprintf(&b, "  failing    %s for %s, %s: %s\n", c.Call, timeSince(&c.Since.Time, d.now), c.Reason, c.Message)
	}
	if d.Progress != nil {
		for _, f := range d.Progress.Findings {
			fmt.Fprintf(&b, "  noticed    %s, last %s ago: %s\n", f.Reason, timeSince(&f.At.Time, d.now), f.Message)
		}
	}
	d.writeQueue(&b)
	d.writeAttempt(&b)
	d.writeCandidates(&b)
	if r := d.Rollout; r != nil {
		fmt.Fprintf(&b, "  rollout    %s: %s\n", r.Name, rolloutLine(r))
	}
	if d.Manager != "" {
		fmt.Fprintf(&b, "  manager    %s\n", d.Manager)
	}
	if d.Next != "" {
		fmt.Fprintf(&b, "  next       %s\n", d.Next)
	}
	return b.String()
}

// writeHost writes the lines about the Machine's host.
func (d Diagnosis) writeHost(b *strings.Builder) {
	h := d.Host
	if h == nil {
		return
	}
	fmt.Fprintf(b, "  host       %s/%s: %s, power %s", h.Namespace, h.Name, h.State, strings.ToLower(h.Power))
	if h.Error != "" {
		fmt.Fprintf(b, "; %s", h.Error)
	}
	if h.NotFree != "" {
		fmt.Fprintf(b, "; %s", h.NotFree)
	}
	switch {
	case h.Kept == "":
	case h.isServed:
		fmt.Fprint(b, "; being deleted by its baremetal-operator, whatever runs there")
	default:
		fmt.Fprint(b, "; being deleted, and kept for its Machine")
	}
	fmt.Fprintln(b)
	for _, disk := range h.MissingDisks {
		fmt.Fprintf(b, "  missing    %s: the agent did not find it\n", disk)
	}
	for _, a := range h.IgnoredAnnotations {
		fmt.Fprintf(b, "  ignored    %s\n", a.Message)
	}
}

// writeQueue writes the line about the place of a host that waits for its turn.
func (d Diagnosis) writeQueue(b *strings.Builder) {
	if q := d.Queue; q != nil {
		fmt.Fprintf(b, "  queue      place %d for %s, since %s; its NodeProvider works on a limited number of hosts at the same time\n", q.Place, q.Operation, clockTime(q.Since.Time))
	}
}

// writeAttempt writes the line about the last attempt on the host of a Machine that is not Ready.
func (d Diagnosis) writeAttempt(b *strings.Builder) {
	a := d.Attempt
	if a == nil || d.Machine.Ready {
		return
	}
	fmt.Fprintf(b, "  attempt    %d: %s %s", a.Number, a.Operation, cmp.Or(string(a.Outcome), "Running"))
	if step := d.attemptStep(); step != "" {
		fmt.Fprintf(b, " at %s", step)
	}
	if a.IsOpen() {
		fmt.Fprintf(b, "; the attempt ends by %s", clockTime(a.Deadline.Time))
	}
	if a.Reason != "" {
		fmt.Fprintf(b, "; %s: %s", a.Reason, a.Message)
	}
	fmt.Fprintln(b)
	if d.Host != nil && a.Outcome == v1alpha1.AttemptFailed && d.provider.Name != providerkind.Ironic.Name {
		fmt.Fprintf(b, "  log        ingot why --log %s/%s\n", d.Host.Namespace, d.Host.Name)
	}
	if d.Progress != nil {
		d.writeEvidence(b)
	}
}

// writeEvidence says through what channel the agent reports, and what it has done to each disk.
func (d Diagnosis) writeEvidence(b *strings.Builder) {
	if c := hardware.Channel(d.Progress.Channel); c != "" {
		tpm := inventory.HardwareTPM(d.Progress.TPM)
		strength := "no neighbour can report in the server's place"
		if !hardware.IsProof(c, tpm.Proof) {
			strength = "a neighbour on the provisioning network can report in the server's place"
		}
		fmt.Fprintf(b, "  channel    %s%s: %s\n", c, tpm.Proof.Describe(), strength)
		d.writeTPM(b, tpm)
	}
	for _, disk := range d.Progress.Disks {
		fmt.Fprintf(b, "  disk       %s: %s", hardware.Disk(disk.DiskInventory), disk.Result)
		if disk.Method != "" {
			fmt.Fprintf(b, " by %s", disk.Method)
		}
		fmt.Fprintf(b, "; %s\n", orDash(disk.Message))
	}
}

// attemptStep is the step that the attempt failed at or, while it runs, the step that it is at, for how long, and until when.
func (d Diagnosis) attemptStep() string {
	p := d.Progress
	if p == nil || !d.Attempt.IsOpen() {
		return d.Attempt.Step
	}
	text := p.Step
	if p.StepAt != nil {
		text += " for " + timeSince(&p.StepAt.Time, d.now)
	}
	if p.StepDeadline != nil {
		text += "; this step ends by " + clockTime(p.StepDeadline.Time)
	}
	return text
}

func clockTime(t time.Time) string { return t.UTC().Format("15:04:05Z") }

func rolloutLine(r *v1alpha1.Rollout) string {
	text := fmt.Sprintf("%s, %d of %d done", orDash(string(r.Status.Phase)), r.Status.Targets.Done, r.Status.Targets.Total)
	if r.Status.StoppedBy != "" {
		text += "; stopped by " + r.Status.StoppedBy
	}
	if waits := r.WaitsForTenants(); waits != "" {
		text += "; waits for " + waits
	}
	return text
}
