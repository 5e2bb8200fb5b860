package rollout

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/controllers/grants"
	plan "github.com/ingot-dev/ingot/controllers/plan/rollout"
	"github.com/ingot-dev/ingot/controllers/serverclock"
	"github.com/ingot-dev/ingot/controllers/step"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
)

// eventTimeout is when to reconcile if the event of a write, which should come first, does not come.
const eventTimeout = time.Second

// Reconciler reconciles Rollouts. All fields are required.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// APIReader reads a NodeType without a cache before its Rollout is superseded.
	APIReader client.Reader
	// Tenants gives access to the shared clusters.
	Tenants *tenantaccess.Registry
	// Grants answers what moves broken Machines that may be at work.
	Grants *grants.Desk
	// Recorder takes events.
	Recorder events.EventRecorder
	// Clock tells the time.
	Clock clock.PassiveClock
}

//+kubebuilder:rbac:groups=ingot.dev,resources=rollouts;nodetypes;nodepools;tenantclusters;entitlements,verbs=get;list;watch
//+kubebuilder:rbac:groups=ingot.dev,resources=rollouts/status,verbs=patch
//+kubebuilder:rbac:groups=ingot.dev,resources=machines,verbs=get;list;watch;patch
//+kubebuilder:rbac:groups=metal3.io,resources=baremetalhosts,verbs=get;list;watch
//+kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := step.CheckDependencies("rollout", r); err != nil {
		return err
	}
	return r.watch(ctrl.NewControllerManagedBy(mgr).Named("rollout")).Complete(r)
}

// Reconcile takes one Rollout one step further.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	obs, err := r.observe(ctx, request.Name)
	if err != nil {
		return step.Retry(fmt.Errorf("observe: %w", err)).Result()
	}
	if obs.rollout == nil {
		r.withdraw(request.Name)
		return step.Done().Result()
	}
	if !metav1.IsControlledBy(obs.rollout, obs.nodeType) {
		return r.refuse(ctx, obs)
	}
	isSuperseded, isKnown, err := r.readIsSuperseded(ctx, obs)
	if err != nil {
		return step.Retry(err).Result()
	}
	if !isKnown {
		return step.Wait("the NodeType's status to be seen", eventTimeout).Result()
	}
	known := facts(obs, isSuperseded, serverclock.Of(r.Clock))
	if err := r.observeGrants(ctx, obs, &known); err != nil {
		return step.Retry(fmt.Errorf("observe: %w", err)).Result()
	}
	decision := plan.Plan(known)
	actErr := r.act(ctx, obs, decision)
	after := obs.rollout.DeepCopy()
	after.Status = decision.Status
	result, err := step.Finish(ctx, step.Writer{Client: r.Client, Recorder: r.Recorder}, obs.rollout, after, decision.Events, outcome(decision, actErr))
	if err == nil {
		countPhase(obs.rollout.Status.Phase, after.Status.Phase)
	}
	return result, err
}

// outcome maps the decision to an Outcome. A write starts the next reconcile by its own event.
func outcome(decision plan.Decision, actErr error) step.Outcome {
	switch {
	case actErr != nil:
		return step.Retry(actErr)
	case decision.Requeue:
		return step.Wait("the next Machine is to be started", eventTimeout)
	case decision.RequeueAfter > 0:
		return step.Wait("the deadline of the next decision", decision.RequeueAfter)
	}
	return step.Done()
}
