package remainingnode

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
	"github.com/ingot-dev/ingot/controllers/serverclock"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
)

// observation is everything that is read about one Node that may have remained.
type observation struct {
	// facts are what the decision depends on. observe sets them.
	facts lifecycle.Remaining
	// access to the tenant's cluster; nil: it cannot be used now. observe sets it.
	access *tenantaccess.Access
	// node is the Node of that name; nil: there is none, or it is not known. observe sets it.
	node *corev1.Node
}

func (r *Reconciler) observe(ctx context.Context, record *v1alpha1.HostRecord, entry v1alpha1.ReleasedNode) (observation, error) {
	obs := observation{facts: lifecycle.Remaining{Clock: serverclock.Of(r.Clock), Entry: entry}}
	if m := record.Spec.Machine; m != nil {
		obs.facts.HostMachine = m.UID
	}
	key := tenantOf(entry)
	err := r.Client.Get(ctx, key, &v1alpha1.TenantCluster{})
	if client.IgnoreNotFound(err) != nil {
		return obs, fmt.Errorf("read TenantCluster %s: %w", key, err)
	}
	obs.facts.Tenant.Found = err == nil
	access, err := r.Tenants.For(key)
	if err != nil {
		return obs, nil //nolint:nilerr // a tenant that cannot be used now is no error of this controller; it is tried again
	}
	// It is read from the tenant's API server, because the cache may lag behind.
	node := &corev1.Node{}
	err = access.Client.Get(ctx, client.ObjectKey{Name: entry.Name}, node)
	if client.IgnoreNotFound(err) != nil {
		return obs, fmt.Errorf("read Node %s of TenantCluster %s: %w", entry.Name, key, err)
	}
	obs.access, obs.facts.Tenant.Reachable, obs.facts.Tenant.ClusterUID = access, true, access.ClusterUID
	if err != nil {
		return obs, nil
	}
	obs.node = node
	obs.facts.Node = lifecycle.Node{
		Found: true, UID: node.UID, ProviderID: node.Spec.ProviderID, SystemUUID: node.Status.NodeInfo.SystemUUID, Installation: node.Labels[v1alpha1.LabelInstallation],
		Undeletable: r.deletions.Problem(node, obs.facts.Now),
	}
	return obs, nil
}

// tenantOf returns the name of the TenantCluster of a Node.
func tenantOf(entry v1alpha1.ReleasedNode) types.NamespacedName {
	namespace, name, _ := strings.Cut(entry.Tenant, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}
