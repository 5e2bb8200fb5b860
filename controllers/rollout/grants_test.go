package rollout

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// TestMachinesOfADarkRackAreNotInstalledAgain has all Machines that wait for their move past their deadlines at once, while what they run may go on.
func TestMachinesOfADarkRackAreNotInstalledAgain(t *testing.T) {
	const size = 4
	manage(t)
	h := newHall(t, size, policy(1, forNow))
	before := h.filled(t, size)
	h.use(t, "new")
	h.newest(t, 1, v1alpha1.RolloutCanary)
	h.until(t, "the canary bakes", func() bool { return h.rollouts(t)[0].Status.BakedSince != nil })
	h.dark = before
	h.until(t, "the others count as broken", func() bool {
		return h.count(t, func(m *v1alpha1.Machine) bool { return m.Status.Phase == v1alpha1.MachineValidating }) == size-1
	})
	h.change(t, func(s *v1alpha1.NodeTypeSpec) { s.Rollout.Canary.Bake.Duration = atOnce })
	var rollout v1alpha1.Rollout
	var held *metav1.Condition
	h.until(t, "the Rollout says that many do not serve at once", func() bool {
		rollout = h.rollouts(t)[0]
		held = meta.FindStatusCondition(rollout.Status.Conditions, v1alpha1.ConditionFaultsAlone)
		return held != nil
	})
	target := h.nodeType(t).Status.TargetRevision
	if n := h.count(t, hasDesiredRevision(target)); n > 1 {
		t.Errorf("%d Machines are moved, of which 1 was the canary", n)
	}
	if held.Status != metav1.ConditionFalse || held.Reason != v1alpha1.ReasonManyAtOnce || !strings.Contains(held.Message, "3 of the 4 servers of ") || !strings.Contains(held.Message, "kubectl annotate --overwrite rollouts.ingot.dev "+rollout.Name) {
		t.Errorf("%+v", held)
	}
	if ready := meta.FindStatusCondition(rollout.Status.Conditions, v1alpha1.ConditionReady); !strings.Contains(ready.Message, v1alpha1.ConditionFaultsAlone) {
		t.Errorf("Ready: %s", ready.Message)
	}
	_, shown, _ := strings.Cut(held.Message, v1alpha1.AnnotationConfirm+"=")
	for _, value := range []string{"yes", shown} {
		confirmed := rollout.DeepCopy()
		confirmed.Annotations = map[string]string{v1alpha1.AnnotationConfirm: value}
		if err := server.Client.Patch(t.Context(), confirmed, client.MergeFrom(&rollout)); err != nil {
			t.Fatal(err)
		}
	}
	h.until(t, "a person has confirmed, and all are moved", func() bool { return h.count(t, has(target)) == size })
}
