package verdict

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// written has the input say what was decided: the Node's annotation and the verdict.
func written(in *Input, d Decision) {
	if d.GateReason != nil {
		in.Node.Annotations = map[string]string{v1alpha1.AnnotationGate: d.GateReason.Text(in.Now, "look there")}
	}
	in.Previous = &d.Verdict
}

func TestANodeSaysWhyItsGateIsThere(t *testing.T) {
	in := perfectInput()
	if d := Judge(in); d.GateReason != nil {
		t.Errorf("a node that passes is written before its gate is lifted: %+v", d.GateReason)
	}
	gpus(&in, "7", "7")
	d := Judge(in)
	if g := d.GateReason; g == nil || g.Reason != v1alpha1.ReasonResourcesMissing || !g.IsNew || g.IsWarning || !strings.Contains(g.Message, "expected 8, observed 7") {
		t.Fatalf("a node that waits: %+v", g)
	}
	if text, want := d.GateReason.Text(time.Date(2026, 11, 20, 11, 0, 0, 0, time.FixedZone("", 3600)), "look there"), "2026-11-20T10:00:00Z ResourcesMissing: resource/nvidia.com/gpu: "; !strings.HasPrefix(text, want) || !strings.HasSuffix(text, "; look there") {
		t.Errorf("annotation %q", text)
	}
	written(&in, d)
	gpus(&in, "6", "6")
	if d := Judge(in); d.GateReason != nil {
		t.Errorf("a node that waits is written at every change: %+v", d.GateReason)
	}
	in.Node.Annotations = nil
	if d := Judge(in); d.GateReason != nil {
		t.Errorf("an annotation that somebody removes is written again: %+v", d.GateReason)
	}
	gpus(&in, "9", "9")
	if d = Judge(in); d.GateReason == nil || d.GateReason.Reason != v1alpha1.ReasonChecksFailed || !d.GateReason.IsNew || !d.GateReason.IsWarning {
		t.Fatalf("a node that fails: %+v", d.GateReason)
	}
	written(&in, d)
	if d := Judge(in); d.GateReason != nil {
		t.Errorf("the same failure is written again: %+v", d.GateReason)
	}
	gpus(&in, "10", "10")
	if d = Judge(in); d.GateReason == nil || d.GateReason.IsNew {
		t.Errorf("the same reason with another message: %+v", d.GateReason)
	}
	gpus(&in, "8", "8")
	ungate(&in)
	if d = Judge(in); d.Gate != PlaceGate || d.GateReason == nil || d.GateReason.Reason != v1alpha1.ReasonGateMissed || !d.GateReason.IsNew {
		t.Errorf("a gate that is placed: %s %+v", d.Gate, d.GateReason)
	}
	in.Previous = previous(v1alpha1.CheckPass, time.Minute, false)
	if d = Judge(in); d.Gate != KeepGate || !d.Verdict.Admitted || d.GateReason == nil || *d.GateReason != (GateReason{}) {
		t.Errorf("a gate that is gone: %s %+v", d.Gate, d.GateReason)
	}
	if in.Previous = &d.Verdict; Judge(in).GateReason != nil {
		t.Error("an annotation that somebody puts on an admitted node is removed again and again")
	}
	in = perfectInput()
	in.Previous, in.Node.Annotations = previous(v1alpha1.CheckPass, time.Minute, false), map[string]string{v1alpha1.AnnotationGate: "x"}
	if d = Judge(in); d.Gate != LiftGate || d.GateReason == nil || *d.GateReason != (GateReason{}) {
		t.Errorf("a gate that is lifted: %s %+v", d.Gate, d.GateReason)
	}
}

func TestEveryReasonOfTheGateIsTheValueOfATaint(t *testing.T) {
	for _, reason := range []string{
		v1alpha1.NewGateValue, v1alpha1.ReasonResourcesMissing, v1alpha1.ReasonChecksFailed, v1alpha1.ReasonGateMissed, v1alpha1.ReasonNodeRebooted, v1alpha1.ReasonGateRemovedByOthers,
		v1alpha1.ReasonSettling, v1alpha1.ReasonDRANotServed, v1alpha1.ReasonValidationTimedOut, v1alpha1.ReasonWaitingForNodeType, v1alpha1.ReasonOlderShape, v1alpha1.ReasonRenderingUnreadable,
	} {
		if problems := validation.IsValidLabelValue(reason); reason == "" || len(problems) > 0 {
			t.Errorf("%q: %v", reason, problems)
		}
	}
	if g := NewGateReason(perfectInput().Node, v1alpha1.ReasonChecksFailed, strings.Repeat("x", 1<<20), true); len(g.Message) > maxGateMessage {
		t.Errorf("a message of %d bytes", len(g.Message))
	}
}
