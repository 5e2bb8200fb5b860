package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// canaryOver tells whether that status has the canary behind it: it was baked, and its names were taken off. A way back to
// the stable revision has none.
func canaryOver(r *Rollout, s *v1alpha1.RolloutStatus) bool {
	return r.ToStable || len(s.Canary) == 0 && s.BakedSince != nil
}

// tendCanary keeps the canary complete: who was deleted, forgiven or cannot be started gives its place to another, since
// otherwise nothing would be proven. Then it looks whether the canary has baked.
func (p *planner) tendCanary() {
	if canaryOver(&p.f.Rollout, p.s) {
		return
	}
	p.s.Canary = slices.DeleteFunc(slices.Clone(p.s.Canary), func(name string) bool {
		m := p.members[parse(name)]
		return m == nil || !p.mayProve(m)
	})
	if missing := p.f.Policy.Canary - len(p.s.Canary); missing > 0 {
		p.fillCanary(missing)
	}
	p.bake()
}

// mayProve: the Machine is on its way, or can be sent there, and is not one that a person has given up. Whoever is named
// already takes part even while its tenant keeps it: it holds the room that another would need.
func (p *planner) mayProve(m *Machine) bool {
	r := &p.f.Rollout
	if p.forgiven[m.key()] {
		return false
	}
	return r.started(m) || p.next[m.key()] || r.outdated(m) && p.g.tenantTakes(m)
}

func (p *planner) fillCanary(missing int) {
	more := pick{most: missing, order: p.canaryOrder}
	for i := range p.f.Machines {
		m := &p.f.Machines[i]
		if !m.Deleting && (p.f.Rollout.outdated(m) || p.next[m.key()]) && p.mayProve(m) && !slices.Contains(p.s.Canary, m.key().String()) {
			more.offer(m)
		}
	}
	for _, m := range more.list {
		p.s.Canary = append(p.s.Canary, m.key().String())
		p.members[m.key()] = m
	}
}

// canaryOrder: those on their way, those that are not Ready, then by pool and name.
func (p *planner) canaryOrder(a, b *Machine) int {
	rank := func(m *Machine) int {
		switch {
		case p.next[m.key()]:
			return 0
		case p.g.down(m):
			return 1
		default:
			return 2
		}
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), byName(a, b))
}

// bake counts the time since the last Machine of the canary became Ready. A Machine that loses Ready, or lost it
// unseen and has it again, begins it anew.
func (p *planner) bake() {
	since, all := time.Time{}, len(p.s.Canary) > 0
	if p.s.BakedSince != nil {
		since = p.s.BakedSince.Time
	}
	for _, name := range p.s.Canary {
		m := p.members[parse(name)]
		if !p.f.Rollout.arrived(m) {
			all = false
			break
		}
		if m.ReadySince.After(since) {
			since = m.ReadySince
		}
	}
	if !all {
		if p.s.BakedSince != nil {
			p.tell("the canary is no longer Ready: its bake time begins anew")
		}
		p.s.BakedSince = nil
		return
	}
	at := metav1.NewMicroTime(since)
	if p.s.BakedSince == nil {
		p.tell(fmt.Sprintf("the canary is Ready and bakes for %s", plain(p.f.Policy.Bake)))
	}
	p.s.BakedSince = &at
	if p.g.baked(since, p.f.Now, p.f.Policy.Bake) {
		p.s.Canary = nil
	} else {
		p.after(since.Add(p.f.Policy.Bake).Sub(p.f.Now))
	}
}
