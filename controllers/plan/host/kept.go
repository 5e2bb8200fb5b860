package host

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/event"
)

// reportKept sets the condition Undeleted of a host that was deleted while a Machine has it, and adds an event. Without it: the host runs on as
// before, kubectl delete waits, and nothing says for what. It is no error of the host, because an error would stop the node's next roll.
// A host that was not deleted has no such condition.
func (p *planner) reportKept() {
	old := meta.FindStatusCondition(p.d.Record.Conditions, v1alpha1.ConditionUndeleted)
	isKept := p.Host.Deleting && p.Host.MachineName != "" && !p.isMachineGone() && !p.Host.Detached
	if p.d.RemoveFinalizer || !isKept && old == nil {
		return
	}
	p.d.Record.Conditions = slices.Clone(p.d.Record.Conditions)
	if !isKept {
		meta.RemoveStatusCondition(&p.d.Record.Conditions, v1alpha1.ConditionUndeleted)
		return
	}
	message := "the host " + v1alpha1.KeptForMachine(p.Host.MachineNamespace, p.Host.MachineName)
	if old == nil || old.Message != message {
		p.d.Events = append(p.d.Events, event.Warning(v1alpha1.ReasonKeptForMachine, "Serve", message))
	}
	meta.SetStatusCondition(&p.d.Record.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionUndeleted, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonKeptForMachine, LastTransitionTime: metav1.NewTime(p.Now), Message: message,
	})
}
