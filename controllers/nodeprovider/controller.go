package nodeprovider

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/event"
	"github.com/ingot-dev/ingot/controllers/step"
)

// Reconciler reconciles NodeProviders. All fields are required.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Recorder publishes events.
	Recorder events.EventRecorder
	// Clock tells the time.
	Clock clock.PassiveClock
	// CheckBoot asks the addresses of the boot service.
	CheckBoot CheckBoot
	// CheckInstaller asks the service that installs.
	CheckInstaller CheckInstaller

	installers answers[installerAnswer]
	rights     answers[bool]
}

// CheckBoot asks the addresses of a boot service whether this installation's boot service answers at them. Its errors are *hardware.Error: Conflict if
// something else answers, and any other kind if nothing could be learned.
type CheckBoot func(ctx context.Context, boot v1alpha1.NetbootSpec) error

// CheckInstaller asks the service that installs the hosts of a NodeProvider, such as Ironic, and returns what it has found. Its errors are *hardware.Error with a reason.
type CheckInstaller func(ctx context.Context, provider *v1alpha1.NodeProvider) (string, error)

// workers is how many NodeProviders are reconciled at the same time. An address that does not answer occupies one for some seconds.
const workers = 4

//+kubebuilder:rbac:groups=ingot.dev,resources=nodeproviders,verbs=get;list;watch
//+kubebuilder:rbac:groups=ingot.dev,resources=nodeproviders/status,verbs=patch
//+kubebuilder:rbac:groups=metal3.io,resources=baremetalhosts,verbs=get;list;watch
//+kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
//+kubebuilder:rbac:groups="",resources=namespaces,verbs=patch,roleName=ingot-manager-hosts
//+kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := step.CheckDependencies("nodeprovider", r); err != nil {
		return err
	}
	return r.watch(ctrl.NewControllerManagedBy(mgr).Named("nodeprovider")).WithOptions(controller.Options{MaxConcurrentReconciles: workers}).Complete(r)
}

// Reconcile claims the host namespace of one NodeProvider, if nobody has claimed it, and reports whose it is.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	obs, err := r.observe(ctx, request.Name)
	if err != nil || obs.provider == nil {
		return step.Retry(err).Result()
	}
	if obs.provider.DeletionTimestamp != nil {
		return r.checkKept(ctx, obs)
	}
	found := findProblem(obs)
	if found == nil && obs.owner() == "" {
		err := r.claimNamespace(ctx, obs)
		switch {
		case apierrors.IsForbidden(err):
			found = namespaceDeniedProblem(obs)
		case err != nil:
			return step.Retry(err).Result()
		}
	}
	after := obs.provider.DeepCopy()
	outcome := report(after, found, r.Clock.Now())
	// A NodeProvider has one of these services.
	if pause := max(r.checkBoot(ctx, after), r.checkInstaller(ctx, after, found == nil)); pause > 0 && (found == nil || !found.isMissingRights()) {
		outcome = step.Wait("the next question to its services", pause)
	}
	changes := append(step.ConditionEvents(obs.provider.Status.Conditions, after.Status.Conditions, "Claim", v1alpha1.ConditionReady), serviceEvents(obs.provider, after)...)
	return step.Finish(ctx, step.Writer{Client: r.Client, Recorder: r.Recorder}, obs.provider, after, changes, outcome)
}

// serviceEvents returns the events about what the services of a NodeProvider answer.
func serviceEvents(before, after *v1alpha1.NodeProvider) []event.Event {
	return append(step.ConditionEvents(before.Status.Conditions, after.Status.Conditions, "CheckBoot", v1alpha1.ConditionBootServiceReachable),
		step.ConditionEvents(before.Status.Conditions, after.Status.Conditions, "CheckInstaller", v1alpha1.ConditionInstallerReachable)...)
}

// checkKept goes on asking the services of a NodeProvider that is being deleted and is kept for the Machines of its hosts. Its condition Ready
// belongs to the controller inuse. Without it: the address was wrong at the moment of the deletion, and its Machines wait for ever for a
// condition that nobody corrects.
func (r *Reconciler) checkKept(ctx context.Context, obs observation) (reconcile.Result, error) {
	provider := obs.provider
	after, outcome := provider.DeepCopy(), step.Done()
	if pause := max(r.checkBoot(ctx, after), r.checkInstaller(ctx, after, obs.owner() == provider.Name)); pause > 0 {
		outcome = step.Wait("the next question to its services", pause)
	}
	return step.Finish(ctx, step.Writer{Client: r.Client, Recorder: r.Recorder}, provider, after, serviceEvents(provider, after), outcome)
}
