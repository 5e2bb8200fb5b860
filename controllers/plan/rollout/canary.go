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
func isCanaryOver(r *Rollout, s *v1alpha1.RolloutStatus) bool {
	return r.ToStable || len(s.Canary) == 0 && s.BakedSince != nil
}

// tendCanary keeps the canary complete: who was deleted, forgiven or cannot be started gives its place to another, since
// otherwise nothing would be proven. Then it looks whether the canary has baked.
func (p *planner) updateCanary() {
	if isCanaryOver(&p.facts.Rollout, p.status) {
		return
	}
	p.status.Canary = slices.DeleteFunc(slices.Clone(p.status.Canary), func(name string) bool {
		m := p.named[parseName(name)]
		return m == nil || !p.canBeCanary(m)
	})
	if missing := p.facts.Policy.Canary - len(p.status.Canary); missing > 0 {
		p.fillCanary(missing)
	}
	p.updateBake()
}

// mayProve: the Machine is on its way, or can be sent there, and is not one that a person has given up. Whoever is named
// already takes part even while its tenant keeps it: it holds the room that another would need.
func (p *planner) canBeCanary(m *Machine) bool {
	r := &p.facts.Rollout
	if p.forgiven[m.key()] {
		return false
	}
	return r.isStarted(m) || p.inProgress[m.key()] || r.isOutdated(m) && p.guards.canRoll(m)
}

func (p *planner) fillCanary(missing int) {
	more := firstMachines{limit: missing, compare: p.compareForCanary}
	for i := range p.facts.Machines {
		m := &p.facts.Machines[i]
		if !m.Deleting && (p.facts.Rollout.isOutdated(m) || p.inProgress[m.key()]) && p.canBeCanary(m) && !slices.Contains(p.status.Canary, m.key().String()) {
			more.offer(m)
		}
	}
	for _, m := range more.machines {
		p.status.Canary = append(p.status.Canary, m.key().String())
		p.named[m.key()] = m
	}
}

// canaryOrder: those on their way, those that are not Ready, then by pool and name.
func (p *planner) compareForCanary(a, b *Machine) int {
	rank := func(m *Machine) int {
		switch {
		case p.inProgress[m.key()]:
			return 0
		case p.guards.isUnavailable(m):
			return 1
		default:
			return 2
		}
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), compareByName(a, b))
}

// bake counts the time since the last Machine of the canary became Ready. A Machine that loses Ready, or lost it
// unseen and has it again, begins it anew.
func (p *planner) updateBake() {
	since, all := time.Time{}, len(p.status.Canary) > 0
	if p.status.BakedSince != nil {
		since = p.status.BakedSince.Time
	}
	for _, name := range p.status.Canary {
		m := p.named[parseName(name)]
		if !p.facts.Rollout.hasMoved(m) {
			all = false
			break
		}
		if m.ReadySince.After(since) {
			since = m.ReadySince
		}
	}
	if !all {
		if p.status.BakedSince != nil {
			p.addHistory("the canary is no longer Ready: its bake time begins anew")
		}
		p.status.BakedSince = nil
		return
	}
	at := metav1.NewMicroTime(since)
	if p.status.BakedSince == nil {
		p.addHistory(fmt.Sprintf("the canary is Ready and bakes for %s", durationText(p.facts.Policy.Bake)))
	}
	p.status.BakedSince = &at
	if p.guards.isBaked(since, p.facts.Now, p.facts.Policy.Bake) {
		p.status.Canary = nil
	} else {
		p.requeueAfter(since.Add(p.facts.Policy.Bake).Sub(p.facts.Now))
	}
}
