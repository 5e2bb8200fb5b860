package nodepool

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/quota"
)

// limitByQuota lowers the number of free hosts to that for which the NodeQuota of the namespace has room. Machines of the pool that have a place and no host yet
// take a free host, and no more room. It says only how many Machines are made: the controller of the NodeQuota decides which of them have a place.
func (r *Reconciler) limitByQuota(ctx context.Context, obs *observation) error {
	key := types.NamespacedName{Namespace: obs.pool.Namespace, Name: v1alpha1.NodeQuotaName}
	limits, err := read(ctx, r.Client, key, &v1alpha1.NodeQuota{})
	if err != nil || limits == nil {
		return err
	}
	room := quota.Room(limits, obs.nodeType.Name, quota.GPUs(obs.nodeType))
	for i := range obs.machines {
		if m := &obs.machines[i]; m.Status.HostRef == nil && quota.HasPlace(limits, m.ClaimUID()) {
			room++
		}
	}
	obs.free = min(obs.free, room)
	return nil
}

// quotaRefusal returns why a Machine of the pool waits for the NodeQuota; empty: none does.
func (obs *observation) quotaRefusal() string {
	for i := range obs.machines {
		if m := &obs.machines[i]; quota.IsWaiting(m) {
			return meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionClaimed).Message
		}
	}
	return ""
}
