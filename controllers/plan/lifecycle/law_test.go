package lifecycle

import (
	"cmp"
	"flag"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/nodeidentity"
	"github.com/ingot-dev/ingot/test/require"
)

// history is one random life of a few Machines that compete for fewer hosts.
func history(seed uint64, g guards, trace func(string, ...any)) *world {
	w := newWorld(seed, 2, 2, g)
	w.tenant.byCluster, w.edits = seed%4 == 1, seed%8 == 1
	return live(w, seed, trace)
}

// live lets the world live, first without and then with chaos.
func live(w *world, seed uint64, trace func(string, ...any)) *world {
	w.trace = trace
	if seed%3 == 0 {
		for range 13 {
			w.turn() // every third begins with Machines that are Ready
		}
		w.beginRolls()
	}
	w.addMachine("m2")
	w.chaos = true
	for range 120 {
		w.step()
		if len(w.broken) > 0 {
			return w
		}
	}
	w.settle()
	return w
}

// life runs one history.
type life func(seed uint64, g guards, trace func(string, ...any)) *world

// histories runs them on all cores and returns the first one, if any, that broke the invariant of that number; "": any.
func histories(life life, count int, g guards, invariant string, each func(*world)) (seed uint64, broken []string) {
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
				w := life(s, g, nil)
				mu.Lock()
				if each != nil {
					each(w)
				}
				if len(w.broken) > 0 && strings.HasPrefix(w.broken[0], invariant) && s < worst.Load() {
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

func TestRandomHistoriesKeepTheInvariantsAndSettle(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // they leave much behind, and nothing of it lasts
	count := 2_000
	if all, _ := require.Sample(); all {
		count = 10_000
	} else if testing.Short() {
		count = 100
	}
	runHistories(t, history, count)
}

// TestRandomHistoriesOfServedHostsKeepTheInvariantsAndSettle has hosts without HostRecords, whose operator may be stopped, started again, cut off
// from the BMCs, late and out of date.
func TestRandomHistoriesOfServedHostsKeepTheInvariantsAndSettle(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	count := 1_000
	if testing.Short() {
		count = 100
	}
	runHistories(t, servedHistory, count)
}

// runHistories requires that many histories keep the invariants, and that enough happens in them.
func runHistories(t *testing.T, one life, count int) {
	t.Helper()
	ready, left, rolled, stuck := 0, 0, 0, map[string]int{}
	seed, broken := histories(one, count, realGuards(), "", func(w *world) {
		rolled += w.rolls
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
	t.Logf("%d histories: Machines ready %d, gone %d, waiting %v; %d re-images in place", count, ready, left, stuck, rolled)
	if ready < count/2 || left < count/3 || rolled < count/5 {
		t.Errorf("the histories prove little: only %d Machines became Ready, %d went, %d re-images were made", ready, left, rolled)
	}
}

var oneSeed = flag.Uint64("seed", 0, "the seed of the history that TestOneHistory runs")

var servedSeed = flag.Bool("served", false, "TestOneHistory runs one of hosts that a baremetal-operator serves")

func TestOneHistory(t *testing.T) {
	one := history
	if *servedSeed {
		one = servedHistory
	}
	w := one(*oneSeed, realGuards(), t.Logf)
	if len(w.broken) > 0 {
		t.Errorf("%s%s", strings.Join(w.broken, "\n"), w.state())
	}
}

// mutations each remove one guard.
var mutations = []struct {
	name   string
	life   life
	remove func(*guards)
	// breaks is the invariant that the histories then break.
	breaks string
}{
	{"a host that is not the Machine's is used", history, func(g *guards) { g.hasHost = func(f Facts) bool { return f.Host != nil } }, "1:"},
	{"a host is claimed although placement passes it over", history, func(g *guards) { g.isHostClaimable = func(f Facts) bool { return f.Host != nil } }, "3:"},
	{"the image counts as installed before it is", history, func(g *guards) { g.hasImageOnDisk = func(f Facts) bool { return f.hasImageRequested() } }, "7:"},
	{"the power counts as off before the BMC confirms", history, func(g *guards) { g.isPoweredOff = func(f Facts) bool { return f.Host != nil && !f.Host.Online } }, "fence:"},
	{"the Node counts as gone while it exists", history, func(g *guards) { g.isNodeGone = func(Facts) bool { return true } }, "fence:"},
	{"a host is returned before it is erased", history, func(g *guards) { g.isHostReturnable = func(f Facts) bool { return f.Host.ImageURL == "" } }, "3:"},
	{"any verdict counts, whatever Node or boot it speaks of", history, func(g *guards) { g.hasPassingVerdict = func(f Facts) bool { return f.Machine.Status.Verdict != nil } }, "2:"},
	{"a verdict about the boot before a power-off counts", history, func(g *guards) { g.isBootAfterPowerOff = func(Facts) bool { return true } }, "2:"},
	{"a token is made whenever there is none", history, func(g *guards) { g.needsToken = func(Facts) bool { return true } }, "6:"},
	{"a roll begins whatever the revision", history, func(g *guards) { g.revisionProblem = func(Facts, Revision) (string, string) { return "", "" } }, "roll:"},
	{"a roll is called off after the power-off was begun", history, func(g *guards) {
		g.isRollCancelled = func(f Facts) bool {
			return f.NextRevision.Name == "" && f.Machine.Status.NodeRef != nil && f.hasNodeOfThisAttempt()
		}
	}, "roll:"},
	{"any Node of the Machine's name is its own", history, func(g *guards) {
		g.findOwner = func(c nodeidentity.Claim, n nodeidentity.Node) nodeidentity.Finding {
			c.SystemUUID = cmp.Or(n.SystemUUID, c.SystemUUID)
			return nodeidentity.Of(c, n)
		}
	}, "13:"},
	{"the image of a served host counts as installed before it is", servedHistory, func(g *guards) {
		g.hasImageOnDisk = func(f Facts) bool { return f.hasImageRequested() }
	}, "7:"},
	{"a served host is returned before it is cleaned", servedHistory, func(g *guards) { g.isHostReturnable = func(f Facts) bool { return f.Host.ImageURL == "" } }, "3:"},
	{"the power of a served host counts whenever it was seen", servedHistory, func(g *guards) { g.isPowerCurrent = func(*Host) bool { return true } }, "fence:"},
	{"the power of a served host counts although its operator does not know it", servedHistory, func(g *guards) {
		g.isPowerCurrent = func(h *Host) bool {
			known, yes := *h, true
			known.Manageable = &yes
			return known.isPowerCurrent()
		}
	}, "fence:"},
	{"a served host is asked to be off although its operator cannot show that it is", servedHistory, func(g *guards) { g.canBeAskedOff = (*Host).isPowerManaged }, "4:"},
	{"a served host is asked to be off while it is installed", servedHistory, func(g *guards) { g.canBeAskedOff = func(*Host) bool { return true } }, "fence:"},
	{"a served host is asked for the next image before it is given back", servedHistory, func(g *guards) { g.canTakeImage = func(Facts) bool { return true } }, "7:"},
}

func TestEveryGuardIsNeeded(t *testing.T) {
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			require.OneOf(t, 4)
			g := realGuards()
			m.remove(&g)
			seed, broken := histories(m.life, 5_000, g, m.breaks, nil)
			if broken == nil {
				t.Fatalf("without the guard 5000 histories do not break invariant %s it guards nothing, or the world is too kind", m.breaks)
			}
			t.Logf("seed %d: %s", seed, broken[0])
		})
	}
}
