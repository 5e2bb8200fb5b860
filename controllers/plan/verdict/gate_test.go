package verdict

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestANodeThatCannotBeJudgedIsGatedUnlessThisBootWasJudged(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Input)
		want   bool
	}{
		{"a new node", func(*Input) {}, true},
		{"a node that is gated", func(in *Input) {
			in.Node.Spec.Taints = append(in.Node.Spec.Taints, corev1.Taint{Key: gateKey, Effect: corev1.TaintEffectNoSchedule})
		}, false},
		{"a node with a taint of that key that keeps no pod away", func(in *Input) {
			in.Node.Spec.Taints = append(in.Node.Spec.Taints, corev1.Taint{Key: gateKey, Effect: corev1.TaintEffectPreferNoSchedule})
		}, true},
		{"a node that is only observed", func(in *Input) { in.OnFailure = v1alpha1.OnFailureObserve }, false},
		{"this boot was judged", func(in *Input) { in.Previous = &v1alpha1.Verdict{NodeUID: "node-1", BootID: "boot-1"} }, false},
		{"another boot was judged", func(in *Input) { in.Previous = &v1alpha1.Verdict{NodeUID: "node-1", BootID: "boot-0"} }, true},
		{"another Node was judged", func(in *Input) { in.Previous = &v1alpha1.Verdict{NodeUID: "node-0", BootID: "boot-1"} }, true},
	} {
		in := perfectInput()
		ungate(&in)
		c.change(&in)
		if got := MustPlaceGate(in); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}

func TestTheConditionAndItsWords(t *testing.T) {
	for _, c := range []struct {
		name            string
		change          func(*Input)
		reason, message string
	}{
		{"a node that was admitted", func(in *Input) { ungate(in); in.Previous = previous(v1alpha1.CheckPass, 0, true) },
			v1alpha1.ReasonValidated, "every check passes; the gate is lifted"},
		{"a node without the gate that nobody has judged", ungate,
			v1alpha1.ReasonGateMissed, "the Node was there without the gate ingot.dev/unvalidated, which was put on it now; pods that were bound meanwhile stay"},
		{"a node that booted", func(in *Input) {
			ungate(in)
			in.Previous = previous(v1alpha1.CheckPass, 0, true)
			in.Previous.BootID = "boot-0"
		}, v1alpha1.ReasonNodeRebooted, "the node booted again since it was judged"},
		{"a node that booted while its revision changed", func(in *Input) {
			in.Previous = previous(v1alpha1.CheckPass, 0, true)
			in.Previous.BootID, in.Previous.Revision = "boot-0", "h100-b"
		}, v1alpha1.ReasonSettling, "every check passes; the gate is lifted when that lasted for 30s"},
		{"a pass", func(*Input) {}, v1alpha1.ReasonSettling, "every check passes; the gate is lifted when that lasted for 30s"},
		{"a pass of a node that is only observed", func(in *Input) { ungate(in); in.OnFailure = v1alpha1.OnFailureObserve },
			v1alpha1.ReasonSettling, "every check passes; the gate is lifted already, because validation.onFailure is Observe, and the node is admitted when that lasted for 30s"},
		{"a node that is only observed", func(in *Input) { in.OnFailure = v1alpha1.OnFailureObserve; gpus(in, "7", "7") },
			v1alpha1.ReasonObserveOnly, "the gate is lifted whatever the checks say, because validation.onFailure is Observe; resource/nvidia.com/gpu: expected 8, observed 7; look at nvidia-smi -L"},
		{"too many GPUs", func(in *Input) { gpus(in, "16", "16") },
			v1alpha1.ReasonChecksFailed, "resource/nvidia.com/gpu: expected 8, observed 16; the node advertises more than was promised: correct NodeType.spec, or what advertises it; look at nvidia-smi -L"},
		{"a GPU too few and no hint", func(in *Input) { in.Expectation.Resources[0].Hint = ""; gpus(in, "7", "7") },
			v1alpha1.ReasonResourcesMissing, "resource/nvidia.com/gpu: expected 8, observed 7"},
		{"a Node without a boot id", func(in *Input) { in.Node.Status.NodeInfo.BootID = "" }, v1alpha1.ReasonChecksWaiting, "boot/current: expected a boot id, observed nothing; kubelet has not reported which boot it is: journalctl -u kubelet on the node"},
	} {
		in := perfectInput()
		c.change(&in)
		want := metav1.ConditionFalse
		if c.reason == v1alpha1.ReasonValidated {
			want = metav1.ConditionTrue
		}
		if d := Judge(in); d.Status != want || d.Reason != c.reason || d.Message != c.message {
			t.Errorf("%s: %s %s: %s\nwant %s %s: %s", c.name, d.Status, d.Reason, d.Message, want, c.reason, c.message)
		}
	}
}

func TestAPodToleratesTheGateWhateverItsValueIs(t *testing.T) {
	for _, c := range []struct {
		toleration corev1.Toleration
		want       bool
	}{
		{corev1.Toleration{Operator: corev1.TolerationOpExists}, true},
		{corev1.Toleration{Key: gateKey, Operator: corev1.TolerationOpExists}, true},
		{corev1.Toleration{Key: gateKey, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}, true},
		{corev1.Toleration{Key: gateKey, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}, false},
		{corev1.Toleration{Key: "other", Operator: corev1.TolerationOpExists}, false},
		{corev1.Toleration{Key: gateKey}, false},
		{corev1.Toleration{Key: gateKey, Operator: corev1.TolerationOpEqual}, false},
		{corev1.Toleration{Key: gateKey, Operator: corev1.TolerationOpEqual, Value: v1alpha1.NewGateValue}, false},
		{corev1.Toleration{Key: gateKey, Operator: corev1.TolerationOpEqual, Value: "x"}, false},
		{corev1.Toleration{Key: "other", Operator: corev1.TolerationOpEqual}, false},
		{corev1.Toleration{Key: gateKey, Operator: "Lt"}, false},
	} {
		if got := IsTolerated([]corev1.Toleration{c.toleration}, gateKey); got != c.want {
			t.Errorf("%+v: %t, want %t", c.toleration, got, c.want)
		}
	}
	if IsTolerated(nil, gateKey) {
		t.Error("no toleration tolerates the gate")
	}
}
