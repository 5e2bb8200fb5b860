package validation

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// removeGate removes the gate as another program of the tenant's cluster.
func (m *machine) removeGate() {
	m.t.Helper()
	m.w.eventually("the gate to be removed", func() error {
		node := m.node()
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1alpha1.DefaultGateTaintKey })
		return m.w.c.Update(context.Background(), node, client.FieldOwner("taint-sweeper"))
	})
}

func TestAGateThatAProgramKeepsRemoving(t *testing.T) {
	w := start(t)
	m := w.join(t, "contested", true)
	w.eventually("the team's taint to be placed", func() error {
		node := m.node()
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: "team", Effect: corev1.TaintEffectPreferNoSchedule})
		return w.c.Update(context.Background(), node)
	})
	m.report("boot-1", "0")
	m.reconcile()
	placed := 0
	for range 120 { // two minutes in which the program removes the gate within a second
		if m.gated() {
			placed++
			m.removeGate()
		}
		m.after(time.Second)
	}
	// The gate it was born with, 4 placements at once, and then after 10, 20, 40 and 80 seconds.
	if placed > 9 {
		t.Errorf("the gate was placed %d times in two minutes", placed)
	}
	got := m.get()
	c := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionValidated)
	if c == nil || c.Reason != v1alpha1.ReasonGateRemovedByOthers || !strings.Contains(c.Message, "taint-sweeper") {
		t.Errorf("condition %+v", c)
	}
	if !m.node().Spec.Unschedulable || got.Status.Gate == nil || got.Status.Gate.Removals < 3 {
		t.Errorf("cordoned %v, gate %+v", m.node().Spec.Unschedulable, got.Status.Gate)
	}
	if !w.heard(v1alpha1.ReasonGateRemovedByOthers) {
		t.Error("no event tells of it")
	}
	// The program is mended: the gate is placed, stays, and the cordon is lifted.
	m.after(5 * time.Minute)
	if !m.gated() || !m.node().Spec.Unschedulable {
		t.Errorf("gated %v, cordoned %v", m.gated(), m.node().Spec.Unschedulable)
	}
	m.after(10 * time.Minute)
	if got := m.get(); m.node().Spec.Unschedulable || got.Status.Gate != nil || !m.gated() {
		t.Errorf("after the gate has stayed: cordoned %v, gate %+v", m.node().Spec.Unschedulable, got.Status.Gate)
	}
	m.expect("after the gate has stayed", true, false, v1alpha1.ReasonResourcesMissing)
	m.report("boot-1", "8")
	m.reconcile()
	m.after(30 * time.Second)
	m.expect("validated", false, true, v1alpha1.ReasonValidated)
	if m.node().Spec.Unschedulable {
		t.Error("the validated node is cordoned")
	}
}
