package nodepool

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
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

// Reconciler keeps the NodePools.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Reader reads pool, NodeType and Machines without a cache before anything is created or deleted: nothing else would stop what
	// an older wish asks for.
	Reader client.Reader
	// Recorder takes events.
	Recorder events.EventRecorder
	// Clock times the conditions.
	Clock clock.PassiveClock
	// Suffix gives five random lower-case letters and digits for a Machine's name.
	Suffix func() string
}

//+kubebuilder:rbac:groups=ingot.dev,resources=nodepools;nodetypes,verbs=get;list;watch
//+kubebuilder:rbac:groups=ingot.dev,resources=nodepools/status,verbs=patch
//+kubebuilder:rbac:groups=ingot.dev,resources=nodepools/finalizers,verbs=update
//+kubebuilder:rbac:groups=ingot.dev,resources=machines,verbs=get;list;watch;create;delete
//+kubebuilder:rbac:groups=ingot.dev,resources=nodetypes,verbs=use
//+kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("nodepool").
		For(&v1alpha1.NodePool{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&v1alpha1.Machine{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }})).
		Watches(&v1alpha1.Machine{}, soon).
		Watches(&v1alpha1.NodeType{}, handler.EnqueueRequestsFromMapFunc(r.ofNodeType), builder.WithPredicates(targetChanged)).
		Complete(r)
}

// countingInterval gathers what happens to a pool's Machines: an installation changes each of them several times, and a fleet
// that starts would have its pool counted, and written, at each of those.
const countingInterval = 5 * time.Second

// targetChanged leaves out what a NodeType counts.
var targetChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, ok1 := e.ObjectOld.(*v1alpha1.NodeType)
	after, ok2 := e.ObjectNew.(*v1alpha1.NodeType)
	return ok1 && ok2 && (before.Generation != after.Generation || before.Status.Stable() != after.Status.Stable() || before.Status.Target() != after.Status.Target())
}}

// soon enqueues the pool of a Machine that changed a little later; that one came or went is seen at once.
var soon = handler.Funcs{UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	owner := metav1.GetControllerOf(e.ObjectNew)
	if owner == nil || owner.Kind != "NodePool" {
		return
	}
	key := types.NamespacedName{Namespace: e.ObjectNew.GetNamespace(), Name: owner.Name}
	if e.ObjectNew.GetDeletionTimestamp() != nil && e.ObjectOld.GetDeletionTimestamp() == nil {
		q.Add(reconcile.Request{NamespacedName: key})
		return
	}
	q.AddAfter(reconcile.Request{NamespacedName: key}, countingInterval)
}}

func (r *Reconciler) ofNodeType(ctx context.Context, changed client.Object) []reconcile.Request {
	var pools v1alpha1.NodePoolList
	if err := r.Client.List(ctx, &pools, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Listing the NodePools of a NodeType")
		return nil
	}
	var requests []reconcile.Request
	for i := range pools.Items {
		if pools.Items[i].Spec.NodeTypeRef.Name == changed.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: pools.Items[i].Namespace, Name: pools.Items[i].Name}})
		}
	}
	return requests
}

// Reconcile brings one NodePool's Machines and status up to date.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	seen, err := r.observe(ctx, r.Client, request.NamespacedName)
	if err != nil || seen.pool == nil {
		return step.Retry(err).Result()
	}
	decision := decide(seen)
	var told []step.Event
	outcome := step.Done()
	if decision.Create > 0 || len(decision.Delete) > 0 {
		if seen, err = r.observe(ctx, r.Reader, request.NamespacedName); err != nil || seen.pool == nil {
			return step.Retry(err).Result()
		}
		told, outcome = r.act(ctx, seen, decide(seen))
	}
	after := seen.pool.DeepCopy()
	report(after, seen, r.Clock.Now())
	told = append(told, step.Changes(seen.pool.Status.Conditions, after.Status.Conditions, "Scale", v1alpha1.ConditionReady)...)
	return step.Finish(ctx, step.Writer{Client: r.Client, Recorder: r.Recorder}, seen.pool, after, told, outcome)
}
