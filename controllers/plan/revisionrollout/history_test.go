package revisionrollout

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// world is a NodeType with its Machines, and a rollout controller that does its work one Machine at a time.
type world struct {
	facts Facts
	// asked is what the spec asks for.
	asked string
	// highest number of any Rollout so far.
	highest int64
	clock   int64
}

// reconcile plans once and takes over what follows. It says what is wrong with it.
func (w *world) reconcile() string {
	before := w.facts
	d := Plan(before)
	w.facts.Stable, w.facts.Target = d.Stable, d.Target
	if d.Stable != before.Stable && !before.Stable.IsZero() {
		if wrong := w.promotion(before); wrong != "" {
			return wrong
		}
	}
	if d.Rollout != nil {
		if Number(d.Rollout.Name) <= w.highest || d.Stable != before.Stable || d.Target != before.Target || before.Desired.IsZero() {
			return fmt.Sprintf("Rollout %+v was made too early or has an old number", d.Rollout)
		}
		w.highest = Number(d.Rollout.Name)
		w.facts.Rollouts = append(w.facts.Rollouts, *d.Rollout)
	}
	for _, name := range d.DeleteRevisions {
		if w.inUse(name) {
			return "revision " + name + " is in use and was dropped"
		}
		w.facts.Revisions = slices.DeleteFunc(w.facts.Revisions, func(r Revision) bool { return r.Name == name })
	}
	for _, name := range d.DeleteRollouts {
		w.facts.Rollouts = slices.DeleteFunc(w.facts.Rollouts, func(r Rollout) bool { return r.Name == name && r.Phase.IsFinal() })
	}
	return ""
}

// promotion: why the stable revision may not have changed.
func (w *world) promotion(before Facts) string {
	latest := newestRollout(before.Rollouts)
	done := latest.Phase == v1alpha1.RolloutDone && latest.To == w.facts.Stable
	if latest.isActive() {
		return fmt.Sprintf("the stable revision went from %s to %s while %s is %q", before.Stable, w.facts.Stable, latest.Name, latest.Phase)
	}
	for _, m := range before.Machines {
		if m.revision().IsZero() || m.Deleting {
			continue
		}
		if !done || m.revision() != w.facts.Stable {
			return fmt.Sprintf("the stable revision went from %s to %s while a Machine has %s and the newest Rollout is %+v",
				before.Stable, w.facts.Stable, m.revision(), latest)
		}
	}
	return ""
}

func (w *world) inUse(name string) bool {
	if name == w.facts.Stable.Revision || name == w.facts.Target.Revision {
		return true
	}
	if slices.ContainsFunc(w.facts.Machines, func(m Machine) bool { return m.Desired.Revision == name || m.Installed.Revision == name }) {
		return true
	}
	return slices.ContainsFunc(w.facts.Rollouts, func(r Rollout) bool { return !r.Phase.IsFinal() && (r.To.Revision == name || r.From.Revision == name) })
}

// roll does one step of the rollout controller.
func (w *world) roll() {
	latest := newestRollout(w.facts.Rollouts).Name
	for i := range w.facts.Rollouts {
		r := &w.facts.Rollouts[i]
		if r.Phase.IsFinal() {
			continue
		}
		if r.Name != latest || r.To != w.facts.Target {
			r.Phase = v1alpha1.RolloutSuperseded
			return
		}
		for j := range w.facts.Machines {
			m := &w.facts.Machines[j]
			if !m.revision().IsZero() && m.revision() != r.To && !m.Deleting {
				m.Desired, r.Phase = r.To, v1alpha1.RolloutRolling
				return
			}
			if !m.Desired.IsZero() {
				m.Installed = m.Desired
			}
		}
		r.Phase = v1alpha1.RolloutDone
	}
}

func (w *world) ask(asked v1alpha1.RenderedRevision) {
	name := asked.Revision
	w.asked, w.facts.Generation = name, w.facts.Generation+1
	if name != "" && !slices.ContainsFunc(w.facts.Revisions, func(r Revision) bool { return r.Name == name }) {
		w.clock++
		w.facts.Revisions = append(w.facts.Revisions, Revision{Name: name, Created: time.Unix(w.clock, 0)})
	}
	w.facts.Desired = asked
}

// claim lets the Machines that have no revision yet take the stable one.
func (w *world) claim() {
	for i := range w.facts.Machines {
		if m := &w.facts.Machines[i]; m.revision().IsZero() {
			m.Installed = w.facts.Stable
		}
	}
}

func (w *world) happen(random *rand.Rand) {
	switch random.IntN(12) {
	case 0:
		w.ask(of(fmt.Sprintf("r%d/%d", random.IntN(40), random.IntN(3))))
	case 1:
		w.ask(v1alpha1.RenderedRevision{})
	case 2, 3:
		w.facts.Machines = append(w.facts.Machines, Machine{})
	case 4:
		w.claim()
	case 5:
		if n := len(w.facts.Machines); n > 0 {
			w.facts.Machines[random.IntN(n)].Deleting = true
		}
	case 6:
		w.facts.Machines = slices.DeleteFunc(w.facts.Machines, func(m Machine) bool { return m.Deleting })
	default:
		w.roll()
	}
}

func TestEveryHistoryEndsWithAllMachinesOnTheTarget(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := &world{}
		for range 120 {
			w.happen(random)
			if random.IntN(3) > 0 {
				if wrong := w.reconcile(); wrong != "" {
					t.Fatalf("seed %d: %s", seed, wrong)
				}
			}
		}
		last := of("last/2")
		w.ask(last)
		for range 20 + 4*len(w.facts.Machines) + 2*len(w.facts.Rollouts) {
			if wrong := w.reconcile(); wrong != "" {
				t.Fatalf("seed %d: %s", seed, wrong)
			}
			w.claim()
			w.roll()
		}
		f := w.facts
		if f.Stable != last || f.Target != last || len(f.outdatedRevisions(last)) > 0 {
			t.Fatalf("seed %d: it ends with stable %s, target %s, outdated %v, Rollouts %+v", seed, f.Stable, f.Target, f.outdatedRevisions(last), f.Rollouts)
		}
		if len(f.Rollouts) > maxSettledRollouts || len(f.Revisions) > maxUnusedRevisions+1+len(f.Machines) {
			t.Fatalf("seed %d: %d Rollouts and %d revisions are kept", seed, len(f.Rollouts), len(f.Revisions))
		}
	}
}
