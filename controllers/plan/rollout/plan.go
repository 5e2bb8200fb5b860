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
	p.s = &p.d.Status
	if p.s.Phase.Settled() {
		p.d.Done = true
		return p.d
	}
	if begun := p.begin(); !begun {
		p.report()
		return p.d
	}
	p.survey()
	p.letArrive()
	p.judge()
	if !f.Rollout.Superseded {
		p.tendCanary()
	}
	p.turn()
	if p.moving() {
		p.start(p.choose())
	}
	p.report()
	return p.d
}

// begin waits for the Rollout before this one, and takes over what that one had named.
func (p *planner) begin() bool {
	p.read = keys(p.f.Rollout.Status.InProgress)
	if p.s.Phase != "" && p.s.Phase != v1alpha1.RolloutPending {
		return true
	}
	if !p.g.letGo(p.f.Before) {
		p.s.Phase = v1alpha1.RolloutPending
		return false
	}
	if p.f.Before != nil {
		p.s.InProgress = slices.Clone(p.g.inherits(p.f.Before))
	}
	return true
}

// survey looks once at every Machine.
func (p *planner) survey() {
	p.next, p.forgiven = keys(p.s.InProgress), keys(p.s.Forgiven)
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
			isDown = isDown || p.next[m.key()] && p.g.held(p.f.Rollout, m) && p.g.counted(m)
		}
		p.all.add(isDown)
		if q := p.poolOf(m); q != nil {
			q.add(isDown)
		}
	}
	p.limits()
}

// letArrive takes those off the list that have arrived or are gone, and puts those on it that were started without.
func (p *planner) letArrive() {
	var stay, arrived, gone []string
	for _, name := range p.s.InProgress {
		switch m := p.members[parse(name)]; {
		case m == nil:
			gone = append(gone, name)
		case p.g.held(p.f.Rollout, m):
			stay = append(stay, name)
		default:
			arrived = append(arrived, name)
		}
	}
	p.s.InProgress, p.next = stay, keys(stay)
	p.tellAll(arrived, "Ready with "+p.f.Rollout.To)
	p.tellAll(gone, "deleted")
	for i := range p.f.Machines {
		if m := &p.f.Machines[i]; m.Marked && !m.Deleting && m.Installed != p.f.Rollout.To && p.g.held(p.f.Rollout, m) && p.f.Rollout.started(m) && !p.next[m.key()] {
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
	r, t := p.f.Rollout, v1alpha1.RolloutTargets{}
	for i := range p.f.Machines {
		m := &p.f.Machines[i]
		if m.Deleting {
			continue
		}
		started, outdated := r.started(m), r.outdated(m)
		if started || outdated {
			t.Total++
		}
		switch {
		case started && r.arrived(m):
			t.Done++
		case r.failed(m) && !p.forgiven[m.key()]:
			p.failed = append(p.failed, m)
		}
		if (outdated || p.next[m.key()] && !started) && !p.g.tenantTakes(m) {
			p.troubled, p.trouble = p.troubled+1, m.TenantTrouble
		}
		if !p.g.settled(p, m) {
			p.unsettled++
		}
	}
	slices.SortFunc(p.failed, byName)
	t.Failed = int32(len(p.failed))
	p.s.Targets = t
	if p.resumes() && p.s.StoppedBy != "" {
		p.forgive()
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
