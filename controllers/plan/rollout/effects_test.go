package rollout

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// flight is a request to start a Machine that may still be under way.
type flight struct {
	m  *machine
	rv int
}

func (f *flight) mayLand() bool { return f.m.rv == f.rv && !f.m.gone }

// facts is what the manager sees: both kinds, each as late as its cache.
func (w *world) facts(r *rollout, seen record) Facts {
	f := Facts{Now: w.now, Rollout: seen.Rollout, Policy: w.policy, Pools: w.pools}
	f.Rollout.Status, f.Machines = *seen.Status.DeepCopy(), make([]Machine, 0, len(w.machines))
	f.Rollout.ToStable = r.To == w.stable
	for _, other := range w.rollouts {
		o, found := other.past.seen(w.seenRollouts)
		switch {
		case !found || o.Name == seen.Name:
		case other.past[0].at > r.past[0].at:
			f.Rollout.Superseded = true
		default:
			f.Previous = &PreviousRollout{Name: o.Name, Settled: o.Status.Phase.Settled(), InProgress: o.Status.InProgress}
		}
	}
	for _, m := range w.machines {
		o, found := m.past.seen(w.seenMachines)
		if !found || o.gone {
			continue
		}
		o.Marked = o.label == seen.Name
		if o.Namespace == w.unreachable {
			o.BlockedBy = "its cluster does not answer"
		}
		f.Machines = append(f.Machines, o.Machine)
	}
	return f
}

// reconcile is one turn of the manager.
func (w *world) reconcile(r *rollout) {
	seen, found := r.past.seen(w.seenRollouts)
	if !found || seen.Status.Phase.Settled() {
		return
	}
	f := w.facts(r, seen)
	d := plan(f, w.g)
	w.checkDecision(r, f, d)
	effects := []request{}
	if !reflect.DeepEqual(d.Status, f.Rollout.Status) {
		effects = append(effects, w.writeStatus(r, seen.rv, d.Status))
	}
	for _, key := range d.Mark {
		effects = append(effects, w.markMachine(r, key))
	}
	for _, key := range d.Start {
		effects = append(effects, w.startMachine(r, key))
	}
	if len(effects) == 2 && w.rng.IntN(2) == 0 {
		slices.Reverse(effects)
	}
	for _, e := range effects {
		if w.chaos && w.rng.IntN(12) == 0 {
			return // killed between the two
		}
		w.send(e)
	}
}

func (w *world) writeStatus(r *rollout, rv int, status v1alpha1.RolloutStatus) request {
	return request{"status of " + r.Name, func() {
		if r.rv != rv {
			return // a conflict
		}
		r.Status = status
		w.tell("%s: %s in progress %v canary %v %s", r.Name, status.Phase, status.InProgress, status.Canary, status.StoppedBy)
		w.wrote(r)
	}}
}

func (w *world) startMachine(r *rollout, key types.NamespacedName) request {
	m := w.named(key)
	o, _ := m.past.seen(w.seenMachines)
	flight := &flight{m, o.rv}
	w.flying = append(w.flying, flight)
	name, to := r.Name, r.To
	return request{"start of " + m.Name + " by " + name, func() {
		if !flight.mayLand() {
			return // a conflict
		}
		served := !isUnavailable(&m.Machine)
		m.Desired, m.label = to, name
		m.rolled = isUnavailable(&m.Machine) && (m.rolled || served)
		w.tell("%s is started by %s", m.Name, name)
		w.starts++
		w.changed(m)
	}}
}

func (w *world) markMachine(r *rollout, key types.NamespacedName) request {
	m, name := w.named(key), r.Name
	rv := w.rvSeen(m)
	return request{"mark of " + m.Name + " by " + name, func() {
		if m.rv != rv || m.gone {
			return // a conflict
		}
		m.label = name
		w.tell("%s is marked by %s", m.Name, name)
		w.changed(m)
	}}
}

// send carries a request out: as a rule at once, in chaos also never, twice or later.
func (w *world) send(e request) {
	if !w.chaos {
		e.land()
		return
	}
	switch w.rng.IntN(10) {
	case 0:
		w.tell("lost: %s", e.what)
	case 1:
		e.land()
		w.pending = append(w.pending, e)
	case 2, 3:
		w.tell("delayed: %s", e.what)
		w.pending = append(w.pending, e)
	default:
		e.land()
	}
}

func (w *world) deliver(i int) {
	e := w.pending[i]
	w.pending = slices.Delete(w.pending, i, i+1)
	w.tell("arrives late: %s", e.what)
	e.land()
}

func (w *world) named(key types.NamespacedName) *machine {
	for _, m := range w.machines {
		if m.Namespace == key.Namespace && m.Name == key.Name {
			return m
		}
	}
	return nil
}

// step is one step of a history.
func (w *world) step() {
	switch k := w.rng.IntN(20); {
	case k < 9:
		if n := len(w.rollouts); n > 0 {
			w.reconcile(w.rollouts[max(0, n-1-w.rng.IntN(3))])
		}
	case k < 14:
		w.live(w.machines[w.rng.IntN(len(w.machines))])
	case k < 15:
		w.succeed()
	case k < 17:
		w.now = w.now.Add(w.minutes(8))
	default:
		w.disturb()
	}
	if len(w.pending) > 0 && w.rng.IntN(4) == 0 {
		w.deliver(w.rng.IntN(len(w.pending)))
	}
	w.seenMachines += w.rng.IntN(w.tickMachines - w.seenMachines + 1)
	w.seenRollouts += w.rng.IntN(w.tickRollouts - w.seenRollouts + 1)
	w.flying = slices.DeleteFunc(w.flying, func(f *flight) bool { return !f.mayLand() })
}

// settle ends the chaos and lets everybody work, with a person who lets a stopped rollout go on.
func (w *world) settle() {
	w.chaos, w.unreachable = false, ""
	for len(w.pending) > 0 {
		w.deliver(0)
	}
	w.tell("the chaos ends")
	for range 400 {
		w.catchUp()
		w.succeed()
		w.catchUp()
		last := w.rollouts
		if len(last) == 0 || w.rests(last[len(last)-1]) {
			w.checkRest()
			return
		}
		for range 2 {
			for _, r := range w.rollouts[max(0, len(w.rollouts)-6):] {
				w.reconcile(r)
			}
			w.catchUp()
		}
		w.person(last[len(last)-1])
		for _, m := range w.machines {
			w.live(m)
		}
		w.now = w.now.Add(w.minutes(20))
		w.flying = nil
	}
	w.violated("settle: it does not end: %+v", w.rollouts[len(w.rollouts)-1].Status)
}

// person does what the messages ask for.
func (w *world) person(r *rollout) {
	if paused := r.Status.Phase == v1alpha1.RolloutStopped; paused != r.Paused {
		r.Paused = paused
		w.wrote(r)
	}
	for _, m := range w.machines {
		switch {
		case m.FailureReason == "" || m.gone || m.Deleting:
		case m.broken: // replaced
			m.Deleting = true
			w.changed(m)
		default: // mended
			m.due = w.now
		}
	}
	w.scale()
}

func (w *world) rests(r *rollout) bool {
	return r.To == w.target && w.stable == w.target && r.Status.Phase == v1alpha1.RolloutDone && !w.leftBehind()
}
