package host

import (
	"context"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	plan "github.com/ingot-dev/ingot/controllers/plan/host"
	"github.com/ingot-dev/ingot/controllers/plan/inventory"
)

// label sets the host's labels by what was found in it, and gives the event to be told with the status.
func (r *Reconciler) label(ctx context.Context, host *metal3.BareMetalHost, found *v1alpha1.HostInventory) ([]plan.Event, error) {
	labelling := inventory.Label(host.Labels, found)
	if labelling.IsEmpty() || !host.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	before := host.DeepCopy()
	for key, value := range labelling.Set {
		if host.Labels == nil {
			host.Labels = map[string]string{}
		}
		host.Labels[key] = value
	}
	for _, key := range labelling.Remove {
		delete(host.Labels, key)
	}
	status := host.Status
	if err := r.Client.Patch(ctx, host, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return nil, fmt.Errorf("label the host by its GPUs: %w", err)
	}
	host.Status = status
	return []plan.Event{{Warning: labelling.Warning, Reason: labelling.Reason, Action: "Inspect", Message: labelling.Message}}, nil
}
