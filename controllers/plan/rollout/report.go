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
	historyLength = 32
	// mostNames is how many Machines a line names at most, so that it stays readable.
	mostNames = 5
)

// tell adds a line to the history.
func (p *planner) tell(message string) {
	p.s.History = append(p.s.History, v1alpha1.RolloutEntry{At: metav1.NewMicroTime(p.f.Now), Message: message})
	if extra := len(p.s.History) - historyLength; extra > 0 {
		p.s.History = slices.Clone(p.s.History[extra:])
	}
}

func (p *planner) tellAll(names []string, what string) {
	switch len(names) {
	case 0:
	case 1:
		p.tell(names[0] + " is " + what)
	default:
		p.tell(some(names) + " are " + what)
	}
}

// tellStart says who starts, and why it is its turn.
func (p *planner) tellStart(m *Machine, why string) {
	if at := slices.Index(p.s.Canary, m.key().String()); at >= 0 {
		why = fmt.Sprintf("canary %d of %d, %s", at+1, len(p.s.Canary), why)
	}
	p.tell(m.key().String() + " starts: " + why)
}

// whose budgets a Machine counts in, and how full they are.
func (p *planner) whose(m *Machine) string {
	why := fmt.Sprintf("%d of at most %d unavailable", p.all.down, p.all.limit)
	if q := p.poolOf(m); q != nil {
		why += fmt.Sprintf(", %d of %d in pool %s", q.down, q.limit, q.name.Name)
	}
	return why
}

// report sets the counts, the condition Ready and what else people read.
func (p *planner) report() {
	p.s.Targets.InProgress = int32(len(p.s.InProgress))
	p.d.Done = p.s.Phase.Settled()
	if p.d.Done {
		p.d.Requeue, p.d.Again = 0, false
	}
	status := metav1.ConditionFalse
	if p.s.Phase == v1alpha1.RolloutDone {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&p.s.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: status, Reason: string(p.s.Phase), Message: p.message(),
		LastTransitionTime: metav1.NewTime(p.f.Now),
	})
}

// message says what the rollout waits for, and who must do what.
func (p *planner) message() string {
	switch p.s.Phase {
	case v1alpha1.RolloutPending:
		if n := len(p.unmarked); p.g.letGo(p.f.Before) && n > 0 {
			return fmt.Sprintf("takes over from Rollout %s: %s to be marked", p.f.Before.Name, count(n))
		}
		return "waits for Rollout " + p.f.Before.Name + " to end"
	case v1alpha1.RolloutDone:
		return p.summary()
	case v1alpha1.RolloutSuperseded:
		return "the NodeType asks for another revision now"
	case v1alpha1.RolloutStopped:
		return p.s.StoppedBy + ": set the NodeType back to undo it, or set spec.paused to true and then to false to go on in spite of it"
	case v1alpha1.RolloutPaused:
		if p.s.StoppedBy != "" {
			return "paused after it stopped: " + p.s.StoppedBy + "; it goes on, and forgives that, when spec.paused is false"
		}
		return p.progress() + "; no further one is started while spec.paused is true"
	case v1alpha1.RolloutCanary:
		if p.s.BakedSince != nil {
			return "the canary bakes until " + p.s.BakedSince.Add(p.f.Policy.Bake).UTC().Format(time.RFC3339)
		}
		if len(p.s.Canary) == 0 {
			return "no Machine can be the canary now" + p.obstacles()
		}
		return fmt.Sprintf("canary: %s%s", some(p.s.Canary), p.obstacles())
	default:
		return p.progress() + p.obstacles()
	}
}

func (p *planner) progress() string {
	t := p.s.Targets
	return fmt.Sprintf("%d of %s moved, %d on their way", t.Done, count(int(t.Total)), t.InProgress)
}

// obstacles is what keeps further Machines from being started.
func (p *planner) obstacles() string {
	var why []string
	if p.blocked {
		why = append(why, fmt.Sprintf("%d are unavailable, of at most %d", p.all.down, p.all.limit))
	}
	var full []string
	for name, q := range p.pools {
		if q.blocked {
			full = append(full, fmt.Sprintf("%s (%d of at most %d)", name, q.down, q.limit))
		}
	}
	if slices.Sort(full); len(full) > 0 {
		why = append(why, "no room in pool "+some(full))
	}
	if p.troubled > 0 {
		why = append(why, fmt.Sprintf("%d wait for their tenant: %s", p.troubled, p.trouble))
	}
	if len(p.failed) > 0 {
		why = append(why, failures(p.failed, p.f.Policy.FailureBudget))
	}
	if len(why) == 0 {
		return ""
	}
	return "; " + strings.Join(why, "; ")
}

// failures names who failed, and how many may.
func failures(failed []*Machine, budget int) string {
	names := make([]string, 0, mostNames)
	for _, m := range failed[:min(len(failed), mostNames)] {
		names = append(names, m.key().String()+": "+because(m))
	}
	return fmt.Sprintf("%d failed, of at most %d: %s%s", len(failed), budget, strings.Join(names, ", "), more(len(failed)))
}

func some(names []string) string {
	return strings.Join(names[:min(len(names), mostNames)], ", ") + more(len(names))
}

func more(n int) string {
	if n <= mostNames {
		return ""
	}
	return fmt.Sprintf(" and %d more", n-mostNames)
}

func count(n int) string {
	if n == 1 {
		return "1 Machine"
	}
	return fmt.Sprintf("%d Machines", n)
}

func are(n int) string {
	if n == 1 {
		return "1 Machine is"
	}
	return count(n) + " are"
}
