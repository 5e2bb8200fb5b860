package rollout

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// tally counts the Machines of a NodeType or of a NodePool.
type tally struct {
	// size is all of them that are not being deleted; down are unavailable; limit is how many may be.
	size, down, limit int
}

// room: so many more may become unavailable.
func (t tally) room(more int) bool { return t.down+more <= t.limit }

func (t *tally) add(down bool) {
	t.size++
	if down {
		t.down++
	}
}

// defaultPool is what a NodePool allows that says nothing.
var defaultPool = intstr.FromString(defaultMaxUnavailable)

// limitOf is a number, or a percentage of size rounded down; at least 1. What cannot be read, which the API server does not let
// through, is the strictest: 1.
func limitOf(v intstr.IntOrString, size int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(&v, size, false)
	if err != nil {
		return 1
	}
	return max(1, n)
}

func (p Pool) limit(size int) int {
	if p.MaxUnavailable == nil {
		return limitOf(defaultPool, size)
	}
	return limitOf(*p.MaxUnavailable, size)
}

// pool is a NodePool's tally.
type pool struct {
	tally
	name types.NamespacedName
	// blocked: a Machine of it waits only because the pool has no room.
	blocked bool
}

// poolOf remembers the last pool, since lists come pool by pool more often than not.
func (p *planner) poolOf(m *Machine) *pool {
	if m.Pool == (types.NamespacedName{}) {
		return nil
	}
	if p.last == nil || p.last.name != m.Pool {
		q := p.pools[m.Pool]
		if q == nil {
			q = &pool{name: m.Pool}
			p.pools[m.Pool] = q
		}
		p.last = q
	}
	return p.last
}

// limits follow from the sizes.
func (p *planner) limits() {
	p.all.limit = limitOf(p.f.Policy.MaxUnavailable, p.all.size)
	for name, q := range p.pools {
		q.limit = p.f.Pools[name].limit(q.size)
	}
}

// hasRoom: so many more Machines may become unavailable in the NodeType and in this one's pool.
func (p *planner) hasRoom(m *Machine, more int) bool {
	q := p.poolOf(m)
	return p.g.typeRoom(p.all, more) && (q == nil || p.g.poolRoom(q.tally, more))
}

// fits: the Machine, which is counted already, may go down now.
func (p *planner) fits(m *Machine) bool {
	return p.g.down(m) || !p.g.again() || p.hasRoom(m, 0)
}

// waits notes what has no room for a Machine that is to move.
func (p *planner) waits(m *Machine) {
	p.blocked = p.blocked || !p.all.room(1)
	if q := p.poolOf(m); q != nil && !q.room(1) {
		q.blocked = true
	}
}
