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
	f Facts
	g guards
	d Decision
	// s is the status that d will have.
	s *v1alpha1.RolloutStatus
	// inherited are the Machines that the Rollout before this one had named; unmarked are those of them that have not this one's
	// mark, handOn those that a newer Rollout must know of.
	inherited        map[types.NamespacedName]bool
	unmarked, handOn []*Machine
	// read are the Machines that the status as read names, next those that the new one does.
	read, next map[types.NamespacedName]bool
	// members are the Machines that the status names in any way; nil: gone.
	members map[types.NamespacedName]*Machine
	// forgiven are names whose failure no longer counts.
	forgiven map[types.NamespacedName]bool
	// all counts the NodeType's Machines, pools those of each NodePool; last is the pool that was asked for last.
	all   tally
	pools map[types.NamespacedName]*pool
	last  *pool
	// failed are the Machines whose failure counts.
	failed []*Machine
	// blocked: a Machine waits only because the NodeType has no room.
	blocked bool
	// unsettled is how many Machines keep the rollout from being Done; troubled how many of them their tenant keeps.
	unsettled, troubled int
	// trouble is what one of those tenants suffers from.
	trouble string
}

// Plan decides the next step of the rollout.
func Plan(f Facts) Decision { return plan(f, realGuards()) }

func plan(f Facts, g guards) Decision {
	p := &planner{f: f, g: g, d: Decision{Status: *f.Rollout.Status.DeepCopy()}, pools: map[types.NamespacedName]*pool{}}
	p.s, p.read = &p.d.Status, keys(f.Rollout.Status.InProgress)
	if p.s.Phase.Settled() {
		p.d.Done = true
		return p.d
	}
	p.survey()
	p.letArrive()
	p.judge()
	if p.begins() {
		if !f.Rollout.Superseded {
			p.tendCanary()
		}
		p.turn()
		if p.moving() {
			p.start(p.choose())
		}
	}
	p.report()
	return p.d
}

// begins waits for the Rollout before this one to let go, and then marks what that one had named, so that no request of its is
// good any more and no cache can show those Machines as they were before it.
func (p *planner) begins() bool {
	if p.s.Phase != "" && p.s.Phase != v1alpha1.RolloutPending {
		return true
	}
	p.s.Phase = v1alpha1.RolloutPending
	if !p.g.letGo(p.f.Before) {
		return false
	}
	if len(p.unmarked) > 0 && !p.f.Rollout.Superseded {
		slices.SortFunc(p.unmarked, byName)
		p.d.Mark = []types.NamespacedName{p.unmarked[0].key()}
		p.d.Again = len(p.unmarked) > 1
		return false
	}
	return true
}

// survey looks once at every Machine.
func (p *planner) survey() {
	p.next, p.forgiven = keys(p.s.InProgress), keys(p.s.Forgiven)
	p.inherited = keys(p.g.inherits(p.f.Before))
	p.members = make(map[types.NamespacedName]*Machine, len(p.next)+len(p.s.Canary)+len(p.forgiven))
	for _, list := range [][]string{p.s.InProgress, p.s.Canary, p.s.Forgiven} {
		for _, name := range list {
			p.members[parse(name)] = nil
		}
	}
	for i := range p.f.Machines {
		m := &p.f.Machines[i]
		if m.Deleting {
			continue
		}
		isDown := p.g.down(m)
		if _, known := p.members[m.key()]; known {
			p.members[m.key()] = m
			isDown = isDown || p.next[m.key()] && p.g.held(&p.f.Rollout, m) && p.g.counted(m)
		}
		if p.inherited[m.key()] {
			isDown = p.inherit(m, isDown)
		}
		p.all.add(isDown)
		if q := p.poolOf(m); q != nil {
			q.add(isDown)
		}
	}
	p.limits()
}

// inherit tells whether a Machine that the Rollout before this one had named counts as unavailable: it does until it is seen
// with the mark of this one.
func (p *planner) inherit(m *Machine, isDown bool) bool {
	if !m.Marked {
		p.unmarked = append(p.unmarked, m)
	}
	if !m.Marked || isDown {
		p.handOn = append(p.handOn, m)
	}
	return isDown || !m.Marked
}

// letArrive takes those off the list that have arrived or are gone, and puts those on it that were started without.
func (p *planner) letArrive() {
	var stay, arrived, gone []string
	for _, name := range p.s.InProgress {
		switch m := p.members[parse(name)]; {
		case m == nil:
			gone = append(gone, name)
		case p.g.held(&p.f.Rollout, m):
			stay = append(stay, name)
		default:
			arrived = append(arrived, name)
		}
	}
	p.s.InProgress, p.next = stay, keys(stay)
	p.tellAll(arrived, "Ready with "+p.f.Rollout.target())
	p.tellAll(gone, "deleted")
	for i := range p.f.Machines {
		if m := &p.f.Machines[i]; m.Marked && !m.Deleting && m.Installed != p.f.Rollout.To && p.g.held(&p.f.Rollout, m) && p.f.Rollout.started(m) && !p.next[m.key()] {
			p.adopt(m)
		}
	}
	p.s.Forgiven = slices.DeleteFunc(slices.Clone(p.s.Forgiven), func(name string) bool {
		m := p.members[parse(name)]
		return m == nil || p.f.Rollout.arrived(m)
	})
	p.forgiven = keys(p.s.Forgiven)
}

// judge counts what is done, what failed and what remains.
func (p *planner) judge() {
	p.s.Targets = v1alpha1.RolloutTargets{}
	for i := range p.f.Machines {
		if m := &p.f.Machines[i]; !m.Deleting {
			p.judgeOne(m)
		}
	}
	slices.SortFunc(p.failed, byName)
	p.s.Targets.Failed = int32(len(p.failed))
	if p.resumes() && p.s.StoppedBy != "" {
		p.forgive()
	}
}

func (p *planner) judgeOne(m *Machine) {
	r, t := &p.f.Rollout, &p.s.Targets
	started, outdated := r.started(m), r.outdated(m)
	if started || outdated {
		t.Total++
	}
	switch {
	case r.arrived(m):
		t.Done++
	case r.failed(m) && !p.forgiven[m.key()]:
		p.failed = append(p.failed, m)
	}
	if (outdated || !started && p.next[m.key()]) && !p.g.tenantTakes(m) {
		p.troubled, p.trouble = p.troubled+1, m.TenantTrouble
	}
	if !p.g.settled(p, m) {
		p.unsettled++
	}
}

// forgive lets the failures so far be: a person has let the rollout go on after it stopped.
func (p *planner) forgive() {
	for _, m := range p.failed {
		p.s.Forgiven = append(p.s.Forgiven, m.key().String())
		p.members[m.key()] = m
		p.forgiven[m.key()] = true
	}
	p.unsettled -= len(p.failed)
	p.failed, p.s.Targets.Failed, p.s.StoppedBy = nil, 0, ""
}

// resumes: spec.paused was set, and is no longer.
func (p *planner) resumes() bool {
	return p.f.Rollout.Status.Phase == v1alpha1.RolloutPaused && !p.f.Rollout.Paused
}

// moving: the phase that was decided upon starts Machines.
func (p *planner) moving() bool {
	return p.s.Phase == v1alpha1.RolloutCanary || p.s.Phase == v1alpha1.RolloutRolling
}

// after asks for another look although nothing is seen to change.
func (p *planner) after(d time.Duration) {
	if d = max(d, time.Second); p.d.Requeue == 0 || d < p.d.Requeue {
		p.d.Requeue = d
	}
}

// parse reads namespace/name. What is written otherwise names no Machine, and goes like one that was deleted.
func parse(name string) types.NamespacedName {
	namespace, rest, _ := strings.Cut(name, "/")
	return types.NamespacedName{Namespace: namespace, Name: rest}
}

func keys(names []string) map[types.NamespacedName]bool {
	set := make(map[types.NamespacedName]bool, len(names))
	for _, name := range names {
		set[parse(name)] = true
	}
	return set
}

// plain is a duration without its zero parts: 10m, 1h30m.
func plain(d time.Duration) string {
	text := d.Round(time.Second).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if cut, found := strings.CutSuffix(text, zero); found {
			text = cut + zero[:1]
		}
	}
	return text
}

// because is a failed Machine's reason, and what it waits for.
func because(m *Machine) string {
	if m.WaitingFor == "" {
		return m.Failed
	}
	return fmt.Sprintf("%s (%s)", m.Failed, m.WaitingFor)
}
