package revisionrollout

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
	Stable, Target v1alpha1.RenderedRevision
	// Wanted is what the spec asks for; zero while an obstacle keeps the NodeType from having a revision.
	Desired v1alpha1.RenderedRevision
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
	// From and To are what it moves Machines between.
	From, To v1alpha1.RenderedRevision
	// Phase of the Rollout; empty when nobody has looked at it yet.
	Phase v1alpha1.RolloutPhase
}

// Machine is what counts of one.
type Machine struct {
	// Asked is what its spec asks for; zero: what is stable at the time of the claim.
	Desired v1alpha1.RenderedRevision
	// Installed is what its status says; zero before the claim.
	Installed v1alpha1.RenderedRevision
	// Deleting Machines are on their way out: nothing moves them, yet they use their revision to the end.
	Deleting bool
}

// revision that the Machine has or is on its way to; zero while it has none.
func (m Machine) revision() v1alpha1.RenderedRevision { return cmp.Or(m.Desired, m.Installed) }

// Decision says what the NodeType's status should name and what is to be made or removed. Rollout is set only once the
// status names what leads to it: a Rollout whose NodeType asked for something else would be superseded at birth.
type Decision struct {
	// Stable and Target for the NodeType's status.
	Stable, Target v1alpha1.RenderedRevision
	// Rollout to be made; nil: none.
	Rollout *Rollout
	// DropRevisions and DropRollouts name what is no longer kept, the oldest first.
	DeleteRevisions, DeleteRollouts []string
}

// Plan decides. While Wanted is empty nothing new is asked for and no Rollout is made; what is on its way goes on.
func Plan(f Facts) Decision {
	latest := newestRollout(f.Rollouts)
	d := Decision{Target: cmp.Or(f.Desired, f.Target)}
	d.Stable = f.stableRevision(d.Target, latest)
	if !f.Desired.IsZero() && d.Target == f.Target && d.Stable == f.Stable {
		d.Rollout = f.requiredRollout(latest)
	}
	d.DeleteRevisions, d.DeleteRollouts = f.surplusRevisions(d), f.surplusRollouts()
	return d
}

// Latest is the newest of the Rollouts of one NodeType; the zero value when there is none.
func newestRollout(rollouts []Rollout) Rollout {
	var latest Rollout
	for _, r := range rollouts {
		if latest.Name == "" || IsNewer(r.Name, latest.Name) {
			latest = r
		}
	}
	return latest
}

// stable is what new Machines get from now on.
func (f Facts) stableRevision(target v1alpha1.RenderedRevision, latest Rollout) v1alpha1.RenderedRevision {
	outdated := f.outdatedRevisions(target)
	switch {
	case target.IsZero():
		return f.Stable
	case !slices.ContainsFunc(f.Machines, func(m Machine) bool { return !m.Deleting && !m.revision().IsZero() }):
		return target
	case latest.To == target && latest.Phase == v1alpha1.RolloutDone && len(outdated) == 0:
		return target
	case f.Stable.IsZero():
		return f.recoveredStable(target, latest, outdated)
	}
	return f.Stable
}

// recovered is what is stable for a NodeType whose status was lost, in a restored backup for instance, but whose
// Machines live: were it the target, their number would change revision without a Rollout.
func (f Facts) recoveredStable(target v1alpha1.RenderedRevision, latest Rollout, outdated map[v1alpha1.RenderedRevision]int) v1alpha1.RenderedRevision {
	exists := func(has v1alpha1.RenderedRevision) bool {
		// The target's revision may have been made a moment ago.
		return has.Revision == target.Revision || slices.ContainsFunc(f.Revisions, func(r Revision) bool { return r.Name == has.Revision })
	}
	// A wish that leaves the rendering open is no rendering that was ever stable.
	isOpen := func(has v1alpha1.RenderedRevision) bool {
		return has.Rendering == "" && !slices.ContainsFunc(f.Machines, func(m Machine) bool { return m.Installed == has })
	}
	if latest.To == target && !latest.Phase.Settled() && exists(latest.From) {
		return latest.From
	}
	maps.DeleteFunc(outdated, func(has v1alpha1.RenderedRevision, _ int) bool {
		return !exists(has) || target.Rendering != "" && isOpen(has)
	})
	return cmp.Or(mostCommon(outdated), target)
}

// rollout to be made; nil when none is needed, or the newest is on its way to the target.
func (f Facts) requiredRollout(latest Rollout) *Rollout {
	isActive := latest.Name != "" && !latest.Phase.Settled()
	if isActive && latest.To == f.Target {
		return nil
	}
	outdated := f.outdatedRevisions(f.Target)
	if f.Stable == f.Target && len(outdated) == 0 && !isActive {
		return nil
	}
	from := f.Stable
	if from == f.Target {
		from = mostCommon(outdated)
		if isActive {
			from = latest.To
		}
	}
	number := max(f.Generation, 1)
	if latest.Name != "" {
		number = max(number, Number(latest.Name)+1)
	}
	return &Rollout{Name: rolloutName(f.Target.Revision, number), From: from, To: f.Target}
}

// outdated counts the Machines that neither have the target nor are on their way to it, by what they have.
func (f Facts) outdatedRevisions(target v1alpha1.RenderedRevision) map[v1alpha1.RenderedRevision]int {
	counts := map[v1alpha1.RenderedRevision]int{}
	for _, m := range f.Machines {
		if has := m.revision(); !m.Deleting && !has.IsZero() && has != target {
			counts[has]++
		}
	}
	return counts
}

// commonest of them, the first by name among equals; zero when there is none.
func mostCommon(counts map[v1alpha1.RenderedRevision]int) v1alpha1.RenderedRevision {
	all := slices.SortedFunc(maps.Keys(counts), func(a, b v1alpha1.RenderedRevision) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Rendering, b.Rendering))
	})
	if len(all) == 0 {
		return v1alpha1.RenderedRevision{}
	}
	return all[0]
}
