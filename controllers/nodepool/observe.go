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

// observation is everything that one reconcile of a NodePool reads. observe sets all of it.
type observation struct {
	// pool is nil where it does not exist or is being deleted; the garbage collector then deletes its Machines.
	pool *v1alpha1.NodePool
	// nodeType is the pool's NodeType; nil: it does not exist.
	nodeType *v1alpha1.NodeType
	// machines are those that the pool controls, also the ones that are being deleted.
	machines []v1alpha1.Machine
}

func (r *Reconciler) observe(ctx context.Context, reader client.Reader, key types.NamespacedName) (observation, error) {
	var obs observation
	var pool v1alpha1.NodePool
	if err := reader.Get(ctx, key, &pool); err != nil {
		return obs, client.IgnoreNotFound(err)
	}
	if pool.DeletionTimestamp != nil {
		return obs, nil
	}
	obs.pool = &pool
	var nodeType v1alpha1.NodeType
	err := reader.Get(ctx, types.NamespacedName{Name: pool.Spec.NodeTypeRef.Name}, &nodeType)
	if client.IgnoreNotFound(err) != nil {
		return obs, fmt.Errorf("read NodeType %s: %w", pool.Spec.NodeTypeRef.Name, err)
	}
	if err == nil {
		obs.nodeType = &nodeType
	}
	obs.machines, err = r.machines(ctx, reader, &pool)
	return obs, err
}

// machines lists the Machines that the pool controls, by their ownerReference. They may belong to the cache and must not be
// changed.
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

// decide returns the planner's decision. A pool whose NodeType does not exist, or is being deleted,
// only shrinks.
func decide(obs observation) scaling.Decision {
	facts := make([]scaling.Machine, len(obs.machines))
	for i := range obs.machines {
		m := &obs.machines[i]
		facts[i] = scaling.Machine{
			Name: m.Name, Ready: isReady(m), UpToDate: !hasTarget(obs.nodeType) || isUpToDate(m, obs.nodeType), Created: m.CreationTimestamp.Time, Deleting: m.DeletionTimestamp != nil,
		}
	}
	decision := scaling.Plan(replicas(obs.pool), facts)
	if obs.nodeType == nil || obs.nodeType.DeletionTimestamp != nil {
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

func isReady(m *v1alpha1.Machine) bool {
	return meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionReady)
}

// isUpToDate tells whether the Machine has the NodeType's target revision. Without a target it is false.
func isUpToDate(m *v1alpha1.Machine, nodeType *v1alpha1.NodeType) bool {
	return hasTarget(nodeType) && m.Status.Installed() == nodeType.Status.Target()
}

// hasTarget tells whether the NodeType has a target revision. Without one no Machine is outdated.
func hasTarget(nodeType *v1alpha1.NodeType) bool {
	return nodeType != nil && nodeType.Status.TargetRevision != ""
}
