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

// Reconciler reconciles TenantClusters. All fields are required.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// APIReader reads from the API server: Secrets, and what refers to it before the finalizer is removed.
	APIReader client.Reader
	// Tenants is the registry that gets the kubeconfigs.
	Tenants *tenantaccess.Registry
	// Recorder publishes events.
	Recorder events.EventRecorder
	// Clock tells the time.
	Clock clock.PassiveClock
}

//+kubebuilder:rbac:groups=ingot.dev,resources=tenantclusters,verbs=get;list;watch;patch
//+kubebuilder:rbac:groups=ingot.dev,resources=tenantclusters/status,verbs=patch
//+kubebuilder:rbac:groups=ingot.dev,resources=machines;entitlements,verbs=get;list;watch
//+kubebuilder:rbac:groups="",resources=secrets,verbs=get,roleName=ingot-manager-tenants
//+kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := step.CheckDependencies("tenant", r); err != nil {
		return err
	}
	return r.watch(ctrl.NewControllerManagedBy(mgr).Named("tenant")).Complete(r)
}

// Reconcile brings one TenantCluster's client set and status up to date. It never waits for the tenant.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	obs, err := r.observe(ctx, request.NamespacedName)
	if err != nil {
		return step.Retry(err).Result()
	}
	switch {
	case obs.tenant == nil:
		r.Tenants.Remove(request.NamespacedName)
		return step.Done().Result()
	case obs.deleting && !obs.isNeeded():
		r.Tenants.Remove(request.NamespacedName)
		return step.Retry(r.removeFinalizer(ctx, obs.tenant)).Result()
	case !obs.deleting && !controllerutil.ContainsFinalizer(obs.tenant, v1alpha1.TenantFinalizer):
		// The event of this write starts the next reconcile.
		return step.Retry(r.addFinalizer(ctx, obs.tenant)).Result()
	}
	access, problem := r.connect(ctx, obs)
	after := obs.tenant.DeepCopy()
	outcome := report(after, obs, access, problem, r.Clock.Now())
	changes := step.ConditionEvents(obs.tenant.Status.Conditions, after.Status.Conditions, "Connect", v1alpha1.ConditionReady, v1alpha1.ConditionServingCertificatesApproved)
	return step.Finish(ctx, step.Writer{Client: r.Client, Recorder: r.Recorder}, obs.tenant, after, changes, outcome)
}
