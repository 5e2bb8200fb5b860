package rollout

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// tally counts the Machines of a NodeType or of a NodePool.
type budget struct {
	// size is all of them that are not being deleted; down are unavailable; limit is how many may be.
	machines, unavailable, limit int
}

// room: so many more may become unavailable.
func (t budget) hasRoom(more int) bool { return t.unavailable+more <= t.limit }

func (t *budget) add(down bool) {
	t.machines++
	if down {
		t.unavailable++
	}
}

// defaultPool is what a NodePool allows that says nothing.
var defaultPoolLimit = intstr.FromString(defaultMaxUnavailable)

// limitOf is a number, or a percentage of size rounded down; at least 1. What cannot be read, which the API server does not let
// through, is the strictest: 1.
func scaledLimit(v intstr.IntOrString, size int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(&v, size, false)
	if err != nil {
		return 1
	}
	return max(1, n)
}

func (p Pool) limit(size int) int {
	if p.MaxUnavailable == nil {
		return scaledLimit(defaultPoolLimit, size)
	}
	return scaledLimit(*p.MaxUnavailable, size)
}

// pool is a NodePool's tally.
type poolBudget struct {
	budget
	name types.NamespacedName
	// blocked: a Machine of it waits only because the pool has no room.
	isExhausted bool
}

// poolOf remembers the last pool, since lists come pool by pool more often than not.
func (p *planner) budgetOfPool(m *Machine) *poolBudget {
	if m.Pool == (types.NamespacedName{}) {
		return nil
	}
	if p.lastPool == nil || p.lastPool.name != m.Pool {
		q := p.poolBudgets[m.Pool]
		if q == nil {
			q = &poolBudget{name: m.Pool}
			p.poolBudgets[m.Pool] = q
		}
		p.lastPool = q
	}
	return p.lastPool
}

// limits follow from the sizes.
func (p *planner) setLimits() {
	p.typeBudget.limit = scaledLimit(p.facts.Policy.MaxUnavailable, p.typeBudget.machines)
	for name, q := range p.poolBudgets {
		q.limit = p.facts.Pools[name].limit(q.machines)
	}
}

// hasRoom: so many more Machines may become unavailable in the NodeType and in this one's pool.
func (p *planner) hasRoom(m *Machine, more int) bool {
	q := p.budgetOfPool(m)
	return p.guards.hasTypeRoom(p.typeBudget, more) && (q == nil || p.guards.hasPoolRoom(q.budget, more))
}

// fits: the Machine, which is counted already, may go down now.
func (p *planner) canBecomeUnavailable(m *Machine) bool {
	return p.guards.isUnavailable(m) || !p.guards.mustRecheckBudget() || p.hasRoom(m, 0)
}

// waits notes what has no room for a Machine that is to move.
func (p *planner) recordExhausted(m *Machine) {
	p.isTypeExhausted = p.isTypeExhausted || !p.typeBudget.hasRoom(1)
	if q := p.budgetOfPool(m); q != nil && !q.hasRoom(1) {
		q.isExhausted = true
	}
}
