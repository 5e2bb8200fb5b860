package remainingnode

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
	"github.com/ingot-dev/ingot/controllers/step"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
)

// name of the controller.
const name = "remainingnode"

// recheckInterval is how often a Node that cannot be deleted now is looked at again without an event.
const recheckInterval = 10 * time.Minute

// Reconciler deletes the Nodes that remained. All fields are required.
type Reconciler struct {
	// Client reads and writes the management cluster.
	Client client.Client
	// Tenants gives access to the tenants' clusters.
	Tenants *tenantaccess.Registry
	// Recorder takes events.
	Recorder events.EventRecorder
	// Clock tells the time.
	Clock clock.PassiveClock
}

//+kubebuilder:rbac:groups=ingot.dev,resources=hostrecords,verbs=get;list;watch;patch
//+kubebuilder:rbac:groups=ingot.dev,resources=tenantclusters,verbs=get;list;watch
//+kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := step.CheckDependencies(name, r); err != nil {
		return err
	}
	return r.watch(ctrl.NewControllerManagedBy(mgr).Named(name)).Complete(r)
}

// Reconcile settles the first Node of one HostRecord that can be settled.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	record := &v1alpha1.HostRecord{}
	if err := r.Client.Get(ctx, request.NamespacedName, record); err != nil {
		return step.Retry(client.IgnoreNotFound(err)).Result()
	}
	for i := range record.Spec.RemainingNodes {
		obs, err := r.observe(ctx, record, record.Spec.RemainingNodes[i])
		if err != nil {
			return step.Retry(err).Result()
		}
		switch lifecycle.PlanRemaining(obs.facts) {
		case lifecycle.DeleteRemaining:
			return r.finish(record, obs.facts.Entry, "it is deleted", r.deleteNode(ctx, obs))
		case lifecycle.ForgetRemaining:
			return r.finish(record, obs.facts.Entry, "it does not exist any more, or its TenantCluster has not for a month", r.forgetNode(ctx, record, i))
		}
	}
	if len(record.Spec.RemainingNodes) > 0 {
		return step.Wait("the tenants' clusters", recheckInterval).Result()
	}
	return step.Done().Result()
}

// finish ends a reconcile that has deleted a Node or removed an entry.
func (r *Reconciler) finish(record *v1alpha1.HostRecord, entry v1alpha1.ReleasedNode, what string, err error) (reconcile.Result, error) {
	if err != nil {
		return step.Retry(err).Result()
	}
	r.Recorder.Eventf(record, nil, corev1.EventTypeNormal, v1alpha1.ReasonRemainingNodeSettled, "DeleteNode", "Node %s of TenantCluster %s, which remained after a release: %s", entry.Name, entry.Tenant, what)
	return step.Wait("the Nodes that are left", time.Second).Result()
}
