package tenant

import (
	"context"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/step"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
)

// Reconciler keeps the TenantClusters.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Reader reads without a cache: Secrets, of which none is kept, and the Machines when a TenantCluster is to go.
	Reader client.Reader
	// Registry gets the kubeconfigs.
	Registry *tenantaccess.Registry
	// Recorder takes events.
	Recorder events.EventRecorder
	// Clock times the conditions.
	Clock clock.PassiveClock
}

//+kubebuilder:rbac:groups=ingot.dev,resources=tenantclusters,verbs=get;list;watch;patch
//+kubebuilder:rbac:groups=ingot.dev,resources=tenantclusters/status,verbs=patch
//+kubebuilder:rbac:groups=ingot.dev,resources=machines,verbs=get;list;watch
//+kubebuilder:rbac:groups="",resources=secrets,verbs=get,roleName=ingot-manager-tenants
//+kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return r.watch(ctrl.NewControllerManagedBy(mgr).Named("tenant")).Complete(r)
}

// Reconcile brings one TenantCluster's client set and status up to date. It never waits for the tenant.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	seen, err := r.observe(ctx, request.NamespacedName)
	if err != nil {
		return step.Retry(err).Result()
	}
	switch {
	case seen.tenant == nil:
		r.Registry.Remove(request.NamespacedName)
		return step.Done().Result()
	case seen.deleting && len(seen.machines) == 0:
		r.Registry.Remove(request.NamespacedName)
		return step.Retry(r.letGo(ctx, seen.tenant)).Result()
	case !seen.deleting && !controllerutil.ContainsFinalizer(seen.tenant, v1alpha1.TenantFinalizer):
		// Its own event brings it back.
		return step.Retry(r.hold(ctx, seen.tenant)).Result()
	}
	access, problem := r.connect(ctx, seen)
	after := seen.tenant.DeepCopy()
	outcome := report(after, seen, access, problem, r.Clock.Now())
	changes := step.ConditionEvents(seen.tenant.Status.Conditions, after.Status.Conditions, "Connect", v1alpha1.ConditionReady)
	return step.Finish(ctx, step.Writer{Client: r.Client, Recorder: r.Recorder}, seen.tenant, after, changes, outcome)
}
