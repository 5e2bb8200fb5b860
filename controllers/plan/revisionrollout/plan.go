package revisionrollout

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Facts are everything that a Decision depends on.
type Facts struct {
	// Generation of the NodeType.
	Generation int64
	// Stable and Target are the revisions in the status of the NodeType.
	Stable, Target v1alpha1.RenderedRevision
	// Desired is the revision of the NodeType's spec; zero while an error keeps it from having one.
	Desired v1alpha1.RenderedRevision
	// Rollouts of the NodeType, in any order.
	Rollouts []Rollout
	// Machines of the NodeType.
	Machines []Machine
	// Revisions of the NodeType, in any order.
	Revisions []Revision
}

// Rollout is what the decision needs to know of a Rollout.
type Rollout struct {
	// Name of the Rollout; see Number.
	Name string
	// From is the revision that it moves Machines from, To the one that it moves them to.
	From, To v1alpha1.RenderedRevision
	// Phase of the Rollout; empty until its controller has set one.
	Phase v1alpha1.RolloutPhase
}

// isActive reports whether the Rollout exists and is not settled.
func (r Rollout) isActive() bool { return r.Name != "" && !r.Phase.IsFinal() }

// Machine is what the decision needs to know of a Machine.
type Machine struct {
	// Desired is the revision of its spec; zero: the stable revision at the time when it gets a host.
	Desired v1alpha1.RenderedRevision
	// Installed is the revision of its status; zero before it has a host.
	Installed v1alpha1.RenderedRevision
	// Deleting is true if it has a deletion timestamp. No Rollout moves it, but it uses its revision until it is gone.
	Deleting bool
}

// revision returns the revision that the Machine has or is moved to; zero: none.
func (m Machine) revision() v1alpha1.RenderedRevision { return cmp.Or(m.Desired, m.Installed) }

// Revision is what the decision needs to know of a NodeTypeRevision.
type Revision struct {
	// Name of the revision.
	Name string
	// Created is its creation timestamp.
	Created time.Time
}

// Decision says which revisions the NodeType's status names, and which objects are created or deleted.
type Decision struct {
	// Stable and Target are for the status of the NodeType.
	Stable, Target v1alpha1.RenderedRevision
	// Rollout is created; nil: none. It is set only when the status as read already names Stable and Target, because a
	// Rollout to another revision than the target of its NodeType is superseded at once.
	Rollout *Rollout
	// DeleteRevisions and DeleteRollouts are the names of the objects to delete, the oldest first.
	DeleteRevisions, DeleteRollouts []string
}

// Plan decides the stable and the target revision, the Rollout to create, and the objects to delete. While Desired is zero the
// target stays and no Rollout is created; a Rollout that exists continues.
func Plan(f Facts) Decision {
	newest := newestRollout(f.Rollouts)
	d := Decision{Target: cmp.Or(f.Desired, f.Target)}
	d.Stable = f.stableRevision(d.Target, newest)
	if !f.Desired.IsZero() && d.Target == f.Target && d.Stable == f.Stable {
		d.Rollout = f.requiredRollout(newest)
	}
	d.DeleteRevisions, d.DeleteRollouts = f.surplusRevisions(), f.surplusRollouts()
	return d
}

// newestRollout returns the newest of the Rollouts; the zero value if there is none.
func newestRollout(rollouts []Rollout) Rollout {
	var newest Rollout
	for _, r := range rollouts {
		if IsNewer(r.Name, newest.Name) {
			newest = r
		}
	}
	return newest
}

// stableRevision returns the revision that new Machines get from now on. While a Rollout is active, only that Rollout decides whether its target is
// proven, also where no Machine has a revision any more.
//
// Without the last: v2 does not boot on a, the only Machine, which is the canary. A person deletes a, and its pool makes b, which has no host yet. v2 becomes
// the stable revision at once, and b is installed with it, while v2-1 waits for a canary that it no longer needs.
func (f Facts) stableRevision(target v1alpha1.RenderedRevision, newest Rollout) v1alpha1.RenderedRevision {
	outdated := f.outdatedRevisions(target)
	hasRevision := slices.ContainsFunc(f.Machines, func(m Machine) bool { return !m.Deleting && !m.revision().IsZero() })
	switch {
	case target.IsZero():
		return f.Stable
	case !hasRevision && !newest.isActive():
		return target
	case newest.To == target && newest.Phase == v1alpha1.RolloutDone && len(outdated) == 0:
		return target
	case f.Stable.IsZero():
		return f.recoveredStable(target, newest, outdated)
	}
	return f.Stable
}

// recoveredStable returns the stable revision of a NodeType whose status was lost, for instance because it was restored from a
// backup, while its Machines run: the source of the Rollout that is active, else the revision that most Machines have. If it
// were the target, new Machines would get a revision that no canary has proven, and the Rollout that moves the others would
// have no canary either, like every Rollout to the stable revision.
func (f Facts) recoveredStable(target v1alpha1.RenderedRevision, newest Rollout, outdated map[v1alpha1.RenderedRevision]int) v1alpha1.RenderedRevision {
	exists := func(has v1alpha1.RenderedRevision) bool {
		// The target's revision may be missing in the list because it was created a moment ago.
		return has.Revision == target.Revision || slices.ContainsFunc(f.Revisions, func(r Revision) bool { return r.Name == has.Revision })
	}
	// A desired revision may leave the rendering to the NodeType. Such a value was never stable, unless it is installed.
	isUnresolved := func(has v1alpha1.RenderedRevision) bool {
		return has.Rendering == "" && !slices.ContainsFunc(f.Machines, func(m Machine) bool { return m.Installed == has })
	}
	if newest.To == target && newest.isActive() && exists(newest.From) {
		return newest.From
	}
	maps.DeleteFunc(outdated, func(has v1alpha1.RenderedRevision, _ int) bool {
		return !exists(has) || target.Rendering != "" && isUnresolved(has)
	})
	return cmp.Or(mostCommon(outdated), target)
}

// requiredRollout returns the Rollout to create. It is nil if the newest Rollout is active and has the target, or if no Rollout is
// active, the target is stable and no Machine is outdated.
func (f Facts) requiredRollout(newest Rollout) *Rollout {
	isActive := newest.isActive()
	if isActive && newest.To == f.Target {
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
			from = newest.To
		}
	}
	number := max(f.Generation, Number(newest.Name)+1)
	return &Rollout{Name: rolloutName(f.Target.Revision, number), From: from, To: f.Target}
}

// outdatedRevisions counts the Machines that neither have the target nor are moved to it, by the revision that they have.
func (f Facts) outdatedRevisions(target v1alpha1.RenderedRevision) map[v1alpha1.RenderedRevision]int {
	counts := map[v1alpha1.RenderedRevision]int{}
	for _, m := range f.Machines {
		if has := m.revision(); !m.Deleting && !has.IsZero() && has != target {
			counts[has]++
		}
	}
	return counts
}

// mostCommon returns the revision with the highest count, among equals the first by name; zero if there is none.
func mostCommon(counts map[v1alpha1.RenderedRevision]int) v1alpha1.RenderedRevision {
	all := slices.SortedFunc(maps.Keys(counts), func(a, b v1alpha1.RenderedRevision) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Rendering, b.Rendering))
	})
	if len(all) == 0 {
		return v1alpha1.RenderedRevision{}
	}
	return all[0]
}

const (
	// maxUnusedRevisions is how many unused revisions are kept, so that a person can go back to one.
	maxUnusedRevisions = 10
	// maxSettledRollouts is how many settled Rollouts are kept, as the history of the NodeType.
	maxSettledRollouts = 10
)

// surplusRevisions returns the names of the unused revisions except the newest ten.
func (f Facts) surplusRevisions() []string {
	used := f.usedRevisions()
	idle := slices.DeleteFunc(slices.Clone(f.Revisions), func(r Revision) bool { return used[r.Name] })
	slices.SortFunc(idle, func(a, b Revision) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name)) })
	var surplus []string
	for _, r := range idle[:max(0, len(idle)-maxUnusedRevisions)] {
		surplus = append(surplus, r.Name)
	}
	return surplus
}

// usedRevisions returns the revisions that a Machine, the NodeType, or a Rollout that is not settled names. The decision names no
// other revision than these.
func (f Facts) usedRevisions() map[string]bool {
	used := map[string]bool{}
	for _, named := range []v1alpha1.RenderedRevision{f.Stable, f.Target, f.Desired} {
		used[named.Revision] = true
	}
	for _, m := range f.Machines {
		used[m.Desired.Revision], used[m.Installed.Revision] = true, true
	}
	for _, r := range f.Rollouts {
		if !r.Phase.IsFinal() {
			used[r.From.Revision], used[r.To.Revision] = true, true
		}
	}
	return used
}

// surplusRollouts returns the names of the settled Rollouts except the newest ten.
func (f Facts) surplusRollouts() []string {
	settled := slices.DeleteFunc(slices.Clone(f.Rollouts), func(r Rollout) bool { return !r.Phase.IsFinal() })
	slices.SortFunc(settled, func(a, b Rollout) int {
		return cmp.Or(cmp.Compare(Number(a.Name), Number(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	var surplus []string
	for _, r := range settled[:max(0, len(settled)-maxSettledRollouts)] {
		surplus = append(surplus, r.Name)
	}
	return surplus
}

const (
	// maxName is the maximum length of a label's value: a Machine has the name of its Rollout in a label.
	maxName = 63
	// nameHashDigits is the number of hex digits that distinguish revisions whose names are cut.
	nameHashDigits = 8
)

// rolloutName returns the name of a Rollout: the revision's name and a number that grows with every Rollout of the NodeType, at
// most 63 bytes.
func rolloutName(revision string, number int64) string {
	end := "-" + strconv.FormatInt(number, 10)
	if room := maxName - len(end); len(revision) > room {
		sum := sha256.Sum256([]byte(revision))
		revision = strings.TrimRight(revision[:room-nameHashDigits-1], "-.") + "-" + hex.EncodeToString(sum[:])[:nameHashDigits]
	}
	return revision + end
}

// Number returns the number at the end of the Rollout's name; 0 if there is none, because a person chose the name.
func Number(rollout string) int64 {
	number, err := strconv.ParseInt(rollout[strings.LastIndexByte(rollout, '-')+1:], 10, 64)
	if err != nil {
		return 0
	}
	return number
}

// IsNewer reports, by their names, whether the first of two Rollouts of one NodeType was created after the second.
func IsNewer(first, second string) bool {
	return cmp.Or(cmp.Compare(Number(first), Number(second)), cmp.Compare(first, second)) > 0
}
