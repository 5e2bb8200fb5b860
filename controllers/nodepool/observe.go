package nodepool

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/scaling"
)

// observation is what a reconcile knows.
type observation struct {
	// pool is nil when it is gone or going; its Machines are then collected with it.
	pool *v1alpha1.NodePool
	// nodeType is nil when it does not exist.
	nodeType *v1alpha1.NodeType
	machines []v1alpha1.Machine
}

func (r *Reconciler) observe(ctx context.Context, reader client.Reader, key types.NamespacedName) (observation, error) {
	var seen observation
	var pool v1alpha1.NodePool
	if err := reader.Get(ctx, key, &pool); err != nil {
		return seen, client.IgnoreNotFound(err)
	}
	if pool.DeletionTimestamp != nil {
		return seen, nil
	}
	seen.pool = &pool
	var nodeType v1alpha1.NodeType
	err := reader.Get(ctx, types.NamespacedName{Name: pool.Spec.NodeTypeRef.Name}, &nodeType)
	if client.IgnoreNotFound(err) != nil {
		return seen, fmt.Errorf("read NodeType %s: %w", pool.Spec.NodeTypeRef.Name, err)
	}
	if err == nil {
		seen.nodeType = &nodeType
	}
	seen.machines, err = r.machines(ctx, reader, &pool)
	return seen, err
}

// machines of the pool, by ownerReference. They may be the cache's own: they are never changed.
func (r *Reconciler) machines(ctx context.Context, reader client.Reader, pool *v1alpha1.NodePool) ([]v1alpha1.Machine, error) {
	var list v1alpha1.MachineList
	if err := reader.List(ctx, &list, client.InNamespace(pool.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Machines: %w", err)
	}
	var mine []v1alpha1.Machine
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], pool) {
			mine = append(mine, list.Items[i])
		}
	}
	return mine, nil
}

// decide plans; a pool without a NodeType only shrinks.
func decide(seen observation) scaling.Decision {
	facts := make([]scaling.Machine, len(seen.machines))
	for i := range seen.machines {
		m := &seen.machines[i]
		facts[i] = scaling.Machine{
			Name: m.Name, Ready: ready(m), UpToDate: !targeted(seen.nodeType) || upToDate(m, seen.nodeType), Created: m.CreationTimestamp.Time, Deleting: m.DeletionTimestamp != nil,
		}
	}
	decision := scaling.Plan(replicas(seen.pool), facts)
	if seen.nodeType == nil {
		decision.Create = 0
	}
	return decision
}

func replicas(pool *v1alpha1.NodePool) int {
	if pool.Spec.Replicas == nil {
		return 0
	}
	return int(*pool.Spec.Replicas)
}

func ready(m *v1alpha1.Machine) bool {
	return meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionReady)
}

// upToDate: it has the target revision, as its own condition and the NodeType's count have it. Without a target it is not
// known to.
func upToDate(m *v1alpha1.Machine, nodeType *v1alpha1.NodeType) bool {
	return targeted(nodeType) && m.Status.Installed() == nodeType.Status.Target()
}

// targeted: there is a target; else nothing is outdated.
func targeted(nodeType *v1alpha1.NodeType) bool {
	return nodeType != nil && nodeType.Status.TargetRevision != ""
}
