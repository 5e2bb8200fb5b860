package machine

import (
	"context"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
	"github.com/ingot-dev/ingot/controllers/plan/quota"
	"github.com/ingot-dev/ingot/controllers/step"
)

// checkQuotaOfClaim sets what the NodeQuota says of a claim that is about to be written, as the API server has it.
func (r *Reconciler) checkQuotaOfClaim(ctx context.Context, obs *observation, host *lifecycle.Host) error {
	if host.Consumer != lifecycle.ConsumerNone || host.ClaimProblem != "" {
		return nil
	}
	decision, err := r.observeQuota(ctx, obs, r.APIReader)
	if err != nil {
		return err
	}
	host.ClaimProblem = decision.Refusal
	obs.facts.MustReserveQuota = obs.quota != nil && !decision.IsReserved && decision.Refusal == ""
	return nil
}

// observeQuota reads the NodeQuota of the Machine's namespace, and then the Machines: one that was reserved before and has its host by now is among them. A
// namespace without a NodeQuota is not limited.
func (r *Reconciler) observeQuota(ctx context.Context, obs *observation, reader client.Reader) (quota.Decision, error) {
	var err error
	key := types.NamespacedName{Namespace: obs.machine.Namespace, Name: v1alpha1.NodeQuotaName}
	if obs.quota, err = read(ctx, reader, key, &v1alpha1.NodeQuota{}); err != nil || obs.quota == nil {
		return quota.Decision{}, err
	}
	machines := &v1alpha1.MachineList{}
	if err := reader.List(ctx, machines, client.InNamespace(key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return quota.Decision{}, fmt.Errorf("list Machines: %w", err)
	}
	gpus, err := r.gpusByNodeType(ctx)
	if err != nil {
		return quota.Decision{}, err
	}
	named, err := r.claimants(ctx)
	if err != nil {
		return quota.Decision{}, err
	}
	obs.quotaFacts = quota.FactsOf(obs.facts.Now, obs.quota, machines.Items, gpus, named)
	return quota.Decide(obs.quotaFacts, quota.MachineOf(obs.machine, gpus(obs.machine.Spec.NodeTypeRef.Name))), nil
}

// gpusByNodeType returns how many GPUs a Machine of each NodeType counts with.
func (r *Reconciler) gpusByNodeType(ctx context.Context) (func(nodeType string) int32, error) {
	var list v1alpha1.NodeTypeList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list NodeTypes: %w", err)
	}
	return quota.GPUsOf(list.Items), nil
}

// claimants returns whether a host names a Machine as its consumer. The status of a Machine may not know of it yet, such as after a restore.
func (r *Reconciler) claimants(ctx context.Context) (func(*v1alpha1.Machine) bool, error) {
	hosts := &metal3.BareMetalHostList{}
	if err := r.Client.List(ctx, hosts, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the hosts of Machines: %w", err)
	}
	named := map[types.UID]bool{}
	for i := range hosts.Items {
		if ref := hosts.Items[i].Spec.ConsumerRef; v1alpha1.IsMachineRef(ref) {
			named[ref.UID] = true
		}
	}
	return func(m *v1alpha1.Machine) bool { return named[m.ClaimUID()] }, nil
}

// reserveQuota writes the Machine into the status of the NodeQuota, under the resourceVersion that was read before the Machines.
func (r *Reconciler) reserveQuota(ctx context.Context, obs *observation, _ lifecycle.Action) error {
	before := obs.quota.DeepCopy()
	m := quota.MachineOf(obs.machine, 0)
	obs.quota.Status.Reservations = quota.Reserve(obs.quotaFacts, m)
	return r.Client.Status().Patch(ctx, obs.quota, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// quotaToMachines returns the Machines that may go on after a change of their NodeQuota: those that wait because of it.
func (r *Reconciler) quotaToMachines(ctx context.Context, changed client.Object) []reconcile.Request {
	return r.requestsFor(ctx, client.InNamespace(changed.GetNamespace()), client.MatchingFields{indexWaiting: "true"})
}

// quotaGaveWay lets a change of a NodeQuota through that may let a Machine go on. Without it: each of a hundred reservations starts a reconcile of every
// Machine that waits.
var quotaGaveWay = step.OnUpdate(quota.MustLookAgain)
