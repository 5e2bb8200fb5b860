package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

const (
	// historyLength is the most entries that are kept.
	maxHistory = 32
	// mostNames is how many Machines a line names at most, so that it stays readable.
	maxNames = 5
)

// tell adds a line to the history.
func (p *planner) addHistory(message string) {
	p.status.History = append(p.status.History, v1alpha1.RolloutEntry{At: metav1.NewMicroTime(p.facts.Now), Message: message})
	if extra := len(p.status.History) - maxHistory; extra > 0 {
		p.status.History = slices.Clone(p.status.History[extra:])
	}
}

func (p *planner) addHistoryOfNames(names []string, what string) {
	switch len(names) {
	case 0:
	case 1:
		p.addHistory(names[0] + " is " + what)
	default:
		p.addHistory(joinNames(names) + " are " + what)
	}
}

// tellStart says who starts, and why it is its turn.
func (p *planner) addStartToHistory(m *Machine, why string) {
	if at := slices.Index(p.status.Canary, m.key().String()); at >= 0 {
		why = fmt.Sprintf("canary %d of %d, %s", at+1, len(p.status.Canary), why)
	}
	p.addHistory(m.key().String() + " starts: " + why)
}

// whose budgets a Machine counts in, and how full they are.
func (p *planner) budgetText(m *Machine) string {
	why := fmt.Sprintf("%d of at most %d unavailable", p.typeBudget.unavailable, p.typeBudget.limit)
	if q := p.budgetOfPool(m); q != nil {
		why += fmt.Sprintf(", %d of %d in pool %s", q.unavailable, q.limit, q.name.Name)
	}
	return why
}

// report sets the counts, the condition Ready and what else people read.
func (p *planner) setConditions() {
	p.status.Targets.InProgress = int32(len(p.status.InProgress))
	p.decision.Done = p.status.Phase.Settled()
	if p.decision.Done {
		p.decision.RequeueAfter, p.decision.PlanAgain = 0, false
	}
	status := metav1.ConditionFalse
	if p.status.Phase == v1alpha1.RolloutDone {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&p.status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: status, Reason: string(p.status.Phase), Message: p.readyMessage(),
		LastTransitionTime: metav1.NewTime(p.facts.Now),
	})
}

// message says what the rollout waits for, and who must do what.
func (p *planner) readyMessage() string {
	switch p.status.Phase {
	case v1alpha1.RolloutPending:
		if n := len(p.unmarked); p.guards.isPreviousSettled(p.facts.Previous) && n > 0 {
			return fmt.Sprintf("takes over from Rollout %s: %s to be marked", p.facts.Previous.Name, machinesText(n))
		}
		return "waits for Rollout " + p.facts.Previous.Name + " to end"
	case v1alpha1.RolloutDone:
		return p.summary()
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
			return "the canary bakes until " + p.status.BakedSince.Add(p.facts.Policy.Bake).UTC().Format(time.RFC3339)
		}
		if len(p.status.Canary) == 0 {
			return "no Machine can be the canary now" + p.obstacleText()
		}
		return fmt.Sprintf("canary: %s%s", joinNames(p.status.Canary), p.obstacleText())
	default:
		return p.progressText() + p.obstacleText()
	}
}

func (p *planner) progressText() string {
	t := p.status.Targets
	return fmt.Sprintf("%d of %s moved, %d on their way", t.Done, machinesText(int(t.Total)), t.InProgress)
}

// obstacles is what keeps further Machines from being started.
func (p *planner) obstacleText() string {
	var why []string
	if p.isTypeExhausted {
		why = append(why, fmt.Sprintf("%d are unavailable, of at most %d", p.typeBudget.unavailable, p.typeBudget.limit))
	}
	var full []string
	for name, q := range p.poolBudgets {
		if q.isExhausted {
			full = append(full, fmt.Sprintf("%s (%d of at most %d)", name, q.unavailable, q.limit))
		}
	}
	if slices.Sort(full); len(full) > 0 {
		why = append(why, "no room in pool "+joinNames(full))
	}
	if p.blocked > 0 {
		why = append(why, fmt.Sprintf("%d wait for their tenant: %s", p.blocked, p.blockedBy))
	}
	if len(p.failed) > 0 {
		why = append(why, failuresText(p.failed, p.facts.Policy.FailureBudget))
	}
	if len(why) == 0 {
		return ""
	}
	return "; " + strings.Join(why, "; ")
}

// failures names who failed, and how many may.
func failuresText(failed []*Machine, budget int) string {
	names := make([]string, 0, maxNames)
	for _, m := range failed[:min(len(failed), maxNames)] {
		names = append(names, m.key().String()+": "+failureText(m))
	}
	return fmt.Sprintf("%d failed, of at most %d: %s%s", len(failed), budget, strings.Join(names, ", "), moreText(len(failed)))
}

func joinNames(names []string) string {
	return strings.Join(names[:min(len(names), maxNames)], ", ") + moreText(len(names))
}

func moreText(n int) string {
	if n <= maxNames {
		return ""
	}
	return fmt.Sprintf(" and %d more", n-maxNames)
}

func machinesText(n int) string {
	if n == 1 {
		return "1 Machine"
	}
	return fmt.Sprintf("%d Machines", n)
}

func machinesAreText(n int) string {
	if n == 1 {
		return "1 Machine is"
	}
	return machinesText(n) + " are"
}
