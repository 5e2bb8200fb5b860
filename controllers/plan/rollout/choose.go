package rollout

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// maxInProgress bounds how many Machines the status names at once, and so the size of the object: 500 names of the longest
// kind are 160 KiB.
const maxInProgress = 500

// pick keeps the first few Machines by an order, out of many: it is what sorting all of them and cutting would give.
type firstMachines struct {
	limit    int
	compare  func(a, b *Machine) int
	machines []*Machine
}

func (k *firstMachines) offer(m *Machine) {
	if len(k.machines) == k.limit {
		if k.compare(m, k.machines[k.limit-1]) >= 0 {
			return
		}
		k.machines = k.machines[:k.limit-1]
	}
	at, _ := slices.BinarySearchFunc(k.machines, m, k.compare)
	k.machines = slices.Insert(k.machines, at, m)
}

// byName orders by pool, namespace and name.
func compareByName(a, b *Machine) int {
	return cmp.Or(
		compareKeys(a.Pool, b.Pool),
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name),
	)
}

func compareKeys(a, b types.NamespacedName) int {
	if a == b {
		return 0
	}
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// candidate: it is to be moved, is not named yet, and its tenant can take a roll.
func (p *planner) isCandidate(m *Machine) bool {
	return !m.Deleting && p.facts.Rollout.isOutdated(m) && p.guards.canRoll(m) && !p.inProgress[m.key()]
}

// choose finds who goes next: a Machine that is unavailable anyway, to be started at once, or else one to be named.
func (p *planner) choose() (idle *Machine) {
	idles, serving := firstMachines{limit: 1, compare: compareByName}, firstMachines{limit: 1, compare: compareByName}
	offer := func(m *Machine) {
		switch {
		case !p.isCandidate(m):
		case p.guards.isUnavailable(m):
			idles.offer(m)
		case p.hasRoom(m, 1):
			serving.offer(m)
		default:
			p.recordExhausted(m)
		}
	}
	if isCanaryOver(&p.facts.Rollout, p.status) {
		for i := range p.facts.Machines {
			offer(&p.facts.Machines[i])
		}
	} else {
		for _, name := range p.status.Canary {
			if m := p.named[parseName(name)]; m != nil {
				offer(m)
			}
		}
	}
	if len(p.status.InProgress) >= maxInProgress {
		return nil
	}
	if len(idles.machines) > 0 {
		return idles.machines[0] // the others wait until these are on their way
	}
	if len(serving.machines) > 0 && !p.hasUnstarted() {
		p.addInProgress(serving.machines[0])
	}
	return nil
}

// unstarted: a Machine was named, and the next one waits until it was seen to be started. More than one would hold more room
// than there is, when a budget shrinks in between, and none could go.
func (p *planner) hasUnstarted() bool {
	return slices.ContainsFunc(p.status.InProgress, func(name string) bool {
		m := p.named[parseName(name)]
		return m != nil && !p.facts.Rollout.isStarted(m)
	})
}

// name puts a Machine on the list of those on their way.
func (p *planner) addInProgress(m *Machine) {
	p.typeBudget.unavailable++
	if q := p.budgetOfPool(m); q != nil {
		q.unavailable++
	}
	p.inProgress[m.key()], p.named[m.key()] = true, m
	p.status.InProgress = append(p.status.InProgress, m.key().String())
	p.addStartToHistory(m, p.budgetText(m))
	p.decision.PlanAgain = true
}

// adopt puts those on the list that were started because nothing was lost by it.
func (p *planner) addStarted(m *Machine) {
	p.inProgress[m.key()], p.named[m.key()] = true, m
	p.status.InProgress = append(p.status.InProgress, m.key().String())
	p.addStartToHistory(m, "it is not Ready, so nothing is lost")
}

// start picks the one Machine that is told to move now: the idle one or the first of those that the status as read names.
func (p *planner) start(idle *Machine) {
	if !p.guards.canStartMachines(&p.facts.Rollout, p.facts.Rollout.Status.Phase) {
		p.decision.PlanAgain = true // when the phase that was decided upon is written
		return
	}
	var able []*Machine
	if idle != nil && p.guards.isInStage(p, idle) {
		able = append(able, idle)
	}
	for _, name := range p.status.InProgress {
		if m := p.named[parseName(name)]; m != nil && p.canStart(m) {
			able = append(able, m)
		}
	}
	if len(able) > 0 {
		p.decision.Start = []types.NamespacedName{able[0].key()}
		p.decision.PlanAgain = p.decision.PlanAgain || len(able) > 1
	}
}

// startable: a Machine that is named goes now.
func (p *planner) canStart(m *Machine) bool {
	return !p.facts.Rollout.isStarted(m) && p.guards.isRecorded(p, m) && p.guards.canRoll(m) && p.guards.isInStage(p, m) && p.canBecomeUnavailable(m)
}
