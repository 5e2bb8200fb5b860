package host

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/event"
)

// reportFindings sets the condition AgentUndisputed to what the boot service has noticed in the attempt, and adds one event for each kind of
// finding in an attempt. A host that never had a finding has no such condition, so that it costs no write.
func (p *planner) reportFindings() {
	a := p.d.Record.Progress()
	if a == nil {
		return
	}
	c := metav1.Condition{
		Type: v1alpha1.ConditionAgentUndisputed, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonUndisputed, LastTransitionTime: metav1.NewTime(p.Now),
		Message: fmt.Sprintf("nothing was noticed in attempt %d", a.Number),
	}
	old := meta.FindStatusCondition(p.d.Record.Conditions, c.Type)
	if len(a.Findings) == 0 && (old == nil || a.Agent == nil) {
		return // an agent proves that the network works as it must, a new attempt does not
	}
	reported := v1alpha1.ReportedFindings{Attempt: a.Number}
	if r := p.d.Record.ReportedFindings; r != nil && r.Attempt == a.Number {
		reported.Reasons = slices.Clone(r.Reasons)
	}
	for i, f := range a.Findings {
		if !slices.Contains(reported.Reasons, f.Reason) {
			reported.Reasons = append(reported.Reasons, f.Reason)
			p.d.Events = append(p.d.Events, event.Warning(string(f.Reason), "Serve", fmt.Sprintf("attempt %d: %s", a.Number, f.Message)))
		}
		if i == 0 {
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, string(f.Reason), fmt.Sprintf("attempt %d: ", a.Number)
		} else {
			c.Message += "; " + string(f.Reason) + ": "
		}
		c.Message += f.Message
	}
	p.d.Record.Conditions = slices.Clone(p.d.Record.Conditions)
	meta.SetStatusCondition(&p.d.Record.Conditions, c)
	p.d.Record.ReportedFindings = &reported
}
