package rollout

import (
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// mutations each remove one guard.
var mutations = []struct {
	name   string
	remove func(*guards)
	// breaks is the law that the schedules then break.
	breaks string
}{
	{"a Machine that is about to be rolled counts as available", func(g *guards) { g.down = func(m *Machine) bool { return !m.Ready } }, "5:"},
	// The next Rollout knows nothing of it, and an old cache shows it as it was.
	{"a Machine leaves the list when it was told to move", func(g *guards) { g.held = func(r *Rollout, m *Machine) bool { return !r.started(m) } }, "settle:"},
	{"a Machine on its way counts only when a cache shows it", func(g *guards) { g.counted = func(*Machine) bool { return false } }, "5:"},
	{"the NodeType's budget is ignored", func(g *guards) { g.typeRoom = func(tally, int) bool { return true } }, "5:"},
	{"the pools' budgets are ignored", func(g *guards) { g.poolRoom = func(tally, int) bool { return true } }, "5:"},
	{"the budgets are not looked at again before the start", func(g *guards) { g.again = func() bool { return false } }, "5:"},
	{"a Machine is started before the status names it", func(g *guards) { g.named = func(*planner, *Machine) bool { return true } }, "intent:"},
	{"everybody may start beside the canary", func(g *guards) { g.turn = func(*planner, *Machine) bool { return true } }, "canary:"},
	{"the canary need not bake", func(g *guards) { g.baked = func(time.Time, time.Time, time.Duration) bool { return true } }, "bake:"},
	{"nothing stops it", func(g *guards) { g.stops = func(*planner) string { return "" } }, "failures:"},
	{"it moves in every phase", func(g *guards) { g.moves = func(*Rollout, v1alpha1.RolloutPhase) bool { return true } }, "phase:"},
	// Two Rollouts pull at one Machine.
	{"it begins while the Rollout before it still moves Machines", func(g *guards) { g.letGo = func(*Before) bool { return true } }, "settle:"},
	// A late request of the Rollout before it moves a Machine when all is over.
	{"it forgets whom the Rollout before it had named", func(g *guards) { g.inherits = func(*Before) []string { return nil } }, "settle:"},
	{"the tenant is not asked", func(g *guards) { g.tenantTakes = func(*Machine) bool { return true } }, "tenant:"},
	{"it is Done whatever the Machines have become", func(g *guards) { g.settled = func(p *planner, m *Machine) bool { return p.f.Rollout.started(m) } }, "done:"},
}

func TestEveryGuardIsNeeded(t *testing.T) {
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			g := realGuards()
			m.remove(&g)
			seed, broken := histories(2_000, g, nil)
			if broken == nil {
				t.Fatal("without the guard 2000 schedules break no law: it guards nothing, or the world is too kind")
			}
			if !strings.HasPrefix(broken[0], m.breaks) {
				t.Errorf("seed %d breaks another law than %s: %s", seed, m.breaks, broken[0])
			}
			t.Logf("seed %d: %.200s", seed, broken[0])
		})
	}
}
