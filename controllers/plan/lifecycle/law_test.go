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
)

// history is one random life of a few Machines that compete for fewer hosts.
func history(seed uint64, g guards, trace func(string, ...any)) *world {
	w := newWorld(seed, 2, 2, g)
	w.trace = trace
	w.tenant.byCluster, w.edits = seed%4 == 1, seed%8 == 1
	if seed%3 == 0 {
		for range 13 {
			w.turn() // every third begins with Machines that are Ready
		}
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

// histories runs them on all cores and returns the first one, if any, that broke the invariant of that number; "": any.
func histories(count int, g guards, invariant string, each func(*world)) (seed uint64, broken []string) {
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

func TestTenThousandRandomHistoriesKeepTheInvariantsAndSettle(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // they leave much behind, and nothing of it lasts
	count := 10_000
	if testing.Short() {
		count = 100
	}
	ready, left, rolled, stuck := 0, 0, 0, map[string]int{}
	seed, broken := histories(count, realGuards(), "", func(w *world) {
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
	if ready < count/2 || left < count/2 || rolled < count/5 {
		t.Errorf("the histories prove little: only %d Machines became Ready, %d went, %d re-images were made", ready, left, rolled)
	}
}

var oneSeed = flag.Uint64("seed", 0, "the seed of the history that TestOneHistory runs")

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
	{"a host that is not the Machine's is used", func(g *guards) { g.hasHost = func(f Facts) bool { return f.Host != nil } }, "1:"},
	{"a host is claimed although placement passes it over", func(g *guards) { g.isHostClaimable = func(f Facts) bool { return f.Host != nil } }, "3:"},
	{"the image counts as installed before it is", func(g *guards) { g.hasImageOnDisk = func(f Facts) bool { return f.hasImageRequested() } }, "7:"},
	{"the power counts as off before the BMC confirms", func(g *guards) { g.isPoweredOff = func(f Facts) bool { return f.Host != nil && !f.Host.Online } }, "fence:"},
	{"the Node counts as gone while it exists", func(g *guards) { g.isNodeGone = func(Facts) bool { return true } }, "fence:"},
	{"a host is returned before it is erased", func(g *guards) { g.isHostReturnable = func(f Facts) bool { return f.Host.ImageURL == "" } }, "3:"},
	{"any verdict counts, whatever Node or boot it speaks of", func(g *guards) { g.hasPassingVerdict = func(f Facts) bool { return f.Machine.Status.Verdict != nil } }, "2:"},
	{"a verdict about the boot before a power-off counts", func(g *guards) { g.isBootAfterPowerOff = func(Facts) bool { return true } }, "2:"},
	{"a token is made whenever there is none", func(g *guards) { g.needsToken = func(Facts) bool { return true } }, "6:"},
	{"a roll begins whatever the revision", func(g *guards) { g.revisionProblem = func(Facts, Revision) (string, string) { return "", "" } }, "roll:"},
	{"a roll is called off after the power-off was begun", func(g *guards) {
		g.isRollCancelled = func(f Facts) bool {
			return f.NextRevision.Name == "" && f.Machine.Status.NodeRef != nil && f.hasNodeOfThisAttempt()
		}
	}, "roll:"},
	{"any Node of the Machine's name is its own", func(g *guards) {
		g.findOwner = func(c nodeidentity.Claim, n nodeidentity.Node) nodeidentity.Finding {
			c.SystemUUID = cmp.Or(n.SystemUUID, c.SystemUUID)
			return nodeidentity.Of(c, n)
		}
	}, "13:"},
}

func TestEveryGuardIsNeeded(t *testing.T) {
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			g := realGuards()
			m.remove(&g)
			seed, broken := histories(5_000, g, m.breaks, nil)
			if broken == nil {
				t.Fatalf("without the guard 5000 histories do not break invariant %s it guards nothing, or the world is too kind", m.breaks)
			}
			t.Logf("seed %d: %s", seed, broken[0])
		})
	}
}
