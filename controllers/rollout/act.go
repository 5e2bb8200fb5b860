package rollout

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	plan "github.com/ingot-dev/ingot/controllers/plan/rollout"
)

// act starts or labels the Machine that the decision names, in one request under the resource version that was read. A
// Machine that is gone is skipped.
func (r *Reconciler) act(ctx context.Context, obs observation, decision plan.Decision) error {
	for _, name := range decision.Label {
		if err := r.patchMachine(ctx, obs, name, func(m *v1alpha1.Machine) { setRolloutLabel(m, obs.rollout) }); err != nil {
			return fmt.Errorf("mark Machine %s: %w", name, err)
		}
	}
	for _, name := range decision.Start {
		err := r.patchMachine(ctx, obs, name, func(m *v1alpha1.Machine) {
			setRolloutLabel(m, obs.rollout)
			m.Spec.Revision, m.Spec.Rendering = obs.rollout.Spec.To, obs.rollout.Spec.ToRendering
		})
		countStart(err)
		if err != nil {
			return fmt.Errorf("start Machine %s: %w", name, err)
		}
	}
	return nil
}

func setRolloutLabel(m *v1alpha1.Machine, rollout *v1alpha1.Rollout) {
	metav1.SetMetaDataLabel(&m.ObjectMeta, v1alpha1.LabelRollout, rollout.Name)
}

func (r *Reconciler) patchMachine(ctx context.Context, obs observation, name types.NamespacedName, change func(*v1alpha1.Machine)) error {
	for _, read := range obs.machines {
		if client.ObjectKeyFromObject(read) == name {
			changed := read.DeepCopy()
			change(changed)
			return client.IgnoreNotFound(r.Client.Patch(ctx, changed, client.MergeFromWithOptions(read, client.MergeFromWithOptimisticLock{})))
		}
	}
	return nil
}
