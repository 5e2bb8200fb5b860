package nodeprovider

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// claimNamespace writes the provider's name on its host namespace. Where two providers try at the same time, the optimistic
// lock lets one succeed.
func (r *Reconciler) claimNamespace(ctx context.Context, obs observation) error {
	claimed := obs.namespace.DeepCopy()
	metav1.SetMetaDataAnnotation(&claimed.ObjectMeta, v1alpha1.AnnotationNodeProvider, obs.provider.Name)
	lock := client.MergeFromWithOptions(obs.namespace, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, claimed, lock); err != nil {
		return fmt.Errorf("claim namespace %s for NodeProvider %s: %w", claimed.Name, obs.provider.Name, err)
	}
	return nil
}
