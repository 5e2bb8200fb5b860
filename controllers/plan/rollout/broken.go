package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// isBroken is the definition of a broken Machine: it has a host, it is not Ready, and it does not become Ready without a person, because its
// reason is permanent or its phase is past the deadline. A Machine that is powered off by its spec.powerOff is not broken, because its phase has
// no deadline then. A Machine that waits for its tenant's API server is not broken: that is about the tenant.
//
// Without the last two conditions, every Machine that is not Ready counts as broken: the network between a tenant and its Nodes fails for a
// minute, and eight of its ten Machines leave Ready. All eight are drained and installed at once, because that costs no budget, and what would
// have been back after a minute is away for half an hour.
func isBroken(m *Machine) bool {
	return hasHost(m) && !m.Deleting && !m.Ready && m.FailureReason != "" && m.FailureReason != v1alpha1.ReasonWaitingForTenant
}

// hasHost reports whether the Machine has a host.
func hasHost(m *Machine) bool { return m.Claimed }

// isDown reports whether moving the Machine takes nothing away: it has no host, it has been told to move already, it is broken and cannot be at work or has a
// grant, or no node of it works because it is being installed or drained. A Machine that has only lost its Ready a moment ago is not down: it may be back
// before it is drained.
func (p *planner) isDown(m *Machine) bool {
	switch {
	case !p.guards.hasHost(m) || isRequested(m) || p.guards.isBroken(m) && p.guards.hasGrant(p, m):
		return true
	case m.Ready || p.canBeAtWork(m):
		return false
	}
	return slices.Contains(phasesWithoutNode, m.Phase)
}

// canBeAtWork reports whether the Machine's node was at work, does not answer, and has no grant. It may be back in a moment, or be at work behind a switch that
// failed: until it is Ready again, or is broken and has a grant, it is not moved.
//
// Without it: a rack of 18 servers goes dark, as many as the NodeType's budget is for. Each is unavailable already and costs the budget nothing, so that all 18
// are drained and installed again within seconds.
func (p *planner) canBeAtWork(m *Machine) bool {
	return p.guards.hasHost(m) && !m.Ready && !isRequested(m) && !p.guards.hasGrant(p, m)
}

// phasesWithoutNode are those in which no node of the Machine works. A phase that a newer manager wrote is none of them.
var phasesWithoutNode = []v1alpha1.MachinePhase{
	"", v1alpha1.MachinePending, v1alpha1.MachineClaiming, v1alpha1.MachineProvisioning, v1alpha1.MachineJoining, v1alpha1.MachineDraining, v1alpha1.MachineReleasing,
}

// isRequested reports whether the Machine will be drained soon, because its desired revision is not installed.
func isRequested(m *Machine) bool { return !m.Desired.IsZero() && m.Desired != m.Installed }

// updateBrokenBefore removes from status.brokenBefore the Machines that have moved or are gone.
//
// One that is only observed as not started and not broken stays there until it is started as a Machine that works: a cache that is behind may show it
// as it was before.
func (p *planner) updateBrokenBefore() {
	r := &p.facts.Rollout
	p.status.BrokenBefore = slices.DeleteFunc(slices.Clone(p.status.BrokenBefore), func(name string) bool {
		m := p.named[parseName(name)]
		return m == nil || r.hasMoved(m)
	})
	p.brokenBefore = nameSet(p.status.BrokenBefore)
}

// recordBroken adds a Machine that is broken to status.brokenBefore before it is started. The list costs no budget, so a Machine
// that is Ready again meanwhile is only removed from it.
func (p *planner) recordBroken(m *Machine) {
	if m == nil || !p.guards.isBroken(m) || p.brokenBefore[m.key()] || !p.guards.hasGrant(p, m) && !p.inProgress[m.key()] {
		return
	}
	p.brokenBefore[m.key()], p.named[m.key()] = true, m
	p.status.BrokenBefore = append(p.status.BrokenBefore, m.key().String())
	p.decision.Requeue = true
}

// inheritBroken adds what was broken before the previous Rollout to status.brokenBefore until this Rollout has begun.
//
// Without it: v2-1 moves c, which is broken. The NodeType is set to v3 and back to v2, and v2-3 takes c over while it is being installed with v2. c
// fails, which counts now, and v2-3 stops.
func (p *planner) inheritBroken() {
	if !p.isBeginning() || p.facts.Previous == nil {
		return
	}
	for _, name := range p.facts.Previous.BrokenBefore {
		if !slices.Contains(p.status.BrokenBefore, name) {
			p.status.BrokenBefore = append(p.status.BrokenBefore, name)
		}
	}
}

// forgetBroken removes from status.brokenBefore a Machine that works again when it is chosen or started. One that is only being drained or installed
// has not worked since.
//
// Without the last: v2-1 moves c, which is broken. While c is being installed the NodeType is set back, and v1-2 starts c too. c fails again, which
// counts now: the undo stops, or c takes the place of a Machine that works.
func (p *planner) forgetBroken(m *Machine) {
	if !p.brokenBefore[m.key()] || p.guards.isBroken(m) || !m.Ready && p.isDown(m) {
		return
	}
	delete(p.brokenBefore, m.key())
	p.status.BrokenBefore = slices.DeleteFunc(p.status.BrokenBefore, func(name string) bool { return name == m.key().String() })
}

// mustForgetFirst removes from status.brokenBefore a Machine that is to be started and works again. It returns true until the status is written: if the
// start were sent with it and the write failed, the Machine would count in no budget of an undo once it has failed.
func (p *planner) mustForgetFirst(m *Machine) bool {
	p.forgetBroken(m)
	if p.brokenBefore[m.key()] || !p.recordedBroken[m.key()] {
		return false
	}
	p.decision.Requeue = true
	return true
}

// isRecorded implements the guard of that name.
func (p *planner) isRecorded(m *Machine) bool {
	if isBroken(m) {
		return p.recordedBroken[m.key()]
	}
	return p.isDown(m) || p.recorded[m.key()]
}

// isUncounted implements the guard of that name: the Machine was broken before this undo and is again, or the undo does not move it, because it has
// the stable revision or its tenant does not answer. While it is being moved it counts, because it may come back. One that status.inProgress names as a Machine that worked counts too: a cache that is behind may show
// it as it was before.
func (p *planner) isUncounted(m *Machine) bool {
	if !p.facts.Rollout.ToStable || !p.guards.isBroken(m) {
		return false
	}
	r := &p.facts.Rollout
	isMoved := r.isStarted(m) || p.inProgress[m.key()]
	return p.brokenBefore[m.key()] || !isMoved && !(r.isOutdated(m) && p.guards.canRoll(m))
}

// isSetAside reports whether the Machine was broken before this Rollout moved it, has not been Ready since, and waits for a person again.
// Nothing waits for it.
func (p *planner) isSetAside(m *Machine) bool {
	r := &p.facts.Rollout
	return m.FailureReason != "" && r.isStarted(m) && !r.hasMoved(m) && p.guards.wasBroken(p, m)
}

// fillCanaryWithUnready makes Machines that are down the canary when no Ready one can go: first those that another Rollout or an installation has
// under way, then broken ones. The failing of a broken one stops nothing; one that becomes Ready proves the revision as well as any other.
//
// Where a Machine that is Ready only waits for room, the canary waits for it too: see the guard canProveUnready.
//
// Without it: all Machines are broken because of a fault in the revision that they have, or as many as may be unavailable. The person
// mends the NodeType. No Machine may be the canary, so the mended revision reaches none.
func (p *planner) fillCanaryWithUnready() {
	first := firstMachines{limit: p.facts.Policy.Canary, compare: p.compareUnready}
	hasReady := len(p.status.Canary) > 0
	for i := range p.facts.Machines {
		if m := &p.facts.Machines[i]; p.guards.hasHost(m) && p.isCandidate(m) && p.isDown(m) && (!hasReady || p.guards.canProveUnready(p, m)) {
			first.offer(m)
		}
	}
	if len(first.machines) == 0 {
		p.isCanaryWaiting = hasReady
		return
	}
	p.status.Canary, p.isCanaryUnready = nil, true
	for _, m := range first.machines {
		p.status.Canary = append(p.status.Canary, m.key().String())
		p.named[m.key()] = m
	}
}

// hasUnproven implements the guard canProveUnready: the Machine has, or is being moved to, another revision than the one that is proven. So that may be why
// it is down. It follows from the Machine alone, so it holds after any number of revisions that were not proven.
func (p *planner) hasUnproven(m *Machine) bool {
	from := p.facts.Rollout.From
	if p.facts.Previous != nil && p.facts.Previous.Done {
		return false
	}
	return !m.Installed.IsZero() && m.Installed != from || !m.Desired.IsZero() && m.Desired != from
}

// compareUnready orders Machines that wait for no tenant first, then those that are not broken, then by pool and name.
func (p *planner) compareUnready(a, b *Machine) int {
	return cmp.Or(compareTrueFirst(p.guards.hasTenantRoom(p, a), p.guards.hasTenantRoom(p, b)), compareTrueFirst(!p.guards.isBroken(a), !p.guards.isBroken(b)), compareByName(a, b))
}

// compareDown orders broken Machines first, those without a host last, and then by pool and name.
func (p *planner) compareDown(a, b *Machine) int {
	return cmp.Or(
		compareTrueFirst(p.guards.isBroken(a), p.guards.isBroken(b)),
		compareTrueFirst(p.guards.hasHost(a), p.guards.hasHost(b)),
		compareByName(a, b),
	)
}

// compareUp orders Machines that are unavailable already first, and then by pool and name.
func (p *planner) compareUp(a, b *Machine) int {
	return cmp.Or(compareTrueFirst(p.guards.isUnavailable(a), p.guards.isUnavailable(b)), compareByName(a, b))
}

// compareTrueFirst orders true before false.
func compareTrueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// recordUnready counts the Machine among those that a person must be told of.
func (p *planner) recordUnready(m *Machine) {
	switch {
	case !p.guards.hasHost(m):
		p.withoutHost++
	case p.isSetAside(m):
		p.setAside = append(p.setAside, m)
	case isBroken(m) && !p.facts.Rollout.isStarted(m):
		p.broken = append(p.broken, m)
	}
}

// setAsideText names the Machines that were broken before and are broken again; empty: there are none.
func (p *planner) setAsideText() string {
	if len(p.setAside) == 0 {
		return ""
	}
	return "; broken before and broken again, which stops nothing: " + causesText(p.setAside) + ": mend or delete " + pronoun(len(p.setAside))
}

// withoutHostText says how many Machines have no host; empty: none.
func (p *planner) withoutHostText() string {
	switch {
	case p.withoutHost == 0:
		return ""
	case p.withoutHost == 1:
		return "; 1 Machine has no host and is not counted"
	}
	return fmt.Sprintf("; %d Machines have no host and are not counted", p.withoutHost)
}

// brokenText names the broken Machines that fill a budget, and says what a person can do about them; empty: there are none, or
// this is an undo, whose budgets they do not fill.
func (p *planner) brokenText() string {
	all := slices.Concat(p.broken, p.setAside)
	if len(all) == 0 || p.facts.Rollout.ToStable {
		return ""
	}
	slices.SortFunc(all, compareByName)
	return fmt.Sprintf(" (%d of them broken: %s: mend or delete %s, or raise maxUnavailable)", len(all), causesText(all), pronoun(len(all)))
}

func pronoun(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

// causesText names the first Machines, each with its reason.
func causesText(machines []*Machine) string {
	names := make([]string, 0, maxNames)
	for _, m := range machines[:min(len(machines), maxNames)] {
		names = append(names, m.key().String()+": "+failureText(m))
	}
	return strings.Join(names, ", ") + omittedText(len(machines))
}
