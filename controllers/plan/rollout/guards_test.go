package rollout

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
	"github.com/ingot-dev/ingot/test/require"
)

// mutations each replace one guard by one that guards nothing.
var mutations = []struct {
	name   string
	remove func(*guards)
	// breaks is the law, or one of the laws, that the schedules then break.
	breaks string
}{
	{"a Machine that will soon be drained counts as available", func(g *guards) { g.isUnavailable = func(m *Machine) bool { return !m.Ready } }, "5:"},
	{"Machines without a host count", func(g *guards) { g.hasHost = func(*Machine) bool { return true } }, "settle: or 5: or choice:"},
	{"what an undo cannot bring back counts", func(g *guards) { g.isUncounted = func(*planner, *Machine) bool { return false } }, "settle:"},
	{"a Machine that has just lost Ready counts as broken", func(g *guards) { g.isBroken = func(m *Machine) bool { return m.Claimed && !m.Ready } }, "5:"},
	{"a broken Machine that may be at work is moved at once", func(g *guards) { g.hasGrant = func(*planner, *Machine) bool { return true } }, "5: or grant:"},
	{"what was broken before counts as failed", func(g *guards) { g.wasBroken = func(*planner, *Machine) bool { return false } }, "settle: or held up:"},
	{"any Machine may be the canary", func(g *guards) { g.canProve = func(*Machine) bool { return true } }, "choice:"},
	{"a broken Machine is the canary for want of room", func(g *guards) { g.canProveUnready = func(*planner, *Machine) bool { return true } }, "choice:"},
	{"a canary that is deleted is forgotten", func(g *guards) { g.isLost = func(*planner, *Machine) bool { return false } }, "proof:"},
	// The next Rollout does not know of the Machine, and an old cache shows it as it was before.
	{"a Machine leaves the list when it is started", func(g *guards) {
		g.mustStayInProgress = func(r *Rollout, m *Machine) bool { return !r.isStarted(m) }
	}, "settle: or 5: or late:"},
	{"a Machine in progress counts only if it is observed as unavailable", func(g *guards) { g.mustCountInProgress = func(*Machine) bool { return false } }, "5:"},
	{"the NodeType's budget is ignored", func(g *guards) { g.hasNodeTypeRoom = func(budget, int) bool { return true } }, "5:"},
	{"the pools' budgets are ignored", func(g *guards) { g.hasPoolRoom = func(budget, int) bool { return true } }, "5:"},
	{"the budgets are not checked again before the start", func(g *guards) { g.mustRecheckBudget = func() bool { return false } }, "5:"},
	{"a Machine is started before the status names it", func(g *guards) { g.isRecorded = func(*planner, *Machine) bool { return true } }, "intent:"},
	{"the tenants' budgets are ignored", func(g *guards) { g.hasTenantRoom = func(*planner, *Machine) bool { return true } }, "devices:"},
	{"a Machine is started before the status counts what is in use there", func(g *guards) { g.isUseRecorded = func(*planner, *Machine) bool { return true } }, "use:"},
	{"what was in use is forgotten with its claims", func(g *guards) { g.mustKeepUse = (*planner).hasHeldDevices }, "devices:"},
	{"any Machine may start beside the canary", func(g *guards) { g.isInStage = func(*planner, *Machine) bool { return true } }, "canary:"},
	{"the canary need not bake", func(g *guards) { g.isBaked = func(watched.Clock, time.Time, time.Duration) bool { return true } }, "bake:"},
	{"nothing stops the rollout", func(g *guards) { g.stopReason = func(*planner) string { return "" } }, "failures:"},
	{"Machines are started in every phase", func(g *guards) { g.canStartMachines = func(*Rollout, v1alpha1.RolloutPhase) bool { return true } }, "phase:"},
	// Two Rollouts move the same Machine to and fro.
	{"it begins while the previous Rollout still moves Machines", func(g *guards) { g.isPreviousSettled = func(*PreviousRollout) bool { return true } }, "order:"},
	// A late request of the previous Rollout moves a Machine after this one is Done.
	{"it forgets which Machines the previous Rollout had in progress", func(g *guards) { g.inheritedNames = func(*PreviousRollout) []string { return nil } }, "settle: or late:"},
	{"Machines are rolled that cannot be", func(g *guards) { g.canRoll = func(*Machine) bool { return true } }, "tenant:"},
	{"it is Done when all Machines are started", func(g *guards) {
		g.isFinished = func(p *planner, m *Machine) bool { return p.facts.Rollout.isStarted(m) || p.isFinished(m) }
	}, "done:"},
}

func TestEveryGuardIsNeeded(t *testing.T) {
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			require.OneOf(t, 4)
			g := realGuards()
			m.remove(&g)
			seed, broken := runHistories(5_000, g, nil)
			if broken == nil {
				t.Fatal("without the guard 5000 schedules break no law: it guards nothing, or the simulated cluster is too kind")
			}
			if !slices.ContainsFunc(strings.Split(m.breaks, " or "), func(law string) bool { return strings.HasPrefix(broken[0], law) }) {
				t.Errorf("seed %d breaks another law than %s: %s", seed, m.breaks, broken[0])
			}
			t.Logf("seed %d: %.200s", seed, broken[0])
		})
	}
}
