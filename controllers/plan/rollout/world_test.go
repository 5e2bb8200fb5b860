package rollout

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// The world that the planner is put to the test in: Machines that take their time and fail, and a manager that sees everything
// late and whose requests are lost, repeated and delayed.

// versions are what an object was, and from which point of its kind's history on; a cache shows one of them.
type versions[T any] []struct {
	at  int
	val T
}

func (v versions[T]) seen(at int) (val T, found bool) {
	for i := len(v) - 1; i >= 0; i-- {
		if v[i].at <= at {
			return v[i].val, true
		}
	}
	return val, false
}

// object is a Machine as the API server has it.
type object struct {
	Machine
	rv    int
	label string
	gone  bool
}

// machine is the truth of one.
type machine struct {
	object
	past versions[object]
	// down: the roll under way made it unavailable; it was not before.
	rolled bool
	// broken hardware never becomes Ready again once it was installed anew.
	broken bool
	// due is when the next step of its life ends.
	due time.Time
}

// record is a Rollout as the API server has it.
type record struct {
	Rollout
	rv int
}

type rollout struct {
	record
	past versions[record]
}

// request is one that the manager sent.
type request struct {
	what string
	land func()
}

type world struct {
	rng            *rand.Rand
	g              guards
	now            time.Time
	stable, target v1alpha1.RenderedRevision
	policy         Policy
	pools          map[types.NamespacedName]Pool
	want           map[types.NamespacedName]int
	machines       []*machine
	rollouts       []*rollout
	// seenMachines and seenRollouts are how far the manager's caches are.
	tickMachines, tickRollouts, seenMachines, seenRollouts int
	// floorMachines: no cache is older than the last creation of a Machine.
	floorMachines int
	pending       []request
	flying        []*flight
	chaos         bool
	unreachable   string
	revisions     int
	permanent     bool
	starts        int
	brokenLaws    []string
	trace         func(string, ...any)
}

var poolNames = []types.NamespacedName{{Namespace: "research", Name: "batch"}, {Namespace: "research", Name: "training"}, {Namespace: "inference", Name: "serving"}}

func newWorld(seed uint64, g guards) *world {
	w := &world{
		rng: rand.New(rand.NewPCG(seed, 11)), g: g, now: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC),
		stable: numbered(0), target: numbered(0), pools: map[types.NamespacedName]Pool{}, want: map[types.NamespacedName]int{}, chaos: true,
		permanent: seed%4 == 0,
	}
	w.policy = Policy{MaxUnavailable: intstr.FromInt32(int32(1 + w.rng.IntN(4))), Canary: 1 + w.rng.IntN(2), Bake: time.Duration(w.rng.IntN(3)) * 5 * time.Minute, FailureBudget: w.rng.IntN(3)}
	if w.rng.IntN(3) == 0 {
		w.policy.MaxUnavailable = intstr.FromString([]string{"10%", "30%", "100%"}[w.rng.IntN(3)])
	}
	for _, name := range poolNames {
		var p Pool
		if w.rng.IntN(3) > 0 {
			limit := intstr.FromInt32(int32(1 + w.rng.IntN(2)))
			p.MaxUnavailable = &limit
		}
		w.pools[name], w.want[name] = p, 1+w.rng.IntN(4)
	}
	w.scale()
	for _, m := range w.machines {
		m.Claimed, m.Installed, m.Phase, m.Ready, m.ReadySince = true, w.stable, v1alpha1.MachineReady, true, w.now
		w.changed(m)
	}
	w.retarget()
	w.succeed()
	w.catchUp()
	return w
}

func (w *world) tell(format string, args ...any) {
	if w.trace != nil {
		w.trace("%s "+format, append([]any{w.now.Format("15:04")}, args...)...)
	}
}

func (w *world) violated(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.tell("VIOLATED %s", text)
	w.brokenLaws = append(w.brokenLaws, text)
}

// changed writes the Machine: a new resource version, which caches see later.
func (w *world) changed(m *machine) {
	w.tickMachines++
	m.rv = w.tickMachines
	m.past = append(m.past, struct {
		at  int
		val object
	}{w.tickMachines, m.object})
}

func (w *world) wrote(r *rollout) {
	w.tickRollouts++
	r.rv = w.tickRollouts
	kept := r.record
	kept.Status = *r.Status.DeepCopy()
	r.past = append(r.past, struct {
		at  int
		val record
	}{w.tickRollouts, kept})
}

func (w *world) catchUp() { w.seenMachines, w.seenRollouts = w.tickMachines, w.tickRollouts }

// restart begins with caches that were filled by an API server which is behind.
func (w *world) restart() {
	w.tell("the manager restarts")
	w.seenMachines = max(w.floorMachines, w.seenMachines-w.rng.IntN(16))
	w.seenRollouts = max(0, w.seenRollouts-w.rng.IntN(4))
	for _, r := range w.rollouts {
		w.seenRollouts = max(w.seenRollouts, r.past[0].at)
	}
}

// scale makes and deletes Machines until every pool has as many as it wants.
func (w *world) scale() {
	for _, name := range poolNames {
		var alive []*machine
		for _, m := range w.machines {
			if m.Pool == name && !m.gone && !m.Deleting {
				alive = append(alive, m)
			}
		}
		for n := len(alive); n < w.want[name]; n++ {
			m := &machine{object: object{Machine: Machine{Namespace: name.Namespace, Name: fmt.Sprintf("%s-%d", name.Name, len(w.machines)), Pool: name, Phase: v1alpha1.MachinePending}}}
			m.broken = w.permanent && w.chaos && w.rng.IntN(6) == 0
			m.due = w.now.Add(time.Duration(w.rng.IntN(20)) * time.Minute)
			w.machines = append(w.machines, m)
			w.changed(m)
			w.floorMachines = w.tickMachines
		}
		for n := len(alive); n > w.want[name]; n-- {
			m := alive[w.rng.IntN(len(alive))]
			alive = slices.DeleteFunc(alive, func(o *machine) bool { return o == m })
			m.Deleting = true
			w.tell("%s is deleted", m.Name)
			w.changed(m)
		}
	}
}

// live is one step of a Machine's life.
func (w *world) live(m *machine) {
	before := m.object
	switch {
	case m.gone:
	case m.Deleting:
		m.gone, m.Ready = true, false
	case !m.Desired.IsZero() && m.Claimed && m.Desired != m.Installed && m.Phase != v1alpha1.MachineDraining && m.Phase != v1alpha1.MachinePending:
		m.Phase, m.Ready, m.FailureReason = v1alpha1.MachineDraining, false, ""
		m.due = w.now.Add(time.Duration(w.rng.IntN(10)) * time.Minute)
	case w.now.Before(m.due):
	case m.Phase == v1alpha1.MachinePending:
		m.Claimed, m.Phase, m.Installed = true, v1alpha1.MachineProvisioning, m.Desired
		if m.Installed.IsZero() {
			m.Installed = w.stable
		}
		m.due = w.now.Add(time.Duration(w.rng.IntN(20)) * time.Minute)
	case m.Phase == v1alpha1.MachineDraining && w.chaos && w.rng.IntN(20) == 0:
		m.FailureReason = v1alpha1.ReasonDrainTimedOut
	case m.Phase == v1alpha1.MachineDraining:
		m.Phase, m.Installed, m.FailureReason = v1alpha1.MachineProvisioning, m.Desired, ""
		m.due = w.now.Add(time.Duration(5+w.rng.IntN(20)) * time.Minute)
	case m.Ready:
	case m.broken || w.chaos && w.rng.IntN(8) == 0 || w.bad(m.Installed):
		m.Phase, m.FailureReason = v1alpha1.MachineValidating, v1alpha1.ReasonValidationTimedOut
	default:
		m.Phase, m.Ready, m.ReadySince, m.FailureReason, m.rolled = v1alpha1.MachineReady, true, w.now, "", false
	}
	if m.object != before {
		w.tell("%s: %s %s wants %q ready=%t failed=%q gone=%t", m.Name, m.Phase, m.Installed, m.Desired, m.Ready, m.FailureReason, m.gone)
		w.changed(m)
	}
}

// numbered is what the NodeType asks for the nth time: every other time it is the same revision with another rendering.
func numbered(n int) v1alpha1.RenderedRevision {
	return rendered(fmt.Sprintf("r%d/%d", n/2, n))
}

// bad renderings fail everywhere, until somebody sets the NodeType to another one.
func (w *world) bad(of v1alpha1.RenderedRevision) bool {
	return w.chaos && of != numbered(0) && of.Rendering[len(of.Rendering)-1] == '3'
}

// want another revision: a new one, or an older one again.
func (w *world) retarget() {
	w.target = numbered(w.rng.IntN(w.revisions + 1))
	if w.rng.IntN(3) > 0 {
		w.revisions++
		w.target = numbered(w.revisions)
	}
	if w.rng.IntN(4) == 0 {
		w.target = w.stable
	}
	w.tell("the NodeType wants %s", w.target)
}

// succeed is the NodeType's controller: it makes Rollouts and moves the stable revision.
func (w *world) succeed() {
	to := w.stable
	if n := len(w.rollouts); n > 0 {
		last := w.rollouts[n-1]
		if to = last.To; last.Status.Phase == v1alpha1.RolloutDone {
			w.stable = last.To
		}
	}
	if to == w.target && !w.leftBehind() {
		return
	}
	r := &rollout{record: record{Rollout: Rollout{Name: fmt.Sprintf("%s-%d", w.target.Revision, len(w.rollouts)), From: to, To: w.target}}}
	w.rollouts = append(w.rollouts, r)
	w.wrote(r)
	w.tell("Rollout %s", r.Name)
}

// leftBehind: the newest Rollout is Done, and yet a Machine was installed with an older revision in the meantime.
func (w *world) leftBehind() bool {
	if n := len(w.rollouts); n == 0 || !w.rollouts[n-1].Status.Phase.Settled() {
		return false
	}
	return slices.ContainsFunc(w.machines, func(m *machine) bool {
		return !m.gone && !m.Deleting && !m.Installed.IsZero() && m.Installed != w.target
	})
}

// disturb is what the world does to the planner.
func (w *world) disturb() {
	m := w.machines[w.rng.IntN(len(w.machines))]
	switch w.rng.IntN(9) {
	case 0:
		w.retarget()
	case 1:
		w.want[poolNames[w.rng.IntN(len(poolNames))]] = w.rng.IntN(6)
		w.scale()
	case 2:
		w.unreachable = []string{"", "research", "inference"}[w.rng.IntN(3)]
	case 3, 4:
		if n := len(w.rollouts); n > 0 {
			r := w.rollouts[n-1]
			r.Paused = !r.Paused
			w.tell("%s paused=%t", r.Name, r.Paused)
			w.wrote(r)
		}
	case 5, 6: // a node is lost for a while
		if m.Ready && !m.gone {
			m.Ready, m.Phase, m.due = false, v1alpha1.MachineValidating, w.now.Add(time.Duration(w.rng.IntN(15))*time.Minute)
			w.tell("%s loses Ready", m.Name)
			w.changed(m)
		}
	case 7:
		w.restart()
	case 8:
		if len(w.pending) > 0 {
			w.deliver(w.rng.IntN(len(w.pending)))
		}
	}
}
