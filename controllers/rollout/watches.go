package rollout

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/step"
)

// batchDelay delays reconciles after changes of Machines, NodePools, TenantClusters, Entitlements and of what is in use, so that many changes cause one reconcile.
const batchDelay = 200 * time.Millisecond

func (r *Reconciler) watch(b *builder.Builder) *builder.Builder {
	return b.For(&v1alpha1.Rollout{}, builder.WithPredicates(isNotFinal)).
		// A Rollout waits for the one before it, and ends when a newer one is made.
		Watches(&v1alpha1.Rollout{}, r.enqueueActiveRollouts(0, func(o client.Object) string { return o.(*v1alpha1.Rollout).Spec.NodeTypeRef.Name }), builder.WithPredicates(phaseChanged)).
		// What one Rollout takes away from a tenant, another one may not.
		Watches(&v1alpha1.Rollout{}, r.enqueueActiveRollouts(batchDelay, ofAll), builder.WithPredicates(inUseChanged)).
		Watches(&v1alpha1.Entitlement{}, r.enqueueActiveRollouts(batchDelay, ofAll), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.NodeType{}, r.enqueueActiveRollouts(0, client.Object.GetName), builder.WithPredicates(nodeTypeChanged)).
		Watches(&v1alpha1.NodePool{}, r.enqueueActiveRollouts(batchDelay, func(o client.Object) string { return o.(*v1alpha1.NodePool).Spec.NodeTypeRef.Name }),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.TenantCluster{}, r.enqueueActiveRollouts(batchDelay, ofAll), builder.WithPredicates(tenantChanged)).
		Watches(&v1alpha1.Machine{}, r.enqueueActiveRollouts(0, nodeTypeOf), builder.WithPredicates(specRevisionChanged)).
		Watches(&v1alpha1.Machine{}, r.enqueueActiveRollouts(batchDelay, nodeTypeOf), builder.WithPredicates(machineChanged))
}

func nodeTypeOf(o client.Object) string { return o.(*v1alpha1.Machine).Spec.NodeTypeRef.Name }

// ofAll has the Rollouts of all NodeTypes enqueued.
func ofAll(client.Object) string { return "" }

// enqueueActiveRollouts enqueues, after a delay, the Rollouts that are not final of the NodeType that an object names, or of every
// NodeType if it names none.
func (r *Reconciler) enqueueActiveRollouts(delay time.Duration, nodeType func(client.Object) string) handler.EventHandler {
	return step.EnqueueAfter(delay, func(ctx context.Context, changed client.Object) (requests []reconcile.Request) {
		var list v1alpha1.RolloutList
		if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
			log.FromContext(ctx).Error(err, "Listing the Rollouts that an object concerns")
			return nil
		}
		name := nodeType(changed)
		for i := range list.Items {
			if o := &list.Items[i]; !o.Status.Phase.IsFinal() && (name == "" || o.Spec.NodeTypeRef.Name == name) {
				requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: o.Name}})
			}
		}
		return requests
	})
}

// isNotFinal leaves out Rollouts in a final phase, which start no more Machines.
var isNotFinal = predicate.NewPredicateFuncs(func(o client.Object) bool {
	rollout, ok := o.(*v1alpha1.Rollout)
	return ok && !rollout.Status.Phase.IsFinal()
})

var phaseChanged = step.OnUpdate(func(before, after *v1alpha1.Rollout) bool { return before.Status.Phase != after.Status.Phase })

var inUseChanged = step.OnUpdate(func(before, after *v1alpha1.Rollout) bool {
	return !slices.Equal(before.Status.InUse, after.Status.InUse)
})

// nodeTypeChanged leaves out the counts of hosts and Machines. A revision is compared with its rendering: a refresh changes only
// the rendering, and a Rollout that is not enqueued for it would wait until the cache is synced again.
var nodeTypeChanged = step.OnUpdate(func(before, after *v1alpha1.NodeType) bool {
	return before.Generation != after.Generation || before.Status.Stable() != after.Status.Stable() ||
		before.Status.Target() != after.Status.Target() || step.NotReadyReason(before.Status.Conditions) != step.NotReadyReason(after.Status.Conditions)
})

var tenantChanged = step.OnUpdate(func(before, after *v1alpha1.TenantCluster) bool {
	return step.NotReadyReason(before.Status.Conditions) != step.NotReadyReason(after.Status.Conditions)
})

// specRevisionChanged lets through the Machines whose spec.revision or spec.rendering changed, mostly by this controller: the
// next Machine may be started at once.
var specRevisionChanged = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || rolloutOf(e.ObjectOld) != rolloutOf(e.ObjectNew)
	},
}

func rolloutOf(o client.Object) string { return o.GetLabels()[v1alpha1.LabelRollout] }

// machineChanged leaves out what the planner does not decide by: bytes, checks, deadlines within a phase.
var machineChanged = step.OnUpdate(func(before, after *v1alpha1.Machine) bool { return machineStateOf(before) != machineStateOf(after) })

// machineState is the part of a Machine's status that a Rollout decides by.
type machineState struct {
	phase               v1alpha1.MachinePhase
	installed           v1alpha1.RenderedRevision
	ready, reason       string
	since, generation   int64
	deleting, hasNoHost bool
}

func machineStateOf(m *v1alpha1.Machine) machineState {
	s := machineState{
		phase: m.Status.Phase, installed: m.Status.Installed(), generation: m.Status.ObservedGeneration,
		deleting: m.DeletionTimestamp != nil, hasNoHost: m.Status.HostRef == nil,
	}
	if ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		s.ready, s.reason, s.since = string(ready.Status), ready.Reason, ready.LastTransitionTime.Unix()
	}
	return s
}
