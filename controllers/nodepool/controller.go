package nodepool

import (
	"context"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/event"
	"github.com/ingot-dev/ingot/controllers/step"
)

// Reconciler reconciles NodePools. All fields are required.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// APIReader reads the pool, the NodeType and the Machines from the API server before Machines are created or deleted. A creation has
	// no optimistic lock that would fail after a decision from a stale cache.
	APIReader client.Reader
	// Recorder publishes events.
	Recorder events.EventRecorder
	// Clock tells the time.
	Clock clock.PassiveClock
	// Suffix returns five random lower-case letters and digits for a Machine's name.
	Suffix func() string
}

//+kubebuilder:rbac:groups=ingot.dev,resources=nodepools;nodequotas;nodetypes;nodetyperevisions;nodeproviders;tenantclusters;hostrecords,verbs=get;list;watch
//+kubebuilder:rbac:groups=metal3.io,resources=baremetalhosts,verbs=get;list;watch
//+kubebuilder:rbac:groups=ingot.dev,resources=nodepools;nodepools/status,verbs=patch
//+kubebuilder:rbac:groups=ingot.dev,resources=nodepools/finalizers,verbs=update
//+kubebuilder:rbac:groups=ingot.dev,resources=machines,verbs=get;list;watch;create;patch;delete
//+kubebuilder:rbac:groups=ingot.dev,resources=nodetypes,verbs=use
//+kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := step.CheckDependencies("nodepool", r); err != nil {
		return err
	}
	return r.watch(ctrl.NewControllerManagedBy(mgr).Named("nodepool")).Complete(r)
}

// Reconcile brings one NodePool's Machines and status up to date.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	obs, err := r.observe(ctx, r.Client, request.NamespacedName)
	if err != nil || obs.pool == nil {
		return step.Retry(err).Result()
	}
	if err := r.takeOver(ctx, obs.pool); err != nil {
		return step.Retry(err).Result()
	}
	decision := decide(obs)
	var changes []event.Event
	outcome := step.Done()
	if decision.Create > 0 || len(decision.Delete) > 0 {
		if obs, err = r.observe(ctx, r.APIReader, request.NamespacedName); err != nil || obs.pool == nil {
			return step.Retry(err).Result()
		}
		changes, outcome = r.act(ctx, obs, decide(obs))
	}
	after := obs.pool.DeepCopy()
	report(after, obs, r.Clock.Now())
	changes = append(changes, step.ConditionEvents(obs.pool.Status.Conditions, after.Status.Conditions, eventAction, v1alpha1.ConditionReady)...)
	return step.Finish(ctx, step.Writer{Client: r.Client, Recorder: r.Recorder}, obs.pool, after, changes, outcome)
}
