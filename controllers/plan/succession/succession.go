package succession

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Facts are what a decision follows from.
type Facts struct {
	// Generation of the NodeType.
	Generation int64
	// Stable and Target as the NodeType's status says.
	Stable, Target string
	// Wanted is the revision of the spec; empty while an obstacle keeps the NodeType from having one.
	Wanted string
	// Rollouts of the NodeType, in any order.
	Rollouts []Rollout
	// Machines of the NodeType.
	Machines []Machine
	// Revisions of the NodeType, in any order.
	Revisions []Revision
}

// Rollout is what counts of one.
type Rollout struct {
	// Name of the Rollout; see Number.
	Name string
	// From and To are the revisions between which it moves Machines.
	From, To string
	// Phase of the Rollout; empty when nobody has looked at it yet.
	Phase v1alpha1.RolloutPhase
}

// Machine is what counts of one.
type Machine struct {
	// Asked is its spec.revision; empty: the stable one at the time of the claim.
	Asked string
	// Installed is its status.revision; empty before the claim.
	Installed string
	// Deleting Machines are on their way out: nothing moves them, yet they use their revision to the end.
	Deleting bool
}

// revision that the Machine has or is on its way to; empty while it has none.
func (m Machine) revision() string { return cmp.Or(m.Asked, m.Installed) }

// Decision says what the NodeType's status should name and what is to be made or removed. Rollout is set only once the
// status names what leads to it: a Rollout whose NodeType asked for something else would be superseded at birth.
type Decision struct {
	// Stable and Target for the NodeType's status.
	Stable, Target string
	// Rollout to be made; nil: none.
	Rollout *Rollout
	// DropRevisions and DropRollouts name what is no longer kept, the oldest first.
	DropRevisions, DropRollouts []string
}

// Plan decides. While Wanted is empty nothing new is asked for and no Rollout is made; what is on its way goes on.
func Plan(f Facts) Decision {
	latest := Latest(f.Rollouts)
	d := Decision{Target: cmp.Or(f.Wanted, f.Target)}
	d.Stable = f.stable(d.Target, latest)
	if f.Wanted != "" && d.Target == f.Target && d.Stable == f.Stable {
		d.Rollout = f.rollout(latest)
	}
	d.DropRevisions, d.DropRollouts = f.surplusRevisions(d), f.surplusRollouts()
	return d
}

// Latest is the newest of the Rollouts of one NodeType; the zero value when there is none.
func Latest(rollouts []Rollout) Rollout {
	var latest Rollout
	for _, r := range rollouts {
		if latest.Name == "" || Newer(r.Name, latest.Name) {
			latest = r
		}
	}
	return latest
}

// stable revision from now on.
func (f Facts) stable(target string, latest Rollout) string {
	outdated := f.outdated(target)
	switch {
	case target == "":
		return f.Stable
	case !slices.ContainsFunc(f.Machines, func(m Machine) bool { return !m.Deleting && m.revision() != "" }):
		return target
	case latest.To == target && latest.Phase == v1alpha1.RolloutDone && len(outdated) == 0:
		return target
	case f.Stable == "":
		return f.recovered(target, latest, outdated)
	}
	return f.Stable
}

// recovered is the stable revision of a NodeType whose status was lost, in a restored backup for instance, but whose
// Machines live: were it the target, their number would change revision without a Rollout.
func (f Facts) recovered(target string, latest Rollout, outdated map[string]int) string {
	exists := func(name string) bool {
		return slices.ContainsFunc(f.Revisions, func(r Revision) bool { return r.Name == name })
	}
	if latest.To == target && !latest.Phase.Settled() && exists(latest.From) {
		return latest.From
	}
	maps.DeleteFunc(outdated, func(name string, _ int) bool { return !exists(name) })
	return cmp.Or(commonest(outdated), target)
}

// rollout to be made; nil when none is needed, or the newest is on its way to the target.
func (f Facts) rollout(latest Rollout) *Rollout {
	undone := latest.Name != "" && !latest.Phase.Settled()
	if undone && latest.To == f.Target {
		return nil
	}
	outdated := f.outdated(f.Target)
	if f.Stable == f.Target && len(outdated) == 0 && !undone {
		return nil
	}
	from := f.Stable
	if from == f.Target {
		from = commonest(outdated)
		if undone {
			from = latest.To
		}
	}
	number := max(f.Generation, 1)
	if latest.Name != "" {
		number = max(number, Number(latest.Name)+1)
	}
	return &Rollout{Name: Name(f.Target, number), From: from, To: f.Target}
}

// outdated counts the Machines that neither have the target nor are on their way to it, by what they have.
func (f Facts) outdated(target string) map[string]int {
	counts := map[string]int{}
	for _, m := range f.Machines {
		if has := m.revision(); !m.Deleting && has != "" && has != target {
			counts[has]++
		}
	}
	return counts
}

// commonest of the revisions, the first by name among equals; empty when there is none.
func commonest(counts map[string]int) string {
	names := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
	if len(names) == 0 {
		return ""
	}
	return names[0]
}
