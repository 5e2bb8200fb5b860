package rollout

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/breaker"
	"github.com/ingot-dev/ingot/controllers/plan/event"
)

// NeedsGrant returns the Machines that the Rollout would move without regard to the budgets although they may be at work: their nodes were admitted and are broken
// now, and no person has asked for them to be moved. One of status.brokenBefore has its grant.
//
// Without it: the power or the switch of a rack fails while a Rollout is under way. After twenty minutes its 180 Machines are broken, and are drained and
// installed again at once; many of them were at work behind the switch.
func (f Facts) NeedsGrant() []types.NamespacedName {
	r := &f.Rollout
	if !r.canStartMachines(r.Status.Phase) {
		return nil
	}
	// One that is in progress is moved as far as the budgets have room.
	granted := nameSet(slices.Concat(r.Status.BrokenBefore, r.Status.InProgress))
	var out []types.NamespacedName
	for i := range f.Machines {
		m := &f.Machines[i]
		if isBroken(m) && m.HasServed && m.BlockedBy == "" && r.isOutdated(m) && !r.isStarted(m) && !granted[m.key()] {
			out = append(out, m.key())
		}
	}
	return out
}

// SetAnswers writes into the facts what the Machines of NeedsGrant were answered, in the same order. One without a grant may not be moved.
func (f *Facts) SetAnswers(asked []types.NamespacedName, answers []breaker.Answer) {
	byName := make(map[types.NamespacedName]breaker.Answer, len(asked))
	for i, name := range asked {
		byName[name] = answers[i]
	}
	for i := range f.Machines {
		m := &f.Machines[i]
		answer, isAsked := byName[m.key()]
		switch {
		case !isAsked:
			continue
		case answer.IsGranted:
			m.IsGranted = true
			continue
		case answer.Cause != nil:
			f.CommonCause = answer.Cause
			m.BlockedBy = "it may be at work, and many do not serve any more: see the condition " + v1alpha1.ConditionFaultsAlone
		default:
			m.BlockedBy = "it may be at work, and whether it fails alone is seen in " + answer.Wait.Round(time.Second).String()
		}
		if f.AskAgain == 0 || answer.Wait < f.AskAgain {
			f.AskAgain = answer.Wait
		}
	}
}

// hasGrant implements the guard of that name. One in progress was chosen within the budgets, and is moved within them.
func (p *planner) hasGrant(m *Machine) bool {
	return !m.HasServed || m.IsGranted || p.recordedBroken[m.key()] && !p.recorded[m.key()]
}

// IsFailing reports whether the Machine has served and does not now, as far as anybody can see; who asked for it, if anybody, is not known here.
func IsFailing(m *v1alpha1.Machine) bool {
	s := &m.Status
	isInPlace := s.Phase == v1alpha1.MachineValidating || s.Phase == v1alpha1.MachineReady
	return isInPlace && m.DeletionTimestamp == nil && !m.Spec.PowerOff && s.PowerOff == nil && !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReady) && HasServed(m)
}

// recordGranted records the grants in status.brokenBefore, so that they hold over a restart of the manager.
func (p *planner) recordGranted() {
	for i := range p.facts.Machines {
		if m := &p.facts.Machines[i]; m.IsGranted {
			p.recordBroken(m)
		}
	}
}

// Confirmation returns the value of the annotation ingot.dev/confirm that has the broken Machines moved in spite of what they have in common; empty: the
// Rollout does not say that they have anything.
func Confirmation(s *v1alpha1.RolloutStatus) string {
	c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionFaultsAlone)
	if c == nil {
		return ""
	}
	return c.LastTransitionTime.UTC().Format(time.RFC3339)
}

// setCauseCondition sets the condition FaultsAlone to False while broken Machines wait because they have something in common, and adds one event. It is absent
// otherwise.
func (p *planner) setCauseCondition() {
	cause := p.facts.CommonCause
	if p.facts.AskAgain > 0 {
		p.requeueAfter(p.facts.AskAgain)
	}
	if cause == nil || p.decision.Done {
		meta.RemoveStatusCondition(&p.status.Conditions, v1alpha1.ConditionFaultsAlone)
		return
	}
	isNew := meta.SetStatusCondition(&p.status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionFaultsAlone, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonManyAtOnce, LastTransitionTime: metav1.NewTime(p.facts.Now),
		Message: cause.Message(),
	}) && Confirmation(&p.facts.Rollout.Status) == ""
	c := meta.FindStatusCondition(p.status.Conditions, v1alpha1.ConditionFaultsAlone)
	c.Message = input.Line(fmt.Sprintf("%s do not serve any more, which is more than come alone (%d within an hour): none that was admitted is drained or installed again beside the budgets, because it may be at work. "+
		"Look at what they have in common: power, network, the tenant's API server. It goes on by itself when they serve again; to have them installed again in spite of it: kubectl annotate rollout %s %s=%s",
		cause.Message(), cause.Limit, p.facts.Rollout.Name, v1alpha1.AnnotationConfirm, Confirmation(p.status)), maxConditionMessage)
	if isNew {
		p.decision.Events = append(p.decision.Events, event.Warning(v1alpha1.ReasonManyAtOnce, EventAction, c.Message))
	}
}
