package quota

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

// guards are what protects the limit: true where one is left out.
type guards struct {
	// noLock: a decider writes the NodeQuota whatever was written since it read it. noFence: it decides by any cache. noVerification: it believes its cache
	// that a Machine is gone. noTimeout: a reservation ends as soon as its Machine gives up. noSecondCount: a reservation that ends does not count once more.
	noLock, noFence, noVerification, noTimeout, noSecondCount bool
	// noLiveLook: a claim is written by the NodeQuota of a cache.
	noLiveLook bool
	// noNames: a host whose Machine does not know of it does not count.
	noNames bool
}

// world is a namespace with its hosts, two managers with caches that lag behind, and a person who changes the limit, deletes, and restores a backup without status.
type world struct {
	guards
	rng *rand.Rand
	now time.Time
	rv  uint64
	// live are the Machines. changes and quotas are all versions that were ever written, in order; in a deletion the object is nil.
	live    map[string]*v1alpha1.Machine
	changes []version
	quotas  []*v1alpha1.NodeQuota
	// hosts are the names of the Machines that hosts name.
	hosts    map[string]bool
	managers [2]manager
	made     int
	// allowed is how many hosts may be claimed: the limit or, where it was lowered, what had a place before.
	allowed int
}

type version struct {
	name string
	*v1alpha1.Machine
}

// manager is a process that may believe that it leads.
type manager struct {
	// machines, hosts and quota are what its caches show, and seen is how many changes of Machines that includes.
	machines map[string]*v1alpha1.Machine
	hosts    map[string]bool
	quota    *v1alpha1.NodeQuota
	seen     int
	// basis is the NodeQuota that it has decided by, and decision what it is about to write; nil: nothing.
	basis    *v1alpha1.NodeQuota
	decision *Decision
	// claims are those that it is about to write, and the looks at the API server that it has had before.
	claims map[string]int
}

func newWorld(seed uint64, g guards) *world {
	w := &world{guards: g, rng: rand.New(rand.NewPCG(seed, 2)), now: now, rv: 100, live: map[string]*v1alpha1.Machine{}, hosts: map[string]bool{}, allowed: 2}
	w.writeQuota(&v1alpha1.NodeQuota{Spec: v1alpha1.NodeQuotaSpec{Machines: []v1alpha1.NodeTypeLimit{{NodeType: "h100", Limit: 2}}}})
	for range 4 {
		w.create()
	}
	w.managers = [2]manager{w.newManager(), w.newManager()}
	return w
}

// newManager returns a manager whose caches are new.
func (w *world) newManager() manager {
	return manager{machines: maps.Clone(w.live), hosts: maps.Clone(w.hosts), quota: w.quota(), seen: len(w.changes), claims: map[string]int{}}
}

// watch lets the cache of Machines show so many more changes.
func (w *world) watch(mgr *manager, n int) {
	for _, c := range w.changes[mgr.seen : mgr.seen+n] {
		mgr.machines[c.name] = c.Machine
		if c.Machine == nil {
			delete(mgr.machines, c.name)
		}
	}
	mgr.seen += n
}

func (w *world) next() string { w.rv++; return strconv.FormatUint(w.rv, 10) }

func (w *world) writeQuota(q *v1alpha1.NodeQuota) {
	q.ResourceVersion = w.next()
	w.quotas = append(w.quotas, q)
}

func (w *world) write(m *v1alpha1.Machine) {
	m.ResourceVersion = w.next()
	w.live[m.Name] = m
	w.changes = append(w.changes, version{m.Name, m})
}

func (w *world) create() {
	w.made++
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("m%02d", w.made), CreationTimestamp: metav1.NewTime(w.now)}}
	m.UID, m.Spec.NodeTypeRef.Name = types.UID("uid-"+m.Name), "h100"
	w.write(m)
}

// sorted returns the Machines in the order of their names.
func sorted(machines map[string]*v1alpha1.Machine) []*v1alpha1.Machine {
	var out []*v1alpha1.Machine
	for _, name := range slices.Sorted(maps.Keys(machines)) {
		out = append(out, machines[name])
	}
	return out
}

func (w *world) quota() *v1alpha1.NodeQuota { return w.quotas[len(w.quotas)-1] }

// setPhase writes the Machine's next phase under its resourceVersion.
func (w *world) setPhase(seen *v1alpha1.Machine, phase v1alpha1.MachinePhase, reason string) {
	live := w.live[seen.Name]
	if live == nil || live.ResourceVersion != seen.ResourceVersion {
		return
	}
	m := live.DeepCopy()
	if m.Status.Phase != phase {
		m.Status.Timeline = []v1alpha1.PhaseEntry{{Phase: phase, At: metav1.NewMicroTime(w.now)}}
	}
	m.Status.Phase, m.Status.HostRef, m.Status.Conditions = phase, nil, nil
	switch phase {
	case v1alpha1.MachinePending:
		m.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionClaimed, Status: metav1.ConditionFalse, Reason: reason}}
	default:
		m.Status.HostRef = &v1alpha1.NamespacedReference{Name: m.Name}
	}
	w.write(m)
}

// reconcile is one step of a Machine's controller.
func (w *world) reconcile(mgr *manager, seen *v1alpha1.Machine) {
	quota := mgr.quota
	switch phase := seen.Status.Phase; {
	case w.hosts[seen.Name] && phase != v1alpha1.MachineProvisioning:
		w.setPhase(seen, v1alpha1.MachineProvisioning, "")
	case phase == v1alpha1.MachinePending && HasPlace(quota, seen.UID) && w.rng.IntN(2) == 0:
		w.setPhase(seen, v1alpha1.MachineClaiming, "")
	case phase == "", phase == v1alpha1.MachinePending:
		reason := v1alpha1.ReasonClaiming
		if w.rng.IntN(3) == 0 {
			reason = v1alpha1.ReasonNoHostAvailable
		}
		w.setPhase(seen, v1alpha1.MachinePending, reason)
	case phase == v1alpha1.MachineClaiming && (!HasPlace(quota, seen.UID) || w.rng.IntN(8) == 0):
		w.setPhase(seen, v1alpha1.MachinePending, v1alpha1.ReasonClaiming)
	case phase == v1alpha1.MachineClaiming:
		if _, isUnderWay := mgr.claims[seen.Name]; !isUnderWay {
			mgr.claims[seen.Name] = 0
		}
	}
}

// claim is one request of a claim: the Machine, the NodeQuota, the host.
func (w *world) claim(mgr *manager, name string) {
	live, quota := w.live[name], w.quota()
	if w.noLiveLook {
		quota = mgr.quota
	}
	switch looks := mgr.claims[name]; {
	case looks == 0 && (live == nil || live.Status.Phase != v1alpha1.MachineClaiming), looks == 1 && !HasPlace(quota, types.UID("uid-"+name)):
		delete(mgr.claims, name)
	case looks < 2:
		mgr.claims[name]++
	default:
		delete(mgr.claims, name)
		if live != nil { // a host that names a Machine which is gone is returned, and counts for nobody
			w.hosts[name] = true
		}
	}
}

// decide reads, verifies and decides, or writes what was decided before.
func (w *world) decide(mgr *manager) {
	if mgr.decision != nil {
		if w.quota() == mgr.basis || w.noLock {
			q := quotaAfter(FactsOf(watched.Clock{Now: w.now}, w.quota()), *mgr.decision)
			w.writeQuota(q)
		}
		mgr.decision = nil
		return
	}
	mgr.basis = mgr.quota
	f := FactsOf(watched.Clock{Now: w.now}, mgr.basis)
	f.Machines = w.facts(mgr, sorted(mgr.machines))
	if w.noFence {
		f.MachinesResourceVersion = "0"
	}
	if !f.IsCurrent() {
		f.IsLive, f.Machines = true, w.facts(mgr, sorted(w.live))
	} else if !w.noVerification {
		for _, r := range f.Ending() {
			f.Machines = slices.DeleteFunc(f.Machines, func(m Machine) bool { return string(m.UID) == r.UID })
			if live := w.live[r.Machine]; live != nil {
				f.Machines = append(f.Machines, w.facts(mgr, []*v1alpha1.Machine{live})...)
			}
		}
	}
	if w.noTimeout {
		for i := range f.Reservations {
			f.Reservations[i].At = metav1.Unix(1, 0)
		}
		for i := range f.Machines {
			f.Machines[i].Since = time.Unix(1, 0)
		}
	}
	if w.noSecondCount {
		ending := f.Ending()
		f.Reservations = slices.DeleteFunc(slices.Clone(f.Reservations), func(r v1alpha1.QuotaReservation) bool { return slices.Contains(ending, r) })
	}
	d := Decide(f)
	mgr.decision = &d
}

func (w *world) facts(mgr *manager, machines []*v1alpha1.Machine) (out []Machine) {
	for _, m := range machines {
		out = append(out, MachineOf(m, 0, mgr.hosts[m.Name] && !w.noNames))
	}
	return out
}

// person changes the limit, deletes a Machine, makes one, or restores a backup.
func (w *world) person() {
	all := sorted(w.live)
	switch w.rng.IntN(5) {
	case 0:
		q := w.quota().DeepCopy()
		q.Spec.Machines[0].Limit = int32(w.rng.IntN(4))
		w.writeQuota(q)
	case 1:
		if len(all) > 0 && w.rng.IntN(2) == 0 {
			m := all[w.rng.IntN(len(all))]
			if m.Status.Phase != v1alpha1.MachineClaiming {
				delete(w.hosts, m.Name)
				w.next()
				delete(w.live, m.Name)
				w.changes = append(w.changes, version{name: m.Name})
			}
		}
	case 2:
		if len(all) < 6 {
			w.create()
		}
	case 3:
		if w.rng.IntN(10) == 0 {
			w.restore(all)
		}
	default:
		w.now = w.now.Add(time.Duration(w.rng.IntN(7)) * time.Minute)
	}
}

// restore creates all objects again without status. The managers begin anew.
func (w *world) restore(all []*v1alpha1.Machine) {
	q := w.quota().DeepCopy()
	q.Status = v1alpha1.NodeQuotaStatus{}
	w.writeQuota(q)
	for _, m := range all {
		again := m.DeepCopy()
		again.Status = v1alpha1.MachineStatus{}
		w.write(again)
	}
	for i := range w.managers {
		w.managers[i] = w.newManager()
	}
}

func (w *world) step() {
	mgr := &w.managers[w.rng.IntN(2)]
	switch w.rng.IntN(10) {
	case 0:
		w.watch(mgr, w.rng.IntN(len(w.changes)-mgr.seen+1))
	case 1:
		mgr.quota = w.quota()
	case 2:
		mgr.hosts = maps.Clone(w.hosts)
	case 3, 4:
		w.decide(mgr)
	case 5, 6:
		if known := sorted(mgr.machines); len(known) > 0 {
			w.reconcile(mgr, known[w.rng.IntN(len(known))])
		}
	case 7, 8:
		if claims := slices.Sorted(maps.Keys(mgr.claims)); len(claims) > 0 {
			w.claim(mgr, claims[w.rng.IntN(len(claims))])
		}
	default:
		if w.rng.IntN(2) == 0 {
			w.person()
		}
		if w.rng.IntN(40) == 0 { // killed
			*mgr = w.newManager()
		}
	}
}

// places returns how many Machines have a host, or may still claim one.
func (w *world) places() int {
	may := map[string]bool{}
	for name := range w.hosts {
		may[name] = true
	}
	for _, r := range w.quota().Status.Reservations {
		may[r.Machine] = true
	}
	for _, mgr := range w.managers {
		for name := range mgr.claims {
			may[name] = true
		}
	}
	return len(may)
}

// play returns what was wrong in a history; empty: nothing.
func play(seed uint64, g guards) string {
	w := newWorld(seed, g)
	limit := func() int { return int(w.quota().Spec.Machines[0].Limit) }
	for range 600 {
		before := max(w.allowed, limit())
		w.step()
		w.allowed = before
		if limit() >= w.allowed || w.places() <= limit() {
			w.allowed = limit()
		}
		if len(w.hosts) > w.allowed {
			return fmt.Sprintf("%d hosts are claimed, and the limit is %d", len(w.hosts), w.allowed)
		}
	}
	return w.settle()
}

// settle has one manager with new caches work until nothing changes, and returns what is left over.
func (w *world) settle() string {
	mgr := &w.managers[0]
	w.now = w.now.Add(time.Hour)
	for range 200 {
		w.watch(mgr, len(w.changes)-mgr.seen)
		mgr.hosts, mgr.quota = maps.Clone(w.hosts), w.quota()
		for _, m := range sorted(mgr.machines) {
			w.reconcile(mgr, m)
		}
		for _, name := range slices.Sorted(maps.Keys(mgr.claims)) {
			w.claim(mgr, name)
		}
		w.decide(mgr)
		w.now = w.now.Add(time.Second)
	}
	all := sorted(w.live)
	if want := min(int(w.quota().Spec.Machines[0].Limit), len(all)); len(w.hosts) < want {
		return fmt.Sprintf("%d of %d Machines have a host, and %d may", len(w.hosts), len(all), want)
	}
	return ""
}

func TestNoHistoryLeadsBeyondTheLimitAndEachSettles(t *testing.T) {
	for seed := range uint64(400) {
		if wrong := play(seed, guards{}); wrong != "" {
			t.Fatalf("seed %d: %s", seed, wrong)
		}
	}
}

// says writes that a Machine is Pending for a reason, or claims a host.
func (w *world) says(name, reason string) {
	if reason == "" {
		w.setPhase(w.live[name], v1alpha1.MachineClaiming, "")
		return
	}
	w.setPhase(w.live[name], v1alpha1.MachinePending, reason)
}

// renew lets the caches of a manager show everything.
func (w *world) renew(mgr *manager) {
	w.watch(mgr, len(w.changes)-mgr.seen)
	mgr.hosts, mgr.quota = maps.Clone(w.hosts), w.quota()
}

// decideAll reads, decides and writes.
func (w *world) decideAll(mgr *manager) {
	w.decide(mgr)
	w.decide(mgr)
}

// look begins a claim and takes so many looks at the API server, of the two before the host is written.
func (w *world) look(mgr *manager, name string, looks int) {
	mgr.claims[name] = 0
	for range looks {
		if _, isUnderWay := mgr.claims[name]; isUnderWay {
			w.claim(mgr, name)
		}
	}
}

// dangers are one history for each guard. The limit is 1. Machine m01 is older than m02; both say NoHostAvailable at first, and managers a and b know that.
var dangers = []struct {
	guard   string
	without guards
	play    func(w *world, a, b *manager)
}{
	{"two deciders give the only place to two Machines", guards{noLock: true}, func(w *world, a, b *manager) {
		w.says("m02", v1alpha1.ReasonClaiming)
		w.renew(b)
		w.says("m01", v1alpha1.ReasonClaiming)
		w.renew(a)
		w.decide(a)
		w.decide(b)
		w.decide(a)
		w.says("m01", "")
		w.look(a, "m01", 2)
		w.decide(b)
	}},
	{"a cache shows neither the reservation of a Machine nor its host", guards{noFence: true}, func(w *world, a, b *manager) {
		w.says("m02", v1alpha1.ReasonClaiming)
		w.renew(b)
		w.says("m01", v1alpha1.ReasonClaiming)
		w.renew(a)
		w.decideAll(a)
		w.says("m01", "")
		w.look(a, "m01", 3)
		w.setPhase(w.live["m01"], v1alpha1.MachineProvisioning, "")
		w.renew(a)
		w.decideAll(a)
		b.quota = w.quota()
		w.decideAll(b)
	}},
	{"a cache does not show a Machine yet that has a place", guards{noVerification: true}, func(w *world, a, b *manager) {
		w.says("m02", v1alpha1.ReasonClaiming)
		w.renew(b)
		w.says("m02", v1alpha1.ReasonNoHostAvailable)
		w.create()
		w.says("m03", v1alpha1.ReasonClaiming)
		w.renew(a)
		w.decideAll(a)
		w.says("m03", "")
		w.look(a, "m03", 2)
		b.quota = w.quota()
		w.decideAll(b)
	}},
	{"a claim is written although its Machine has just given up", guards{noTimeout: true}, func(w *world, a, b *manager) {
		w.says("m01", v1alpha1.ReasonClaiming)
		w.renew(a)
		w.decideAll(a)
		w.says("m01", "")
		w.look(a, "m01", 2)
		w.says("m01", v1alpha1.ReasonNoHostAvailable)
		w.says("m02", v1alpha1.ReasonClaiming)
		for range 2 {
			w.renew(b)
			w.decideAll(b)
		}
	}},
	{"a Machine that had given up claims again while its reservation ends", guards{noSecondCount: true}, func(w *world, a, b *manager) {
		w.says("m01", v1alpha1.ReasonClaiming)
		w.renew(a)
		w.decideAll(a)
		w.says("m01", v1alpha1.ReasonNoHostAvailable)
		w.says("m02", v1alpha1.ReasonClaiming)
		w.now = w.now.Add(ReservationTimeout)
		w.renew(b)
		w.decide(b)
		w.says("m01", "")
		w.look(a, "m01", 2)
		w.decide(b)
		b.quota = w.quota() // and no newer Machines
		w.decideAll(b)
	}},
	{"a cache shows a reservation that has ended", guards{noLiveLook: true}, func(w *world, a, b *manager) {
		w.says("m01", v1alpha1.ReasonClaiming)
		w.renew(a)
		w.decideAll(a)
		w.says("m01", v1alpha1.ReasonNoHostAvailable)
		w.says("m02", v1alpha1.ReasonClaiming)
		w.renew(a)
		w.now = w.now.Add(ReservationTimeout)
		for range 2 {
			w.renew(b)
			w.decideAll(b)
		}
		w.says("m01", "")
		w.look(a, "m01", 2)
	}},
	{"a restored Machine does not know of its host yet", guards{noNames: true}, func(w *world, a, b *manager) {
		w.hosts["m01"] = true
		w.restore(sorted(w.live))
		w.says("m02", v1alpha1.ReasonClaiming)
		w.renew(b)
		w.decideAll(b)
	}},
}

func TestEachGuardPreventsADanger(t *testing.T) {
	for _, c := range dangers {
		for _, g := range []guards{{}, c.without} {
			w := &world{guards: g, now: now, rv: 100, live: map[string]*v1alpha1.Machine{}, hosts: map[string]bool{}}
			w.writeQuota(&v1alpha1.NodeQuota{Spec: v1alpha1.NodeQuotaSpec{Machines: []v1alpha1.NodeTypeLimit{{NodeType: "h100", Limit: 1}}}})
			for _, name := range []string{"m01", "m02"} {
				w.create()
				w.says(name, v1alpha1.ReasonNoHostAvailable)
			}
			a, b := w.newManager(), w.newManager()
			w.decideAll(&a)
			a.quota, b.quota = w.quota(), w.quota()
			c.play(w, &a, &b)
			// What has a place now claims its host, and so does who has looked already.
			b.quota = w.quota()
			for _, r := range w.quota().Status.Reservations {
				w.says(r.Machine, "")
				w.look(&b, r.Machine, 3)
			}
			for _, name := range slices.Sorted(maps.Keys(a.claims)) {
				w.claim(&a, name)
			}
			if isWithin, want := len(w.hosts) <= 1, g == (guards{}); isWithin != want {
				t.Errorf("%s: with %+v, hosts of %v are claimed", c.guard, g, slices.Sorted(maps.Keys(w.hosts)))
			}
		}
	}
}
