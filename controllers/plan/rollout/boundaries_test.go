package rollout

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func names(machines ...Machine) []string {
	var all []string
	for i := range machines {
		all = append(all, machines[i].key().String())
	}
	return all
}

func TestTheCanaryEndsWhenTheBakeTimeIsOverAndNotBefore(t *testing.T) {
	for _, c := range []struct {
		ready        time.Duration
		phase        v1alpha1.RolloutPhase
		requeueAfter time.Duration
	}{
		{9*time.Minute + 30*time.Second, v1alpha1.RolloutCanary, 30 * time.Second},
		{10*time.Minute - time.Millisecond, v1alpha1.RolloutCanary, time.Second},
		{10 * time.Minute, v1alpha1.RolloutRolling, 0},
	} {
		canary := moved("a", noon.Add(-c.ready))
		d := Plan(factsOf(v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutCanary, Canary: names(canary)}, canary, serving("b", "old")))
		if d.Status.Phase != c.phase || d.RequeueAfter != c.requeueAfter {
			t.Errorf("Ready for %s of 10m: %s, again after %s; want %s, %s", c.ready, d.Status.Phase, d.RequeueAfter, c.phase, c.requeueAfter)
		}
	}
}

func TestTheBakeTimeCountsFromTheLastMachineOfTheCanary(t *testing.T) {
	first, last := moved("a", noon.Add(-time.Hour)), moved("b", noon.Add(-time.Minute))
	f := factsOf(v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutCanary, Canary: names(last, first), BakedSince: microTime(noon.Add(-30 * time.Minute))}, first, last, serving("c", "old"))
	f.Policy.Canary = 2
	if d := Plan(f); d.Status.Phase != v1alpha1.RolloutCanary || !d.Status.BakedSince.Time.Equal(last.ReadySince) {
		t.Errorf("%s, baked since %s: b was not Ready in between", d.Status.Phase, d.Status.BakedSince)
	}
}

func TestOneFailureMoreThanTheBudgetStopsTheRollout(t *testing.T) {
	for failures, want := range []v1alpha1.RolloutPhase{v1alpha1.RolloutRolling, v1alpha1.RolloutRolling, v1alpha1.RolloutRolling, v1alpha1.RolloutStopped} {
		f := factsOf(v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutRolling, BakedSince: microTime(noon)}, serving("z", "old"))
		f.Policy.FailureBudget = 2
		for i := range failures {
			f.Machines = append(f.Machines, failed(fmt.Sprint("m-", i)))
		}
		d := Plan(f)
		if d.Status.Phase != want || int(d.Status.Targets.Failed) != failures {
			t.Errorf("%d failures of at most 2: %s with %d failed, want %s", failures, d.Status.Phase, d.Status.Targets.Failed, want)
		}
		isWarning := len(d.Events) == 1 && d.Events[0].Type == corev1.EventTypeWarning && d.Events[0].Reason == "Stopped"
		if isWarning != (want == v1alpha1.RolloutStopped) || !isWarning && len(d.Events) > 0 {
			t.Errorf("%d failures: events %v", failures, d.Events)
		}
	}
}

func TestAPhaseThatBeginsIsANormalEventUnlessTheRolloutStops(t *testing.T) {
	d := Plan(factsOf(v1alpha1.RolloutStatus{}, serving("a", "old")))
	if len(d.Events) != 1 || d.Events[0].Type != corev1.EventTypeNormal || d.Events[0].Reason != "Canary" {
		t.Errorf("%v", d.Events)
	}
	first := d.Status
	if d = Plan(factsOf(first, serving("a", "old"))); len(d.Events) > 0 {
		t.Errorf("the same phase is reported again: %v", d.Events)
	}
}

func TestInheritedMachinesAreMarkedByNameOneAtATime(t *testing.T) {
	f := factsOf(v1alpha1.RolloutStatus{}, serving("b", "old"), serving("a", "old"))
	f.Previous = &PreviousRollout{Name: "old-1", Settled: true, InProgress: names(f.Machines...)}
	d := Plan(f)
	if want := []types.NamespacedName{f.Machines[1].key()}; !slices.Equal(d.Label, want) || !d.Requeue {
		t.Errorf("marks %v, again %t; want %v, and b at once after it", d.Label, d.Requeue, want)
	}
	f.Machines[1].Labeled = true
	if d = Plan(f); len(d.Label) != 1 || d.Label[0].Name != "b" || d.Requeue {
		t.Errorf("marks %v, again %t; want the last one", d.Label, d.Requeue)
	}
	f.Rollout.Superseded = true
	if d = Plan(f); d.Status.Phase != v1alpha1.RolloutSuperseded || !slices.Equal(d.Status.HandedOver, names(f.Machines[0])) || len(d.Status.InProgress) > 0 || d.Status.Targets.InProgress != 0 {
		t.Errorf("%s hands over %v, in progress %v: b is handed over, a is marked and available", d.Status.Phase, d.Status.HandedOver, d.Status.InProgress)
	}
}

func TestASettledRolloutIsNotChanged(t *testing.T) {
	status := v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutDone}
	if d := Plan(factsOf(status, serving("a", "old"))); !d.Done || !reflect.DeepEqual(d.Status, status) || len(d.Start)+len(d.Events) > 0 {
		t.Errorf("%+v", d)
	}
}

func TestAStoppedRolloutIsNotDoneBeforeAPersonAcceptsTheFailure(t *testing.T) {
	status := v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutStopped, StoppedBy: "research/a failed", BakedSince: microTime(noon)}
	if d := Plan(factsOf(status, moved("a", noon.Add(-time.Hour)))); d.Status.Phase != v1alpha1.RolloutStopped {
		t.Errorf("%s although a person has not accepted the failure", d.Status.Phase)
	}
	if d := Plan(factsOf(status)); d.Status.Phase != v1alpha1.RolloutStopped {
		t.Errorf("%s without any Machine: the revision that failed would be the stable one", d.Status.Phase)
	}
}

func TestAMachineThatRecoversOrIsDeletedIsNoLongerForgiven(t *testing.T) {
	recovered, broken := moved("a", noon.Add(-time.Hour)), failed("b")
	d := Plan(factsOf(v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutRolling, BakedSince: microTime(noon), Forgiven: append(names(recovered, broken), "research/gone")}, recovered, broken))
	if !slices.Equal(d.Status.Forgiven, names(broken)) || d.Status.Targets.Failed != 0 {
		t.Errorf("forgiven %v, %d failed", d.Status.Forgiven, d.Status.Targets.Failed)
	}
}

func TestTheCanaryTakesMachinesInProgressThenReadyOnesByName(t *testing.T) {
	inProgress := serving("y", "old")
	f := factsOf(v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutCanary, InProgress: names(inProgress)}, broken("a"), serving("b", "old"), serving("c", "old"), inProgress)
	f.Policy.Canary = 3
	if d := Plan(f); !slices.Equal(d.Status.Canary, []string{"research/y", "research/b", "research/c"}) {
		t.Errorf("canary %v", d.Status.Canary)
	}
}

func TestABlockedMachineIsReplacedInTheCanaryUnlessItIsInProgress(t *testing.T) {
	waiting, other := blocked("a"), serving("b", "old")
	status := v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutCanary, Canary: names(waiting)}
	if d := Plan(factsOf(status, waiting, other)); !slices.Equal(d.Status.Canary, names(other)) {
		t.Errorf("canary %v, want b", d.Status.Canary)
	}
	status.InProgress = names(waiting)
	if d := Plan(factsOf(status, waiting, other)); !slices.Equal(d.Status.Canary, names(waiting)) || len(d.Start) > 0 {
		t.Errorf("canary %v, started %v: a holds its place in the budget, and waits", d.Status.Canary, d.Start)
	}
}

func TestAnInheritedMachineWithoutItsLabelKeepsTheRolloutFromBeingDone(t *testing.T) {
	f := factsOf(rolling(), serving("a", "new"))
	f.Rollout.ToStable = true
	f.Previous = &PreviousRollout{Name: "bad-1", Settled: true, InProgress: []string{"research/a"}}
	d := Plan(f)
	if d.Status.Phase != v1alpha1.RolloutRolling || len(d.Label) != 1 {
		t.Errorf("the cache shows a as it was before it was labeled: %s, labels %v", d.Status.Phase, d.Label)
	}
	f.Machines[0].Labeled = true
	if d = Plan(f); d.Status.Phase != v1alpha1.RolloutDone || len(d.Label) > 0 {
		t.Errorf("%s, labels %v: %s", d.Status.Phase, d.Label, message(d))
	}
}
