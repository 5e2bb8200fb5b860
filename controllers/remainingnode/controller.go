package remainingnode

import (
	"cmp"
	"context"
	"errors"
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

	shares    tenantaccess.Shares
	deletions tenantaccess.Deletions
}

//+kubebuilder:rbac:groups=ingot.dev,resources=hostrecords,verbs=get;list;watch;patch
//+kubebuilder:rbac:groups=ingot.dev,resources=tenantclusters,verbs=get;list;watch
//+kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := step.CheckDependencies(name, r); err != nil {
		return err
	}
	r.deletions.MaxPause = recheckInterval
	r.shares.Tenants, r.shares.Workers = r.Tenants, cmp.Or(r.Workers, defaultWorkers)
	return r.watch(ctrl.NewControllerManagedBy(mgr).Named(name)).WatchesRawSource(&r.shares).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.shares.Workers}).Complete(r)
}

// Reconcile settles the Nodes of one HostRecord that can be settled, and removes at most one entry. An entry that fails, or whose
// TenantCluster has no worker free, does not hold up the others.
//
// Without it: the first entry is of a tenant whose API server answers each request with an error, and the Nodes that remained in the
// clusters of the tenants after it are never deleted.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	defer r.shares.Skip(request)
	record := &v1alpha1.HostRecord{}
	if err := r.Client.Get(ctx, request.NamespacedName, record); err != nil {
		return step.Retry(client.IgnoreNotFound(err)).Result()
	}
	if len(record.Spec.RemainingNodes) == 0 {
		return step.Done().Result()
	}
	var failures []error
	pause := recheckInterval
	for i := range record.Spec.RemainingNodes {
		after, isChanged, err := r.settle(ctx, request, record, i)
		if err != nil {
			failures = append(failures, err)
		}
		pause = min(pause, after)
		// The entries that follow have other places in the HostRecord now.
		if isChanged {
			break
		}
	}
	if len(failures) > 0 {
		return step.Retry(errors.Join(failures...)).Result()
	}
	return step.Wait("the Nodes that are left", pause).Result()
}

// settle settles one Node if that can be done now. It returns after how long the HostRecord must be looked at again, and isChanged if the
// HostRecord was written.
func (r *Reconciler) settle(ctx context.Context, request reconcile.Request, record *v1alpha1.HostRecord, at int) (after time.Duration, isChanged bool, err error) {
	entry := record.Spec.RemainingNodes[at]
	round := r.shares.Begin(ctx, tenantOf(entry), request)
	if round == nil {
		// The request is sent again when a worker is free.
		return recheckInterval, false, nil
	}
	defer round.End()
	obs, err := r.observe(round.Context, record, entry)
	if err = errors.Join(err, round.Interrupted()); err != nil {
		return recheckInterval, false, err
	}
	switch lifecycle.PlanRemaining(obs.facts) {
	case lifecycle.DeleteRemaining:
		r.deleteNode(round.Context, record, obs)
		return time.Second, false, nil
	case lifecycle.ForgetRemaining:
		return time.Second, true, r.finish(record, obs.facts.Entry, whyForgotten(obs.facts), r.forgetNode(ctx, record, at))
	case lifecycle.KeepRemaining:
		if obs.node == nil {
			return recheckInterval, false, nil
		}
		if pause := r.deletions.PauseLeft(obs.node, obs.facts.Now); pause > 0 {
			return pause, false, nil
		}
	case lifecycle.KeepElsewhere:
		r.tellElsewhere(record, obs.facts)
	case lifecycle.KeepUnproven:
		r.Recorder.Eventf(record, nil, corev1.EventTypeWarning, v1alpha1.ReasonRemainingNodeUnproven, "DeleteNode", "Node %s of TenantCluster %s may have remained after a release: expected a providerID or a uid that proves it to be of Machine %s, seen providerID %q; if nothing runs it any more, an administrator of that cluster must delete it (kubectl delete node), and the entry goes by itself", entry.Name, entry.Tenant, entry.MachineUID, obs.facts.Node.ProviderID)
	}
	return recheckInterval, false, nil
}

// tellElsewhere says that the Node may be in another cluster than the one that answers, and how the entry is cleared.
func (r *Reconciler) tellElsewhere(record *v1alpha1.HostRecord, facts lifecycle.Remaining) {
	entry := facts.Entry
	r.Recorder.Eventf(record, nil, corev1.EventTypeWarning, v1alpha1.ReasonRemainingNodeElsewhere, "DeleteNode", "Node %s of TenantCluster %s may have remained after a release: expected the cluster %s (the uid of its Namespace kube-system), seen %q; if the first cluster still exists, an administrator of it must delete the Node there (kubectl delete node); the entry goes a month after the release, or when it is taken out of spec.remainingNodes of this HostRecord", entry.Name, entry.Tenant, entry.ClusterUID, facts.Tenant.ClusterUID)
}

// whyForgotten says why the entry of a Node is removed.
func whyForgotten(facts lifecycle.Remaining) string {
	switch {
	case facts.Tenant.Reachable && facts.IsElsewhere():
		return "its TenantCluster does not lead to the cluster " + string(facts.Entry.ClusterUID) + ", and a month has passed since the release: nobody knows whether it is still there"
	case facts.Node.Found:
		return "the Node of that name is another machine's now"
	case facts.Tenant.Found:
		return "it does not exist any more"
	}
	return "its TenantCluster has not existed for a month"
}

// finish records that an entry was removed.
func (r *Reconciler) finish(record *v1alpha1.HostRecord, entry v1alpha1.ReleasedNode, what string, err error) error {
	if err != nil {
		return err
	}
	r.Recorder.Eventf(record, nil, corev1.EventTypeNormal, v1alpha1.ReasonRemainingNodeSettled, "DeleteNode", "Node %s of TenantCluster %s, which remained after a release: %s", entry.Name, entry.Tenant, what)
	return nil
}
