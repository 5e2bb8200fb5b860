package entitlement

import (
	"context"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/step"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
)

// name of the controller.
const name = "entitlement"

// Reconciler reconciles Entitlements. All fields are required.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Tenants gives access to the shared clusters.
	Tenants *tenantaccess.Registry
	// Recorder publishes events.
	Recorder events.EventRecorder
	// Clock tells the time.
	Clock clock.PassiveClock

	lists   lists
	journal journal
	plans   plans
	probes  probes
	placed  placed

	selections selections
	// news has an Entitlement of each cluster whose devices are in another state. SetupWithManager makes it.
	news chan event.GenericEvent
}

//+kubebuilder:rbac:groups=ingot.dev,resources=entitlements,verbs=get;list;watch;patch
//+kubebuilder:rbac:groups=ingot.dev,resources=entitlements/status,verbs=patch
//+kubebuilder:rbac:groups=ingot.dev,resources=tenantclusters;nodetypes;nodetyperenderings;machines,verbs=get;list;watch
//+kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := step.CheckDependencies(name, r); err != nil {
		return err
	}
	r.news = make(chan event.GenericEvent, keptClusters)
	return r.watch(ctrl.NewControllerManagedBy(mgr).Named(name)).Complete(r)
}

// Reconcile brings the objects of one Entitlement in its shared cluster up to date.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	obs, err := r.observe(ctx, request.NamespacedName)
	if err != nil || obs.entitlement == nil {
		return step.Retry(err).Result()
	}
	r.Tenants.WatchClaims(clusterOf(obs.entitlement), obs.mustWatchClaims)
	// A manifest that was copied has the annotation of another object.
	isRegistered := obs.entitlement.Annotations[v1alpha1.AnnotationRegisteredAs] == v1alpha1.RegisteredAs(obs.entitlement) || v1alpha1.IsRestored(obs.entitlement)
	switch has := controllerutil.ContainsFinalizer(obs.entitlement, v1alpha1.EntitlementFinalizer); {
	case !obs.entitlement.DeletionTimestamp.IsZero():
		if !has {
			return step.Done().Result()
		}
		return r.release(ctx, obs)
	case !has || !isRegistered:
		// The event of this write starts the next reconcile.
		return step.Retry(r.setFinalizer(ctx, obs.entitlement, true)).Result()
	}
	problem := obs.problem
	if problem == nil {
		if err := r.noteWritten(ctx, &obs); err != nil {
			return step.Retry(err).Result()
		}
		problem = r.enforce(ctx, &obs)
	}
	return r.finish(ctx, obs, problem)
}
