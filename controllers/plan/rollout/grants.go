package rollout

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
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
// now, and no person has asked for them to be moved.
//
// Without it: the power or the switch of a rack fails while a Rollout is under way. After twenty minutes its 180 Machines are broken, and are drained and
// installed again at once; many of them were at work behind the switch.
func (f Facts) NeedsGrant() []types.NamespacedName {
	r := &f.Rollout
	if !r.canStartMachines(r.Status.Phase) {
		return nil
	}
	// One that is in progress is moved as far as the budgets have room.
	inProgress := nameSet(r.Status.InProgress)
	var out []types.NamespacedName
	for i := range f.Machines {
		m := &f.Machines[i]
		if isBroken(m) && m.HasServed && m.BlockedBy == "" && r.isOutdated(m) && !r.isStarted(m) && !inProgress[m.key()] {
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
	f.CommonCause = commonCause(answers)
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
func (p *planner) hasGrant(m *Machine) bool { return !m.HasServed || m.IsGranted }

// FailingSince returns since when the Machine, which may have served, does not; isFailing is false where it does, or a person has it powered off.
func FailingSince(m *v1alpha1.Machine) (since time.Time, isFailing bool) {
	s := &m.Status
	isInPlace := s.Phase == v1alpha1.MachineValidating || s.Phase == v1alpha1.MachineReady
	ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
	if !isInPlace || m.DeletionTimestamp != nil || m.Spec.PowerOff || s.PowerOff != nil || ready == nil || ready.Status == metav1.ConditionTrue || !HasServed(m) {
		return time.Time{}, false
	}
	return ready.LastTransitionTime.Time, true
}

// confirmation returns the value of the annotation ingot.dev/confirm that has the broken Machines moved in spite of what they have in common: since when the
// Rollout says so, how many they are, and what it is. So a person who has read of two servers has not confirmed a hundred.
func confirmation(s *v1alpha1.RolloutStatus, due int, domain breaker.Domain) string {
	c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionFaultsAlone)
	if c == nil {
		return ""
	}
	digest := fnv.New32a()
	_, _ = digest.Write([]byte(domain.String())) // it never fails
	return fmt.Sprintf("%s.%d.%08x", c.LastTransitionTime.UTC().Format(time.RFC3339), due, digest.Sum32())
}

// ConfirmedDomain returns what a person has confirmed that many have in common, by the value of the annotation ingot.dev/confirm and what was answered; nil: nothing.
func (f Facts) ConfirmedDomain(value string, answers []breaker.Answer) *breaker.Domain {
	cause := commonCause(answers)
	parts := strings.Split(value, ".")
	if cause == nil || len(parts) != 3 {
		return nil
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil || n < cause.Due || value != confirmation(&f.Rollout.Status, n, cause.Domain) {
		return nil
	}
	return &cause.Domain
}

// commonCause returns the cause that most are due for; nil: no answer has one.
func commonCause(answers []breaker.Answer) (most *breaker.Cause) {
	for _, a := range answers {
		if c := a.Cause; c != nil && (most == nil || c.Due > most.Due || c.Due == most.Due && c.Domain.String() < most.Domain.String()) {
			most = c
		}
	}
	return most
}

// setCauseCondition sets the condition FaultsAlone to False while broken Machines wait because they have something in common, and adds one event for what it is. It is absent
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
	before := meta.FindStatusCondition(p.facts.Rollout.Status.Conditions, v1alpha1.ConditionFaultsAlone)
	meta.SetStatusCondition(&p.status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionFaultsAlone, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonManyAtOnce, LastTransitionTime: metav1.NewTime(p.facts.Now),
		Message: cause.Subject(),
	})
	c := meta.FindStatusCondition(p.status.Conditions, v1alpha1.ConditionFaultsAlone)
	c.Message = input.Line(causeText(*cause)+fmt.Sprintf("; to have them installed again in spite of it: kubectl annotate --overwrite rollouts.ingot.dev %s %s=%s",
		p.facts.Rollout.Name, v1alpha1.AnnotationConfirm, confirmation(p.status, cause.Due, cause.Domain)), maxConditionMessage)
	if before == nil || !strings.Contains(before.Message, cause.Domain.String()) {
		p.decision.Events = append(p.decision.Events, event.Warning(v1alpha1.ReasonManyAtOnce, EventAction, c.Message))
	}
}

// causeText says why broken Machines are not moved, and when they are.
func causeText(c breaker.Cause) string {
	isOrAre := "are"
	if c.Due == 1 {
		isOrAre = "is"
	}
	if !c.Until.IsZero() {
		return fmt.Sprintf("%s %s broken, and %d there had to be installed again within the hour before: what may be at work is not drained or installed again before %s; it goes on by itself then",
			c.Subject(), isOrAre, c.Done, c.Until.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("%s do not serve since about the same time, more than fail alone (%d within an hour): what may be at work is not drained or installed again. "+
		"Look at what they have in common: power, network, the tenant's API server. It goes on by itself when they serve again", c.Subject(), c.Limit)
}
