package rollout

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/breaker"
)

// The world simulates what the planner works with: Machines that take time and fail, and a manager whose caches are late and whose
// requests are lost, repeated and delayed.

// versions are the versions of an object, each with the tick at which it was written. A cache shows the version of its own tick.
type versions[T any] []struct {
	at  int
	val T
}

func (v versions[T]) at(at int) (val T, found bool) {
	for i := len(v) - 1; i >= 0; i-- {
		if v[i].at <= at {
			return v[i].val, true
		}
	}
	return val, false
}

// object is a Machine in the API server.
type object struct {
	Machine
	rv     int
	label  string
	isGone bool
	// held are the devices that claims hold on its node.
	held int
}

// machine is the actual state of a Machine.
type machine struct {
	object
	past versions[object]
	// isMadeUnavailable is true if it was available before the roll that is under way.
	isMadeUnavailable bool
	// isBroken is true if the Machine never becomes Ready once it is installed again.
	isBroken bool
	// wasBroken is true if the Machine was broken when a Rollout last moved it, and has not been Ready since.
	wasBroken bool
	// isWithoutHost is true if there is no host for it.
	isWithoutHost bool
	// due is when its current step ends.
	due time.Time
	// lost are the devices that were held on its node when a Rollout took it away, until it is back or given up.
	lost int
}

// record is a Rollout in the API server.
type record struct {
	Rollout
	rv int
}

type rollout struct {
	record
	past versions[record]
}

// request is a request that the manager has sent.
type request struct {
	name  string
	apply func()
}

type world struct {
	rng            *rand.Rand
	guards         guards
	now            time.Time
	stable, target v1alpha1.RenderedRevision
	policy         Policy
	pools          map[types.NamespacedName]Pool
	want           map[types.NamespacedName]int
	machines       []*machine
	rollouts       []*rollout
	// tickMachines and tickRollouts count the writes. observedMachines and observedRollouts are the ticks of the caches.
	tickMachines, tickRollouts, observedMachines, observedRollouts int
	// floorMachines is the tick of the last creation of a Machine. No cache is older.
	floorMachines int
	pending       []request
	inFlight      []*startRequest
	// held is for how many steps no pending request arrives.
	held                 int
	isChaotic            bool
	unreachable          string
	revisions            int
	hasPermanentFailures bool
	// isPerfect is true if every Machine has a host and works at first, and none is broken before it is moved.
	isPerfect bool
	// isNeglected is true if nobody mends what was broken before, unless the Rollout says that it has no room because of that.
	isNeglected bool
	// tenants makes the claims of tenants; nil: no cluster is shared. Of their class deviceLimit may be unavailable.
	tenants     *rand.Rand
	deviceLimit int
	starts      int
	// asked is since when each Rollout asks for each Machine, grants are those given, and confirmed is what a person has confirmed.
	asked      map[string]time.Time
	grants     []breaker.Grant
	confirmed  string
	violations []string
	trace      func(string, ...any)
}

var poolNames = []types.NamespacedName{{Namespace: "research", Name: "batch"}, {Namespace: "research", Name: "training"}, {Namespace: "inference", Name: "serving"}}

func newWorld(seed uint64, g guards) *world {
	w := &world{
		rng: rand.New(rand.NewPCG(seed, 11)), guards: g, now: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC),
		stable: numbered(0), target: numbered(0), pools: map[types.NamespacedName]Pool{}, want: map[types.NamespacedName]int{}, isChaotic: true,
		hasPermanentFailures: seed%4 == 0, isNeglected: seed%8 == 0, isPerfect: seed%2 == 1,
	}
	w.policy = Policy{MaxUnavailable: intstr.FromInt32(int32(1 + w.rng.IntN(4))), Canary: 1 + w.rng.IntN(2), Bake: time.Duration(w.rng.IntN(3)) * 5 * time.Minute, FailureBudget: w.rng.IntN(3)}
	if w.rng.IntN(3) == 0 {
		w.policy.MaxUnavailable = intstr.FromString([]string{"10%", "30%", "100%"}[w.rng.IntN(3)])
	}
	hasRoomForAll := seed%16 == 0 // so that many can fail
	if hasRoomForAll {
		w.policy.MaxUnavailable = intstr.FromString("100%")
	}
	if seed%3 == 0 {
		w.tenants = rand.New(rand.NewPCG(seed, 12))
		w.deviceLimit = 1 + w.tenants.IntN(5)
	}
	for _, name := range poolNames {
		var p Pool
		if w.rng.IntN(3) > 0 {
			limit := intstr.FromInt32(int32(1 + w.rng.IntN(2)))
			p.MaxUnavailable = &limit
		}
		if hasRoomForAll {
			p.MaxUnavailable = &w.policy.MaxUnavailable
		}
		w.pools[name], w.want[name] = p, 1+w.rng.IntN(4)
	}
	w.scale()
	for _, m := range w.machines {
		w.begin(m)
	}
	w.retarget()
	w.reconcileNodeType()
	w.catchUp()
	return w
}

func (w *world) logf(format string, args ...any) {
	if w.trace != nil {
		w.trace("%s "+format, append([]any{w.now.Format("15:04")}, args...)...)
	}
}

func (w *world) violated(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.logf("VIOLATED %s", text)
	w.violations = append(w.violations, text)
}

// recordMachine gives the Machine a new resource version, which the caches show later.
func (w *world) recordMachine(m *machine) {
	w.tickMachines++
	m.rv = w.tickMachines
	m.past = append(m.past, struct {
		at  int
		val object
	}{w.tickMachines, m.object})
}

func (w *world) recordRollout(r *rollout) {
	w.tickRollouts++
	r.rv = w.tickRollouts
	kept := r.record
	kept.Status = *r.Status.DeepCopy()
	r.past = append(r.past, struct {
		at  int
		val record
	}{w.tickRollouts, kept})
}

func (w *world) catchUp() { w.observedMachines, w.observedRollouts = w.tickMachines, w.tickRollouts }

// begin puts a Machine into the state that it has at first: mostly Ready with the stable revision, else broken with it, or without a host.
func (w *world) begin(m *machine) {
	switch {
	case m.isWithoutHost:
		if w.rng.IntN(2) == 0 {
			m.Desired = w.stable
		}
	case !w.isPerfect && w.rng.IntN(6) == 0:
		m.isBroken, m.HasServed = w.hasPermanentFailures, w.rng.IntN(2) == 0
		m.Claimed, m.Installed, m.Phase, m.FailureReason = true, w.stable, v1alpha1.MachineValidating, v1alpha1.ReasonValidationTimedOut
	default:
		m.Claimed, m.Installed, m.Phase, m.Ready, m.ReadySince = true, w.stable, v1alpha1.MachineReady, true, w.now
		m.HasServed = true
	}
	w.recordMachine(m)
}

// restart restarts the manager, with caches that are filled by an API server that is behind.
func (w *world) restart() {
	w.logf("the manager restarts")
	w.observedMachines = max(w.floorMachines, w.observedMachines-w.rng.IntN(16))
	w.observedRollouts = max(0, w.observedRollouts-w.rng.IntN(4))
	for _, r := range w.rollouts {
		w.observedRollouts = max(w.observedRollouts, r.past[0].at)
	}
}

// scale creates and deletes Machines until every pool has as many as it asks for.
func (w *world) scale() {
	for _, name := range poolNames {
		var alive []*machine
		for _, m := range w.machines {
			if m.Pool == name && !m.isGone && !m.Deleting {
				alive = append(alive, m)
			}
		}
		for n := len(alive); n < w.want[name]; n++ {
			m := &machine{object: object{Machine: Machine{Namespace: name.Namespace, Name: fmt.Sprintf("%s-%d", name.Name, len(w.machines)), Pool: name, Phase: v1alpha1.MachinePending}}}
			m.isBroken = w.hasPermanentFailures && w.isChaotic && w.rng.IntN(6) == 0
			m.isWithoutHost = !w.isPerfect && w.rng.IntN(5) == 0
			m.due = w.now.Add(time.Duration(w.rng.IntN(20)) * time.Minute)
			w.machines = append(w.machines, m)
			w.recordMachine(m)
			w.floorMachines = w.tickMachines
		}
		for n := len(alive); n > w.want[name]; n-- {
			m := alive[w.rng.IntN(len(alive))]
			alive = slices.DeleteFunc(alive, func(o *machine) bool { return o == m })
			m.Deleting = true
			w.logf("%s is deleted", m.Name)
			w.recordMachine(m)
		}
	}
}

// advance ends the Machine's current step if it is due.
func (w *world) advance(m *machine) {
	before := m.object
	switch {
	case m.isGone:
	case m.Deleting:
		m.isGone, m.Ready, m.lost = true, false, 0
	case !m.Desired.IsZero() && m.Claimed && m.Desired != m.Installed && m.Phase != v1alpha1.MachineDraining && m.Phase != v1alpha1.MachinePending:
		m.Phase, m.Ready, m.FailureReason = v1alpha1.MachineDraining, false, ""
		m.due = w.now.Add(time.Duration(w.rng.IntN(10)) * time.Minute)
		w.evict(m)
	case w.now.Before(m.due):
	case m.isWithoutHost:
		m.isWithoutHost = !w.isChaotic || w.rng.IntN(20) > 0
	case m.Phase == v1alpha1.MachinePending:
		m.Claimed, m.Phase, m.Installed = true, v1alpha1.MachineProvisioning, m.Desired
		if m.Installed.IsZero() {
			m.Installed = w.stable
		}
		m.due = w.now.Add(time.Duration(w.rng.IntN(20)) * time.Minute)
	case m.Phase == v1alpha1.MachineDraining && w.isChaotic && w.rng.IntN(20) == 0:
		m.FailureReason = v1alpha1.ReasonDrainTimedOut
	case m.Phase == v1alpha1.MachineDraining:
		m.Phase, m.Installed, m.FailureReason, m.held, m.HasServed = v1alpha1.MachineProvisioning, m.Desired, "", 0, false
		m.due = w.now.Add(time.Duration(5+w.rng.IntN(20)) * time.Minute)
	case m.Ready:
	case m.isBroken || w.isChaotic && w.rng.IntN(8) == 0 || w.isBad(m.Installed):
		m.Phase, m.FailureReason = v1alpha1.MachineValidating, v1alpha1.ReasonValidationTimedOut
	default:
		m.Phase, m.Ready, m.ReadySince, m.FailureReason, m.isMadeUnavailable = v1alpha1.MachineReady, true, w.now, "", false
		m.wasBroken, m.lost, m.HasServed = false, 0, true
	}
	if m.object != before {
		w.logf("%s: %s %s wants %q ready=%t failed=%q gone=%t", m.Name, m.Phase, m.Installed, m.Desired, m.Ready, m.FailureReason, m.isGone)
		w.recordMachine(m)
	}
}

// numbered is the nth revision that the NodeType asks for: every other time the same revision with another rendering.
func numbered(n int) v1alpha1.RenderedRevision {
	return rendered(fmt.Sprintf("r%d/%d", n/2, n))
}

// isBad reports whether every Machine fails with that rendering.
func (w *world) isBad(of v1alpha1.RenderedRevision) bool {
	return w.isChaotic && of != numbered(0) && of.Rendering[len(of.Rendering)-1] == '3'
}

// retarget makes the NodeType ask for another revision: a new one, or an earlier one again.
func (w *world) retarget() {
	w.target = numbered(w.rng.IntN(w.revisions + 1))
	if w.rng.IntN(3) > 0 {
		w.revisions++
		w.target = numbered(w.revisions)
	}
	if w.rng.IntN(4) == 0 {
		w.target = w.stable
	}
	w.logf("the NodeType wants %s", w.target)
}

// reconcileNodeType is the controller of the NodeType: it creates Rollouts and sets the stable revision.
func (w *world) reconcileNodeType() {
	to := w.stable
	if n := len(w.rollouts); n > 0 {
		last := w.rollouts[n-1]
		if to = last.To; last.Status.Phase == v1alpha1.RolloutDone {
			w.stable = last.To
		}
	}
	if to == w.target && !w.hasOutdatedMachine() {
		return
	}
	from := w.stable
	if from == w.target {
		from = to
	}
	r := &rollout{record: record{Rollout: Rollout{Name: fmt.Sprintf("%s-%d", w.target.Revision, len(w.rollouts)), From: from, To: w.target}}}
	w.rollouts = append(w.rollouts, r)
	w.recordRollout(r)
	w.logf("Rollout %s", r.Name)
}

// hasOutdatedMachine reports whether the newest Rollout is settled and a Machine has, or is moved to, another revision.
func (w *world) hasOutdatedMachine() bool {
	if n := len(w.rollouts); n == 0 || !w.rollouts[n-1].Status.Phase.IsFinal() {
		return false
	}
	return slices.ContainsFunc(w.machines, func(m *machine) bool {
		has := cmp.Or(m.Desired, m.Installed)
		return !m.isGone && !m.Deleting && !has.IsZero() && has != w.target
	})
}

// disturb does what people, tenants and servers do.
func (w *world) disturb() {
	m := w.machines[w.rng.IntN(len(w.machines))]
	kinds := 11
	if w.isPerfect {
		kinds -= 2 // no tenant's network fails
	}
	switch w.rng.IntN(kinds) {
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
			w.logf("%s paused=%t", r.Name, r.Paused)
			w.recordRollout(r)
		}
	case 5, 6: // a node is lost for a while
		w.loseReady(m)
	case 9: // the network of a tenant fails for a while
		for _, other := range w.machines {
			if other.Namespace == m.Namespace {
				w.loseReady(other)
			}
		}
	case 10: // a rack is dark until its Machines count as broken, and comes back
		for _, other := range w.machines {
			if other.Namespace == m.Namespace && other.Ready {
				w.loseReady(other)
				other.FailureReason, other.due = v1alpha1.ReasonValidationTimedOut, w.now.Add(w.minutes(90))
				w.recordMachine(other)
			}
		}
	case 7:
		w.restart()
	case 8:
		if len(w.pending) > 0 {
			w.deliver(w.rng.IntN(len(w.pending)))
		}
	}
}

// loseReady makes a Machine that is Ready not Ready for a while.
func (w *world) loseReady(m *machine) {
	if !m.Ready || m.isGone {
		return
	}
	m.Ready, m.Phase, m.due = false, v1alpha1.MachineValidating, w.now.Add(time.Duration(w.rng.IntN(15))*time.Minute)
	w.logf("%s loses Ready", m.Name)
	w.recordMachine(m)
}
