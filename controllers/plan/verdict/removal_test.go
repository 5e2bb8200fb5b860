package verdict

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/contest"
)

// removeGate drives the decisions about a node whose checks wait, while somebody removes the gate whenever it is there, for the time. It returns
// how often the node was written, and the last decision and input.
func removeGate(in *Input, judge func(Input) Decision, duration time.Duration) (writes int, last Decision) {
	for end := in.Now.Add(duration); in.Now.Before(end); {
		ungate(in)
		last = judge(*in)
		if last.Gate != KeepGate || last.Cordon != KeepCordon {
			writes++
		}
		if last.Cordon == CordonNode {
			in.Node.Spec.Unschedulable, in.Node.Annotations = true, map[string]string{v1alpha1.AnnotationGateCordoned: "true"}
		}
		v := last.Verdict
		in.Previous, in.PlacedGate, in.TaintWriter = &v, last.PlacedGate, "taint-sweeper"
		in.Now = in.Now.Add(time.Second)
	}
	return writes, last
}

func TestAGateThatOthersRemoveIsPlacedEverMoreSeldom(t *testing.T) {
	for name, judge := range map[string]func(Input) Decision{"judged": Judge, "not judged": GuardUnjudged} {
		in := perfectInput()
		gpus(&in, "0", "0")
		if name == "not judged" {
			judge = func(in Input) Decision { in.Previous = nil; return GuardUnjudged(in) }
		}
		writes, d := removeGate(&in, judge, time.Hour)
		// 4 at once, then after 10, 20, 40, 80, 160 seconds, and every 5 minutes.
		if writes < 12 || writes > 21 {
			t.Errorf("%s: %d writes in an hour", name, writes)
		}
		if !in.Node.Spec.Unschedulable {
			t.Errorf("%s: the node is not cordoned", name)
		}
		if d.Reason != v1alpha1.ReasonGateRemovedByOthers || !strings.Contains(d.Message, "taint-sweeper") || d.RequeueAfter <= 0 {
			t.Errorf("%s: %s: %s; again after %s", name, d.Reason, d.Message, d.RequeueAfter)
		}
		if _, again := removeGate(&in, judge, time.Minute); d.Message != again.Message && again.Gate == KeepGate && again.PlacedGate.PlacedAt == d.PlacedGate.PlacedAt {
			t.Errorf("%s: the message changes although nothing does: %s", name, again.Message)
		}
		// The program is gone: the gate stays.
		in.Node.Spec.Taints = append(in.Node.Spec.Taints, corev1.Taint{Key: gateKey, Effect: corev1.TaintEffectNoSchedule})
		in.Now = in.PlacedGate.PlacedAt.Add(contest.Window - time.Second)
		if d = judge(in); d.Cordon != KeepCordon || d.Reason != v1alpha1.ReasonGateRemovedByOthers {
			t.Errorf("%s: before the time is over: %+v", name, d)
		}
		in.Now = in.Now.Add(time.Second)
		if d = judge(in); d.Cordon != UncordonNode || d.Reason == v1alpha1.ReasonGateRemovedByOthers || d.PlacedGate != nil {
			t.Errorf("%s: the gate has stayed: %+v", name, d)
		}
	}
}

func TestTheCordonOfAContestedGate(t *testing.T) {
	placed := func(removals int32) *v1alpha1.GateStatus {
		return &v1alpha1.GateStatus{NodeUID: "node-1", PlacedAt: metav1.NewMicroTime(start.Add(-time.Minute)), Removals: removals}
	}
	marked := map[string]string{v1alpha1.AnnotationGateCordoned: "true"}
	for _, c := range []struct {
		name   string
		change func(*Input)
		gate   GateAction
		cordon CordonAction
	}{
		{"the third removal", func(in *Input) { ungate(in); in.PlacedGate = placed(2) }, PlaceGate, CordonNode},
		{"the second removal", func(in *Input) { ungate(in); in.PlacedGate = placed(1) }, PlaceGate, KeepCordon},
		{"a node that a person cordoned", func(in *Input) { ungate(in); in.PlacedGate, in.Node.Spec.Unschedulable = placed(2), true }, PlaceGate, KeepCordon},
		{"another Node's removals", func(in *Input) { ungate(in); in.PlacedGate = placed(9); in.PlacedGate.NodeUID = "node-0" }, PlaceGate, KeepCordon},
		{"removals that are long ago", func(in *Input) {
			ungate(in)
			in.PlacedGate = placed(9)
			in.PlacedGate.PlacedAt = metav1.NewMicroTime(start.Add(-contest.Window))
		}, PlaceGate, KeepCordon},
		{"a pause", func(in *Input) { ungate(in); in.PlacedGate = placed(8) }, KeepGate, KeepCordon},
		{"a node that is only observed", func(in *Input) {
			ungate(in)
			in.PlacedGate, in.OnFailure, in.Node.Annotations = placed(8), v1alpha1.OnFailureObserve, marked
		}, KeepGate, UncordonNode},
		{"a node that is validated", func(in *Input) {
			in.PlacedGate, in.Previous, in.Node.Annotations = placed(8), previous(v1alpha1.CheckPass, time.Minute, false), marked
		}, LiftGate, UncordonNode},
	} {
		in := perfectInput()
		c.change(&in)
		if d := Judge(in); d.Gate != c.gate || d.Cordon != c.cordon {
			t.Errorf("%s: gate %s, cordon %q", c.name, d.Gate, d.Cordon)
		}
	}
}

func TestANodeIsAdmittedOnlyWhenItsCordonIsLifted(t *testing.T) {
	in := perfectInput()
	ungate(&in)
	in.Previous, in.Node.Annotations = previous(v1alpha1.CheckPass, time.Minute, false), map[string]string{v1alpha1.AnnotationGateCordoned: "true"}
	if d := Judge(in); d.Verdict.Admitted || d.Cordon != UncordonNode {
		t.Errorf("admitted %v, cordon %q", d.Verdict.Admitted, d.Cordon)
	}
	in.Node.Annotations = nil
	if d := Judge(in); !d.Verdict.Admitted {
		t.Errorf("not admitted: %s", d.Message)
	}
}

func TestAContestedNodeStaysClosedWhenItsExpectationBecomesUnknown(t *testing.T) {
	contested := func() Input {
		in := perfectInput()
		ungate(&in)
		in.PlacedGate = &v1alpha1.GateStatus{NodeUID: in.Node.UID, PlacedAt: metav1.NewMicroTime(start.Add(-time.Second)), Removals: 5}
		in.Previous = previous(v1alpha1.CheckFail, time.Minute, false)
		in.Node.Spec.Unschedulable, in.Node.Annotations = true, map[string]string{v1alpha1.AnnotationGateCordoned: "true"}
		return in
	}
	in := contested()
	d := GuardUnjudged(in)
	if d.Gate != KeepGate || d.Cordon != KeepCordon || d.PlacedGate == nil || d.Reason != v1alpha1.ReasonGateRemovedByOthers || d.RequeueAfter <= 0 {
		t.Errorf("in the pause: %+v", d)
	}
	in.Now = in.Now.Add(d.RequeueAfter)
	if d = GuardUnjudged(in); d.Gate != PlaceGate || d.Cordon != KeepCordon || d.PlacedGate == nil {
		t.Errorf("after the pause: %+v", d)
	}
	in = contested()
	in.PlacedGate.Removals, in.Node.Spec.Unschedulable, in.Node.Annotations = 0, false, nil
	if d = GuardUnjudged(in); d.Gate != PlaceGate || d.PlacedGate.Removals != 1 {
		t.Errorf("the first removal: %+v", d)
	}
	// A node that passed, and whose gate was lifted by Ingot, stays open.
	in = contested()
	in.Previous = previous(v1alpha1.CheckPass, time.Minute, true)
	if d = GuardUnjudged(in); d.Gate != KeepGate || d.Cordon != UncordonNode {
		t.Errorf("an admitted node: %+v", d)
	}
	in = contested()
	in.OnFailure = v1alpha1.OnFailureObserve
	if d = GuardUnjudged(in); d.Gate != KeepGate || d.Cordon != UncordonNode {
		t.Errorf("a node that is only observed: %+v", d)
	}
}

func TestAContestedNodeThatPassesWaitsNoLongerThanItsSettleTime(t *testing.T) {
	in := perfectInput()
	in.PlacedGate = &v1alpha1.GateStatus{NodeUID: in.Node.UID, PlacedAt: metav1.NewMicroTime(start.Add(-time.Second)), Removals: 5}
	in.Previous = previous(v1alpha1.CheckPass, in.Settle-time.Second, false)
	if d := Judge(in); d.Gate != KeepGate || d.RequeueAfter != time.Second {
		t.Errorf("gate %s, again after %s, expected 1s", d.Gate, d.RequeueAfter)
	}
	gpus(&in, "0", "0")
	if d := Judge(in); d.RequeueAfter > failInterval {
		t.Errorf("checks that do not pass: again after %s", d.RequeueAfter)
	}
}
