package nodepool

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hostindex"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
	"github.com/ingot-dev/ingot/controllers/plan/sameserver"
)

// countHosts counts the hosts of the pool's NodeType, by the rules by which its Machines choose one.
//
// The hosts are read from the cache. status.hosts of the NodeType would be some seconds old: the hosts that the pool's own Machines have just claimed would
// still be free there, and as many Machines again would be created. A pool that has all its hosts reads none.
func (r *Reconciler) countHosts(ctx context.Context, obs *observation) error {
	if obs.nodeType == nil || obs.placed() >= replicas(obs.pool) {
		return nil
	}
	provider, err := read(ctx, r.Client, types.NamespacedName{Name: obs.nodeType.Spec.ProviderRef.Name}, &v1alpha1.NodeProvider{})
	if err != nil || provider == nil {
		return err
	}
	hosts, records, err := hostindex.List(ctx, r.Client, provider.Spec.HostNamespace)
	if err != nil {
		return err
	}
	facts := placement.Pair(hosts, records)
	request := placement.Request{
		NodeType: obs.nodeType.Spec, Provider: provider.Spec,
		Tenant: types.NamespacedName{Namespace: obs.pool.Namespace, Name: obs.pool.Spec.TenantClusterRef.Name}.String(),
	}
	if obs.tenant != nil {
		request.TenantClusterUID, request.TenantUID = obs.tenant.Status.ClusterUID, obs.tenant.UID
	}
	conflicts, err := hostindex.ConflictsOfAll(ctx, r.Client)
	if err != nil {
		return err
	}
	for i := range facts {
		facts[i].SameServer = sameserver.Describe(conflicts[provider.Spec.HostNamespace+"/"+facts[i].Host.Name])
	}
	obs.hosts, obs.free = placement.Count(request, facts), placement.CountFree(request, facts)
	obs.claimants, obs.areHostsCounted = claimants(obs.pool.Namespace, facts), true
	return r.limitByQuota(ctx, obs)
}

// claimants returns the names of the Machines of a namespace that hosts name as their consumer.
func claimants(namespace string, facts []placement.HostFacts) map[string]bool {
	names := map[string]bool{}
	for i := range facts {
		if ref := facts[i].Host.Spec.ConsumerRef; v1alpha1.IsMachineRef(ref) && ref.Namespace == namespace {
			names[ref.Name] = true
		}
	}
	return names
}

// placed counts the Machines that have a host and are not being deleted.
func (obs *observation) placed() int {
	n := 0
	for i := range obs.machines {
		if m := &obs.machines[i]; m.DeletionTimestamp == nil && m.Status.HostRef != nil {
			n++
		}
	}
	return n
}
