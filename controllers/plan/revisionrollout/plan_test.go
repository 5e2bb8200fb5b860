package revisionrollout

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// of reads revision or revision/rendering.
func of(name string) v1alpha1.RenderedRevision {
	revision, rendering, _ := strings.Cut(name, "/")
	return v1alpha1.RenderedRevision{Revision: revision, Rendering: rendering}
}

// text is what of reads.
func text(r v1alpha1.RenderedRevision) string {
	return strings.TrimSuffix(r.Revision+"/"+r.Rendering, "/")
}

func machines(revisions ...string) []Machine {
	var all []Machine
	for _, r := range revisions {
		all = append(all, Machine{Installed: of(r)})
	}
	return all
}

// moved Machines were told to take a revision.
func moved(to string, installed ...string) []Machine {
	all := machines(installed...)
	for i := range all {
		all[i].Desired = of(to)
	}
	return all
}

func revisions(names ...string) []Revision {
	var all []Revision
	for i, name := range names {
		all = append(all, Revision{Name: name, Created: time.Unix(int64(i), 0)})
	}
	return all
}

var sentences = []struct {
	name           string
	facts          Facts
	stable, target string
	rollout        string
}{
	{"the first revision is stable at once", Facts{Desired: of("a")}, "a", "a", ""},
	{"while no Machine has a revision the target is stable at once", Facts{Stable: of("a"), Target: of("a"), Desired: of("b"), Machines: machines("", "")}, "b", "b", ""},
	{"a Machine that is on its way out holds the stable revision no longer",
		Facts{Stable: of("a"), Target: of("a"), Desired: of("b"), Machines: []Machine{{Installed: of("a"), Deleting: true}}}, "b", "b", ""},
	{"but an active Rollout still does: its only Machine, the canary, was deleted before it proved anything",
		Facts{Generation: 4, Stable: of("a"), Target: of("b"), Desired: of("b"), Machines: machines(""), Rollouts: []Rollout{{"b-4", of("a"), of("b"), v1alpha1.RolloutCanary}}}, "a", "b", ""},
	{"also when it has stopped, and no Machine is left",
		Facts{Generation: 4, Stable: of("a"), Target: of("b"), Desired: of("b"), Rollouts: []Rollout{{"b-4", of("a"), of("b"), v1alpha1.RolloutStopped}}}, "a", "b", ""},
	{"then another revision follows by a Rollout too",
		Facts{Generation: 5, Stable: of("a"), Target: of("c"), Desired: of("c"), Rollouts: []Rollout{{"b-4", of("a"), of("b"), v1alpha1.RolloutStopped}}}, "a", "c", "c-5 from a"},
	{"and is stable when that one is Done",
		Facts{Generation: 5, Stable: of("a"), Target: of("c"), Desired: of("c"), Rollouts: []Rollout{{"c-5", of("a"), of("c"), v1alpha1.RolloutDone}}}, "c", "c", ""},
	{"the target is named before a Rollout is made", Facts{Stable: of("a"), Target: of("a"), Desired: of("b"), Machines: machines("a")}, "a", "b", ""},
	{"then the Rollout is made", Facts{Generation: 4, Stable: of("a"), Target: of("b"), Desired: of("b"), Machines: machines("a")}, "a", "b", "b-4 from a"},
	{"a Rollout that is on its way is not made again",
		Facts{Generation: 4, Stable: of("a"), Target: of("b"), Desired: of("b"), Machines: machines("a"), Rollouts: []Rollout{{"b-4", of("a"), of("b"), v1alpha1.RolloutStopped}}}, "a", "b", ""},
	{"nor while nobody has looked at it",
		Facts{Generation: 4, Stable: of("a"), Target: of("b"), Desired: of("b"), Machines: machines("a"), Rollouts: []Rollout{{"b-4", of("a"), of("b"), ""}}}, "a", "b", ""},
	{"a Rollout that is done makes its target stable",
		Facts{Generation: 4, Stable: of("a"), Target: of("b"), Desired: of("b"), Machines: moved("b", "b"), Rollouts: []Rollout{{"b-4", of("a"), of("b"), v1alpha1.RolloutDone}}}, "b", "b", ""},
	{"also while an obstacle holds",
		Facts{Generation: 5, Stable: of("a"), Target: of("b"), Machines: moved("b", "b"), Rollouts: []Rollout{{"b-4", of("a"), of("b"), v1alpha1.RolloutDone}}}, "b", "b", ""},
	{"but not one that was done long ago, before the Machines went back",
		Facts{Generation: 9, Stable: of("a"), Target: of("b"), Desired: of("b"), Machines: machines("a"), Rollouts: []Rollout{{"b-4", of("a"), of("b"), v1alpha1.RolloutDone}}}, "a", "b", "b-9 from a"},
	{"a Machine that claimed the old revision while the Rollout ended is fetched by another one",
		Facts{Generation: 4, Stable: of("a"), Target: of("b"), Desired: of("b"), Machines: append(moved("b", "b"), machines("a")...),
			Rollouts: []Rollout{{"b-4", of("a"), of("b"), v1alpha1.RolloutDone}}}, "a", "b", "b-5 from a"},
	{"setting the NodeType back undoes a Rollout",
		Facts{Generation: 5, Stable: of("a"), Target: of("a"), Desired: of("a"), Machines: append(moved("b", "b"), machines("a", "a")...),
			Rollouts: []Rollout{{"b-4", of("a"), of("b"), v1alpha1.RolloutStopped}}}, "a", "a", "a-5 from b"},
	{"even when it had moved nothing yet",
		Facts{Generation: 5, Stable: of("a"), Target: of("a"), Desired: of("a"), Machines: machines("a"), Rollouts: []Rollout{{"b-4", of("a"), of("b"), v1alpha1.RolloutPending}}}, "a", "a", "a-5 from b"},
	{"a mend while a Rollout is stopped moves on from the stable revision",
		Facts{Generation: 5, Stable: of("a"), Target: of("c"), Desired: of("c"), Machines: append(moved("b", "b"), machines("a")...),
			Rollouts: []Rollout{{"b-4", of("a"), of("b"), v1alpha1.RolloutStopped}}}, "a", "c", "c-5 from a"},
	{"an obstacle makes no Rollout and leaves the target",
		Facts{Generation: 6, Stable: of("a"), Target: of("b"), Machines: machines("a")}, "a", "b", ""},
	{"when all is as asked for nothing is made",
		Facts{Generation: 6, Stable: of("b"), Target: of("b"), Desired: of("b"), Machines: moved("b", "b", "a"), Rollouts: []Rollout{{"b-4", of("a"), of("b"), v1alpha1.RolloutDone}}}, "b", "b", ""},
	{"the number grows though the generation does not: the image was made anew",
		Facts{Generation: 4, Stable: of("a"), Target: of("c"), Desired: of("c"), Machines: machines("a"), Rollouts: []Rollout{{"b-4", of("a"), of("b"), v1alpha1.RolloutRolling}}}, "a", "c", "c-5 from a"},
	{"a lost status is recovered from the Rollout on its way",
		Facts{Generation: 4, Target: of("b"), Desired: of("b"), Machines: moved("b", "b", "b", "b"), Revisions: revisions("a", "b"),
			Rollouts: []Rollout{{"b-4", of("a"), of("b"), v1alpha1.RolloutRolling}}}, "a", "b", ""},
	{"or from what most Machines have",
		Facts{Generation: 4, Desired: of("c"), Machines: machines("a", "b", "b", "gone", "gone", "gone"), Revisions: revisions("a", "b", "c")}, "b", "c", ""},
	{"or is the target when nothing else is known",
		Facts{Generation: 4, Desired: of("c"), Machines: machines("gone"), Revisions: revisions("c")}, "c", "c", ""},
	{"a NodeType that was made again keeps the rendering that its Machines have, though another version makes another one",
		Facts{Generation: 1, Desired: of("a/2"), Machines: machines("a/1", "a/1")}, "a/1", "a/2", ""},
	{"a wish that names no rendering is not stable when the status was lost",
		Facts{Generation: 1, Desired: of("a/2"), Machines: []Machine{{Desired: of("a")}, {Desired: of("a")}, {Installed: of("a/1")}}}, "a/1", "a/2", ""},
	{"another rendering of the stable revision is named first",
		Facts{Generation: 4, Stable: of("a/1"), Target: of("a/1"), Desired: of("a/2"), Machines: machines("a/1")}, "a/1", "a/2", ""},
	{"then it reaches the Machines by a Rollout",
		Facts{Generation: 4, Stable: of("a/1"), Target: of("a/2"), Desired: of("a/2"), Machines: machines("a/1")}, "a/1", "a/2", "a-4 from a/1"},
	{"a rendering is stable when its Rollout is done",
		Facts{Generation: 4, Stable: of("a/1"), Target: of("a/2"), Desired: of("a/2"), Machines: moved("a/2", "a/2"),
			Rollouts: []Rollout{{"a-4", of("a/1"), of("a/2"), v1alpha1.RolloutDone}}}, "a/2", "a/2", ""},
	{"setting the rendering back is a Rollout back",
		Facts{Generation: 5, Stable: of("a/1"), Target: of("a/1"), Desired: of("a/1"), Machines: append(moved("a/2", "a/2"), machines("a/1")...),
			Rollouts: []Rollout{{"a-4", of("a/1"), of("a/2"), v1alpha1.RolloutStopped}}}, "a/1", "a/1", "a-5 from a/2"},
	{"the newest Rollout is the one with the highest number, in any order",
		Facts{Generation: 4, Stable: of("a"), Target: of("b"), Desired: of("b"), Machines: machines("a"),
			Rollouts: []Rollout{{"b-10", of("a"), of("b"), v1alpha1.RolloutRolling}, {"a-9", of("b"), of("a"), v1alpha1.RolloutDone}}}, "a", "b", ""},
	{"without a target the stable revision stays", Facts{Stable: of("a")}, "a", "", ""},
	{"a Rollout to another revision proves nothing about the target, although every Machine has it",
		Facts{Generation: 4, Stable: of("a"), Target: of("c"), Desired: of("c"), Machines: machines("c", "c"), Rollouts: []Rollout{{"b-4", of("a"), of("b"), v1alpha1.RolloutDone}}}, "a", "c", "c-5 from a"},
	{"without any Rollout nothing is created when every Machine has the target",
		Facts{Generation: 4, Stable: of("b"), Target: of("b"), Desired: of("b"), Machines: machines("b")}, "b", "b", ""},
	{"a Machine without a revision is not outdated",
		Facts{Generation: 4, Stable: of("b"), Target: of("b"), Desired: of("b"), Machines: machines("b", "")}, "b", "b", ""},
	{"Machines that have another revision than the stable target are moved back from the one that most of them have",
		Facts{Generation: 4, Stable: of("a"), Target: of("a"), Desired: of("a"), Machines: machines("b", "b", "c"), Rollouts: []Rollout{{"d-4", of("a"), of("d"), v1alpha1.RolloutDone}}}, "a", "a", "a-5 from b"},
	{"the first Rollout has the number 1 at least",
		Facts{Stable: of("a"), Target: of("b"), Desired: of("b"), Machines: machines("a")}, "a", "b", "b-1 from a"},
	{"among equally many Machines the first revision by name counts",
		Facts{Generation: 1, Stable: of("z"), Target: of("z"), Desired: of("z"), Machines: machines("h", "g", "f", "e", "d", "c", "b", "a")}, "z", "z", "z-1 from a"},
	{"a lost status is not recovered from a Rollout that is settled",
		Facts{Generation: 4, Desired: of("b"), Machines: machines("a"), Revisions: revisions("a", "b", "c"), Rollouts: []Rollout{{"b-4", of("c"), of("b"), v1alpha1.RolloutSuperseded}}}, "a", "b", ""},
	{"nor from a Rollout whose source no longer exists",
		Facts{Generation: 4, Desired: of("b"), Machines: machines("a", "b"), Revisions: revisions("a", "b"), Rollouts: []Rollout{{"b-4", of("gone"), of("b"), v1alpha1.RolloutRolling}}}, "a", "b", ""},
	{"a desired revision with a rendering may be stable when the status was lost",
		Facts{Generation: 4, Desired: of("c/2"), Machines: []Machine{{Desired: of("a/1")}}, Revisions: revisions("a", "c")}, "a/1", "c/2", ""},
	{"and so may an installed revision without a rendering",
		Facts{Generation: 4, Desired: of("c/2"), Machines: machines("a"), Revisions: revisions("a", "c")}, "a", "c/2", ""},
	{"and a desired revision without a rendering, if the target has none either",
		Facts{Generation: 4, Desired: of("c"), Machines: []Machine{{Desired: of("a")}}, Revisions: revisions("a", "c")}, "a", "c", ""},
}

func TestOneRevisionFollowsAnother(t *testing.T) {
	for _, s := range sentences {
		d := Plan(s.facts)
		var made string
		if d.Rollout != nil {
			made = d.Rollout.Name + " from " + text(d.Rollout.From)
			if d.Rollout.To != d.Target {
				t.Errorf("%s: the Rollout goes to %s, not to the target %s", s.name, d.Rollout.To, d.Target)
			}
		}
		if d.Stable != of(s.stable) || d.Target != of(s.target) || made != s.rollout {
			t.Errorf("%s: stable %q, target %q, Rollout %q; want %q, %q, %q", s.name, d.Stable, d.Target, made, s.stable, s.target, s.rollout)
		}
	}
}

func TestTenRevisionsAreKeptBesideThoseInUse(t *testing.T) {
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("r%02d", i))
	}
	f := Facts{
		Stable: of("r00"), Target: of("r19"), Desired: of("r19"), Revisions: revisions(names...),
		Machines: []Machine{{Installed: of("r01")}, {Installed: of("r00"), Desired: of("r02")}, {Installed: of("r03"), Deleting: true}},
		Rollouts: []Rollout{{"r19-7", of("r04"), of("r19"), v1alpha1.RolloutRolling}, {"r05-1", of("r06"), of("r05"), v1alpha1.RolloutDone}},
	}
	slices.Reverse(f.Revisions)
	// In use: r00 to r04 and r19. Of the fourteen others the oldest four go.
	if got, want := Plan(f).DeleteRevisions, []string{"r05", "r06", "r07", "r08"}; !reflect.DeepEqual(got, want) {
		t.Errorf("dropped %v, want %v", got, want)
	}
	f.Revisions = f.Revisions[:10]
	if got := Plan(f).DeleteRevisions; got != nil {
		t.Errorf("dropped %v of ten", got)
	}
}

func TestARevisionThatIsNamedAnywhereIsKept(t *testing.T) {
	for about, f := range map[string]Facts{
		"stable":                  {Stable: of("old"), Target: of("r0"), Desired: of("r0"), Machines: machines("r0")},
		"target":                  {Stable: of("r0"), Target: of("old"), Machines: machines("r0")},
		"desired by the NodeType": {Stable: of("r0"), Target: of("r0"), Desired: of("old"), Machines: machines("r0")},
		"desired by a Machine":    {Machines: []Machine{{Desired: of("old"), Installed: of("r0")}}},
		"installed":               {Machines: []Machine{{Desired: of("r0"), Installed: of("old")}}},
		"the source of a Rollout": {Rollouts: []Rollout{{"r0-1", of("old"), of("r0"), v1alpha1.RolloutPaused}}},
		"the target of a Rollout": {Rollouts: []Rollout{{"old-1", of("r0"), of("old"), v1alpha1.RolloutPaused}}},
		"none of these":           {Stable: of("r0"), Target: of("r0"), Desired: of("r0"), Machines: machines("r0")},
	} {
		f.Revisions = revisions("old", "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10")
		// The revision r0 is used by each of them, so ten others are unused.
		isDeleted := slices.Contains(Plan(f).DeleteRevisions, "old")
		if isDeleted != (about == "none of these") {
			t.Errorf("%s: deleted %v", about, Plan(f).DeleteRevisions)
		}
	}
}

func TestTenSettledRolloutsAreKept(t *testing.T) {
	var f Facts
	for number := int64(13); number > 0; number-- {
		f.Rollouts = append(f.Rollouts, Rollout{Name: rolloutName("r", number), Phase: v1alpha1.RolloutDone})
	}
	f.Rollouts[12].Phase = v1alpha1.RolloutPaused
	if got, want := Plan(f).DeleteRollouts, []string{"r-2", "r-3"}; !reflect.DeepEqual(got, want) {
		t.Errorf("dropped %v, want %v: the paused r-1 is not settled", got, want)
	}
}

func TestARolloutsNameFitsALabelAndTellsItsNumber(t *testing.T) {
	long := strings.Repeat("a", 62)
	names := []string{"h100-73944f7a7b", long + "a"}
	for at := 40; at < 60; at++ {
		names = append(names, long[:at]+"."+long[at+1:], long[:at]+"-"+long[at+1:])
	}
	for _, revision := range names {
		for _, number := range []int64{1, 12, 1 << 40} {
			name := rolloutName(revision, number)
			if problems := append(validation.IsValidLabelValue(name), validation.IsDNS1123Subdomain(name)...); problems != nil || Number(name) != number {
				t.Errorf("%s, number %d: %v", name, Number(name), problems)
			}
		}
	}
	if rolloutName(long+"1", 7) == rolloutName(long+"2", 7) {
		t.Error("two revisions share a Rollout's name")
	}
	if fits := strings.Repeat("a", 61); rolloutName(fits, 7) != fits+"-7" {
		t.Errorf("a name of 63 bytes is cut: %s", rolloutName(fits, 7))
	}
	if cut := rolloutName(long, 7); len(cut) != 63 || !strings.HasPrefix(cut, strings.Repeat("a", 52)+"-") || !strings.HasSuffix(cut, "-7") {
		t.Errorf("%s has %d bytes: expected 52 of the revision, 8 of its digest, and the number", cut, len(cut))
	}
	if n := Number("a-99999999999999999999"); n != 0 {
		t.Errorf("a number that is too large counts as %d, want 0", n)
	}
	if Number("by-hand") != 0 || Number("") != 0 || !IsNewer("a-10", "b-9") || IsNewer("a-9", "b-9") || IsNewer("x-1", "x-1") {
		t.Error("names are ordered wrongly")
	}
}
