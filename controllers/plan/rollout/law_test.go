package rollout

import (
	"flag"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/breaker"
)

func (w *world) minutes(most int) time.Duration { return time.Duration(w.rng.IntN(most)) * time.Minute }

// machineCount is a number of Machines, and how many of them are unavailable.
type machineCount struct{ total, unavailable int }

// countMachines counts the Machines of the NodeType that have a host, and those of the same pool as the Machine.
// An undo does not count those that others broke.
func countMachines(r *Rollout, machines []Machine, like Machine, out func(*Machine) bool) (all, pool machineCount) {
	for i := range machines {
		m := &machines[i]
		if m.Deleting || !m.Claimed || r.ToStable && m.key() != like.key() && isBrokenByOthers(r, m) {
			continue
		}
		for _, c := range []*machineCount{&all, &pool} {
			if c == &pool && m.Pool != like.Pool {
				continue
			}
			c.total++
			if out(m) {
				c.unavailable++
			}
		}
	}
	return all, pool
}

// isBrokenByOthers reports whether the Machine is broken, and the Rollout has not moved it or moved it when it was broken already.
func isBrokenByOthers(r *Rollout, m *Machine) bool {
	name := m.key().String()
	isMoved := slices.Contains(r.Status.InProgress, name) || m.Labeled && m.Desired == r.To
	return !m.Ready && m.FailureReason != "" && (!isMoved || slices.Contains(r.Status.BrokenBefore, name))
}

// checkDecision checks a decision against the laws.
func (w *world) checkDecision(r *rollout, f Facts, d Decision) {
	w.checkBake(f, d)
	w.checkDone(f, d)
	w.checkProof(f, d)
	w.checkChosen(f, d)
	w.checkCanary(f, d)
	if observed, _ := r.past.at(w.observedRollouts); observed.rv == r.rv { // else the status is not written
		w.checkStop(f, d)
	}
	for _, key := range d.Start {
		i := slices.IndexFunc(f.Machines, func(m Machine) bool { return m.key() == key })
		m := f.Machines[i]
		w.checkMayStart(f, &m)
		w.checkUse(f, &m)
		w.checkDevices(&m)
		w.checkObservedBudget(f, m)
		w.checkActualBudget(f, m)
	}
}

// checkChosen checks that no Machine is chosen, within the budgets or not, that may be at work although it is broken and has no grant.
func (w *world) checkChosen(f Facts, d Decision) {
	for _, m := range f.Machines {
		name := m.key().String()
		isChosen := slices.Contains(d.Status.InProgress, name) && !slices.Contains(f.Rollout.Status.InProgress, name)
		if isChosen && isBroken(&m) && m.HasServed && !m.IsGranted && !isRequested(&m) {
			w.violated("grant: %s may be at work and is chosen without a grant", m.Name)
		}
	}
}

// checkGrant checks that a Machine that may be at work although it is broken is not moved without a grant.
func (w *world) checkGrant(m *machine) {
	if !m.wasBroken || !m.HasServed || m.Phase != v1alpha1.MachineValidating {
		return
	}
	isGranted := slices.ContainsFunc(w.grants, func(g breaker.Grant) bool { return g.Object == m.key().String() })
	if !isGranted {
		w.violated("grant: %s may be at work and is moved without a grant", m.Name)
	}
	granted := map[string]bool{}
	for _, g := range w.grants {
		if g.Domains[0].Name == m.Namespace && w.now.Sub(g.At) < breaker.Window {
			granted[g.Object] = true
		}
	}
	done := len(granted)
	if limit := breaker.Limit(w.groups()[domainsOf(m.key())[0]].Servers); w.isChaotic && done > limit {
		w.violated("grant: %d Machines of %s that may be at work are moved within an hour, of at most %d", done, m.Namespace, limit)
	}
}

// checkMayStart checks what must hold for a start, except for the budgets, in the facts of the planner.
func (w *world) checkMayStart(f Facts, m *Machine) {
	s := f.Rollout.Status
	switch {
	case !isUnavailable(m) && !slices.Contains(s.InProgress, m.key().String()):
		w.violated("intent: %s is started and the status does not name it", m.Name)
	case m.Claimed && !m.Ready && m.FailureReason != "" && !slices.Contains(s.BrokenBefore, m.key().String()):
		w.violated("intent: %s is broken and started, and the status does not say that it was", m.Name)
	case f.Previous != nil && !f.Previous.Settled:
		w.violated("order: %s is started while Rollout %s may start Machines too", m.Name, f.Previous.Name)
	case f.Rollout.Paused || f.Rollout.Superseded || s.Phase == v1alpha1.RolloutStopped || s.Phase == v1alpha1.RolloutPaused:
		w.violated("phase: %s is started in %s, paused=%t superseded=%t", m.Name, s.Phase, f.Rollout.Paused, f.Rollout.Superseded)
	case m.BlockedBy != "" && m.Claimed:
		w.violated("tenant: %s is started", m.Name)
	case s.Phase == v1alpha1.RolloutCanary && !slices.Contains(s.Canary, m.key().String()) && (m.Claimed || len(s.Canary) > 0):
		w.violated("canary: %s is started before the canary %v has baked", m.Name, s.Canary)
	}
	failed := 0
	for i := range f.Machines {
		o := &f.Machines[i]
		if !o.Deleting && o.Labeled && o.Desired == f.Rollout.To && o.Installed == f.Rollout.To && o.FailureReason != "" && !slices.Contains(slices.Concat(s.Forgiven, s.BrokenBefore), o.key().String()) {
			failed++
		}
	}
	if failed > f.Policy.FailureBudget {
		w.violated("failures: %s is started after %d failures, of at most %d", m.Name, failed, f.Policy.FailureBudget)
	}
}

// isDownForGood reports whether nothing is taken away when the Machine is moved. One that has lost its Ready a moment ago is not down for good.
func isDownForGood(m *Machine) bool {
	isWorking := m.Phase == v1alpha1.MachineReady || m.Phase == v1alpha1.MachineValidating && m.FailureReason == ""
	return !m.Claimed || !m.Desired.IsZero() && m.Desired != m.Installed || !isWorking
}

// checkObservedBudget checks invariant 5 in the facts of the planner, including the names in the status.
func (w *world) checkObservedBudget(f Facts, m Machine) {
	if isDownForGood(&m) {
		return
	}
	all, pool := countMachines(&f.Rollout, f.Machines, m, func(o *Machine) bool {
		return !o.Ready || !o.Desired.IsZero() && o.Desired != o.Installed || o.key() == m.key()
	})
	if most := scaledLimit(f.Policy.MaxUnavailable, all.total); all.unavailable > most {
		w.violated("5: %s is started, and %d of at most %d of the NodeType are unavailable", m.Name, all.unavailable, most)
	}
	if most := f.Pools[m.Pool].limit(pool.total); pool.unavailable > most {
		w.violated("5: %s is started, and %d of at most %d of %s are unavailable", m.Name, pool.unavailable, most, m.Pool)
	}
}

// checkActualBudget checks invariant 5 in the actual state, for what rollouts have done or may still do, however late the caches are.
func (w *world) checkActualBudget(f Facts, m Machine) {
	truth := w.machineNamed(m.key())
	if isUnavailable(&truth.Machine) || truth.rv != w.observedVersion(truth) {
		return // no harm, or a conflict
	}
	var alive []Machine
	byRolls := map[string]bool{m.Name: true}
	for _, o := range w.machines {
		if o.isGone {
			continue
		}
		alive = append(alive, o.Machine)
		byRolls[o.Name] = byRolls[o.Name] || o.isMadeUnavailable
	}
	for _, fl := range w.inFlight {
		if fl.canSucceed() {
			byRolls[fl.machine.Name] = true
		}
	}
	out := func(o *Machine) bool { return byRolls[o.Name] }
	all, pool := countMachines(&f.Rollout, alive, m, out)
	seenAll, seenPool := countMachines(&f.Rollout, f.Machines, m, out)
	if most := max(scaledLimit(f.Policy.MaxUnavailable, all.total), scaledLimit(f.Policy.MaxUnavailable, seenAll.total)); all.unavailable > most {
		w.violated("5: %s is started, and rollouts have %d of at most %d of the NodeType out: %v", m.Name, all.unavailable, most, byRolls)
	}
	if most := max(f.Pools[m.Pool].limit(pool.total), f.Pools[m.Pool].limit(seenPool.total)); pool.unavailable > most {
		w.violated("5: %s is started, and rollouts have %d of at most %d of %s out: %v", m.Name, pool.unavailable, most, m.Pool, byRolls)
	}
}

func (w *world) observedVersion(m *machine) int {
	o, _ := m.past.at(w.observedMachines)
	return o.rv
}

// checkBake checks that the canary stage ends only when its Machines have been Ready for the bake time.
func (w *world) checkBake(f Facts, d Decision) {
	s := f.Rollout.Status
	leaves := d.Status.Phase == v1alpha1.RolloutRolling || d.Status.Phase == v1alpha1.RolloutDone
	if s.Phase != v1alpha1.RolloutCanary || !leaves || f.Rollout.ToStable {
		return
	}
	for i := range f.Machines {
		m := &f.Machines[i]
		if m.Deleting || !m.Labeled || m.Desired != f.Rollout.To || !slices.Contains(s.Canary, m.key().String()) || isGivenUp(m, d) {
			continue
		}
		if !m.Ready || f.Now.Before(m.ReadySince.Add(f.Policy.Bake)) {
			w.violated("bake: the canary ends, and %s is Ready=%t since %s of %s", m.Name, m.Ready, m.ReadySince, f.Policy.Bake)
		}
	}
}

// isGivenUp reports whether a person has forgiven the Machine, or it was broken before and is again.
func isGivenUp(m *Machine, d Decision) bool {
	name := m.key().String()
	return slices.Contains(d.Status.Forgiven, name) || m.FailureReason != "" && slices.Contains(d.Status.BrokenBefore, name)
}

// isOnUnproven reports whether the Machine is, or will be, on another revision than the stable one.
func (w *world) isOnUnproven(m *Machine) bool {
	return slices.ContainsFunc([]v1alpha1.RenderedRevision{m.Desired, m.Installed}, func(has v1alpha1.RenderedRevision) bool {
		return !has.IsZero() && has != w.stable
	})
}

// checkCanary checks that a Machine that is not Ready is added to the canary only if no Ready one can go, in the facts of the planner. Where that is for want
// of room, it is one that has an unproven revision.
func (w *world) checkCanary(f Facts, d Decision) {
	isNew := func(m *Machine) bool {
		name := m.key().String()
		return slices.Contains(d.Status.Canary, name) && !slices.Contains(f.Rollout.Status.Canary, name) && !slices.Contains(f.Rollout.Status.InProgress, name)
	}
	at := slices.IndexFunc(f.Machines, func(m Machine) bool {
		return isNew(&m) && !m.Ready && !(m.Labeled && m.Desired == f.Rollout.To)
	})
	if at < 0 {
		return
	}
	if !f.Machines[at].Claimed {
		w.violated("choice: %s has no host, and is the canary", f.Machines[at].Name)
	}
	isUnlabeled := func(o *Machine) bool { // the cache is behind
		return f.Previous != nil && !o.Labeled && slices.Contains(f.Previous.InProgress, o.key().String())
	}
	isUnproven := w.isOnUnproven(&f.Machines[at])
	for i := range f.Machines {
		m := &f.Machines[i]
		name := m.key().String()
		isFree := !isUnlabeled(m) && m.Ready && !m.Deleting && m.Claimed && m.BlockedBy == "" && m.Installed != f.Rollout.To && !isUnavailable(m)
		if !isFree || slices.Contains(d.Status.Forgiven, name) || slices.Contains(d.Status.Canary, name) || slices.Contains(f.Rollout.Status.InProgress, name) {
			continue
		}
		if !isUnproven {
			w.violated("choice: %s, which is not Ready, is the canary although %s is Ready", f.Machines[at].Name, m.Name)
			return
		}
		all, pool := countMachines(&f.Rollout, f.Machines, *m, func(o *Machine) bool {
			return isUnavailable(o) || o.key() == m.key() || isUnlabeled(o) || slices.Contains(f.Rollout.Status.InProgress, o.key().String())
		})
		if w.hasDeviceRoom(f, m) && all.unavailable <= scaledLimit(f.Policy.MaxUnavailable, all.total) && pool.unavailable <= f.Pools[m.Pool].limit(pool.total) {
			w.violated("choice: %s, which is not Ready, is the canary although %s is Ready and can go", f.Machines[at].Name, m.Name)
			return
		}
	}
}

// checkStop checks that what was broken before never stops a Rollout, in the actual state.
func (w *world) checkStop(f Facts, d Decision) {
	if d.Status.Phase != v1alpha1.RolloutStopped || f.Rollout.Status.Phase == v1alpha1.RolloutStopped {
		return
	}
	healthy := slices.ContainsFunc(w.machines, func(m *machine) bool {
		return !m.wasBroken && m.label == f.Rollout.Name && m.Desired == f.Rollout.To
	})
	if !healthy {
		w.violated("held up: %s stops, and everything that it has moved was broken before", f.Rollout.Name)
	}
}

// checkProof checks that a Rollout whose canary is deleted is Done only when a Machine is Ready with the target, or a person has accepted what failed.
func (w *world) checkProof(f Facts, d Decision) {
	s := f.Rollout.Status
	if d.Status.Phase != v1alpha1.RolloutDone || f.Rollout.ToStable || d.Status.BakedSince != nil || s.StoppedBy != "" || len(s.Forgiven) > 0 {
		return
	}
	isProven := slices.ContainsFunc(f.Machines, func(m Machine) bool { return !m.Deleting && m.Ready && m.Installed == f.Rollout.To })
	for _, name := range s.Canary {
		isHere := slices.ContainsFunc(f.Machines, func(m Machine) bool { return !m.Deleting && m.key().String() == name })
		if !isHere && !isProven {
			w.violated("proof: %s is Done, its canary %s is deleted, and no Machine is Ready with the target", f.Rollout.Name, name)
		}
	}
}

// checkDone checks that a Rollout is Done only when every Machine is moved, in the facts of the planner.
func (w *world) checkDone(f Facts, d Decision) {
	if d.Status.Phase != v1alpha1.RolloutDone {
		return
	}
	for i := range f.Machines {
		m := &f.Machines[i]
		if m.Deleting || !m.Claimed || isGivenUp(m, d) {
			continue
		}
		if m.Installed != f.Rollout.To || m.Labeled && m.Desired == f.Rollout.To && !m.Ready {
			w.violated("done: %s has %s, Ready=%t", m.Name, m.Installed, m.Ready)
		}
	}
}

// checkRest checks that at the end every Machine has the revision that the NodeType asks for.
func (w *world) checkRest() {
	for _, m := range w.machines {
		if !m.isGone && !m.Deleting && m.Claimed && (m.Installed != w.target || !m.Desired.IsZero() && m.Desired != w.target) {
			w.violated("settle: %s ends with %s, wanting %q, not %s", m.Name, m.Installed, m.Desired, w.target)
		}
	}
}

func runHistory(seed uint64, g guards, trace func(string, ...any)) *world {
	w := newWorld(seed, g)
	w.trace = trace
	for range 150 {
		w.step()
		if len(w.violations) > 0 {
			return w
		}
	}
	w.settle()
	return w
}

// runHistories runs that many schedules on all cores and returns the first one, if any, that broke a law.
func runHistories(count int, g guards, each func(*world)) (seed uint64, broken []string) {
	var next, worst atomic.Uint64
	var mu sync.Mutex
	var group sync.WaitGroup
	worst.Store(uint64(count))
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for {
				s := next.Add(1) - 1
				if s >= worst.Load() {
					return
				}
				w := runHistory(s, g, nil)
				mu.Lock()
				if each != nil {
					each(w)
				}
				if len(w.violations) > 0 && s < worst.Load() {
					worst.Store(s)
					seed, broken = s, w.violations
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return seed, broken
}

func TestTwoThousandRandomSchedulesKeepTheBudgetsAndSettle(t *testing.T) {
	count := 2_000
	if testing.Short() {
		count = 100
	}
	starts, rollouts := 0, map[v1alpha1.RolloutPhase]int{}
	seed, broken := runHistories(count, realGuards(), func(w *world) {
		starts += w.starts
		for _, r := range w.rollouts {
			rollouts[r.Status.Phase]++
		}
	})
	if broken != nil {
		t.Fatalf("seed %d:\n%s", seed, strings.Join(broken, "\n"))
	}
	t.Logf("%d schedules: %d starts, Rollouts %v", count, starts, rollouts)
	if starts < 5*count || rollouts[v1alpha1.RolloutDone] < count/2 || rollouts[v1alpha1.RolloutSuperseded] < count/2 {
		t.Errorf("the schedules prove little: %d starts, Rollouts %v", starts, rollouts)
	}
}

var oneSeed = flag.Uint64("seed", 0, "the schedule that TestOneSchedule prints")

func TestOneSchedule(t *testing.T) {
	w := runHistory(*oneSeed, realGuards(), t.Logf)
	if len(w.violations) > 0 {
		t.Error(strings.Join(w.violations, "\n"))
	}
}
