package servingcert

import (
	"cmp"
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/servingcert"
	"github.com/ingot-dev/ingot/controllers/step"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
)

// name of the controller.
const name = "servingcert"

// defaultWorkers is the number of workers where Reconciler.Workers is 0.
const defaultWorkers = 16

// forbiddenPause is how often a request is tried again that the tenant's API server does not let the manager approve.
const forbiddenPause = 5 * time.Minute

// Reconciler approves the requests of Machines' kubelets. All fields are required unless they say otherwise.
type Reconciler struct {
	// Client reads and writes the management cluster.
	Client client.Client
	// APIReader reads the claim Secrets, which no cache has.
	APIReader client.Reader
	// Tenants gives access to the tenants' clusters.
	Tenants *tenantaccess.Registry
	// Recorder takes events.
	Recorder events.EventRecorder
	// Clock tells the time.
	Clock clock.PassiveClock
	// Workers is how many Machines are reconciled at the same time; 0: 16.
	Workers int

	shares tenantaccess.Shares
}

//+kubebuilder:rbac:groups=ingot.dev,resources=machines;tenantclusters;hostrecords,verbs=get;list;watch
//+kubebuilder:rbac:groups=ingot.dev,resources=machines/status,verbs=patch
//+kubebuilder:rbac:groups=metal3.io,resources=baremetalhosts,verbs=get;list;watch
//+kubebuilder:rbac:groups="",resources=secrets,verbs=get,roleName=ingot-manager-hosts
//+kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := step.CheckDependencies(name, r); err != nil {
		return err
	}
	r.shares.Tenants, r.shares.Workers = r.Tenants, cmp.Or(r.Workers, defaultWorkers)
	return r.watch(ctrl.NewControllerManagedBy(mgr).Named(name)).WithOptions(controller.Options{MaxConcurrentReconciles: r.shares.Workers}).Complete(r)
}

// Reconcile decides about the requests of one Machine's kubelet, and approves at most one.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	defer r.shares.Skip(request)
	var machine v1alpha1.Machine
	if err := r.Client.Get(ctx, request.NamespacedName, &machine); err != nil {
		return step.Retry(client.IgnoreNotFound(err)).Result()
	}
	isWanted, err := r.isWanted(ctx, &machine)
	if err != nil {
		return step.Retry(err).Result()
	}
	if !isWanted {
		return r.forget(ctx, &machine)
	}
	round := r.shares.Begin(ctx, tenantKey(&machine), request)
	if round == nil {
		// The request is sent again when a worker is free.
		return step.Done().Result()
	}
	defer round.End()
	obs, err := r.observe(round.Context, &machine)
	if err = errors.Join(err, round.Interrupted()); err != nil {
		return step.Retry(err).Result()
	}
	decision := servingcert.Decide(r.Clock.Now(), obs.machine, obs.requests)
	if decision.Approve != nil {
		decision, err = r.approve(round.Context, obs, *decision.Approve)
		if err = errors.Join(err, round.Interrupted()); err != nil {
			return step.Retry(err).Result()
		}
	}
	return r.report(ctx, &machine, decision)
}

// isWanted reports whether the Machine has a Node in a cluster whose serving certificates Ingot approves.
func (r *Reconciler) isWanted(ctx context.Context, m *v1alpha1.Machine) (bool, error) {
	if !m.DeletionTimestamp.IsZero() || m.Status.NodeRef == nil {
		return false, nil
	}
	var tenant v1alpha1.TenantCluster
	if err := r.Client.Get(ctx, tenantKey(m), &tenant); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return tenant.Spec.MustApproveServingCertificates(), nil
}

// forget removes the condition of a Machine that it does not speak of any more.
func (r *Reconciler) forget(ctx context.Context, m *v1alpha1.Machine) (reconcile.Result, error) {
	after := m.DeepCopy()
	meta.RemoveStatusCondition(&after.Status.Conditions, v1alpha1.ConditionServingCertificateApproved)
	return step.Finish(ctx, step.Writer{Client: r.Client, Recorder: r.Recorder}, m, after, nil, step.Done())
}

// tenantKey returns the name of the Machine's TenantCluster.
func tenantKey(m *v1alpha1.Machine) types.NamespacedName {
	return types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.TenantClusterRef.Name}
}
