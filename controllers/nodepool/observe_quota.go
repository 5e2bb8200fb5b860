package nodepool

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/quota"
)

// limitByQuota lowers the number of free hosts to that for which the NodeQuota of the namespace has room. It says only how many Machines are made: the
// machine controller decides about each claim.
func (r *Reconciler) limitByQuota(ctx context.Context, obs *observation) error {
	key := types.NamespacedName{Namespace: obs.pool.Namespace, Name: v1alpha1.NodeQuotaName}
	limits, err := read(ctx, r.Client, key, &v1alpha1.NodeQuota{})
	if err != nil || limits == nil {
		return err
	}
	var machines v1alpha1.MachineList
	if err := r.Client.List(ctx, &machines, client.InNamespace(key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Machines: %w", err)
	}
	var nodeTypes v1alpha1.NodeTypeList
	if err := r.Client.List(ctx, &nodeTypes, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list NodeTypes: %w", err)
	}
	gpus := quota.GPUsOf(nodeTypes.Items)
	facts := quota.FactsOf(r.Clock.Now(), limits, machines.Items, gpus, func(m *v1alpha1.Machine) bool { return obs.claimants[m.Name] })
	obs.free = min(obs.free, quota.Room(facts, obs.nodeType.Name, gpus(obs.nodeType.Name)))
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
