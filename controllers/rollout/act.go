package rollout

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	plan "github.com/ingot-dev/ingot/controllers/plan/rollout"
)

// start tells the Machine that the decision names to move, by one request under the version of it that was judged. A
// Machine that is gone needs no telling.
func (r *Reconciler) start(ctx context.Context, seen observation, decision plan.Decision) error {
	for _, name := range decision.Start {
		for _, m := range seen.machines {
			if client.ObjectKeyFromObject(m) != name {
				continue
			}
			err := client.IgnoreNotFound(r.move(ctx, m, seen.rollout))
			countStart(err)
			if err != nil {
				return fmt.Errorf("start Machine %s: %w", name, err)
			}
		}
	}
	return nil
}

func (r *Reconciler) move(ctx context.Context, judged *v1alpha1.Machine, rollout *v1alpha1.Rollout) error {
	told := judged.DeepCopy()
	told.Spec.Revision = rollout.Spec.To
	metav1.SetMetaDataLabel(&told.ObjectMeta, v1alpha1.LabelRollout, rollout.Name)
	return r.Client.Patch(ctx, told, client.MergeFromWithOptions(judged, client.MergeFromWithOptimisticLock{}))
}
