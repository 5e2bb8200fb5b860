package remainingnode

import (
	"cmp"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
	"github.com/ingot-dev/ingot/controllers/step"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
)

// name of the controller.
const name = "remainingnode"

// defaultWorkers is the number of workers where Reconciler.Workers is 0.
const defaultWorkers = 16

// recheckInterval is how often a Node that cannot be deleted now is looked at again without an event.
const recheckInterval = 10 * time.Minute

// Reconciler deletes the Nodes that remained. All fields are required unless they say otherwise.
type Reconciler struct {
	// Client reads and writes the management cluster.
	Client client.Client
	// Tenants gives access to the tenants' clusters.
	Tenants *tenantaccess.Registry
	// Recorder takes events.
	Recorder events.EventRecorder
	// Clock tells the time.
	Clock clock.PassiveClock
	// Workers is how many HostRecords are reconciled at the same time; 0: 16.
	Workers int

	shares tenantaccess.Shares
}

//+kubebuilder:rbac:groups=ingot.dev,resources=hostrecords,verbs=get;list;watch;patch
//+kubebuilder:rbac:groups=ingot.dev,resources=tenantclusters,verbs=get;list;watch
//+kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := step.CheckDependencies(name, r); err != nil {
		return err
	}
	r.shares.Workers = cmp.Or(r.Workers, defaultWorkers)
	return r.watch(ctrl.NewControllerManagedBy(mgr).Named(name)).WatchesRawSource(&r.shares).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.shares.Workers}).Complete(r)
}

// Reconcile settles the first Node of one HostRecord that can be settled.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	record := &v1alpha1.HostRecord{}
	if err := r.Client.Get(ctx, request.NamespacedName, record); err != nil {
		return step.Retry(client.IgnoreNotFound(err)).Result()
	}
	for i := range record.Spec.RemainingNodes {
		if result, isEnd, err := r.settle(ctx, request, record, i); isEnd {
			return result, err
		}
	}
	if len(record.Spec.RemainingNodes) > 0 {
		return step.Wait("the tenants' clusters", recheckInterval).Result()
	}
	return step.Done().Result()
}

// settle settles one Node if that can be done now. isEnd is true where the reconcile ends with it.
func (r *Reconciler) settle(ctx context.Context, request reconcile.Request, record *v1alpha1.HostRecord, at int) (result reconcile.Result, isEnd bool, err error) {
	entry := record.Spec.RemainingNodes[at]
	round := r.shares.Begin(ctx, tenantOf(entry), request)
	if round == nil {
		result, err = step.Wait("others occupy the TenantCluster's part of the workers", tenantaccess.BusyPause).Result()
		return result, true, err
	}
	defer round.End()
	obs, err := r.observe(round.Context, record, entry)
	if err != nil {
		result, err = step.Retry(err).Result()
		return result, true, err
	}
	switch lifecycle.PlanRemaining(obs.facts) {
	case lifecycle.DeleteRemaining:
		result, err = r.finish(record, obs.facts.Entry, "it is deleted", r.deleteNode(round.Context, obs))
	case lifecycle.ForgetRemaining:
		result, err = r.finish(record, obs.facts.Entry, "it does not exist any more, or its TenantCluster has not for a month", r.forgetNode(ctx, record, at))
	default:
		return result, false, nil
	}
	return result, true, err
}

// finish ends a reconcile that has deleted a Node or removed an entry.
func (r *Reconciler) finish(record *v1alpha1.HostRecord, entry v1alpha1.ReleasedNode, what string, err error) (reconcile.Result, error) {
	if err != nil {
		return step.Retry(err).Result()
	}
	r.Recorder.Eventf(record, nil, corev1.EventTypeNormal, v1alpha1.ReasonRemainingNodeSettled, "DeleteNode", "Node %s of TenantCluster %s, which remained after a release: %s", entry.Name, entry.Tenant, what)
	return step.Wait("the Nodes that are left", time.Second).Result()
}
