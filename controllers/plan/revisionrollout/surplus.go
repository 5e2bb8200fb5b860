package revisionrollout

import (
	"cmp"
	"slices"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

const (
	// keptRevisions beside those in use: what a person may want to go back to.
	maxUnusedRevisions = 10
	// keptRollouts that are settled: the history that a person may want to read.
	maxSettledRollouts = 10
)

// Revision is what counts of a NodeTypeRevision.
type Revision struct {
	// Name of the revision.
	Name string
	// Created at.
	Created time.Time
}

// surplusRevisions are those that nothing uses, beyond the newest ten of them.
func (f Facts) surplusRevisions(d Decision) []string {
	used := f.usedRevisions(d)
	idle := slices.DeleteFunc(slices.Clone(f.Revisions), func(r Revision) bool { return used[r.Name] })
	slices.SortFunc(idle, func(a, b Revision) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name)) })
	var surplus []string
	for _, r := range idle[:max(0, len(idle)-maxUnusedRevisions)] {
		surplus = append(surplus, r.Name)
	}
	return surplus
}

// used revisions: some Machine, the status as it is or will be, or a Rollout that is not settled names them.
func (f Facts) usedRevisions(d Decision) map[string]bool {
	used := map[string]bool{}
	for _, named := range []v1alpha1.RenderedRevision{f.Stable, f.Target, f.Desired, d.Stable, d.Target} {
		used[named.Revision] = true
	}
	for _, m := range f.Machines {
		used[m.Desired.Revision], used[m.Installed.Revision] = true, true
	}
	for _, r := range f.Rollouts {
		if !r.Phase.Settled() {
			used[r.From.Revision], used[r.To.Revision] = true, true
		}
	}
	if d.Rollout != nil {
		used[d.Rollout.From.Revision], used[d.Rollout.To.Revision] = true, true
	}
	return used
}

// surplusRollouts are the settled ones beyond the newest ten of them.
func (f Facts) surplusRollouts() []string {
	settled := slices.DeleteFunc(slices.Clone(f.Rollouts), func(r Rollout) bool { return !r.Phase.Settled() })
	slices.SortFunc(settled, func(a, b Rollout) int {
		return cmp.Or(cmp.Compare(Number(a.Name), Number(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	var surplus []string
	for _, r := range settled[:max(0, len(settled)-maxSettledRollouts)] {
		surplus = append(surplus, r.Name)
	}
	return surplus
}
