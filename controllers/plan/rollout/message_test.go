package rollout

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// underway is a Machine that this Rollout has started and that is not Ready yet.
func underway(name string) Machine {
	m := serving(name, "new")
	m.Labeled, m.Desired, m.Ready, m.Phase = true, rendered("new"), false, v1alpha1.MachineValidating
	return m
}

// moved is a Machine that this Rollout has started and that is Ready since then.
func moved(name string, since time.Time) Machine {
	m := underway(name)
	m.Ready, m.ReadySince, m.Phase = true, since, v1alpha1.MachineReady
	return m
}

// failed is a Machine that this Rollout has started and that a person has to look at.
func failed(name string) Machine {
	m := underway(name)
	m.FailureReason = v1alpha1.ReasonChecksFailed
	return m
}

// broken is a Machine that a person has to look at, and that no Rollout has moved.
func broken(name string) Machine {
	m := serving(name, "old")
	m.Ready, m.Phase, m.FailureReason = false, v1alpha1.MachineValidating, v1alpha1.ReasonValidationTimedOut
	return m
}

func blocked(name string) Machine {
	m := serving(name, "old")
	m.BlockedBy = "TenantCluster research/research is not Ready"
	return m
}

func inPool(m Machine) Machine {
	m.Pool = types.NamespacedName{Namespace: "research", Name: "training"}
	return m
}

// rolling is the status of a Rollout whose canary has baked.
func rolling(inProgress ...string) v1alpha1.RolloutStatus {
	return v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutRolling, BakedSince: microTime(noon), InProgress: inProgress}
}

func TestTheConditionSaysWhatTheRolloutWaitsFor(t *testing.T) {
	several := func(n int, machine func(string) Machine) (machines []Machine, names []string) {
		for i := range n {
			m := machine(fmt.Sprintf("m%d", i))
			machines, names = append(machines, m), append(names, m.key().String())
		}
		return machines, names
	}
	seven, sevenNames := several(7, failed)
	six, _ := several(6, func(name string) Machine { return serving(name, "old") })
	after := func(names ...string) *PreviousRollout {
		return &PreviousRollout{Name: "bad-1", Settled: true, InProgress: names}
	}
	stopped := "2 failed, of at most 1: research/a: ChecksFailed, research/b: ChecksFailed (nvidia.com/gpu: 7 of 8)"
	waits := failed("b")
	waits.WaitingFor = "nvidia.com/gpu: 7 of 8"
	for _, c := range []struct {
		about   string
		facts   Facts
		change  func(*Facts)
		reason  v1alpha1.RolloutPhase
		message string
		requeue bool
	}{
		{about: "one Machine to take over", facts: factsOf(v1alpha1.RolloutStatus{}, serving("a", "old"), serving("b", "old")), change: func(f *Facts) { f.Previous = after("research/a") },
			reason: v1alpha1.RolloutPending, message: "takes over from Rollout bad-1: 1 Machine to be marked"},
		{about: "two Machines to take over", facts: factsOf(v1alpha1.RolloutStatus{}, serving("b", "old"), serving("a", "old")), change: func(f *Facts) { f.Previous = after("research/a", "research/b") },
			reason: v1alpha1.RolloutPending, message: "takes over from Rollout bad-1: 2 Machines to be marked", requeue: true},
		{about: "the canary", facts: factsOf(v1alpha1.RolloutStatus{}, serving("b", "old"), serving("a", "old")),
			reason: v1alpha1.RolloutCanary, message: "canary: research/a", requeue: true},
		{about: "a large canary", facts: factsOf(v1alpha1.RolloutStatus{}, six...), change: func(f *Facts) { f.Policy.Canary = 6 },
			reason: v1alpha1.RolloutCanary, message: "canary: research/m0, research/m1, research/m2, research/m3, research/m4 and 1 more", requeue: true},
		{about: "no canary", facts: factsOf(v1alpha1.RolloutStatus{}, blocked("a"), serving("b", "new")),
			reason: v1alpha1.RolloutCanary, message: "no Machine can be the canary now; 1 may not be moved now: TenantCluster research/research is not Ready", requeue: true},
		{about: "the bake time", facts: factsOf(v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutCanary, Canary: []string{"research/a"}}, moved("a", noon.Add(-time.Minute)), serving("b", "old")),
			reason: v1alpha1.RolloutCanary, message: "the canary bakes until 2026-11-20T12:09:00Z"},
		{about: "a stop", facts: factsOf(rolling("research/a", "research/b"), failed("a"), waits, serving("c", "old")),
			reason: v1alpha1.RolloutStopped, message: stopped + ": set the NodeType back to undo it, or set spec.paused to true and then to false to go on in spite of it"},
		{about: "a stop with many failures", facts: factsOf(rolling(sevenNames...), seven...),
			reason: v1alpha1.RolloutStopped, message: "7 failed, of at most 1: research/m0: ChecksFailed, research/m1: ChecksFailed, research/m2: ChecksFailed, research/m3: ChecksFailed, " +
				"research/m4: ChecksFailed and 2 more: set the NodeType back to undo it, or set spec.paused to true and then to false to go on in spite of it"},
		{about: "a pause", facts: factsOf(rolling("research/a"), underway("a"), serving("b", "old"), moved("c", noon)), change: func(f *Facts) { f.Rollout.Paused = true },
			reason: v1alpha1.RolloutPaused, message: "1 of 3 Machines moved, 1 on their way; no further one is started while spec.paused is true"},
		{about: "a pause after a stop", facts: factsOf(rolling("research/a", "research/b"), failed("a"), waits), change: func(f *Facts) {
			f.Rollout.Paused, f.Rollout.Status.Phase, f.Rollout.Status.StoppedBy = true, v1alpha1.RolloutStopped, stopped
		}, reason: v1alpha1.RolloutPaused, message: "paused after it stopped: " + stopped + "; it goes on, and forgives that, when spec.paused is false"},
		{about: "the budget of the NodeType", facts: factsOf(rolling("research/a"), underway("a"), serving("b", "old")),
			reason: v1alpha1.RolloutRolling, message: "0 of 2 Machines moved, 1 on their way; 1 are unavailable, of at most 1"},
		{about: "the budget of a pool", facts: factsOf(rolling("research/a"), inPool(underway("a")), inPool(serving("b", "old"))), change: func(f *Facts) { f.Policy.MaxUnavailable = intstr.FromInt32(5) },
			reason: v1alpha1.RolloutRolling, message: "0 of 2 Machines moved, 1 on their way; no room in pool research/training (1 of at most 1)"},
		{about: "a tenant and a failure", facts: factsOf(rolling("research/a"), failed("a"), blocked("b"), moved("c", noon)),
			reason: v1alpha1.RolloutRolling, message: "1 of 3 Machines moved, 1 on their way; 1 may not be moved now: TenantCluster research/research is not Ready; 1 failed, of at most 1: research/a: ChecksFailed"},
		{about: "no obstacle", facts: factsOf(rolling(), serving("a", "old"), serving("b", "old")),
			reason: v1alpha1.RolloutRolling, message: "0 of 2 Machines moved, 1 on their way", requeue: true},
		{about: "another revision", facts: factsOf(rolling("research/a"), underway("a")), change: func(f *Facts) { f.Rollout.Superseded = true },
			reason: v1alpha1.RolloutSuperseded, message: "the NodeType asks for another revision now"},
		{about: "nothing, since there was nothing to do", facts: factsOf(v1alpha1.RolloutStatus{}, serving("a", "new")), reason: v1alpha1.RolloutDone, message: "no Machine has to move"},
		{about: "nothing, since one has moved", facts: factsOf(rolling("research/a"), moved("a", noon)), reason: v1alpha1.RolloutDone, message: "1 Machine is Ready with new"},
		{about: "nothing, since two have moved", facts: factsOf(rolling(), moved("a", noon), moved("b", noon)), reason: v1alpha1.RolloutDone, message: "2 Machines are Ready with new"},
		{about: "nothing, since one is given up", facts: factsOf(rolling("research/b"), moved("a", noon), failed("b")), change: func(f *Facts) { f.Rollout.Status.Forgiven = []string{"research/b"} },
			reason: v1alpha1.RolloutDone, message: "1 of 2 Machines are Ready with new; given up: research/b"},
		{about: "nothing, since one has another rendering", facts: factsOf(rolling(), moved("a", noon)), change: func(f *Facts) {
			f.Rollout.From, f.Rollout.To = rendered("new/1"), rendered("new/2")
			f.Machines[0].Desired, f.Machines[0].Installed = rendered("new/2"), rendered("new/2")
		}, reason: v1alpha1.RolloutDone, message: "1 Machine is Ready with rendering 2"},
	} {
		if c.change != nil {
			c.change(&c.facts)
		}
		d := Plan(c.facts)
		ready := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionReady)
		if ready.Reason != string(c.reason) || ready.Message != c.message || d.Requeue != c.requeue || (ready.Status == metav1.ConditionTrue) != (c.reason == v1alpha1.RolloutDone) {
			t.Errorf("%s: %s %s: %s\nwant %s: %s\nplan again: %t, want %t", c.about, ready.Status, ready.Reason, ready.Message, c.reason, c.message, d.Requeue, c.requeue)
		}
		if d.Done != c.reason.IsFinal() || d.Done && d.RequeueAfter != 0 || int(d.Status.Targets.InProgress) != len(d.Status.InProgress) {
			t.Errorf("%s: done %t, again after %s, %d in progress, %v", c.about, d.Done, d.RequeueAfter, d.Status.Targets.InProgress, d.Status.InProgress)
		}
		for _, e := range d.Events {
			if e.Reason != string(c.reason) || (e.Type == corev1.EventTypeWarning) != (c.reason == v1alpha1.RolloutStopped) {
				t.Errorf("%s: event %+v", c.about, e)
			}
		}
		if entered := c.reason != v1alpha1.RolloutPending && c.reason != c.facts.Rollout.Status.Phase; entered != (len(d.Events) == 1) {
			t.Errorf("%s: events %+v", c.about, d.Events)
		}
	}
}
