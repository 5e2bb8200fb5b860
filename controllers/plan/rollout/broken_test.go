package rollout

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// hostless is a Machine that waits for a host.
func hostless(name string) Machine {
	return Machine{Namespace: "research", Name: name, Phase: v1alpha1.MachinePending}
}

func TestAMachineIsBrokenWhenItHasAHostAndWaitsForAPerson(t *testing.T) {
	for _, c := range []struct {
		about  string
		change func(*Machine)
		want   bool
	}{
		{"past its deadline", func(*Machine) {}, true},
		{"Ready", func(m *Machine) { m.Ready, m.FailureReason = true, "" }, false},
		{"in time", func(m *Machine) { m.FailureReason = "" }, false},
		{"without a host", func(m *Machine) { m.Claimed = false }, false},
		{"being deleted", func(m *Machine) { m.Deleting = true }, false},
		{"waiting for its tenant's API server", func(m *Machine) { m.FailureReason = v1alpha1.ReasonWaitingForTenant }, false},
	} {
		m := broken("a")
		c.change(&m)
		if got := isBroken(&m); got != c.want {
			t.Errorf("%s: broken %t, want %t", c.about, got, c.want)
		}
	}
}

func TestMachinesWithoutAHostAreNeitherUnavailableNorInTheBase(t *testing.T) {
	f := factsOf(rolling(), serving("a", "old"), serving("b", "old"))
	for _, name := range []string{"c", "d", "e", "f", "g", "h", "i", "j"} {
		m := hostless(name)
		m.Labeled, m.Desired = true, rendered("new")
		f.Machines = append(f.Machines, m)
	}
	f.Policy.MaxUnavailable = intstr.FromString("50%")
	d := Plan(f)
	if !slices.Equal(d.Status.InProgress, []string{"research/a"}) || d.Status.Targets.Total != 2 || !strings.Contains(message(d), "8 Machines have no host and are not counted") {
		t.Errorf("in progress %v, targets %+v: %s", d.Status.InProgress, d.Status.Targets, message(d))
	}
	f.Rollout.Status, f.Machines[0] = d.Status, underway("a")
	if d = Plan(f); !strings.Contains(message(d), "1 are unavailable, of at most 1") || len(d.Status.InProgress) != 1 {
		t.Errorf("half of 2 Machines with a host is 1: %s", message(d))
	}
}

func TestAMachineWithoutAHostTakesTheTargetOnceTheCanaryHasBaked(t *testing.T) {
	waits, told := hostless("b"), hostless("c")
	told.Desired, told.BlockedBy = rendered("old"), "TenantCluster research/research is not Ready"
	f := factsOf(v1alpha1.RolloutStatus{}, serving("a", "old"), waits, told)
	for range 3 {
		d := Plan(f)
		if len(d.Start) > 0 && d.Start[0].Name != "a" {
			t.Fatalf("%s is started before the canary has baked", d.Start)
		}
		f.Rollout.Status = d.Status
	}
	f.Rollout.Status = rolling()
	var started []string
	for range 2 {
		d := Plan(f)
		if len(d.Start) != 1 {
			t.Fatalf("starts %v: %s", d.Start, message(d))
		}
		at := slices.IndexFunc(f.Machines, func(m Machine) bool { return m.key() == d.Start[0] })
		f.Machines[at].Labeled, f.Machines[at].Desired, f.Rollout.Status = true, rendered("new"), d.Status
		started = append(started, d.Start[0].Name)
	}
	if !slices.Equal(started, []string{"b", "c"}) {
		t.Errorf("started %v", started)
	}
}

func TestWithoutAnyHostNoCanaryIsNeeded(t *testing.T) {
	told := hostless("a")
	told.Desired = rendered("old")
	f := factsOf(v1alpha1.RolloutStatus{}, told, serving("b", "new"))
	for range 2 {
		d := Plan(f)
		f.Rollout.Status = d.Status
		if len(d.Start) > 0 {
			f.Machines[0].Labeled, f.Machines[0].Desired = true, rendered("new")
		}
	}
	if d := Plan(f); d.Status.Phase != v1alpha1.RolloutDone {
		t.Errorf("%s: %s", d.Status.Phase, message(d))
	}
}

func TestAStoppedRolloutWhoseOnlyMachineIsDeletedIsNotDone(t *testing.T) {
	f := factsOf(v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutCanary, Canary: []string{"research/a"}, InProgress: []string{"research/a"}}, failed("a"))
	d := Plan(f)
	if d.Status.Phase != v1alpha1.RolloutStopped {
		t.Fatalf("%s: %s", d.Status.Phase, message(d))
	}
	stoppedBy := d.Status.StoppedBy
	f.Machines = []Machine{hostless("b")}
	for _, c := range []struct {
		paused bool
		want   v1alpha1.RolloutPhase
	}{{false, v1alpha1.RolloutStopped}, {false, v1alpha1.RolloutStopped}, {true, v1alpha1.RolloutPaused}, {false, v1alpha1.RolloutDone}} {
		f.Rollout.Status, f.Rollout.Paused = d.Status, c.paused
		if d = Plan(f); d.Status.Phase != c.want || len(d.Start) > 0 || c.want != v1alpha1.RolloutDone && d.Status.StoppedBy != stoppedBy {
			t.Fatalf("%s, want %s: starts %v: %s", d.Status.Phase, c.want, d.Start, message(d))
		}
	}
}

func TestABrokenMachineIsRecordedBeforeItIsStarted(t *testing.T) {
	f := factsOf(rolling(), broken("b"), serving("a", "old"))
	d := Plan(f)
	if len(d.Start) > 0 || !slices.Equal(d.Status.BrokenBefore, []string{"research/b"}) || !d.Requeue {
		t.Fatalf("starts %v, broken before %v", d.Start, d.Status.BrokenBefore)
	}
	f.Rollout.Status = d.Status
	if d = Plan(f); !slices.Equal(d.Start, []types.NamespacedName{{Namespace: "research", Name: "b"}}) {
		t.Errorf("starts %v", d.Start)
	}
}

func TestTheFailingOfABrokenMachineCountsOnlyOnceItHasBeenReady(t *testing.T) {
	f := factsOf(rolling("research/a", "research/b"), failed("a"), failed("b"), serving("c", "old"))
	f.Rollout.Status.BrokenBefore = []string{"research/a", "research/b"}
	d := Plan(f)
	if d.Status.Phase != v1alpha1.RolloutRolling || d.Status.Targets.Failed != 0 || !strings.Contains(message(d), "broken before and broken again, which stops nothing: research/a: ChecksFailed, research/b: ChecksFailed") {
		t.Errorf("%s with %d failed: %s", d.Status.Phase, d.Status.Targets.Failed, message(d))
	}
	f.Machines[0], f.Machines[1], f.Rollout.Status = moved("a", noon), moved("b", noon), d.Status
	f.Rollout.Status = Plan(f).Status
	f.Machines[0], f.Machines[1] = failed("a"), failed("b")
	if d = Plan(f); d.Status.Phase != v1alpha1.RolloutStopped || d.Status.Targets.Failed != 2 {
		t.Errorf("both were Ready with the target: %s with %d failed: %s", d.Status.Phase, d.Status.Targets.Failed, message(d))
	}
}

func TestWhatIsBrokenBeforeAndAfterDoesNotKeepTheRolloutFromBeingDone(t *testing.T) {
	f := factsOf(rolling("research/a"), failed("a"), moved("b", noon))
	f.Rollout.Status.BrokenBefore = []string{"research/a"}
	d := Plan(f)
	if want := "1 of 2 Machines are Ready with new; broken before and broken again, which stops nothing: research/a: ChecksFailed: mend or delete it"; d.Status.Phase != v1alpha1.RolloutDone || message(d) != want {
		t.Errorf("%s: %s\nwant %s", d.Status.Phase, message(d), want)
	}
	if !slices.Equal(d.Status.HandedOver, []string{"research/a"}) || len(d.Status.InProgress) > 0 {
		t.Errorf("handed over %v, in progress %v", d.Status.HandedOver, d.Status.InProgress)
	}
}

func TestAllBrokenAgainProvesNothing(t *testing.T) {
	f := factsOf(v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutCanary, InProgress: []string{"research/a"}, BrokenBefore: []string{"research/a"}, Canary: []string{"research/a"}}, failed("a"))
	d := Plan(f)
	if d.Status.Phase != v1alpha1.RolloutCanary || !strings.HasPrefix(message(d), "no Machine can be the canary now; broken before") {
		t.Fatalf("%s: %s", d.Status.Phase, message(d))
	}
	f.Rollout.Status, f.Machines[0] = d.Status, moved("a", noon.Add(-time.Hour))
	if d = Plan(f); d.Status.Phase != v1alpha1.RolloutDone {
		t.Errorf("a was mended, and is Ready for longer than the bake time: %s: %s", d.Status.Phase, message(d))
	}
}

func TestABudgetThatIsFullOfBrokenMachinesNamesThem(t *testing.T) {
	stays := broken("b")
	stays.BlockedBy = "TenantCluster research/research is not Ready"
	d := Plan(factsOf(rolling(), serving("a", "old"), stays))
	if want := "1 are unavailable, of at most 1 (1 of them broken: research/b: ValidationTimedOut: mend or delete it, or raise maxUnavailable)"; !strings.Contains(message(d), want) {
		t.Errorf("%s", message(d))
	}
}

func TestATakenOverMachineStaysBrokenBefore(t *testing.T) {
	m := failed("a")
	f := factsOf(v1alpha1.RolloutStatus{}, m, serving("b", "old"))
	f.Previous = &PreviousRollout{Name: "new-0", Settled: true, InProgress: []string{"research/a"}, BrokenBefore: []string{"research/a"}}
	if d := Plan(f); d.Status.Phase != v1alpha1.RolloutCanary || d.Status.Targets.Failed != 0 || !slices.Equal(d.Status.Canary, []string{"research/b"}) {
		t.Errorf("%s with %d failed, canary %v", d.Status.Phase, d.Status.Targets.Failed, d.Status.Canary)
	}
}

func TestAnUndoDoesNotCountWhatItCannotBringBack(t *testing.T) {
	blocked := broken("a")
	blocked.BlockedBy = "TenantCluster research/research is not Ready"
	untouched := broken("a")
	untouched.Installed = rendered("new")
	for _, c := range []struct {
		about    string
		broken   Machine
		toStable bool
		want     []string
	}{
		{"broken again", failed("a"), true, []string{"research/a", "research/b"}},
		{"broken again, forward", failed("a"), false, []string{"research/a"}},
		{"its tenant does not answer", blocked, true, []string{"research/b"}},
		{"it has the stable revision", untouched, true, []string{"research/b"}},
		{"being installed again", underway("a"), true, []string{"research/a"}},
	} {
		f := factsOf(rolling(), c.broken, serving("b", "old"))
		f.Rollout.ToStable = c.toStable
		if c.broken.Labeled {
			f.Rollout.Status.InProgress, f.Rollout.Status.BrokenBefore = []string{"research/a"}, []string{"research/a"}
		}
		d := Plan(f)
		if !slices.Equal(d.Status.InProgress, c.want) {
			t.Errorf("%s: in progress %v, want %v: %s", c.about, d.Status.InProgress, c.want, message(d))
		}
	}
}

func TestABrokenMachineThatIsBeingInstalledStaysBrokenBefore(t *testing.T) {
	m := underway("a")
	m.Desired, m.Installed, m.Phase = rendered("bad"), rendered("bad"), v1alpha1.MachineProvisioning
	f := factsOf(rolling(), m, serving("b", "old"))
	f.Rollout.ToStable, f.Rollout.Status.BrokenBefore = true, []string{"research/a"}
	d := Plan(f)
	if len(d.Start) != 1 || d.Start[0].Name != "a" || !slices.Equal(d.Status.BrokenBefore, []string{"research/a"}) {
		t.Errorf("starts %v, broken before %v", d.Start, d.Status.BrokenBefore)
	}
}

func TestAMachineThatWorksAgainIsForgottenBeforeItIsStarted(t *testing.T) {
	f := factsOf(rolling("research/a"), serving("a", "old"), serving("b", "new"))
	f.Rollout.ToStable, f.Rollout.Status.BrokenBefore = true, []string{"research/a"}
	d := Plan(f)
	if len(d.Start) > 0 || len(d.Status.BrokenBefore) > 0 || !d.Requeue {
		t.Fatalf("starts %v, broken before %v", d.Start, d.Status.BrokenBefore)
	}
	f.Rollout.Status = d.Status
	if d = Plan(f); len(d.Start) != 1 {
		t.Errorf("starts %v: %s", d.Start, message(d))
	}
}

func TestTheCanaryWaitsForRoomThatABrokenMachineTakes(t *testing.T) {
	f := factsOf(v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutCanary}, broken("a"), serving("b", "old"), serving("c", "old"))
	d := Plan(f)
	want := "canary: research/b, Ready and waiting for room; 1 are unavailable, of at most 1 (1 of them broken: research/a: ValidationTimedOut: mend or delete it, or raise maxUnavailable)"
	if !slices.Equal(d.Status.Canary, []string{"research/b"}) || len(d.Status.InProgress)+len(d.Start) > 0 || message(d) != want {
		t.Errorf("canary %v, in progress %v, starts %v: %s\nwant %s", d.Status.Canary, d.Status.InProgress, d.Start, message(d), want)
	}
	installing := underway("a")
	installing.Labeled, installing.Desired = false, v1alpha1.RenderedRevision{}
	f.Machines[0] = installing
	if d = Plan(f); !strings.HasPrefix(message(d), "canary: research/b, Ready and waiting for room until others are Ready: research/a; 1 are unavailable") {
		t.Errorf("canary %v: %s", d.Status.Canary, message(d))
	}
	for about, c := range map[string]struct {
		previous  PreviousRollout
		installed string
		want      string
	}{
		"it has the stable revision":                                        {PreviousRollout{InProgress: []string{"research/a"}}, "old", "research/b"},
		"a Rollout broke it, and the NodeType is mended":                    {PreviousRollout{InProgress: []string{"research/a"}}, "bad", "research/a"},
		"it was Ready with a bad revision and then failed":                  {PreviousRollout{}, "bad", "research/a"},
		"a Rollout broke it, and the NodeType is mended for the third time": {PreviousRollout{InProgress: []string{"research/a"}, BrokenBefore: []string{"research/a"}}, "bad", "research/a"},
		"it failed where others did not":                                    {PreviousRollout{InProgress: []string{"research/a"}, Done: true}, "bad", "research/b"},
	} {
		c.previous.Name, c.previous.Settled = "new-0", true
		f.Previous, f.Machines[0] = &c.previous, broken("a")
		f.Machines[0].Labeled, f.Machines[0].Installed = true, rendered(c.installed)
		if d := Plan(f); !slices.Equal(d.Status.Canary, []string{c.want}) {
			t.Errorf("%s: canary %v, want %s: %s", about, d.Status.Canary, c.want, message(d))
		}
	}
}

func TestACanaryOfARevisionThatIsStableByNowKeepsNothing(t *testing.T) {
	f := factsOf(v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutRolling, Canary: []string{"research/gone"}}, hostless("b"))
	f.Rollout.ToStable = true
	if d := Plan(f); d.Status.Phase != v1alpha1.RolloutDone || len(d.Status.Canary) > 0 {
		t.Errorf("%s, canary %v: %s", d.Status.Phase, d.Status.Canary, message(d))
	}
}

func TestACanaryThatIsDeletedProvesNothing(t *testing.T) {
	again := failed("a")
	for about, c := range map[string]struct {
		before v1alpha1.RolloutStatus
		says   string
	}{
		"under way": {v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutCanary, Canary: []string{"research/a"}, InProgress: []string{"research/a"}},
			"research/a, the canary, was deleted before new was proven, and no Machine with a host can take its place"},
		"set aside": {Plan(factsOf(v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutCanary, Canary: []string{"research/a"}, InProgress: []string{"research/a"}, BrokenBefore: []string{"research/a"}}, again)).Status,
			"research/a, the canary, was deleted before new was proven, and no Machine with a host can take its place"},
	} {
		f := factsOf(c.before, hostless("b"))
		for range 3 {
			d := Plan(f)
			if d.Status.Phase != v1alpha1.RolloutCanary || len(d.Start) > 0 || !strings.HasPrefix(message(d), c.says) {
				t.Errorf("%s: %s, starts %v: %s", about, d.Status.Phase, d.Start, message(d))
			}
			f.Rollout.Status = d.Status
		}
		f.Machines = nil
		if d := Plan(f); d.Status.Phase != v1alpha1.RolloutCanary {
			t.Errorf("%s, and no Machine is left: %s", about, d.Status.Phase)
		}
		f.Machines = []Machine{serving("b", "old")}
		if d := Plan(f); !slices.Equal(d.Status.Canary, []string{"research/b"}) {
			t.Errorf("%s, and b is installed: canary %v: %s", about, d.Status.Canary, message(d))
		}
	}
}

func TestAPhaseOfANewerVersionIsShownAndWaitedOn(t *testing.T) {
	f := factsOf(v1alpha1.RolloutStatus{Phase: "Verifying"}, serving("a", "old"))
	d := Plan(f)
	if d.Status.Phase != "Verifying" || len(d.Start) > 0 || d.Done || !strings.Contains(message(d), `status.phase is "Verifying"`) {
		t.Errorf("%+v", d)
	}
}
