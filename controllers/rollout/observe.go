package rollout

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/revisionrollout"
	plan "github.com/ingot-dev/ingot/controllers/plan/rollout"
)

// observation is what a reconcile knows. The objects of the lists are the cache's own: they are never changed.
type observation struct {
	// rollout is nil when there is nothing to do: it is gone, settled, or its NodeType is gone and takes it along.
	rollout  *v1alpha1.Rollout
	nodeType *v1alpha1.NodeType
	// before is the newest of the NodeType's older Rollouts; nil: none. newer: there is a newer one.
	before *v1alpha1.Rollout
	newer  bool
	// machines of the NodeType.
	machines []*v1alpha1.Machine
	pools    map[types.NamespacedName]plan.Pool
	// trouble of each TenantCluster that keeps Machines from being rolled; one that has none is in known only.
	trouble map[types.NamespacedName]string
	known   map[types.NamespacedName]bool
}

func (r *Reconciler) observe(ctx context.Context, name string) (observation, error) {
	var rollout v1alpha1.Rollout
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, &rollout); err != nil {
		return observation{}, client.IgnoreNotFound(err)
	}
	if rollout.DeletionTimestamp != nil || rollout.Status.Phase.Settled() {
		return observation{}, nil
	}
	var nodeType v1alpha1.NodeType
	if err := r.Client.Get(ctx, client.ObjectKey{Name: rollout.Spec.NodeTypeRef.Name}, &nodeType); err != nil {
		return observation{}, client.IgnoreNotFound(err)
	}
	if nodeType.DeletionTimestamp != nil {
		return observation{}, nil
	}
	seen := observation{rollout: &rollout, nodeType: &nodeType}
	for _, list := range []func(context.Context, *observation) error{r.siblings, r.machines, r.poolsOf, r.tenants} {
		if err := list(ctx, &seen); err != nil {
			return seen, err
		}
	}
	return seen, nil
}

// siblings are the other Rollouts that the NodeType made.
func (r *Reconciler) siblings(ctx context.Context, seen *observation) error {
	var list v1alpha1.RolloutList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Rollouts: %w", err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		switch {
		case other.Name == seen.rollout.Name || !metav1.IsControlledBy(other, seen.nodeType):
		case revisionrollout.IsNewer(other.Name, seen.rollout.Name):
			seen.newer = true
		case seen.before == nil || revisionrollout.IsNewer(other.Name, seen.before.Name):
			seen.before = other
		}
	}
	return nil
}

func (r *Reconciler) machines(ctx context.Context, seen *observation) error {
	var list v1alpha1.MachineList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Machines: %w", err)
	}
	for i := range list.Items {
		if list.Items[i].Spec.NodeTypeRef.Name == seen.nodeType.Name {
			seen.machines = append(seen.machines, &list.Items[i])
		}
	}
	return nil
}

func (r *Reconciler) poolsOf(ctx context.Context, seen *observation) error {
	var list v1alpha1.NodePoolList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list NodePools: %w", err)
	}
	seen.pools = plan.NewPools(seen.nodeType.Name, list.Items)
	return nil
}

func (r *Reconciler) tenants(ctx context.Context, seen *observation) error {
	var list v1alpha1.TenantClusterList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list TenantClusters: %w", err)
	}
	seen.trouble, seen.known = map[types.NamespacedName]string{}, map[types.NamespacedName]bool{}
	for i := range list.Items {
		key := client.ObjectKeyFromObject(&list.Items[i])
		seen.known[key] = true
		if why := troubleOf(list.Items[i].Status.Conditions); why != "" {
			seen.trouble[key] = fmt.Sprintf("TenantCluster %s is not Ready: %s", key, why)
		}
	}
	return nil
}

// troubleOf is why an object is not Ready, by its conditions; empty when it is.
func troubleOf(conditions []metav1.Condition) string {
	switch ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady); {
	case ready == nil:
		return "nobody has judged it yet"
	case ready.Status != metav1.ConditionTrue:
		return ready.Reason + ": " + ready.Message
	}
	return ""
}

// superseded tells whether another Rollout moves the Machines now, or will. known is false while that cannot be said: the
// cache still shows what the NodeType asked for before this Rollout was made, or its status was lost.
func (r *Reconciler) superseded(ctx context.Context, seen observation) (superseded, known bool, err error) {
	if seen.newer || seen.nodeType.Status.Target() == seen.rollout.Spec.Target() {
		return seen.newer, true, nil
	}
	var now v1alpha1.NodeType
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(seen.nodeType), &now); err != nil {
		return false, false, fmt.Errorf("read NodeType %s: %w", seen.nodeType.Name, err)
	}
	if target := now.Status.Target(); target.IsZero() || target == seen.rollout.Spec.Target() {
		return false, false, nil
	}
	return true, true, nil
}

// facts for the planner.
func facts(seen observation, superseded bool, now time.Time) plan.Facts {
	f := plan.Facts{
		Now: now, Previous: plan.NewPreviousRollout(seen.before), Policy: plan.NewPolicy(seen.nodeType.Spec.Rollout), Pools: seen.pools,
		Machines: make([]plan.Machine, len(seen.machines)),
		Rollout: plan.Rollout{
			Name: seen.rollout.Name, From: seen.rollout.Spec.Source(), To: seen.rollout.Spec.Target(), Paused: seen.rollout.Spec.Paused,
			ToStable: seen.nodeType.Status.Stable() == seen.rollout.Spec.Target(), Superseded: superseded, Status: seen.rollout.Status,
		},
	}
	// What cannot be installed now is not begun: a drained Machine would wait without a node.
	obstacle := troubleOf(seen.nodeType.Status.Conditions)
	if obstacle != "" {
		obstacle = fmt.Sprintf("NodeType %s is not Ready: %s", seen.nodeType.Name, obstacle)
	}
	for i, m := range seen.machines {
		f.Machines[i] = plan.NewMachine(seen.rollout.Name, seen.rollout.Spec.Target(), m, now)
		f.Machines[i].BlockedBy = obstacle
		if obstacle == "" {
			f.Machines[i].BlockedBy = seen.tenantTrouble(m)
		}
	}
	return f
}

func (seen observation) tenantTrouble(m *v1alpha1.Machine) string {
	key := types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.TenantClusterRef.Name}
	if !seen.known[key] {
		return fmt.Sprintf("TenantCluster %s does not exist", key)
	}
	return seen.trouble[key]
}
