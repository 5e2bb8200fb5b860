package rollout

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// maxInProgress is the largest number of Machines in status.inProgress. It bounds the size of the object: 500 names of the
// greatest length are 160 KiB.
const maxInProgress = 500

// budget counts the Machines of a NodeType or of a NodePool against the limit of unavailable ones.
type budget struct {
	// machines is how many there are, without those being deleted. unavailable is how many of them are unavailable. limit
	// is how many may be.
	machines, unavailable, limit int
}

// hasRoom reports whether that many more Machines may become unavailable.
func (b budget) hasRoom(more int) bool { return b.unavailable+more <= b.limit }

// add counts one Machine.
func (b *budget) add(isUnavailable bool) {
	b.machines++
	if isUnavailable {
		b.unavailable++
	}
}

// poolBudget is the budget of a NodePool.
type poolBudget struct {
	budget
	name types.NamespacedName
	// isExhausted is true if a Machine of the pool waits and the pool has no room.
	isExhausted bool
}

// defaultPoolLimit is the limit of a NodePool without spec.rollout.maxUnavailable.
var defaultPoolLimit = intstr.FromString(defaultMaxUnavailable)

// scaledLimit returns the number, or the percentage of the Machines rounded down; at least 1. A value that cannot be parsed,
// which the API server rejects, gives the strictest limit: 1.
func scaledLimit(v intstr.IntOrString, machines int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(&v, machines, false)
	if err != nil {
		return 1
	}
	return max(1, n)
}

func (p Pool) limit(machines int) int {
	if p.MaxUnavailable == nil {
		return scaledLimit(defaultPoolLimit, machines)
	}
	return scaledLimit(*p.MaxUnavailable, machines)
}

// budgetOfPool returns the budget of the Machine's NodePool; nil if it has none. It keeps the last one, because Machines are
// usually listed pool by pool.
func (p *planner) budgetOfPool(m *Machine) *poolBudget {
	if m.Pool == (types.NamespacedName{}) {
		return nil
	}
	if p.lastPool == nil || p.lastPool.name != m.Pool {
		b := p.poolBudgets[m.Pool]
		if b == nil {
			b = &poolBudget{name: m.Pool}
			p.poolBudgets[m.Pool] = b
		}
		p.lastPool = b
	}
	return p.lastPool
}

// setLimits computes the limits, once all Machines are counted.
func (p *planner) setLimits() {
	p.typeBudget.limit = scaledLimit(p.facts.Policy.MaxUnavailable, p.typeBudget.machines)
	for name, b := range p.poolBudgets {
		b.limit = p.facts.Pools[name].limit(b.machines)
	}
}

// canGo reports whether the budgets of the NodeType, of the Machine's pool and of the tenants on its node have room for it.
func (p *planner) canGo(m *Machine) bool { return p.hasRoomFor(m) && p.guards.hasTenantRoom(p, m) }

// hasRoomFor reports whether the Machine may be added to those in progress. One that is unavailable already is counted.
func (p *planner) hasRoomFor(m *Machine) bool { return p.hasRoom(m, p.cost(m)) }

// cost is how many Machines become unavailable when the Machine is moved: 0 if it is unavailable already.
func (p *planner) cost(m *Machine) int {
	if p.guards.isUnavailable(m) {
		return 0
	}
	return 1
}

// hasRoom reports whether that many more Machines of the NodeType, and of the Machine's pool, may become unavailable.
func (p *planner) hasRoom(m *Machine, more int) bool {
	b := p.budgetOfPool(m)
	return p.guards.hasNodeTypeRoom(p.typeBudget, more) && (b == nil || p.guards.hasPoolRoom(b.budget, more))
}

// canBecomeUnavailable reports whether the Machine, which is in progress and so counted already, may be started now.
func (p *planner) canBecomeUnavailable(m *Machine) bool {
	return !p.guards.mustRecheckBudget() || p.guards.hasTenantRoom(p, m) && (p.isDown(m) || p.hasRoom(m, 0))
}

// recordExhausted records which budgets have no room for that many more, so that a Machine waits to be moved.
func (p *planner) recordExhausted(m *Machine, more int) {
	p.isTypeExhausted = p.isTypeExhausted || !p.typeBudget.hasRoom(more)
	if b := p.budgetOfPool(m); b != nil && !b.hasRoom(more) {
		b.isExhausted = true
	}
	p.recordHeldBack(m)
}

// firstMachines keeps the first of the Machines that are offered, in an order: the same as sorting all and cutting.
type firstMachines struct {
	limit    int
	compare  func(a, b *Machine) int
	machines []*Machine
}

func (f *firstMachines) offer(m *Machine) {
	if len(f.machines) == f.limit {
		if f.compare(m, f.machines[f.limit-1]) >= 0 {
			return
		}
		f.machines = f.machines[:f.limit-1]
	}
	at, _ := slices.BinarySearchFunc(f.machines, m, f.compare)
	f.machines = slices.Insert(f.machines, at, m)
}

// compareByName orders by pool, namespace and name.
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

// isCandidate reports whether the Machine is to be moved, is not in progress yet, and can be rolled now without taking what may be at work away unseen.
func (p *planner) isCandidate(m *Machine) bool {
	return !m.Deleting && (p.facts.Rollout.isOutdated(m) || p.canTakeTarget(m)) && p.guards.canRoll(m) && !p.inProgress[m.key()] && !p.canBeAtWork(m)
}

// canTakeTarget reports whether the Machine has neither a host nor a desired revision, and would get the stable revision with its host. Once the
// canary has baked it takes the target instead, so that it need not be installed twice. The Rollout does not wait for it.
func (p *planner) canTakeTarget(m *Machine) bool {
	return !p.guards.hasHost(m) && m.Desired.IsZero() && !p.facts.Rollout.ToStable && isCanaryOver(&p.facts.Rollout, p.status)
}

// startNext adds the next Machine to status.inProgress, or starts one. A Machine that is down goes first and is started at
// once, without being added; other Machines wait until no such Machine is left.
func (p *planner) startNext() {
	down, up := p.nextCandidates()
	switch {
	case len(p.status.InProgress) >= maxInProgress:
		down = nil
	case down != nil && p.hasHeldDevices(down):
		// It takes devices away although it is down: they are counted before it is started.
		p.addInProgress(down)
		down = nil
	case down == nil && up != nil && !p.hasUnstarted():
		p.addInProgress(up)
	}
	p.recordBroken(down)
	for _, name := range p.status.InProgress {
		if m := p.named[parseName(name)]; m != nil && !p.facts.Rollout.isStarted(m) {
			p.recordBroken(m)
			if !p.canBecomeUnavailable(m) {
				p.recordExhausted(m, 0)
			}
		}
	}
	p.start(down)
}

// nextCandidates returns the next Machine that is down, and the next one for which the budgets have room; nil: there is none.
// Before the canary has baked only its Machines are candidates, and Machines without a host when no other has to be moved.
func (p *planner) nextCandidates() (nextDown, nextUp *Machine) {
	down, up := firstMachines{limit: 1, compare: p.compareDown}, firstMachines{limit: 1, compare: p.compareUp}
	offer := func(m *Machine) {
		switch {
		case !p.isCandidate(m) || !p.canRecordUse(m):
		case !p.guards.hasTenantRoom(p, m):
			p.recordHeldBack(m)
		case p.isDown(m):
			down.offer(m)
		case p.hasRoomFor(m):
			up.offer(m)
		default:
			p.recordExhausted(m, p.cost(m))
		}
	}
	if isCanaryOver(&p.facts.Rollout, p.status) || p.hasNothingToProve(p.status) {
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
	return down.first(), up.first()
}

// first returns the first Machine; nil if none was offered.
func (f *firstMachines) first() *Machine {
	if len(f.machines) == 0 {
		return nil
	}
	return f.machines[0]
}

// hasUnstarted reports whether a Machine in status.inProgress is not observed as started. The next one is added only after
// that: if several were added and the budget then became smaller, together they could exceed it, and none could start. One that waits for a tenant
// keeps nobody from going.
func (p *planner) hasUnstarted() bool {
	return slices.ContainsFunc(p.status.InProgress, func(name string) bool {
		m := p.named[parseName(name)]
		return m != nil && !p.facts.Rollout.isStarted(m) && p.guards.hasTenantRoom(p, m)
	})
}

// addInProgress adds a Machine to status.inProgress that is not down, or on whose node claims hold devices. That makes it count as unavailable, and its
// devices as in use.
func (p *planner) addInProgress(m *Machine) {
	p.typeBudget.unavailable += p.cost(m)
	if b := p.budgetOfPool(m); b != nil {
		b.unavailable += p.cost(m)
	}
	p.forgetBroken(m)
	p.inProgress[m.key()], p.named[m.key()] = true, m
	p.status.InProgress = append(p.status.InProgress, m.key().String())
	p.recordUse(m)
	reason := p.budgetText(m)
	if p.isDown(m) {
		reason = "it is not Ready"
	}
	p.addStartToHistory(m, reason+p.inUseText(m))
	p.decision.Requeue = true
}

// addStarted adds a Machine to status.inProgress that was down and therefore started without being added before.
func (p *planner) addStarted(m *Machine) {
	p.inProgress[m.key()], p.named[m.key()] = true, m
	p.status.InProgress = append(p.status.InProgress, m.key().String())
	if p.brokenBefore[m.key()] {
		p.addStartToHistory(m, "it is broken, so nothing is lost, and its failing stops nothing")
		return
	}
	p.addStartToHistory(m, "it is not Ready, so nothing is lost")
}

// start chooses the Machine that is started now: the one that is down, or the first that can start of those in
// status.inProgress.
func (p *planner) start(down *Machine) {
	if !p.guards.canStartMachines(&p.facts.Rollout, p.facts.Rollout.Status.Phase) {
		p.decision.Requeue = true // once the phase that was decided is written
		return
	}
	var startable []*Machine
	if down != nil && p.guards.isInStage(p, down) && p.guards.isRecorded(p, down) && !p.mustForgetFirst(down) {
		startable = append(startable, down)
	}
	for _, name := range p.status.InProgress {
		if m := p.named[parseName(name)]; m != nil && p.canStart(m) && !p.mustForgetFirst(m) {
			startable = append(startable, m)
		}
	}
	if len(startable) > 0 {
		p.decision.Start = []types.NamespacedName{startable[0].key()}
		p.decision.Requeue = p.decision.Requeue || len(startable) > 1
	}
}

// canStart reports whether a Machine in status.inProgress can be started now.
func (p *planner) canStart(m *Machine) bool {
	return !p.facts.Rollout.isStarted(m) && p.guards.isRecorded(p, m) && p.guards.isUseRecorded(p, m) && p.guards.canRoll(m) && p.guards.isInStage(p, m) && p.canBecomeUnavailable(m)
}
