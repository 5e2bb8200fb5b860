package machine

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
	"github.com/ingot-dev/ingot/controllers/plan/quota"
)

// quotaProblem returns the NodeQuota of the namespace where the Machine has no place in it, and says why. Where it says nothing, the Machine asks, and the
// next decision says whether it gets a place. The NodeQuota is nil where the Machine may claim a host.
func (r *Reconciler) quotaProblem(ctx context.Context, reader client.Reader, obs *observation) (*v1alpha1.NodeQuota, string, error) {
	key := types.NamespacedName{Namespace: obs.machine.Namespace, Name: v1alpha1.NodeQuotaName}
	limits, err := read(ctx, reader, key, &v1alpha1.NodeQuota{})
	if err != nil || quota.HasPlace(limits, obs.machine.ClaimUID()) {
		return nil, "", err
	}
	return limits, quota.Refusal(limits, obs.machine, quota.GPUs(obs.nodeType)), nil
}

// placeInQuota returns the host where the Machine has a place, and otherwise how it asks for one.
func (r *Reconciler) placeInQuota(ctx context.Context, obs *observation, host types.NamespacedName) (lifecycle.Placement, error) {
	limits, refusal, err := r.quotaProblem(ctx, r.Client, obs)
	switch {
	case err != nil:
		return lifecycle.Placement{}, err
	case refusal != "":
		return lifecycle.Placement{Reason: v1alpha1.ReasonQuotaExceeded, Message: refusal}, nil
	case limits != nil:
		return lifecycle.Placement{Reason: v1alpha1.ReasonClaiming, Message: "a host is there, and a place in the NodeQuota is asked for"}, nil
	}
	return lifecycle.Placement{Host: host}, nil
}

// quotaToMachines returns the Machines that a change of their NodeQuota concerns: those that have a place since, those that are the next, and those that asked and
// are to say why they have none. Without a NodeQuota every Machine that waits goes on.
func (r *Reconciler) quotaToMachines(ctx context.Context, was, is client.Object) []reconcile.Request {
	before, _ := was.(*v1alpha1.NodeQuota)
	after, _ := is.(*v1alpha1.NodeQuota)
	switch {
	case before == nil:
		return nil // the decision follows
	case after == nil:
		return r.requestsFor(ctx, client.InNamespace(before.Namespace), client.MatchingFields{indexWaiting: "true"})
	}
	requests := r.requestsFor(ctx, client.InNamespace(after.Namespace), client.MatchingFields{indexAsking: "true"})
	for _, name := range quota.Concerned(before, after) {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: after.Namespace, Name: name}})
	}
	return requests
}
