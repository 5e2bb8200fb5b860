package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/entitlement"
	plan "github.com/ingot-dev/ingot/controllers/plan/rollout"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
)

// clusterOf returns what identifies the cluster that a Machine is for. Two TenantClusters may be one cluster.
func (obs *observation) clusterOf(m *v1alpha1.Machine) string {
	return obs.clusterNamed(types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.TenantClusterRef.Name})
}

func (obs *observation) clusterNamed(tenant types.NamespacedName) string {
	return cmp.Or(string(obs.clusterUIDs[tenant]), tenant.String())
}

// observeSharing reads what tenants hold on the nodes of the Machines. Only the claims of clusters that have an Entitlement are read.
func (r *Reconciler) observeSharing(ctx context.Context, obs *observation) error {
	var list v1alpha1.EntitlementList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Entitlements: %w", err)
	}
	shared := map[string][]v1alpha1.Entitlement{}
	for i := range list.Items {
		e := &list.Items[i]
		cluster := obs.clusterNamed(types.NamespacedName{Namespace: e.Namespace, Name: e.Spec.TenantClusterRef.Name})
		shared[cluster] = append(shared[cluster], *e)
	}
	if len(shared) == 0 {
		return nil
	}
	obs.sharing = plan.Tenants{Held: map[types.NamespacedName][]plan.Held{}, Budgets: map[plan.Class]plan.DeviceBudget{}}
	obs.unreadable = map[string]string{}
	for cluster, nodes := range obs.nodesByCluster() {
		if len(shared[cluster]) > 0 {
			r.observeCluster(ctx, obs, cluster, nodes, shared[cluster])
		}
	}
	if len(obs.sharing.Budgets) == 0 {
		return nil
	}
	return r.observeElsewhere(ctx, obs)
}

// nodesByCluster returns the Machines that have a node, by their cluster.
func (obs *observation) nodesByCluster() map[string][]*v1alpha1.Machine {
	out := map[string][]*v1alpha1.Machine{}
	for _, m := range obs.machines {
		if m.Status.NodeRef != nil {
			cluster := obs.clusterOf(m)
			out[cluster] = append(out[cluster], m)
		}
	}
	return out
}

// observeCluster reads what claims hold on the nodes of one shared cluster. Where that cannot be read, it is unknown: Machines wait only where a class has a
// budget.
func (r *Reconciler) observeCluster(ctx context.Context, obs *observation, cluster string, nodes []*v1alpha1.Machine, entitlements []v1alpha1.Entitlement) {
	budgets := entitlement.Budgets(entitlements)
	for class, b := range budgets {
		obs.sharing.Budgets[plan.Class{Cluster: cluster, Name: class}] = plan.DeviceBudget{Limit: b.Devices, Entitlement: b.Entitlement}
	}
	tenant, claims, err := r.readClaims(ctx, entitlements)
	if err != nil {
		if len(budgets) > 0 {
			obs.unreadable[cluster] = fmt.Sprintf("the claims of TenantCluster %s cannot be read, and a class of an Entitlement there has a maxUnavailable: %s", tenant, input.Line(err.Error(), tenantaccess.MaxQuoted))
			obs.sharing.Unreadable = max(obs.sharing.Unreadable, obs.unreadable[cluster])
		}
		return
	}
	held := entitlement.HeldOnNodes(claims)
	for _, m := range nodes {
		if classes := held[m.Status.NodeRef.Name]; len(classes) > 0 {
			obs.sharing.Held[client.ObjectKeyFromObject(m)] = heldByClass(classes)
		}
	}
}

func heldByClass(classes map[string]entitlement.Held) []plan.Held {
	out := make([]plan.Held, 0, len(classes))
	for class, h := range classes {
		out = append(out, plan.Held{DeviceClass: class, Devices: h.Devices, Claims: h.Claims})
	}
	slices.SortFunc(out, func(a, b plan.Held) int { return cmp.Compare(a.DeviceClass, b.DeviceClass) })
	return out
}

// readClaims returns the claims of a cluster, by the first of the TenantClusters of its Entitlements that has them, or else why the last one has none. Those of
// another TenantCluster of the same cluster are not watched.
func (r *Reconciler) readClaims(ctx context.Context, entitlements []v1alpha1.Entitlement) (tenant types.NamespacedName, claims []resourcev1.ResourceClaim, err error) {
	var tenants []types.NamespacedName
	for i := range entitlements {
		tenants = append(tenants, types.NamespacedName{Namespace: entitlements[i].Namespace, Name: entitlements[i].Spec.TenantClusterRef.Name})
	}
	slices.SortFunc(tenants, func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) })
	for _, tenant = range slices.Compact(tenants) {
		if claims, err = r.readClaimsOf(ctx, tenant); err == nil {
			break
		}
	}
	return tenant, claims, err
}

func (r *Reconciler) readClaimsOf(ctx context.Context, tenant types.NamespacedName) ([]resourcev1.ResourceClaim, error) {
	access, err := r.Tenants.For(tenant)
	if err != nil {
		return nil, err
	}
	if !access.SlicesServed {
		return nil, errors.New("its API server does not serve resource.k8s.io/v1: expected is Kubernetes 1.34 or later")
	}
	return access.Claims(ctx)
}

// observeElsewhere reads what Rollouts of other NodeTypes take away. Each of them is read with this controller's own last write of it, which the list may lack.
//
// Without that: an image is changed that two NodeTypes have. Both Rollouts choose a Machine in the same moment, and neither sees the other one's.
func (r *Reconciler) observeElsewhere(ctx context.Context, obs *observation) error {
	var list v1alpha1.RolloutList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Rollouts: %w", err)
	}
	rollouts := make([]v1alpha1.Rollout, 0, len(list.Items))
	for i := range list.Items {
		current := list.Items[i]
		if !current.Status.Phase.IsFinal() && current.Spec.NodeTypeRef.Name != obs.nodeType.Name {
			err := r.Client.Get(ctx, client.ObjectKeyFromObject(&list.Items[i]), &current)
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return fmt.Errorf("read Rollout %s: %w", list.Items[i].Name, err)
			}
		}
		rollouts = append(rollouts, current)
	}
	var machines v1alpha1.MachineList
	if err := r.Client.List(ctx, &machines, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Machines: %w", err)
	}
	byName := make(map[types.NamespacedName]*v1alpha1.Machine, len(machines.Items))
	for i := range machines.Items {
		byName[client.ObjectKeyFromObject(&machines.Items[i])] = &machines.Items[i]
	}
	obs.sharing.Elsewhere = plan.NewElsewhere(obs.rollout.Name, obs.nodeType.Name, rollouts, byName, obs.clusterOf)
	return nil
}
