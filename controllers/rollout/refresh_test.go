package rollout

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/spec"
)

// otherwise is a version of Ingot that resolves everything with one kernel argument more.
func otherwise(r spec.Request) (v1alpha1.NodePlan, error) {
	plan, err := presentation.Resolve(r)
	plan.KernelArguments = append(plan.KernelArguments, "iommu=pt")
	return plan, err
}

func hasRendering(rendering string) func(*v1alpha1.Machine) bool {
	return func(m *v1alpha1.Machine) bool { return m.Status.Rendering == rendering && ready(m) }
}

// ask sets the NodeType's spec.rendering, as ingot rollout refresh and undo do.
func (h *hall) ask(t *testing.T, rendering string) {
	t.Helper()
	after := h.nodeType(t)
	before := after.DeepCopy()
	after.Spec.Rendering = rendering
	if err := server.Client.Patch(t.Context(), after, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func TestAnotherVersionsRenderingReachesTheMachinesWhenAskedForAndCanBeUndone(t *testing.T) {
	stop := manageAs(t, presentation.Resolve)
	h := newHall(t, 4, policy(1, forNow))
	revision := h.filled(t, 4)
	stable := h.nodeType(t).Status.StableRendering
	h.budget = 1
	stop()

	manageAs(t, otherwise)
	h.until(t, "the other version says what it would make", func() bool { return h.nodeType(t).Status.RefreshedRendering != "" })
	h.scale(t, 5)
	h.budget = 2 // the new Machine is not Ready yet, and the canary will not be
	h.until(t, "a new Machine gets the stable rendering", func() bool { return h.count(t, hasRendering(stable)) == 5 })
	if made := h.rollouts(t); len(made) != 0 {
		t.Fatalf("nobody asked for %+v", made)
	}

	refreshed := h.nodeType(t).Status.RefreshedRendering
	h.ask(t, refreshed)
	first := h.newest(t, 1, v1alpha1.RolloutCanary)
	if first.Spec.From != revision || first.Spec.To != revision || first.Spec.FromRendering != stable || first.Spec.ToRendering != refreshed {
		t.Errorf("the Rollout is %+v", first.Spec)
	}
	h.until(t, "the canary bakes with the refreshed rendering", func() bool {
		return h.rollouts(t)[0].Status.BakedSince != nil && h.count(t, hasRendering(refreshed)) == 1
	})
	if n := h.count(t, hasRendering(stable)); n != 4 {
		t.Errorf("%d Machines have the stable rendering while the canary bakes, want 4", n)
	}

	h.ask(t, stable)
	h.newest(t, 2, v1alpha1.RolloutDone)
	h.until(t, "every Machine has the stable rendering again", func() bool { return h.count(t, hasRendering(stable)) == 5 })
	if s := h.nodeType(t).Status; s.StableRendering != stable || s.TargetRendering != stable || s.Machines.UpToDate != 5 {
		h.until(t, "the NodeType counts them", func() bool { return h.nodeType(t).Status.Machines.UpToDate == 5 })
	}
}
