package nodetype

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	// APIReader reads Rollouts and Machines without a cache before a Rollout is made or a revision is deleted.
	APIReader client.Reader
	// Recorder takes events.
	Recorder events.EventRecorder
	// Clock times the conditions.
	Clock clock.PassiveClock
	// Resolve makes the plan of a new revision's nodes, and tells whether this version of Ingot would make the same of an older
	// one: presentation.Resolve.
	Resolve presentation.Resolver
}

//+kubebuilder:rbac:groups=ingot.dev,resources=nodetypes;osimages;nodeproviders;machines;hostrecords,verbs=get;list;watch
//+kubebuilder:rbac:groups=ingot.dev,resources=nodetypes/status,verbs=patch
//+kubebuilder:rbac:groups=ingot.dev,resources=nodetypes/finalizers,verbs=update
//+kubebuilder:rbac:groups=ingot.dev,resources=nodetyperevisions,verbs=get;list;watch;create;delete
//+kubebuilder:rbac:groups=ingot.dev,resources=nodetyperevisions/finalizers,verbs=update
//+kubebuilder:rbac:groups=ingot.dev,resources=nodetyperenderings,verbs=get;list;watch;create
//+kubebuilder:rbac:groups=ingot.dev,resources=rollouts,verbs=get;list;watch;create;delete
//+kubebuilder:rbac:groups=metal3.io,resources=baremetalhosts,verbs=get;list;watch
//+kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
//+kubebuilder:rbac:groups="",resources=namespaces,verbs=patch,roleName=ingot-manager-hosts
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
	found := decide(obs, r.Resolve)
	if found.claimNamespace {
		// Nothing else follows before the claim is known to be ours: its event starts the next reconcile.
		err := r.claimNamespace(ctx, obs)
		if !apierrors.IsForbidden(err) {
			return step.Retry(err).Result()
		}
		found.obstacle = namespaceDenied(obs)
	}
	if err := r.createRevisionAndRendering(ctx, obs, found); err != nil {
		return step.Retry(err).Result()
	}
	decision := revisionrollout.Plan(facts(obs, found))
	changes, failed := r.act(ctx, obs, found, decision)
	after := obs.nodeType.DeepCopy()
	outcome := report(after, obs, found, decision, r.Clock.Now())
	if failed != nil {
		outcome = step.Retry(failed)
	}
	changes = append(changes, step.ConditionEvents(obs.nodeType.Status.Conditions, after.Status.Conditions, eventAction, v1alpha1.ConditionReady, v1alpha1.ConditionRenderingCurrent)...)
	changes = append(changes, revisionEvents(obs.nodeType.Status, after.Status, found.warnings)...)
	return step.Finish(ctx, step.Writer{Client: r.Client, Recorder: r.Recorder}, obs.nodeType, after, changes, outcome)
}
