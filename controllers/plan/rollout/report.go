package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
)

const (
	// maxHistory is how many lines the history keeps.
	maxHistory = 32
	// maxNames is how many Machines one message names, so that it stays readable.
	maxNames = 5
)

// addHistory adds a line to the history.
func (p *planner) addHistory(message string) {
	p.status.History = append(p.status.History, v1alpha1.RolloutEntry{At: metav1.NewMicroTime(p.facts.Now), Message: message})
	if extra := len(p.status.History) - maxHistory; extra > 0 {
		p.status.History = slices.Clone(p.status.History[extra:])
	}
}

// addHistoryOfNames adds a line that says what state the Machines are in; none if there are no Machines.
func (p *planner) addHistoryOfNames(names []string, state string) {
	switch len(names) {
	case 0:
	case 1:
		p.addHistory(names[0] + " is " + state)
	default:
		p.addHistory(joinNames(names) + " are " + state)
	}
}

// addStartToHistory adds a line that says that a Machine starts, and why now.
func (p *planner) addStartToHistory(m *Machine, reason string) {
	if at := slices.Index(p.status.Canary, m.key().String()); at >= 0 {
		reason = fmt.Sprintf("canary %d of %d, %s", at+1, len(p.status.Canary), reason)
	}
	p.addHistory(m.key().String() + " starts: " + reason)
}

// budgetText says how full the budgets are that the Machine counts in.
func (p *planner) budgetText(m *Machine) string {
	text := fmt.Sprintf("%d of at most %d unavailable", p.typeBudget.unavailable, p.typeBudget.limit)
	if b := p.budgetOfPool(m); b != nil {
		text += fmt.Sprintf(", %d of %d in pool %s", b.unavailable, b.limit, b.name.Name)
	}
	return text
}

// setConditions sets the condition Ready and the fields that follow from the phase.
func (p *planner) setConditions() {
	p.status.Targets.InProgress = int32(len(p.status.InProgress))
	if p.decision.Done = p.status.Phase.IsFinal(); p.decision.Done {
		p.status.HandedOver, p.status.InProgress, p.status.Targets.InProgress = p.status.InProgress, nil, 0
	}
	if p.decision.Done {
		p.decision.RequeueAfter, p.decision.Requeue = 0, false
	}
	p.writeInUse()
	p.setTenantsCondition()
	p.setCauseCondition()
	ready := metav1.ConditionFalse
	if p.status.Phase == v1alpha1.RolloutDone {
		ready = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&p.status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: ready, Reason: string(p.status.Phase), Message: p.readyMessage(),
		LastTransitionTime: metav1.NewTime(p.facts.Now),
	})
}

// isKnown reports whether this version of Ingot knows the phase.
func isKnown(phase v1alpha1.RolloutPhase) bool {
	return slices.Contains([]v1alpha1.RolloutPhase{"", v1alpha1.RolloutPending, v1alpha1.RolloutCanary, v1alpha1.RolloutRolling, v1alpha1.RolloutPaused, v1alpha1.RolloutStopped}, phase)
}

// refuseNewerShape shows a phase that this version does not know, and starts nothing.
func (p *planner) refuseNewerShape() {
	meta.SetStatusCondition(&p.status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNewerShape, LastTransitionTime: metav1.NewTime(p.facts.Now),
		Message: fmt.Sprintf("status.phase is \"%s\", which this version of Ingot does not know: no Machine is moved until a manager runs that does", input.Line(string(p.status.Phase), 64)),
	})
}

// readyMessage says what the Rollout waits for, and who must do what.
func (p *planner) readyMessage() string {
	switch p.status.Phase {
	case v1alpha1.RolloutPending:
		if n := len(p.unlabeled); p.guards.isPreviousSettled(p.facts.Previous) && n > 0 {
			return fmt.Sprintf("takes over from Rollout %s: %s to be marked", p.facts.Previous.Name, machinesText(n))
		}
		return "waits for Rollout " + p.facts.Previous.Name + " to end"
	case v1alpha1.RolloutDone:
		return p.doneMessage()
	case v1alpha1.RolloutSuperseded:
		return "the NodeType asks for another revision now"
	case v1alpha1.RolloutStopped:
		return p.status.StoppedBy + ": set the NodeType back to undo it, or set spec.paused to true and then to false to go on in spite of it"
	case v1alpha1.RolloutPaused:
		if p.status.StoppedBy != "" {
			return "paused after it stopped: " + p.status.StoppedBy + "; it goes on, and forgives that, when spec.paused is false"
		}
		return p.progressText() + "; no further one is started while spec.paused is true"
	case v1alpha1.RolloutCanary:
		if p.status.BakedSince != nil {
			return "the canary bakes until " + p.facts.Now.Add(p.facts.Left(p.status.BakedSince.Time, p.facts.Policy.Bake)).UTC().Format(time.RFC3339)
		}
		return p.canaryText() + p.blockedByText()
	default:
		return p.progressText() + p.blockedByText()
	}
}

// canaryText says who is the canary, or why nobody is.
func (p *planner) canaryText() string {
	names := joinNames(p.status.Canary)
	switch {
	case len(p.status.Canary) == 0 || p.isCanaryLost && len(p.setAside) > 0:
		return "no Machine can be the canary now"
	case p.isCanaryLost:
		return fmt.Sprintf("%s, the canary, was deleted before %s was proven, and no Machine with a host can take its place: the next one that gets a host does; or set the NodeType back",
			names, p.facts.Rollout.targetName())
	case p.isCanaryWaiting:
		return fmt.Sprintf("canary: %s, Ready and waiting for room%s", names, p.unavailableText())
	}
	return "canary: " + names + p.unreadyCanaryText()
}

// unavailableText names the Machines that are unavailable and not broken, which take room; empty: there are none.
func (p *planner) unavailableText() string {
	var names []string
	for i := range p.facts.Machines {
		if m := &p.facts.Machines[i]; !m.Deleting && p.guards.hasHost(m) && p.guards.isUnavailable(m) && !isBroken(m) {
			names = append(names, m.key().String())
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return " until others are Ready: " + joinNames(names)
}

// canaryMessage is the line of the history when the canary begins.
func (p *planner) canaryMessage() string {
	left := machinesText(int(p.status.Targets.Total - p.status.Targets.Done))
	if len(p.status.Canary) == 0 {
		return fmt.Sprintf("%s to move to %s; none can be the canary now", left, p.facts.Rollout.targetName())
	}
	return fmt.Sprintf("%s to move to %s; the canary goes first: %s%s", left, p.facts.Rollout.targetName(), joinNames(p.status.Canary), p.unreadyCanaryText())
}

// unreadyCanaryText says why the canary is not Ready; empty: it is, or it is under way.
func (p *planner) unreadyCanaryText() string {
	if !p.isCanaryUnready {
		return ""
	}
	return ", not Ready, because no Machine that is Ready can go now"
}

// rollingMessage is the line of the history when the other Machines begin.
func (p *planner) rollingMessage() string {
	left := int(p.status.Targets.Total - p.status.Targets.Done)
	if p.facts.Rollout.ToStable && p.facts.Rollout.Status.Phase != v1alpha1.RolloutPaused {
		return fmt.Sprintf("%s to move back to %s, at most %d at once", machinesText(left), p.facts.Rollout.targetName(), p.typeBudget.limit)
	}
	return fmt.Sprintf("the others follow: %d more, at most %d at once", left, p.typeBudget.limit)
}

// doneMessage says how a Rollout that is Done has ended.
func (p *planner) doneMessage() string {
	t := p.status.Targets
	switch {
	case t.Total == 0:
		return "no Machine has to move" + p.withoutHostText()
	case len(p.status.Forgiven) > 0 || len(p.setAside) > 0:
		text := fmt.Sprintf("%d of %s are Ready with %s", t.Done, machinesText(int(t.Total)), p.facts.Rollout.targetName())
		if len(p.status.Forgiven) > 0 {
			text += "; given up: " + joinNames(p.status.Forgiven)
		}
		return text + p.setAsideText() + p.withoutHostText()
	case t.Total == 1:
		return "1 Machine is Ready with " + p.facts.Rollout.targetName() + p.withoutHostText()
	default:
		return fmt.Sprintf("%s are Ready with %s", machinesText(int(t.Total)), p.facts.Rollout.targetName()) + p.withoutHostText()
	}
}

// progressText says how many Machines have moved and how many are on their way.
func (p *planner) progressText() string {
	t := p.status.Targets
	return fmt.Sprintf("%d of %s moved, %d on their way", t.Done, machinesText(int(t.Total)), t.InProgress)
}

// blockedByText says what keeps further Machines from being started; empty: nothing.
func (p *planner) blockedByText() string {
	var blockers []string
	if p.isTypeExhausted {
		blockers = append(blockers, fmt.Sprintf("%d are unavailable, of at most %d%s", p.typeBudget.unavailable, p.typeBudget.limit, p.brokenText()))
	}
	var full []string
	for name, b := range p.poolBudgets {
		if b.isExhausted {
			full = append(full, fmt.Sprintf("%s (%d of at most %d)", name, b.unavailable, b.limit))
		}
	}
	if slices.Sort(full); len(full) > 0 {
		text := "no room in pool " + joinNames(full)
		if !p.isTypeExhausted {
			text += p.brokenText()
		}
		blockers = append(blockers, text)
	}
	if p.blocked > 0 {
		blockers = append(blockers, fmt.Sprintf("%d may not be moved now: %s", p.blocked, p.blockedBy))
	}
	if text := p.heldBackText(); text != "" {
		blockers = append(blockers, text)
	}
	if len(p.failed) > 0 {
		blockers = append(blockers, failuresText(p.failed, p.facts.Policy.FailureBudget))
	}
	text := p.setAsideText() + p.withoutHostText()
	if len(blockers) == 0 {
		return text
	}
	return "; " + strings.Join(blockers, "; ") + text
}

// failuresText names the failed Machines, and says how many may fail.
func failuresText(failed []*Machine, budget int) string {
	return fmt.Sprintf("%d failed, of at most %d: %s", len(failed), budget, causesText(failed))
}

// failureText is the reason of a failed Machine, and what it waits for.
func failureText(m *Machine) string {
	if m.WaitingFor == "" {
		return m.FailureReason
	}
	return fmt.Sprintf("%s (%s)", m.FailureReason, m.WaitingFor)
}

// joinNames lists the first names, and says how many are omitted.
func joinNames(names []string) string {
	return strings.Join(names[:min(len(names), maxNames)], ", ") + omittedText(len(names))
}

func omittedText(names int) string {
	if names <= maxNames {
		return ""
	}
	return fmt.Sprintf(" and %d more", names-maxNames)
}

func machinesText(n int) string {
	if n == 1 {
		return "1 Machine"
	}
	return fmt.Sprintf("%d Machines", n)
}

// durationText is a duration without its zero parts: 10m, 1h30m.
func durationText(d time.Duration) string {
	text := d.Round(time.Second).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if cut, found := strings.CutSuffix(text, zero); found {
			text = cut + zero[:1]
		}
	}
	return text
}
