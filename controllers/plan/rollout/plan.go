package rollout

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// planner computes one Decision.
type planner struct {
	facts    Facts
	guards   guards
	decision Decision
	// status is the status of the decision.
	status *v1alpha1.RolloutStatus
	// inherited are the Machines that the previous Rollout left in its status.inProgress.
	inherited map[types.NamespacedName]bool
	// unlabeled are the inherited Machines without the label of this Rollout.
	unlabeled []*Machine
	// handover are the inherited Machines that are unlabeled or unavailable. A newer Rollout must know of them.
	handover []*Machine
	// recorded are the Machines in status.inProgress as read, inProgress those in the status of the decision.
	recorded, inProgress map[types.NamespacedName]bool
	// recordedBroken are the Machines in status.brokenBefore as read, brokenBefore those in the status of the decision.
	recordedBroken, brokenBefore map[types.NamespacedName]bool
	// named are the Machines that any list of the status names; nil for a Machine that does not exist.
	named map[types.NamespacedName]*Machine
	// forgiven are the Machines whose failure no longer counts.
	forgiven map[types.NamespacedName]bool
	// typeBudget is the budget of the NodeType, poolBudgets are those of its NodePools.
	typeBudget  budget
	poolBudgets map[types.NamespacedName]*poolBudget
	// lastPool is the budget that budgetOfPool returned last.
	lastPool *poolBudget
	// isTypeExhausted is true if a Machine waits and the NodeType has no room.
	isTypeExhausted bool
	// failed are the Machines whose failure counts.
	failed []*Machine
	// broken are the broken Machines that are not started yet. setAside are those that were broken before, and are again.
	broken, setAside []*Machine
	// withoutHost is how many Machines have no host.
	withoutHost int
	// isTargetReady is true if a Machine is Ready with the target, whoever installed it.
	isTargetReady bool
	// isCanaryUnready is true if this decision makes Machines that are not Ready the canary. isCanaryWaiting is true if the canary waits for room.
	// isCanaryLost is true if every Machine of the canary is deleted or set aside, and none can take its place.
	isCanaryUnready, isCanaryWaiting, isCanaryLost bool
	// recordedUse are the devices in status.inUse as read, inUse the entries in the status of the decision, and taken their devices by class.
	recordedUse map[useKey]int
	inUse       map[useKey]v1alpha1.DevicesInUse
	taken       map[Class]int
	// heldBack are the Machines that wait because of devices that are in use.
	heldBack []*heldBack
	// unfinished is how many Machines keep the Rollout from being Done. unfinishedHosts is how many of them have a host.
	unfinished, unfinishedHosts int
	// blocked is how many Machines cannot be rolled now. blockedBy says why, of one of them.
	blocked   int
	blockedBy string
}

// Plan decides the next step of a Rollout.
func Plan(f Facts) Decision { return plan(f, realGuards()) }

func plan(f Facts, g guards) Decision {
	p := &planner{facts: f, guards: g, decision: Decision{Status: *f.Rollout.Status.DeepCopy()}, poolBudgets: map[types.NamespacedName]*poolBudget{}}
	p.status, p.recorded, p.recordedBroken = &p.decision.Status, nameSet(f.Rollout.Status.InProgress), nameSet(f.Rollout.Status.BrokenBefore)
	switch {
	case p.status.Phase.IsFinal():
		p.decision.Done = true
		return p.decision
	case !isKnown(p.status.Phase):
		p.refuseNewerShape()
		return p.decision
	}
	p.countUnavailable()
	p.updateBrokenBefore()
	p.updateInProgress()
	p.updateInUse()
	p.countTargets()
	if p.mustWaitForPrevious() {
		p.waitForPrevious()
	} else {
		if !f.Rollout.Superseded {
			p.updateCanary()
		}
		p.updatePhase()
		if p.isActive() {
			p.startNext()
		}
		p.labelInherited()
	}
	p.setConditions()
	return p.decision
}

// mustWaitForPrevious reports whether the Rollout has not begun, and the previous Rollout is not settled or has left Machines
// that this one has not labeled yet.
func (p *planner) mustWaitForPrevious() bool {
	if !p.isBeginning() {
		return false
	}
	return !p.guards.isPreviousSettled(p.facts.Previous) || len(p.unlabeled) > 0 && !p.facts.Rollout.Superseded
}

// isBeginning reports whether the Rollout has not begun.
func (p *planner) isBeginning() bool {
	return p.facts.Rollout.Status.Phase == "" || p.facts.Rollout.Status.Phase == v1alpha1.RolloutPending
}

// waitForPrevious sets the phase Pending and, once the previous Rollout is settled, labels the next Machine that it left in
// progress. After that no request of the previous Rollout to start the Machine can succeed, and no cache that shows the
// label shows the Machine as it was before such a request.
func (p *planner) waitForPrevious() {
	p.status.Phase = v1alpha1.RolloutPending
	if p.guards.isPreviousSettled(p.facts.Previous) {
		p.labelInherited()
	}
}

// labelInherited labels the next Machine that the previous Rollout left in progress. Once the Rollout has begun it is one whose label somebody took away,
// or a cache that is behind, and then the request fails.
func (p *planner) labelInherited() {
	if len(p.unlabeled) == 0 || p.status.Phase.IsFinal() {
		return
	}
	slices.SortFunc(p.unlabeled, compareByName)
	p.decision.Label = []types.NamespacedName{p.unlabeled[0].key()}
	p.decision.Requeue = len(p.unlabeled) > 1
}

// countUnavailable reads every Machine once: it finds the Machines that the status names and counts in the budgets all that have
// a host, except where an undo does not count one. A Machine without one counts only if it is in progress: an old cache may show it as it was before it had its host.
func (p *planner) countUnavailable() {
	p.inProgress, p.forgiven = nameSet(p.status.InProgress), nameSet(p.status.Forgiven)
	p.inherited = nameSet(p.guards.inheritedNames(p.facts.Previous))
	p.inheritBroken()
	p.inheritInUse()
	p.brokenBefore = nameSet(p.status.BrokenBefore)
	p.named = make(map[types.NamespacedName]*Machine, len(p.inProgress)+len(p.status.Canary)+len(p.forgiven))
	for _, list := range [][]string{p.status.InProgress, p.status.Canary, p.status.Forgiven, p.status.BrokenBefore} {
		for _, name := range list {
			p.named[parseName(name)] = nil
		}
	}
	for _, use := range p.status.InUse {
		p.named[parseName(use.Machine)] = nil
	}
	for i := range p.facts.Machines {
		if m := &p.facts.Machines[i]; !m.Deleting {
			p.countMachine(m)
		}
	}
	p.setLimits()
}

// countMachine counts one Machine in the budgets.
func (p *planner) countMachine(m *Machine) {
	isUnavailable, isCounted := p.guards.isUnavailable(m), p.guards.hasHost(m)
	if _, isNamed := p.named[m.key()]; isNamed {
		p.named[m.key()] = m
		isOnItsWay := p.inProgress[m.key()] && p.guards.mustStayInProgress(&p.facts.Rollout, m) && p.guards.mustCountInProgress(m)
		isUnavailable, isCounted = isUnavailable || isOnItsWay, isCounted || isOnItsWay
	}
	if p.inherited[m.key()] {
		p.recordInherited(m, isUnavailable)
		isUnavailable, isCounted = isUnavailable || !m.Labeled, isCounted || !m.Labeled
	}
	if !isCounted || p.guards.isUncounted(p, m) {
		return
	}
	p.typeBudget.add(isUnavailable)
	if b := p.budgetOfPool(m); b != nil {
		b.add(isUnavailable)
	}
}

// recordInherited records what remains to be done with a Machine that the previous Rollout left in progress.
func (p *planner) recordInherited(m *Machine, isUnavailable bool) {
	if !m.Labeled {
		p.unlabeled = append(p.unlabeled, m)
	}
	if !m.Labeled || isUnavailable {
		p.handover = append(p.handover, m)
	}
}

// updateInProgress removes from status.inProgress the Machines that are moved or no longer exist, and adds those that were
// started without being named there. It removes from status.forgiven the Machines that are moved or no longer exist.
func (p *planner) updateInProgress() {
	var remaining, moved, deleted []string
	for _, name := range p.status.InProgress {
		switch m := p.named[parseName(name)]; {
		case m == nil:
			deleted = append(deleted, name)
		case p.guards.mustStayInProgress(&p.facts.Rollout, m):
			remaining = append(remaining, name)
		default:
			moved = append(moved, name)
		}
	}
	p.status.InProgress, p.inProgress = remaining, nameSet(remaining)
	p.addHistoryOfNames(moved, "Ready with "+p.facts.Rollout.targetName())
	p.addHistoryOfNames(deleted, "deleted")
	for i := range p.facts.Machines {
		if m := &p.facts.Machines[i]; p.isStartedUnnamed(m) {
			p.addStarted(m)
		}
	}
	p.status.Forgiven = slices.DeleteFunc(slices.Clone(p.status.Forgiven), func(name string) bool {
		m := p.named[parseName(name)]
		return m == nil || p.facts.Rollout.hasMoved(m)
	})
	p.forgiven = nameSet(p.status.Forgiven)
}

// isStartedUnnamed reports whether this Rollout started the Machine while it was unavailable, so that status.inProgress does
// not name it yet.
func (p *planner) isStartedUnnamed(m *Machine) bool {
	r := &p.facts.Rollout
	return !m.Deleting && !m.Installed.IsZero() && m.Installed != r.To && r.isStarted(m) && p.guards.mustStayInProgress(r, m) && !p.inProgress[m.key()]
}

// countTargets counts the Machines that the Rollout moves, has moved, and that have failed. If a person resumed the Rollout
// after it stopped, it forgives the failures.
func (p *planner) countTargets() {
	p.status.Targets = v1alpha1.RolloutTargets{}
	for i := range p.facts.Machines {
		if m := &p.facts.Machines[i]; !m.Deleting {
			p.countTarget(m)
		}
	}
	slices.SortFunc(p.failed, compareByName)
	slices.SortFunc(p.setAside, compareByName)
	p.status.Targets.Failed = int32(len(p.failed))
	if p.isResumed() && p.status.StoppedBy != "" {
		p.forgiveFailures()
	}
}

func (p *planner) countTarget(m *Machine) {
	r := &p.facts.Rollout
	isTarget := p.guards.hasHost(m) || p.inProgress[m.key()]
	p.recordUnready(m)
	p.isTargetReady = p.isTargetReady || m.Ready && m.Installed == r.To
	if isTarget {
		p.addTarget(m)
	}
	if p.isFailure(m) {
		p.failed = append(p.failed, m)
	}
	if (r.isOutdated(m) || !r.isStarted(m) && p.inProgress[m.key()]) && !p.guards.canRoll(m) {
		p.blocked, p.blockedBy = p.blocked+1, m.BlockedBy
	}
	if !p.guards.isFinished(p, m) {
		p.unfinished++
		if isTarget {
			p.unfinishedHosts++
		}
	}
}

// isFailure reports whether the Machine has failed and its failure counts.
func (p *planner) isFailure(m *Machine) bool {
	return p.facts.Rollout.hasFailed(m) && !p.forgiven[m.key()] && !p.guards.wasBroken(p, m)
}

// addTarget counts the Machine in status.targets if it is or was to be moved.
func (p *planner) addTarget(m *Machine) {
	r, targets := &p.facts.Rollout, &p.status.Targets
	if r.isStarted(m) || r.isOutdated(m) {
		targets.Total++
	}
	if r.hasMoved(m) {
		targets.Done++
	}
}

// forgiveFailures moves the failed Machines to status.forgiven, because a person resumed the Rollout after it stopped.
func (p *planner) forgiveFailures() {
	for _, m := range p.failed {
		p.status.Forgiven = append(p.status.Forgiven, m.key().String())
		p.named[m.key()] = m
		p.forgiven[m.key()] = true
	}
	p.unfinished -= len(p.failed)
	p.failed, p.status.Targets.Failed, p.status.StoppedBy = nil, 0, ""
}

// requeueAfter plans again after that time, or earlier if something else asked for it.
func (p *planner) requeueAfter(d time.Duration) {
	if d = max(d, time.Second); p.decision.RequeueAfter == 0 || d < p.decision.RequeueAfter {
		p.decision.RequeueAfter = d
	}
}

// parseName parses namespace/name. Any other text gives a name that no Machine has, which is handled like a deleted Machine.
func parseName(name string) types.NamespacedName {
	namespace, rest, _ := strings.Cut(name, "/")
	return types.NamespacedName{Namespace: namespace, Name: rest}
}

func nameSet(names []string) map[types.NamespacedName]bool {
	set := make(map[types.NamespacedName]bool, len(names))
	for _, name := range names {
		set[parseName(name)] = true
	}
	return set
}
