package lifecycle

import (
	"encoding/json"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	hostplan "github.com/ingot-dev/ingot/controllers/plan/host"
)

// The invariants of the design, where they can be seen to break.

// checkIntent: an effect belongs to the phase that is recorded already, and to the host that is.
func (w *world) checkIntent(f Facts, d Decision) {
	if d.Status.Phase != f.Machine.Status.Phase && d.Action.Kind != AddFinalizer {
		w.violated("intent: %s together with the step from %s to %s", d.Action.Kind, f.Machine.Status.Phase, d.Status.Phase)
	}
}

func (w *world) checkClaim(m *machine, h *host) {
	if h.live.consumer != "" && h.live.consumer != m.live.UID {
		w.violated("1: %s takes %s from %s", m.live.Name, h.name, h.live.consumerName)
	}
	if !isClean(h.live) || h.hw.disk.complete || h.live.status.ErrorType != "" {
		w.violated("3: %s claims %s, which is not clean", m.live.Name, h.name)
	}
	for _, other := range w.hosts {
		if other != h && other.live.consumer == m.live.UID {
			w.violated("1: %s has %s and claims %s", m.live.Name, other.name, h.name)
		}
	}
}

func (w *world) checkMine(f Facts, h *host, a Action) {
	if h.live.consumer == "somebody" && (a.Kind == WriteHostRecord || a.Kind == ClearHostRecord || a.Kind == WriteClaimSecret) {
		return // records and Secrets are not locked together with the host; without its consumerRef they move nothing
	}
	if h.live.consumer != f.Machine.UID {
		w.violated("1: %s by %s on %s, which is %q's", a.Kind, f.Machine.Name, h.name, h.live.consumerName)
	}
}

func (w *world) checkDeprovision(m *machine, f Facts, h *host, a Action) {
	w.checkMine(f, h, a)
	if !m.live.Deleting {
		w.violated("a host was deprovisioned although its Machine %s lives", m.live.Name)
	}
	if h.live.status.State == hostplan.StateProvisioned {
		w.checkFence(h, f.drainOver())
	}
}

// checkFence: the machine is off and its Node object is gone.
func (w *world) checkFence(h *host, nodeMayRemain bool) {
	if h.hw.on {
		w.violated("fence: %s runs while its disk is given away", h.name)
	}
	if n := w.tenant.nodes[h.hw.disk.name]; n != nil && h.hw.disk.complete && strings.Contains(n.providerID, string(h.hw.disk.machine)) && !nodeMayRemain {
		w.violated("fence: the Node of %s exists while its disk is given away", h.name)
	}
}

// checkTouch: nothing is written over a system that has joined and runs.
func (w *world) checkTouch(h *host) {
	if h.hw.booted && h.hw.credential {
		w.violated("7: the disk of %s is written while its node runs", h.name)
	}
}

func (w *world) checkReturn(f Facts, h *host, a Action) {
	w.checkMine(f, h, a)
	if !isClean(h.live) || h.hw.disk.complete || h.live.imageURL != "" || h.live.spec.Machine != nil {
		w.violated("3: %s is returned to the pool and is not clean", h.name)
	}
}

func (w *world) checkDeleteNode(m *machine, h *host) {
	if h.hw.on && h.hw.booted {
		w.violated("fence: Node %s is deleted while its machine runs", m.live.Name)
	}
}

// checkEntry looks at the truth when a phase is entered.
func (w *world) checkEntry(m *machine, f Facts, d Decision) {
	h := w.hostOf(f.Machine)
	switch d.Status.Phase {
	case v1alpha1.MachineJoining:
		if h.live.consumer != m.live.UID && h.live.consumer != "somebody" || !h.hw.disk.complete || h.hw.disk.machine != m.live.UID || h.hw.disk.attempt != m.live.Status.Attempt {
			w.violated("7: %s is Joining without its image on the disk of %s", m.live.Name, h.name)
		}
	case v1alpha1.MachineReady:
		v := m.live.Status.Verdict
		if v == nil || v.Result != v1alpha1.CheckPass || v.NodeUID != d.Status.NodeRef.UID || v.BootID != f.Node.BootID {
			w.violated("2: %s is Ready without a verdict on this Node and boot", m.live.Name)
		}
	}
}

// checkStatus: whoever is not Ready says why, and no reason is ever lost.
func (w *world) checkStatus(m *machine) {
	s := m.live.Status
	ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil || ready.Reason == "" || ready.Message == "":
		w.violated("4: %s in %s does not say why", m.live.Name, s.Phase)
	case ready.Status == "True" && s.Phase != v1alpha1.MachineReady:
		w.violated("4: %s in %s says Ready", m.live.Name, s.Phase)
	}
	settled := s.Phase == v1alpha1.MachinePending || s.Phase == v1alpha1.MachineReady
	if settled != (s.Deadline == nil) {
		w.violated("4: %s in %s has deadline %v", m.live.Name, s.Phase, s.Deadline)
	}
}

func (w *world) checkGone(m *machine) {
	for _, h := range w.hosts {
		if h.live.consumer == m.live.UID {
			w.violated("4: %s is gone and keeps %s", m.live.Name, h.name)
		}
	}
}

// checkHosts holds at every step.
func (w *world) checkHosts() {
	for i, h := range w.hosts {
		for _, other := range w.hosts[i+1:] {
			if h.live.consumer != "" && h.live.consumer != "somebody" && h.live.consumer == other.live.consumer {
				w.violated("1: %s has %s and %s", h.live.consumerName, h.name, other.name)
			}
		}
		if h.hw.booted && !h.hw.disk.complete {
			w.violated("7: %s boots a disk that was not written completely", h.name)
		}
	}
}

// chaotic is one step of a history.
func (w *world) step() {
	switch r := w.rng.IntN(20); {
	case r < 9:
		w.reconcile(w.machines[w.rng.IntN(len(w.machines))])
	case r < 13:
		w.reconcileHost(w.hosts[w.rng.IntN(len(w.hosts))])
	case r < 16:
		w.runServer(w.hosts[w.rng.IntN(len(w.hosts))])
	case r < 17:
		if m := w.machines[w.rng.IntN(len(w.machines))]; !m.gone {
			w.judge(m)
		}
	case r < 18:
		w.now = w.now.Add(time.Duration(w.rng.IntN(240)) * time.Second)
	default:
		w.disturb()
	}
	if len(w.pending) > 0 && w.rng.IntN(3) == 0 {
		w.deliver(w.rng.IntN(len(w.pending)))
	}
	w.sync()
	w.checkHosts()
}

func (w *world) deliver(i int) {
	effect := w.pending[i]
	w.pending = append(w.pending[:i], w.pending[i+1:]...)
	w.late = true
	w.tell("a late effect arrives")
	effect()
	w.late = false
}

// disturb is what the world does to the planners.
func (w *world) disturb() {
	h, m := w.hosts[w.rng.IntN(len(w.hosts))], w.machines[w.rng.IntN(len(w.machines))]
	what := w.rng.IntN(9)
	w.tell("disturbance %d of %s and %s", what, h.name, m.live.Name)
	switch what {
	case 0:
		w.tenant.reachable = !w.tenant.reachable
	case 1, 2:
		w.delete(m)
	case 3: // a power cut
		h.hw.booted = false
	case 4:
		h.live.paused = !h.live.paused
		h.live.rv++
	case 5: // the tenant's administrator deletes a Node
		delete(w.tenant.nodes, m.live.Name)
	case 6: // somebody presses a power button; between a confirmed power-off and the erase that is the host controller's to see
		if h.live.online || h.live.consumer == "" {
			w.power(h, !h.hw.on)
		}
	case 7:
		for i := range w.pending {
			w.deliver(i)
			break
		}
	case 8: // somebody takes a host away by force
		if w.rng.IntN(8) == 0 {
			h.live.consumer, h.live.consumerName = "somebody", "somebody"
			h.live.rv++
			h.live.generation++
		}
	}
}

func (w *world) delete(m *machine) {
	if m.gone || m.live.Deleting {
		return
	}
	m.live.Deleting = true
	m.live.rv++
	m.gone = !m.live.Finalizer
}

// mayRest are the reasons with which a Machine may stay as it is when nothing goes wrong any more: another one has the host, or a
// person has to look.
var mayRest = map[string]bool{
	v1alpha1.ReasonNoHostAvailable: true, v1alpha1.ReasonHostLost: true, v1alpha1.ReasonJoinTimedOut: true, v1alpha1.ReasonNodeConflict: true,
}

// settle ends the chaos and lets everybody work, until every Machine is Ready, gone, or stuck with a reason.
func (w *world) settle() {
	w.chaos, w.tenant.reachable = false, true
	for len(w.pending) > 0 {
		w.deliver(0)
	}
	for i, h := range w.hosts {
		h.live.paused, h.live.retry = false, fmt.Sprint("retry-", i)
		h.live.rv++
	}
	w.sync()
	for rests, turns := 0, 0; rests < 3; turns++ {
		if turns == 200 {
			w.violated("4: does not settle: %s", w.state())
			return
		}
		w.turn()
		if rests++; !w.rests() {
			rests = 0
		}
	}
	w.checkRest()
}

// turn lets everybody work once.
func (w *world) turn() {
	for _, m := range w.machines {
		if m.gone {
			continue
		}
		for range 2 {
			w.reconcile(m)
			w.sync()
		}
		w.judge(m)
	}
	for _, h := range w.hosts {
		w.reconcileHost(h)
		w.sync()
		w.runServer(h)
	}
	w.freeOrphans()
	w.sync()
	w.checkHosts()
	w.now = w.now.Add(time.Minute)
}

func (w *world) rests() bool {
	for _, m := range w.machines {
		if m.gone || m.live.Status.Phase == v1alpha1.MachineReady {
			continue
		}
		ready := meta.FindStatusCondition(m.live.Status.Conditions, v1alpha1.ConditionReady)
		if m.live.Deleting || ready == nil || !mayRest[ready.Reason] || m.live.Status.WaitingFor == "" {
			return false
		}
	}
	return true
}

// checkRest: what is left when everything has settled.
func (w *world) checkRest() {
	for _, h := range w.hosts {
		owner := w.named(h.live.consumerName)
		if h.live.consumer != "" && h.live.consumerName != "somebody" && (owner == nil || owner.gone) {
			w.violated("4: %s is kept by %s, which is gone", h.name, h.live.consumerName)
		}
	}
	for id, t := range w.tenant.tokens {
		for _, m := range w.machines {
			if t.machine == m.live.UID && !t.late && t.expires.After(w.now) && (m.gone || m.live.Status.Phase == v1alpha1.MachineReady || m.live.Status.Phase == v1alpha1.MachineJoining) {
				w.violated("6: %s of %s still lives", id, m.live.Name)
			}
		}
	}
	for name := range w.tenant.nodes {
		if m := w.named(name); m.gone && !m.remains && !w.stolen(name) {
			w.violated("4: Node %s is left behind and nobody was told", name)
		}
	}
}

// stolen: somebody took the host with that Machine's system on it by force, and what runs there is theirs.
func (w *world) stolen(name string) bool {
	return slices.ContainsFunc(w.hosts, func(h *host) bool { return h.live.consumer == "somebody" && h.hw.disk.name == name })
}

func (w *world) named(name string) *machine {
	for _, m := range w.machines {
		if m.live.Name == name {
			return m
		}
	}
	return nil
}

// state is for messages.
func (w *world) state() string {
	var b strings.Builder
	for _, m := range w.machines {
		ready := meta.FindStatusCondition(m.live.Status.Conditions, v1alpha1.ConditionReady)
		fmt.Fprintf(&b, "\n  %s gone=%t deleting=%t %s: %+v", m.live.Name, m.gone, m.live.Deleting, m.live.Status.Phase, ready)
	}
	for _, h := range w.hosts {
		record, _ := json.Marshal(h.live.record)
		fmt.Fprintf(&b, "\n  %s consumer=%s online=%t image=%q %s on=%t disk=%+v %s", h.name, h.live.consumerName, h.live.online, h.live.imageURL, h.live.status.State, h.hw.on, h.hw.disk, record)
	}
	return b.String()
}

// history is one random life of a few Machines that compete for fewer hosts.
func history(seed uint64, g guards, trace func(string, ...any)) *world {
	w := newWorld(seed, 3, 2, g)
	w.chaos = true
	w.trace = trace
	for range 120 {
		w.step()
		if len(w.broken) > 0 {
			return w
		}
	}
	w.settle()
	return w
}

// histories runs them on all cores and returns the first one, if any, that broke an invariant.
func histories(count int, g guards, each func(*world)) (seed uint64, broken []string) {
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
				w := history(s, g, nil)
				mu.Lock()
				if each != nil {
					each(w)
				}
				if len(w.broken) > 0 && s < worst.Load() {
					worst.Store(s)
					seed, broken = s, w.broken
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return seed, broken
}

func TestTenThousandRandomHistoriesKeepTheInvariantsAndSettle(t *testing.T) {
	count := 10_000
	if testing.Short() {
		count = 1_000
	}
	ready, left, stuck := 0, 0, map[string]int{}
	seed, broken := histories(count, realGuards(), func(w *world) {
		for _, m := range w.machines {
			switch c := meta.FindStatusCondition(m.live.Status.Conditions, v1alpha1.ConditionReady); {
			case m.gone:
				left++
			case m.live.Status.Phase == v1alpha1.MachineReady:
				ready++
			case c != nil:
				stuck[c.Reason]++
			}
		}
	})
	if broken != nil {
		t.Fatalf("seed %d:\n%s", seed, strings.Join(broken, "\n"))
	}
	t.Logf("%d histories: Machines ready %d, gone %d, waiting %v", count, ready, left, stuck)
	if ready < count/2 || left < count/2 {
		t.Errorf("the histories prove little: only %d Machines became Ready and %d went", ready, left)
	}
}

var oneSeed = flag.Uint64("seed", 0, "the history that TestOneHistory tells")

func TestOneHistory(t *testing.T) {
	w := history(*oneSeed, realGuards(), t.Logf)
	if len(w.broken) > 0 {
		t.Errorf("%s%s", strings.Join(w.broken, "\n"), w.state())
	}
}

// mutations each remove one guard.
var mutations = []struct {
	name   string
	remove func(*guards)
	// breaks is the invariant that the histories then break.
	breaks string
}{
	{"a host that is not the Machine's is used", func(g *guards) { g.hostIsMine = func(f Facts) bool { return f.Host != nil } }, "1:"},
	{"a host is claimed although placement passes it over", func(g *guards) { g.hostIsFit = func(f Facts) bool { return f.Host != nil } }, "3:"},
	{"the image counts as installed before it is", func(g *guards) { g.imageIsOnDisk = func(f Facts) bool { return imageRequested(f) } }, "7:"},
	{"the power counts as off before the BMC confirms", func(g *guards) { g.powerIsOff = func(f Facts) bool { return f.Host != nil && !f.Host.Online } }, "fence:"},
	{"the Node counts as gone while it exists", func(g *guards) { g.nodeIsGone = func(Facts) bool { return true } }, "fence:"},
	{"a host is returned before it is erased", func(g *guards) { g.hostIsBack = func(f Facts) bool { return f.Host.ImageURL == "" } }, "3:"},
	{"any verdict counts, whatever Node or boot it speaks of", func(g *guards) { g.verdictHolds = func(f Facts) bool { return f.Machine.Status.Verdict != nil } }, "2:"},
	{"a token is made whenever there is none", func(g *guards) { g.tokenMayLive = func(Facts) bool { return true } }, "6:"},
}

func TestEveryGuardIsNeeded(t *testing.T) {
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			g := realGuards()
			m.remove(&g)
			seed, broken := histories(5_000, g, nil)
			if broken == nil {
				t.Fatal("without the guard 5000 histories break no invariant: it guards nothing, or the world is too kind")
			}
			if !strings.HasPrefix(broken[0], m.breaks) {
				t.Errorf("seed %d breaks another invariant than %s: %s", seed, m.breaks, broken[0])
			}
			t.Logf("seed %d: %s", seed, broken[0])
		})
	}
}
