package invariants

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const gate = "ingot.dev/unvalidated"

func node(uid, version string, gated bool) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: types.UID(uid), ResourceVersion: version}}
	if gated {
		n.Spec.Taints = []corev1.Taint{{Key: gate, Effect: corev1.TaintEffectNoSchedule}}
	}
	return n
}

func pod(version string, tolerations ...corev1.Toleration) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default", UID: "p", ResourceVersion: version},
		Spec:       corev1.PodSpec{NodeName: "n", Tolerations: tolerations},
	}
}

func TestThePodIsJudgedByTheGateOfItsMoment(t *testing.T) {
	for _, c := range []struct {
		name string
		pod  *corev1.Pod
		want int
	}{
		{"bound after the gate was lifted", pod("25"), 0},
		{"bound while the gate was on", pod("15"), 1},
		{"bound after the gate came back", pod("35"), 1},
		{"bound while the gate was on, and tolerates it", pod("15", corev1.Toleration{Key: gate, Operator: corev1.TolerationOpExists}), 0},
		{"tolerates everything", pod("15", corev1.Toleration{Operator: corev1.TolerationOpExists}), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGateHistory(gate)
			g.recordPod(c.pod, false) // events of different kinds arrive in any order
			for _, n := range []*corev1.Node{node("a", "10", true), node("a", "20", false), node("a", "30", true)} {
				g.recordNode(n, false)
			}
			if got := g.violations(); len(got) != c.want {
				t.Errorf("got %v, want %d violations", got, c.want)
			}
		})
	}
}

func TestANodeThatIsBornWithoutTheGateIsReported(t *testing.T) {
	g := newGateHistory(gate)
	g.recordNode(node("a", "10", true), false)
	g.recordNode(node("b", "20", false), false)
	if got := g.violations(); len(got) != 1 || !strings.Contains(got[0], "without the gate") {
		t.Errorf("got %v", got)
	}
}

func TestWhatWasMissedWhileTheTenantWasAwayIsNotJudged(t *testing.T) {
	g := newGateHistory(gate)
	g.recordNode(node("a", "10", true), false)
	g.recordPod(pod("15"), true)
	g.recordNode(node("b", "20", false), true)
	if got := g.violations(); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}
