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
type pick struct {
	most  int
	order func(a, b *Machine) int
	list  []*Machine
}

func (k *pick) offer(m *Machine) {
	if len(k.list) == k.most {
		if k.order(m, k.list[k.most-1]) >= 0 {
			return
		}
		k.list = k.list[:k.most-1]
	}
	at, _ := slices.BinarySearchFunc(k.list, m, k.order)
	k.list = slices.Insert(k.list, at, m)
}

// byName orders by pool, namespace and name.
func byName(a, b *Machine) int {
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
func (p *planner) candidate(m *Machine) bool {
	return !m.Deleting && p.f.Rollout.outdated(m) && p.g.tenantTakes(m) && !p.next[m.key()]
}

// choose finds who goes next: a Machine that is unavailable anyway, to be started at once, or else one to be named.
func (p *planner) choose() (idle *Machine) {
	idles, serving := pick{most: 1, order: byName}, pick{most: 1, order: byName}
	offer := func(m *Machine) {
		switch {
		case !p.candidate(m):
		case p.g.down(m):
			idles.offer(m)
		case p.hasRoom(m, 1):
			serving.offer(m)
		default:
			p.waits(m)
		}
	}
	if canaryOver(&p.f.Rollout, p.s) {
		for i := range p.f.Machines {
			offer(&p.f.Machines[i])
		}
	} else {
		for _, name := range p.s.Canary {
			if m := p.members[parse(name)]; m != nil {
				offer(m)
			}
		}
	}
	if len(p.s.InProgress) >= maxInProgress {
		return nil
	}
	if len(idles.list) > 0 {
		return idles.list[0] // the others wait until these are on their way
	}
	if len(serving.list) > 0 && !p.unstarted() {
		p.name(serving.list[0])
	}
	return nil
}

// unstarted: a Machine was named, and the next one waits until it was seen to be started. More than one would hold more room
// than there is, when a budget shrinks in between, and none could go.
func (p *planner) unstarted() bool {
	return slices.ContainsFunc(p.s.InProgress, func(name string) bool {
		m := p.members[parse(name)]
		return m != nil && !p.f.Rollout.started(m)
	})
}

// name puts a Machine on the list of those on their way.
func (p *planner) name(m *Machine) {
	p.all.down++
	if q := p.poolOf(m); q != nil {
		q.down++
	}
	p.next[m.key()], p.members[m.key()] = true, m
	p.s.InProgress = append(p.s.InProgress, m.key().String())
	p.tellStart(m, p.whose(m))
	p.d.Again = true
}

// adopt puts those on the list that were started because nothing was lost by it.
func (p *planner) adopt(m *Machine) {
	p.next[m.key()], p.members[m.key()] = true, m
	p.s.InProgress = append(p.s.InProgress, m.key().String())
	p.tellStart(m, "it is not Ready, so nothing is lost")
}

// start picks the one Machine that is told to move now: the idle one or the first of those that the status as read names.
func (p *planner) start(idle *Machine) {
	if !p.g.moves(&p.f.Rollout, p.f.Rollout.Status.Phase) {
		p.d.Again = true // when the phase that was decided upon is written
		return
	}
	var able []*Machine
	if idle != nil && p.g.turn(p, idle) {
		able = append(able, idle)
	}
	for _, name := range p.s.InProgress {
		if m := p.members[parse(name)]; m != nil && p.startable(m) {
			able = append(able, m)
		}
	}
	if len(able) > 0 {
		p.d.Start = []types.NamespacedName{able[0].key()}
		p.d.Again = p.d.Again || len(able) > 1
	}
}

// startable: a Machine that is named goes now.
func (p *planner) startable(m *Machine) bool {
	return !p.f.Rollout.started(m) && p.g.named(p, m) && p.g.tenantTakes(m) && p.g.turn(p, m) && p.fits(m)
}
