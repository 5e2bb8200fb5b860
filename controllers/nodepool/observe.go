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
	"github.com/ingot-dev/ingot/controllers/step"
)

// observation is everything that one reconcile of a NodePool reads. observe sets all of it.
type observation struct {
	// pool is nil where it does not exist or is being deleted; the garbage collector then deletes its Machines.
	pool *v1alpha1.NodePool
	// nodeType is the pool's NodeType; nil: it does not exist.
	nodeType *v1alpha1.NodeType
	// revision is what new Machines of the NodeType get; nil: it does not exist, or there is none yet.
	revision *v1alpha1.NodeTypeRevision
	// tenant is the pool's TenantCluster; nil: it does not exist.
	tenant *v1alpha1.TenantCluster
	// machines are those that the pool controls, also the ones that are being deleted.
	machines []v1alpha1.Machine
	// hosts counts the hosts of the NodeType. countHosts sets it while a Machine that is asked for has no host.
	hosts v1alpha1.HostCounts
	// free is how many hosts Machines of the pool could claim now, no more than the NodeQuota has room for. countHosts sets it with hosts.
	free int
	// claimants are the names of the Machines in the pool's namespace that a host names as its consumer. countHosts sets it with hosts.
	claimants map[string]bool
	// areHostsCounted is true when countHosts has set hosts, free and claimants.
	areHostsCounted bool
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
	var err error
	if obs.nodeType, err = read(ctx, reader, types.NamespacedName{Name: pool.Spec.NodeTypeRef.Name}, &v1alpha1.NodeType{}); err != nil {
		return obs, err
	}
	if obs.nodeType != nil && obs.nodeType.Status.StableRevision != "" {
		if obs.revision, err = read(ctx, reader, types.NamespacedName{Name: obs.nodeType.Status.StableRevision}, &v1alpha1.NodeTypeRevision{}); err != nil {
			return obs, err
		}
	}
	if obs.tenant, err = read(ctx, reader, types.NamespacedName{Namespace: pool.Namespace, Name: pool.Spec.TenantClusterRef.Name}, &v1alpha1.TenantCluster{}); err != nil {
		return obs, err
	}
	if obs.machines, err = r.machines(ctx, reader, &pool); err != nil {
		return obs, err
	}
	return obs, r.countHosts(ctx, &obs)
}

// read returns an object; nil: it does not exist.
func read[T client.Object](ctx context.Context, reader client.Reader, key types.NamespacedName, object T) (T, error) {
	if err := reader.Get(ctx, key, object); err != nil {
		var none T
		if client.IgnoreNotFound(err) == nil {
			return none, nil
		}
		return none, fmt.Errorf("read %s %s: %w", step.Kind(object), key, err)
	}
	return object, nil
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

// decide returns the planner's decision. A pool whose NodeType or TenantCluster is missing, or is being deleted, only shrinks.
func decide(obs observation) scaling.Decision {
	facts := make([]scaling.Machine, len(obs.machines))
	for i := range obs.machines {
		m := &obs.machines[i]
		facts[i] = scaling.Machine{
			Name: m.Name, Ready: isReady(m), UpToDate: !hasTarget(obs.nodeType) || isUpToDate(m, obs.nodeType) || isRestoreWaiting(m), Created: m.CreationTimestamp.Time, Deleting: m.DeletionTimestamp != nil,
			HasHost: m.Status.HostRef != nil || isRestoreWaiting(m), IsWaiting: isWaiting(obs, m), IsUnknown: isUnknown(m),
		}
	}
	decision := scaling.Plan(replicas(obs.pool), obs.free, facts)
	if reason, _ := obs.missing(); reason != "" {
		decision.Create = 0
	}
	return decision
}

// isUnknown reports whether the Machine's controller has not said yet what becomes of it: it has no status, as after a restore without status.
func isUnknown(m *v1alpha1.Machine) bool {
	return m.Status.HostRef == nil && m.Status.Phase == "" && !isRestoreWaiting(m)
}

// count returns how many Machines of the pool that are not being deleted are such.
func (obs *observation) count(is func(*v1alpha1.Machine) bool) int {
	n := 0
	for i := range obs.machines {
		if m := &obs.machines[i]; m.DeletionTimestamp == nil && is(m) {
			n++
		}
	}
	return n
}

// isRestoreWaiting reports whether a host names the restored Machine, and is not taken over yet. It counts as a Machine with a host that is not Ready, and
// which revision it has is not known.
//
// Without it: the API server of a tenant is gone for good, and one such Machine keeps every scale-down from deleting one of the others.
func isRestoreWaiting(m *v1alpha1.Machine) bool {
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionClaimed)
	return m.Status.HostRef == nil && c != nil && c.Reason == v1alpha1.ReasonRestoreWaiting
}

// isWaiting reports whether the Machine's controller has found no host for it, and no host names it. A Machine without a status may have a host, and so may
// one that waits for anything else, such as for what becomes of the host of an earlier Machine of its name.
func isWaiting(obs observation, m *v1alpha1.Machine) bool {
	c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionClaimed)
	return obs.areHostsCounted && m.Status.HostRef == nil && m.Status.Phase == v1alpha1.MachinePending && m.Status.ObservedGeneration >= m.Generation &&
		c != nil && c.Status == metav1.ConditionFalse && (c.Reason == v1alpha1.ReasonNoHostAvailable || c.Reason == v1alpha1.ReasonQuotaExceeded) && !obs.claimants[m.Name]
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
