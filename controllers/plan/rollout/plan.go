package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// planner works out one Decision.
type planner struct {
	facts    Facts
	guards   guards
	decision Decision
	// s is the status that d will have.
	status *v1alpha1.RolloutStatus
	// inherited are the Machines that the Rollout before this one had named; unmarked are those of them that have not this one's
	// mark, handOn those that a newer Rollout must know of.
	inherited          map[types.NamespacedName]bool
	unmarked, handover []*Machine
	// read are the Machines that the status as read names, next those that the new one does.
	recorded, inProgress map[types.NamespacedName]bool
	// members are the Machines that the status names in any way; nil: gone.
	named map[types.NamespacedName]*Machine
	// forgiven are names whose failure no longer counts.
	forgiven map[types.NamespacedName]bool
	// all counts the NodeType's Machines, pools those of each NodePool; last is the pool that was asked for last.
	typeBudget  budget
	poolBudgets map[types.NamespacedName]*poolBudget
	lastPool    *poolBudget
	// failed are the Machines whose failure counts.
	failed []*Machine
	// blocked: a Machine waits only because the NodeType has no room.
	isTypeExhausted bool
	// unsettled is how many Machines keep the rollout from being Done; troubled how many of them their tenant keeps.
	unfinished, blocked int
	// trouble is what one of those tenants suffers from.
	blockedBy string
}

// Plan decides the next step of the rollout.
func Plan(f Facts) Decision { return plan(f, realGuards()) }

func plan(f Facts, g guards) Decision {
	p := &planner{facts: f, guards: g, decision: Decision{Status: *f.Rollout.Status.DeepCopy()}, poolBudgets: map[types.NamespacedName]*poolBudget{}}
	p.status, p.recorded = &p.decision.Status, nameSet(f.Rollout.Status.InProgress)
	if p.status.Phase.Settled() {
		p.decision.Done = true
		return p.decision
	}
	p.countUnavailable()
	p.updateInProgress()
	p.countTargets()
	if p.begins() {
		if !f.Rollout.Superseded {
			p.updateCanary()
		}
		p.updatePhase()
		if p.isActive() {
			p.start(p.choose())
		}
	}
	p.setConditions()
	return p.decision
}

// begins waits for the Rollout before this one to let go, and then marks what that one had named, so that no request of its is
// good any more and no cache can show those Machines as they were before it.
func (p *planner) begins() bool {
	if p.status.Phase != "" && p.status.Phase != v1alpha1.RolloutPending {
		return true
	}
	p.status.Phase = v1alpha1.RolloutPending
	if !p.guards.isPreviousSettled(p.facts.Previous) {
		return false
	}
	if len(p.unmarked) > 0 && !p.facts.Rollout.Superseded {
		slices.SortFunc(p.unmarked, compareByName)
		p.decision.Mark = []types.NamespacedName{p.unmarked[0].key()}
		p.decision.PlanAgain = len(p.unmarked) > 1
		return false
	}
	return true
}

// survey looks once at every Machine.
func (p *planner) countUnavailable() {
	p.inProgress, p.forgiven = nameSet(p.status.InProgress), nameSet(p.status.Forgiven)
	p.inherited = nameSet(p.guards.inheritedNames(p.facts.Previous))
	p.named = make(map[types.NamespacedName]*Machine, len(p.inProgress)+len(p.status.Canary)+len(p.forgiven))
	for _, list := range [][]string{p.status.InProgress, p.status.Canary, p.status.Forgiven} {
		for _, name := range list {
			p.named[parseName(name)] = nil
		}
	}
	for i := range p.facts.Machines {
		m := &p.facts.Machines[i]
		if m.Deleting {
			continue
		}
		isDown := p.guards.isUnavailable(m)
		if _, known := p.named[m.key()]; known {
			p.named[m.key()] = m
			isDown = isDown || p.inProgress[m.key()] && p.guards.mustStayInProgress(&p.facts.Rollout, m) && p.guards.mustCountInProgress(m)
		}
		if p.inherited[m.key()] {
			isDown = p.inherit(m, isDown)
		}
		p.typeBudget.add(isDown)
		if q := p.budgetOfPool(m); q != nil {
			q.add(isDown)
		}
	}
	p.setLimits()
}

// inherit tells whether a Machine that the Rollout before this one had named counts as unavailable: it does until it is seen
// with the mark of this one.
func (p *planner) inherit(m *Machine, isDown bool) bool {
	if !m.Marked {
		p.unmarked = append(p.unmarked, m)
	}
	if !m.Marked || isDown {
		p.handover = append(p.handover, m)
	}
	return isDown || !m.Marked
}

// letArrive takes those off the list that have arrived or are gone, and puts those on it that were started without.
func (p *planner) updateInProgress() {
	var stay, arrived, gone []string
	for _, name := range p.status.InProgress {
		switch m := p.named[parseName(name)]; {
		case m == nil:
			gone = append(gone, name)
		case p.guards.mustStayInProgress(&p.facts.Rollout, m):
			stay = append(stay, name)
		default:
			arrived = append(arrived, name)
		}
	}
	p.status.InProgress, p.inProgress = stay, nameSet(stay)
	p.addHistoryOfNames(arrived, "Ready with "+p.facts.Rollout.targetName())
	p.addHistoryOfNames(gone, "deleted")
	for i := range p.facts.Machines {
		if m := &p.facts.Machines[i]; m.Marked && !m.Deleting && m.Installed != p.facts.Rollout.To && p.guards.mustStayInProgress(&p.facts.Rollout, m) && p.facts.Rollout.isStarted(m) && !p.inProgress[m.key()] {
			p.addStarted(m)
		}
	}
	p.status.Forgiven = slices.DeleteFunc(slices.Clone(p.status.Forgiven), func(name string) bool {
		m := p.named[parseName(name)]
		return m == nil || p.facts.Rollout.hasMoved(m)
	})
	p.forgiven = nameSet(p.status.Forgiven)
}

// judge counts what is done, what failed and what remains.
func (p *planner) countTargets() {
	p.status.Targets = v1alpha1.RolloutTargets{}
	for i := range p.facts.Machines {
		if m := &p.facts.Machines[i]; !m.Deleting {
			p.countTarget(m)
		}
	}
	slices.SortFunc(p.failed, compareByName)
	p.status.Targets.Failed = int32(len(p.failed))
	if p.isResumed() && p.status.StoppedBy != "" {
		p.forgiveFailures()
	}
}

func (p *planner) countTarget(m *Machine) {
	r, t := &p.facts.Rollout, &p.status.Targets
	started, outdated := r.isStarted(m), r.isOutdated(m)
	if started || outdated {
		t.Total++
	}
	switch {
	case r.hasMoved(m):
		t.Done++
	case r.hasFailed(m) && !p.forgiven[m.key()]:
		p.failed = append(p.failed, m)
	}
	if (outdated || !started && p.inProgress[m.key()]) && !p.guards.canRoll(m) {
		p.blocked, p.blockedBy = p.blocked+1, m.BlockedBy
	}
	if !p.guards.isFinished(p, m) {
		p.unfinished++
	}
}

// forgive lets the failures so far be: a person has let the rollout go on after it stopped.
func (p *planner) forgiveFailures() {
	for _, m := range p.failed {
		p.status.Forgiven = append(p.status.Forgiven, m.key().String())
		p.named[m.key()] = m
		p.forgiven[m.key()] = true
	}
	p.unfinished -= len(p.failed)
	p.failed, p.status.Targets.Failed, p.status.StoppedBy = nil, 0, ""
}

// resumes: spec.paused was set, and is no longer.
func (p *planner) isResumed() bool {
	return p.facts.Rollout.Status.Phase == v1alpha1.RolloutPaused && !p.facts.Rollout.Paused
}

// moving: the phase that was decided upon starts Machines.
func (p *planner) isActive() bool {
	return p.status.Phase == v1alpha1.RolloutCanary || p.status.Phase == v1alpha1.RolloutRolling
}

// after asks for another look although nothing is seen to change.
func (p *planner) requeueAfter(d time.Duration) {
	if d = max(d, time.Second); p.decision.RequeueAfter == 0 || d < p.decision.RequeueAfter {
		p.decision.RequeueAfter = d
	}
}

// parse reads namespace/name. What is written otherwise names no Machine, and goes like one that was deleted.
func parseName(name string) types.NamespacedName {
	namespace, rest, _ := strings.Cut(name, "/")
	return types.NamespacedName{Namespace: namespace, Name: rest}
}

func nameSet(names []string) map[types.NamespacedName]bool {
	set := make(map[types.NamespacedName]bool, len(names))
	for _, name := range names {
		set[parseName(name)] = true
	}
	return set
}

// plain is a duration without its zero parts: 10m, 1h30m.
func durationText(d time.Duration) string {
	text := d.Round(time.Second).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if cut, found := strings.CutSuffix(text, zero); found {
			text = cut + zero[:1]
		}
	}
	return text
}

// because is a failed Machine's reason, and what it waits for.
func failureText(m *Machine) string {
	if m.WaitingFor == "" {
		return m.FailureReason
	}
	return fmt.Sprintf("%s (%s)", m.FailureReason, m.WaitingFor)
}
