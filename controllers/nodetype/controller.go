package nodetype

import (
	"context"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/revisionrollout"
	"github.com/ingot-dev/ingot/controllers/step"
	"github.com/ingot-dev/ingot/presentation"
)

// Reconciler reconciles NodeTypes. All fields are required.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// APIReader reads Rollouts and Machines from the API server before a Rollout is created or a revision is deleted.
	APIReader client.Reader
	// Recorder publishes events.
	Recorder events.EventRecorder
	// Clock tells the time.
	Clock clock.PassiveClock
	// Resolve makes the plan for the nodes of a revision, also to compare it with the plan of an existing rendering:
	// presentation.Resolve.
	Resolve presentation.Resolver
}

//+kubebuilder:rbac:groups=ingot.dev,resources=nodetypes;osimages;nodeproviders;machines;hostrecords,verbs=get;list;watch
//+kubebuilder:rbac:groups=ingot.dev,resources=nodetypes/status,verbs=patch
//+kubebuilder:rbac:groups=ingot.dev,resources=nodetypes/finalizers,verbs=update
//+kubebuilder:rbac:groups=ingot.dev,resources=nodetyperevisions,verbs=get;list;watch;create;patch;delete
//+kubebuilder:rbac:groups=ingot.dev,resources=nodetyperevisions/finalizers,verbs=update
//+kubebuilder:rbac:groups=ingot.dev,resources=nodetyperenderings,verbs=get;list;watch;create;patch
//+kubebuilder:rbac:groups=ingot.dev,resources=rollouts,verbs=get;list;watch;create;patch;delete
//+kubebuilder:rbac:groups=metal3.io,resources=baremetalhosts,verbs=get;list;watch
//+kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
//+kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := step.CheckDependencies("nodetype", r); err != nil {
		return err
	}
	return r.watch(ctrl.NewControllerManagedBy(mgr).Named("nodetype")).Complete(r)
}

// Reconcile brings one NodeType's revision and status up to date.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	obs, err := r.observe(ctx, request.Name)
	if err != nil || obs.nodeType == nil {
		return step.Retry(err).Result()
	}
	if isTaken, err := r.takeOver(ctx, obs); err != nil || isTaken {
		return takenOver(err).Result()
	}
	assessed := decide(obs, r.Resolve)
	if err := r.createRevisionAndRendering(ctx, obs, assessed); err != nil {
		return step.Retry(err).Result()
	}
	decision := revisionrollout.Plan(facts(obs, assessed))
	changes, failed := r.act(ctx, obs, assessed, decision)
	after := obs.nodeType.DeepCopy()
	outcome := report(after, obs, assessed, decision, r.Clock.Now())
	if failed != nil {
		outcome = step.Retry(failed)
	}
	changes = append(changes, step.ConditionEvents(obs.nodeType.Status.Conditions, after.Status.Conditions, eventAction, v1alpha1.ConditionReady, v1alpha1.ConditionRenderingCurrent, v1alpha1.ConditionHardwareMatches, v1alpha1.ConditionGateKeyUnmanaged)...)
	changes = append(changes, revisionEvents(obs.nodeType.Status, after.Status, assessed.warnings)...)
	return step.Finish(ctx, step.Writer{Client: r.Client, Recorder: r.Recorder}, obs.nodeType, after, changes, outcome)
}
