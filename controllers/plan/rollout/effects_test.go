package rollout

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/breaker"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

// startRequest is a request to start a Machine that may still be on its way.
type startRequest struct {
	machine *machine
	rv      int
}

func (f *startRequest) canSucceed() bool { return f.machine.rv == f.rv && !f.machine.isGone }

// facts returns the facts that the caches of the manager show.
func (w *world) facts(r *rollout, observed record) Facts {
	f := Facts{Clock: watched.Clock{Now: w.now}, Rollout: observed.Rollout, Policy: w.policy, Pools: w.pools}
	f.Rollout.Status, f.Machines = *observed.Status.DeepCopy(), make([]Machine, 0, len(w.machines))
	f.Rollout.ToStable = r.To == w.stable
	for _, other := range w.rollouts {
		o, found := other.past.at(w.observedRollouts)
		switch {
		case !found || o.Name == observed.Name:
		case other.past[0].at > r.past[0].at:
			f.Rollout.Superseded = true
		default:
			f.Previous = NewPreviousRollout(&v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: o.Name}, Status: o.Status})
		}
	}
	for _, m := range w.machines {
		o, found := m.past.at(w.observedMachines)
		if !found || o.isGone {
			continue
		}
		o.Labeled = o.label == observed.Name
		if o.Namespace == w.unreachable {
			o.BlockedBy = "its cluster does not answer"
		}
		f.Machines = append(f.Machines, o.Machine)
		w.addHeld(&f, &o)
	}
	w.ask(&f)
	return f
}

// ask asks for grants as the manager does, of a desk that knows all Machines.
func (w *world) ask(f *Facts) {
	names := f.NeedsGrant()
	asks, asked, groups := make([]breaker.Ask, len(names)), map[string]time.Time{}, w.groups()
	for i, name := range names {
		since, isKnown := w.asked[name.String()]
		if !isKnown {
			since = w.now
		}
		asked[name.String()] = since
		asks[i] = breaker.Ask{Act: breaker.Reinstall, Fault: breaker.Fault{Object: name.String()}, Since: since}
		for _, d := range domainsOf(name) {
			asks[i].Groups = append(asks[i].Groups, groups[d])
		}
	}
	w.asked = asked
	answers := breaker.Decide(breaker.Facts{Clock: f.Clock, Asks: asks, Grants: w.grants})
	if domain := f.ConfirmedDomain(w.confirmed, answers); domain != nil {
		breaker.Confirm(asks, *domain)
		answers = breaker.Decide(breaker.Facts{Clock: f.Clock, Asks: asks, Grants: w.grants})
	}
	for i, answer := range answers {
		isKnown := slices.ContainsFunc(w.grants, func(g breaker.Grant) bool { return g.Object == asks[i].Object && w.now.Sub(g.At) < breaker.Window })
		if answer.IsGranted && !isKnown {
			w.grants = append(w.grants, breaker.NewGrant(asks[i], w.now))
		}
	}
	f.SetAnswers(names, answers)
}

// domainsOf are what may fail as a whole.
func domainsOf(name types.NamespacedName) []breaker.Domain {
	return []breaker.Domain{{Kind: "tenant", Name: name.Namespace}, {Kind: "NodeType", Name: "h100"}}
}

// groups counts the Machines of each domain.
func (w *world) groups() map[breaker.Domain]*breaker.Group {
	out := map[breaker.Domain]*breaker.Group{}
	for _, m := range w.machines {
		for _, d := range domainsOf(m.key()) {
			if out[d] == nil {
				out[d] = &breaker.Group{Domain: d}
			}
			if m.Claimed && !m.isGone {
				out[d].Servers++
			}
			if m.HasServed && !m.Ready && !m.isGone && !m.Deleting && m.Phase == v1alpha1.MachineValidating {
				out[d].Failing = append(out[d].Failing, breaker.Fault{Object: m.key().String()})
			}
		}
	}
	return out
}

// reconcile lets the manager reconcile a Rollout once.
func (w *world) reconcile(r *rollout) {
	observed, found := r.past.at(w.observedRollouts)
	if !found || observed.Status.Phase.IsFinal() {
		return
	}
	f := w.facts(r, observed)
	d := plan(f, w.guards)
	w.checkDecision(r, f, d)
	effects := []request{}
	if !reflect.DeepEqual(d.Status, f.Rollout.Status) {
		effects = append(effects, w.writeStatus(r, observed.rv, d.Status))
	}
	for _, key := range d.Label {
		effects = append(effects, w.markMachine(r, key))
	}
	for _, key := range d.Start {
		effects = append(effects, w.startMachine(r, key, slices.Contains(f.Rollout.Status.InProgress, key.String())))
	}
	if len(effects) == 2 && w.rng.IntN(2) == 0 {
		slices.Reverse(effects)
	}
	for _, e := range effects {
		if w.isChaotic && w.rng.IntN(12) == 0 {
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
		w.giveUp(status)
		w.logf("%s: %s in progress %v canary %v %s", r.Name, status.Phase, status.InProgress, status.Canary, status.StoppedBy)
		w.recordRollout(r)
	}}
}

// startMachine returns the request to start a Machine, which the budgets cover or not.
func (w *world) startMachine(r *rollout, key types.NamespacedName, isCovered bool) request {
	m := w.machineNamed(key)
	o, _ := m.past.at(w.observedMachines)
	flight := &startRequest{m, o.rv}
	w.inFlight = append(w.inFlight, flight)
	name, to := r.Name, r.To
	return request{"start of " + m.Name + " by " + name, func() {
		if !flight.canSucceed() {
			return // a conflict
		}
		served := !isUnavailable(&m.Machine)
		m.lost = max(m.lost, m.held)
		m.wasBroken = m.Claimed && !m.Ready && m.FailureReason != ""
		// The reason is about an earlier generation until the Machine's controller has observed this one.
		m.Desired, m.label, m.FailureReason = to, name, ""
		m.isMadeUnavailable = isUnavailable(&m.Machine) && (m.isMadeUnavailable || served)
		w.logf("%s is started by %s", m.Name, name)
		w.starts++
		if !isCovered {
			w.checkGrant(m)
		}
		if last := w.rollouts[len(w.rollouts)-1]; served && last.Name != name && last.Status.Phase == v1alpha1.RolloutDone {
			w.violated("late: %s is started by %s, and %s is Done", m.Name, name, last.Name)
		}
		w.recordMachine(m)
	}}
}

func (w *world) markMachine(r *rollout, key types.NamespacedName) request {
	m, name := w.machineNamed(key), r.Name
	rv := w.observedVersion(m)
	return request{"mark of " + m.Name + " by " + name, func() {
		if m.rv != rv || m.isGone {
			return // a conflict
		}
		m.label = name
		w.logf("%s is marked by %s", m.Name, name)
		w.recordMachine(m)
	}}
}

// send applies a request: usually at once, in chaos also never, twice or later.
func (w *world) send(e request) {
	if !w.isChaotic {
		e.apply()
		return
	}
	switch w.rng.IntN(10) {
	case 0:
		w.logf("lost: %s", e.name)
	case 1:
		e.apply()
		w.pending = append(w.pending, e)
	case 2, 3:
		w.logf("delayed: %s", e.name)
		w.pending = append(w.pending, e)
		if strings.HasPrefix(e.name, "start of") && w.rng.IntN(3) == 0 {
			w.logf("the NodeType is set back while it is on its way")
			w.target, w.held = w.stable, 15
			w.reconcileNodeType()
		}
	default:
		e.apply()
	}
}

func (w *world) deliver(i int) {
	e := w.pending[i]
	w.pending = slices.Delete(w.pending, i, i+1)
	w.logf("arrives late: %s", e.name)
	e.apply()
}

func (w *world) machineNamed(key types.NamespacedName) *machine {
	for _, m := range w.machines {
		if m.Namespace == key.Namespace && m.Name == key.Name {
			return m
		}
	}
	return nil
}

// step is one step of a schedule.
func (w *world) step() {
	switch k := w.rng.IntN(20); {
	case k < 9:
		if n := len(w.rollouts); n > 0 {
			w.reconcile(w.rollouts[max(0, n-1-w.rng.IntN(3))])
		}
	case k < 14:
		w.advance(w.machines[w.rng.IntN(len(w.machines))])
	case k < 15:
		w.reconcileNodeType()
	case k < 17:
		w.now = w.now.Add(w.minutes(8))
	default:
		w.disturb()
	}
	w.changeClaims()
	if w.held > 0 {
		w.held--
	} else if len(w.pending) > 0 && w.rng.IntN(4) == 0 {
		w.deliver(w.rng.IntN(len(w.pending)))
	}
	w.observedMachines += w.rng.IntN(w.tickMachines - w.observedMachines + 1)
	w.observedRollouts += w.rng.IntN(w.tickRollouts - w.observedRollouts + 1)
	w.inFlight = slices.DeleteFunc(w.inFlight, func(f *startRequest) bool { return !f.canSucceed() })
}

// settle ends the chaos and runs all controllers, with a person who resumes a stopped rollout, until nothing changes.
func (w *world) settle() {
	w.isChaotic, w.unreachable = false, ""
	for len(w.pending) > 0 {
		w.deliver(0)
	}
	w.logf("the chaos ends")
	for range 400 {
		w.catchUp()
		w.reconcileNodeType()
		w.catchUp()
		last := w.rollouts
		if len(last) == 0 || w.isAtRest(last[len(last)-1]) {
			w.checkRest()
			return
		}
		for range 2 {
			for _, r := range w.rollouts[max(0, len(w.rollouts)-12):] {
				w.reconcile(r)
			}
			w.catchUp()
		}
		w.followMessages(last[len(last)-1])
		for _, m := range w.machines {
			w.advance(m)
		}
		w.now = w.now.Add(w.minutes(20))
		w.inFlight = nil
	}
	w.violated("settle: it does not end: %+v", w.rollouts[len(w.rollouts)-1].Status)
}

// shownConfirmation returns the value that the message asks for; empty: it asks for none.
func shownConfirmation(s *v1alpha1.RolloutStatus) string {
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionFaultsAlone); c != nil {
		_, value, _ := strings.Cut(c.Message, v1alpha1.AnnotationConfirm+"=")
		return value
	}
	return ""
}

// followMessages does what the messages ask a person for.
func (w *world) followMessages(r *rollout) {
	if paused := r.Status.Phase == v1alpha1.RolloutStopped; paused != r.Paused {
		r.Paused = paused
		w.recordRollout(r)
	}
	w.confirmed = shownConfirmation(&r.Status)
	if r.says("the tenant frees claims there") {
		w.freeClaims()
	}
	for _, m := range w.machines {
		m.isWithoutHost = m.isWithoutHost && !asksForHost(r)
		switch {
		case m.FailureReason == "" || m.isGone || m.Deleting:
		case w.isNeglected && !asksForRoom(r) && w.hasHealthyMachine() && m.isBroken && (m.wasBroken || m.label != r.Name): // broken before, and stays so
		case m.isBroken: // replaced
			m.Deleting = true
			w.recordMachine(m)
		default: // mended
			m.due = w.now
		}
	}
	w.scale()
}

// asksForRoom reports whether the Rollout asks a person to mend what is broken because it fills a budget.
func asksForRoom(r *rollout) bool { return r.says("or raise maxUnavailable") }

// asksForHost reports whether the Rollout waits for a Machine that gets a host, so that it has a canary again.
func asksForHost(r *rollout) bool { return r.says("the next one that gets a host does") }

func (r *rollout) says(text string) bool {
	ready := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && strings.Contains(ready.Message, text)
}

func (w *world) hasHealthyMachine() bool {
	return slices.ContainsFunc(w.machines, func(m *machine) bool {
		return !m.isGone && !m.Deleting && m.Claimed && !m.isBroken
	})
}

func (w *world) isAtRest(r *rollout) bool {
	return r.To == w.target && w.stable == w.target && r.Status.Phase == v1alpha1.RolloutDone && !w.hasOutdatedMachine()
}
