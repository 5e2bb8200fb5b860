package rollout

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/revisionrollout"
	plan "github.com/ingot-dev/ingot/controllers/plan/rollout"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
	"github.com/ingot-dev/ingot/controllers/step"
)

// observation is everything that one reconcile of a Rollout reads. observe sets rollout and nodeType, and one list function each of
// the others. The objects of the lists belong to the cache and must not be changed.
type observation struct {
	// rollout is nil where nothing is to be done: it does not exist, is settled, or its NodeType is gone and takes it along.
	rollout *v1alpha1.Rollout
	// nodeType is the NodeType whose Machines the Rollout moves.
	nodeType *v1alpha1.NodeType
	// previous is the latest of the NodeType's older Rollouts; nil: there is none. observeSiblings sets it.
	previous *v1alpha1.Rollout
	// hasNewer is true if the NodeType has a later Rollout. observeSiblings sets it.
	hasNewer bool
	// machines are those of the NodeType. observeMachines sets them.
	machines []*v1alpha1.Machine
	// pools are the NodePools of the NodeType with their budgets. observePools sets them.
	pools map[types.NamespacedName]plan.Pool
	// blockedByTenants says for each TenantCluster that is not Ready why not. observeTenants sets it.
	blockedByTenants map[types.NamespacedName]string
	// tenants names every TenantCluster that exists. observeTenants sets it.
	tenants map[types.NamespacedName]bool
	// clusterUIDs are the uids of the clusters of the TenantClusters; empty: not known. observeTenants sets it.
	clusterUIDs map[types.NamespacedName]types.UID
	// sharing is what tenants of shared clusters hold. observeSharing sets it.
	sharing plan.Tenants
	// unreadable says for each shared cluster why its claims cannot be read, if one of its classes has a budget. observeSharing sets it.
	unreadable map[string]string
}

func (r *Reconciler) observe(ctx context.Context, name string) (observation, error) {
	var rollout v1alpha1.Rollout
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, &rollout); err != nil {
		return observation{}, client.IgnoreNotFound(err)
	}
	if rollout.DeletionTimestamp != nil || rollout.Status.Phase.IsFinal() {
		return observation{}, nil
	}
	var nodeType v1alpha1.NodeType
	if err := r.Client.Get(ctx, client.ObjectKey{Name: rollout.Spec.NodeTypeRef.Name}, &nodeType); err != nil {
		return observation{}, client.IgnoreNotFound(err)
	}
	obs := observation{rollout: &rollout, nodeType: &nodeType}
	for _, list := range []func(context.Context, *observation) error{r.observeSiblings, r.observeMachines, r.observePools, r.observeTenants, r.observeSharing} {
		if err := list(ctx, &obs); err != nil {
			return obs, err
		}
	}
	return obs, nil
}

// observeSiblings lists the other Rollouts that were created for the NodeType.
func (r *Reconciler) observeSiblings(ctx context.Context, obs *observation) error {
	var list v1alpha1.RolloutList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Rollouts: %w", err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		switch {
		case other.Name == obs.rollout.Name || !metav1.IsControlledBy(other, obs.nodeType):
		case revisionrollout.IsNewer(other.Name, obs.rollout.Name):
			obs.hasNewer = true
		case obs.previous == nil || revisionrollout.IsNewer(other.Name, obs.previous.Name):
			obs.previous = other
		}
	}
	return nil
}

func (r *Reconciler) observeMachines(ctx context.Context, obs *observation) error {
	var list v1alpha1.MachineList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Machines: %w", err)
	}
	for i := range list.Items {
		if list.Items[i].Spec.NodeTypeRef.Name == obs.nodeType.Name {
			obs.machines = append(obs.machines, &list.Items[i])
		}
	}
	return nil
}

func (r *Reconciler) observePools(ctx context.Context, obs *observation) error {
	var list v1alpha1.NodePoolList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list NodePools: %w", err)
	}
	obs.pools = plan.NewPools(obs.nodeType.Name, list.Items)
	return nil
}

func (r *Reconciler) observeTenants(ctx context.Context, obs *observation) error {
	var list v1alpha1.TenantClusterList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list TenantClusters: %w", err)
	}
	obs.blockedByTenants, obs.tenants, obs.clusterUIDs = map[types.NamespacedName]string{}, map[types.NamespacedName]bool{}, map[types.NamespacedName]types.UID{}
	for i := range list.Items {
		key := client.ObjectKeyFromObject(&list.Items[i])
		obs.tenants[key], obs.clusterUIDs[key] = true, list.Items[i].Status.ClusterUID
		if reason := step.NotReadyReason(list.Items[i].Status.Conditions); reason != "" {
			obs.blockedByTenants[key] = fmt.Sprintf("TenantCluster %s is not Ready: %s", key, reason)
		}
	}
	return nil
}

// readIsSuperseded reports whether another Rollout moves the Machines now, or will. It reads the NodeType from the API server if the
// cache shows another target. isKnown is false while the answer is not known: the cache still has the NodeType as it was before
// this Rollout was created, or the NodeType's status was lost.
func (r *Reconciler) readIsSuperseded(ctx context.Context, obs observation) (isSuperseded, isKnown bool, err error) {
	if obs.hasNewer || obs.nodeType.Status.Target() == obs.rollout.Spec.Target() {
		return obs.hasNewer, true, nil
	}
	var current v1alpha1.NodeType
	if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(obs.nodeType), &current); err != nil {
		return false, false, fmt.Errorf("read NodeType %s: %w", obs.nodeType.Name, err)
	}
	if target := current.Status.Target(); target.IsZero() || target == obs.rollout.Spec.Target() {
		return false, false, nil
	}
	return true, true, nil
}

// facts returns what the planner decides by.
func facts(obs observation, isSuperseded bool, clock watched.Clock) plan.Facts {
	f := plan.Facts{
		Clock: clock, Previous: plan.NewPreviousRollout(obs.previous), Policy: plan.NewPolicy(obs.nodeType.Spec.Rollout), Pools: obs.pools,
		Tenants: obs.sharing, Machines: make([]plan.Machine, len(obs.machines)),
		Rollout: plan.Rollout{
			Name: obs.rollout.Name, From: obs.rollout.Spec.Source(), To: obs.rollout.Spec.Target(), Paused: obs.rollout.Spec.Paused,
			ToStable: obs.nodeType.Status.Stable() == obs.rollout.Spec.Target(), Superseded: isSuperseded, Status: obs.rollout.Status,
		},
	}
	// While the NodeType is not Ready no Machine is started: it would be drained, and then wait for its installation without a node.
	//
	// A NodeType that is being deleted says no more than that. Without the exception: somebody deletes it while a Rollout is under way, and its
	// Machines have two revisions for as long as it is kept for them.
	blockedByNodeType := ""
	if reason := step.NotReadyReason(obs.nodeType.Status.Conditions); reason != "" && obs.nodeType.DeletionTimestamp == nil {
		blockedByNodeType = fmt.Sprintf("NodeType %s is not Ready: %s", obs.nodeType.Name, reason)
	}
	for i, m := range obs.machines {
		f.Machines[i] = plan.NewMachine(obs.rollout.Name, obs.rollout.Spec.Target(), m, clock)
		f.Machines[i].BlockedBy, f.Machines[i].Cluster = blockedByNodeType, obs.clusterOf(m)
		if blockedByNodeType == "" {
			f.Machines[i].BlockedBy = obs.blockedBy(m)
		}
	}
	return f
}

// blockedBy returns why a host that is not known yet, the Machine's TenantCluster, what cannot be read there, its own spec.powerOff or a phase that only a newer manager knows keeps it from being
// moved; empty: none does.
func (obs observation) blockedBy(m *v1alpha1.Machine) string {
	if m.IsHostUnknown() {
		return fmt.Sprintf("Machine %s/%s: it is not known yet whether it has a host", m.Namespace, m.Name)
	}
	if m.Spec.PowerOff {
		return fmt.Sprintf("Machine %s/%s is powered off: its spec.powerOff is set", m.Namespace, m.Name)
	}
	if ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.Reason == v1alpha1.ReasonNewerShape {
		return fmt.Sprintf("Machine %s/%s is of a newer version of Ingot: %s", m.Namespace, m.Name, ready.Message)
	}
	key := types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.TenantClusterRef.Name}
	if !obs.tenants[key] {
		return fmt.Sprintf("TenantCluster %s does not exist", key)
	}
	if blocked := obs.blockedByTenants[key]; blocked != "" || m.Status.NodeRef == nil {
		return blocked
	}
	return obs.unreadable[obs.clusterOf(m)]
}
