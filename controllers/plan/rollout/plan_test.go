package rollout

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
)

// rendered parses revision or revision/rendering.
func rendered(name string) v1alpha1.RenderedRevision {
	revision, rendering, _ := strings.Cut(name, "/")
	return v1alpha1.RenderedRevision{Revision: revision, Rendering: rendering}
}

// serving is a Machine that is Ready with that revision.
func serving(name, revision string) Machine {
	return Machine{
		Namespace: "research", Name: name, Installed: rendered(revision), Claimed: true, Phase: v1alpha1.MachineReady,
		Ready: true, ReadySince: noon.Add(-time.Hour),
	}
}

func factsOf(status v1alpha1.RolloutStatus, machines ...Machine) Facts {
	return Facts{Clock: watched.Clock{Now: noon}, Policy: NewPolicy(nil), Machines: machines, Rollout: Rollout{Name: "new-1", From: rendered("old"), To: rendered("new"), Status: status}}
}

func message(d Decision) string {
	return meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionReady).Message
}

func TestWithoutAnythingToMoveItIsDoneAtOnce(t *testing.T) {
	unclaimed := Machine{Namespace: "research", Name: "waits", Phase: v1alpha1.MachinePending}
	leaving := serving("leaves", "old")
	leaving.Deleting = true
	for about, machines := range map[string][]Machine{
		"no Machine": nil, "all have it": {serving("a", "new")}, "without a host the new revision follows by itself": {unclaimed}, "it is being deleted": {leaving},
	} {
		d := Plan(factsOf(v1alpha1.RolloutStatus{}, machines...))
		if d.Status.Phase != v1alpha1.RolloutDone || !d.Done || len(d.Start) > 0 || d.Status.Targets.Total != 0 {
			t.Errorf("%s: %+v", about, d)
		}
	}
}

func TestAClaimedMachineThatIsNotInstalledYetIsATarget(t *testing.T) {
	m := Machine{Namespace: "research", Name: "new", Phase: v1alpha1.MachineClaiming, Claimed: true}
	f := factsOf(v1alpha1.RolloutStatus{}, m)
	if d := Plan(f); d.Status.Targets.Total != 1 || d.Status.Phase != v1alpha1.RolloutCanary {
		t.Errorf("it gets the stable revision, and is no target: %+v", d.Status)
	}
	f.Rollout.ToStable = true
	if d := Plan(f); d.Status.Phase != v1alpha1.RolloutDone {
		t.Errorf("it gets the stable revision anyway, and is a target of the way back: %+v", d.Status)
	}
}

func TestAWayBackFirstMarksWhatWasNamedAndNotStarted(t *testing.T) {
	f := factsOf(v1alpha1.RolloutStatus{}, serving("a", "new"), serving("b", "new"))
	f.Rollout.ToStable = true
	f.Previous = &PreviousRollout{Name: "bad-1", InProgress: []string{"research/a"}}
	if d := Plan(f); d.Status.Phase != v1alpha1.RolloutPending || len(d.Label) > 0 || !strings.Contains(message(d), "waits for Rollout bad-1") {
		t.Fatalf("it does not wait: %+v", d)
	}
	f.Previous.Settled = true
	d := Plan(f)
	if d.Status.Phase != v1alpha1.RolloutPending || len(d.Label) != 1 || d.Label[0].Name != "a" || len(d.Start) > 0 {
		t.Fatalf("it does not mark: %+v", d)
	}
	f.Machines[0].Labeled = true
	if d := Plan(f); d.Status.Phase != v1alpha1.RolloutDone {
		t.Errorf("it is %s: %s", d.Status.Phase, message(d))
	}
}

func TestTheSameFactsInAnotherOrderGiveTheSameDecision(t *testing.T) {
	f := factsOf(v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutRolling, BakedSince: microTime(noon)}, serving("c", "old"), serving("a", "old"), serving("b", "old"))
	first := Plan(f)
	slices.Reverse(f.Machines)
	if second := Plan(f); !reflect.DeepEqual(first, second) {
		t.Errorf("%+v\n%+v", first, second)
	}
	if want := []string{"research/a"}; !slices.Equal(first.Status.InProgress, want) {
		t.Errorf("in progress %v, want %v", first.Status.InProgress, want)
	}
}

func TestWhatTheTenantKeepsIsSaid(t *testing.T) {
	m := serving("a", "old")
	m.BlockedBy = "TenantCluster research/research is not Ready"
	d := Plan(factsOf(v1alpha1.RolloutStatus{}, m))
	if text := message(d); len(d.Start) > 0 || len(d.Status.InProgress) > 0 || !strings.Contains(text, m.BlockedBy) {
		t.Errorf("%s: %+v", text, d)
	}
}

func TestTheHistoryKeepsTheLastEntries(t *testing.T) {
	f := factsOf(v1alpha1.RolloutStatus{}, serving("a", "old"))
	for range 60 {
		f.Rollout.Paused = !f.Rollout.Paused
		f.Now = f.Now.Add(time.Minute)
		f.Rollout.Status = Plan(f).Status
	}
	h := f.Rollout.Status.History
	if len(h) != maxHistory || !h[len(h)-1].At.Time.Equal(f.Now) {
		t.Errorf("%d entries, the last of %s, want %d until %s", len(h), h[len(h)-1].At, maxHistory, f.Now)
	}
}

func TestAStoppedRolloutGoesOnWhenAPersonSaysSo(t *testing.T) {
	failed := serving("a", "new")
	failed.Labeled, failed.Desired, failed.Ready, failed.Phase, failed.FailureReason = true, rendered("new"), false, v1alpha1.MachineValidating, v1alpha1.ReasonChecksFailed
	f := factsOf(v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutCanary, Canary: []string{"research/a"}, InProgress: []string{"research/a"}}, failed, serving("b", "old"))
	for _, want := range []struct {
		paused bool
		phase  v1alpha1.RolloutPhase
		stop   bool
	}{{false, v1alpha1.RolloutStopped, true}, {false, v1alpha1.RolloutStopped, true}, {true, v1alpha1.RolloutPaused, true}, {false, v1alpha1.RolloutCanary, false}} {
		f.Rollout.Paused = want.paused
		f.Rollout.Status = Plan(f).Status
		if s := f.Rollout.Status; s.Phase != want.phase || (s.StoppedBy != "") != want.stop {
			t.Fatalf("paused=%t: %s, stopped by %q, want %s", want.paused, s.Phase, s.StoppedBy, want.phase)
		}
	}
	if s := f.Rollout.Status; !slices.Equal(s.Forgiven, []string{"research/a"}) || !slices.Equal(s.Canary, []string{"research/b"}) {
		t.Errorf("forgiven %v, canary %v: another Machine must prove the revision", s.Forgiven, s.Canary)
	}
}

// rollingFacts is a rollout whose canary has baked and that has no limit but maxInProgress: so many Machines are in progress,
// and one more is outdated.
func rollingFacts(inProgress int, outdated Machine) Facts {
	f := factsOf(v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutRolling, BakedSince: microTime(noon)})
	f.Policy.MaxUnavailable = intstr.FromString("100%")
	for i := range inProgress {
		m := serving(fmt.Sprintf("m-%04d", i), "old")
		m.Labeled, m.Desired, m.Ready, m.Phase = true, rendered("new"), false, v1alpha1.MachineDraining
		f.Machines = append(f.Machines, m)
		f.Rollout.Status.InProgress = append(f.Rollout.Status.InProgress, m.key().String())
	}
	f.Machines = append(f.Machines, outdated)
	return f
}

func TestNoMoreMachinesAreInProgressThanTheStatusHolds(t *testing.T) {
	available, unavailable := serving("z", "old"), serving("z", "old")
	unavailable.Ready, unavailable.Phase = false, v1alpha1.MachineProvisioning
	for _, c := range []struct {
		about      string
		inProgress int
		machine    Machine
		wantAdded  bool
		wantStart  bool
	}{
		{"an available Machine takes the last place", maxInProgress - 1, available, true, false},
		{"an available Machine waits for a place", maxInProgress, available, false, false},
		{"an unavailable Machine takes the last place", maxInProgress - 1, unavailable, false, true},
		{"an unavailable Machine waits for a place too, since it is added once it is started", maxInProgress, unavailable, false, false},
	} {
		d := Plan(rollingFacts(c.inProgress, c.machine))
		isAdded := slices.Contains(d.Status.InProgress, "research/z")
		if isAdded != c.wantAdded || (len(d.Start) > 0) != c.wantStart {
			t.Errorf("%s: added %t, want %t; started %v, want %t", c.about, isAdded, c.wantAdded, d.Start, c.wantStart)
		}
		if n := len(d.Status.InProgress); n > maxInProgress {
			t.Errorf("%s: %d in progress, at most %d may be", c.about, n, maxInProgress)
		}
	}
}
