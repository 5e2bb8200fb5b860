package osimage

import (
	"cmp"
	"context"
	"net/http"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/step"
)

// defaultWorkers is the number of workers where Reconciler.Workers is 0. A server that does not answer blocks one worker for half a
// minute; the other images must not wait for it.
const defaultWorkers = 8

// Reconciler reconciles OSImages. All fields are required unless they say otherwise.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Recorder publishes events.
	Recorder events.EventRecorder
	// HTTP is the client for image servers.
	HTTP *http.Client
	// Clock tells the time.
	Clock clock.PassiveClock
	// Jitter returns numbers in [0, 1) that spread the checks.
	Jitter func() float64
	// Workers is how many OSImages are checked at the same time; 0: 8.
	Workers int
}

//+kubebuilder:rbac:groups=ingot.dev,resources=osimages,verbs=get;list;watch
//+kubebuilder:rbac:groups=ingot.dev,resources=osimages/status,verbs=patch
//+kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := step.CheckDependencies("osimage", r); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("osimage").
		For(&v1alpha1.OSImage{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: cmp.Or(r.Workers, defaultWorkers)}).
		Complete(r)
}

// Reconcile checks one OSImage if its check is due.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var image v1alpha1.OSImage
	if err := r.Client.Get(ctx, request.NamespacedName, &image); err != nil {
		return step.Retry(client.IgnoreNotFound(err)).Result()
	}
	// One that is kept for its users is checked. Without that: its server was away at the moment of the deletion, and the Machines that are
	// installed again from it wait for ever for a condition that nobody corrects.
	if image.DeletionTimestamp != nil && !controllerutil.ContainsFinalizer(&image, v1alpha1.InUseFinalizer) {
		return step.Done().Result()
	}
	if rest := untilDue(&image, r.Clock.Now()); rest > 0 {
		return step.Wait("it was checked not long ago", rest).Result()
	}
	obs := r.observe(ctx, &image)
	if ctx.Err() != nil {
		// The manager stops, so the failed requests do not mean that the image is unreachable.
		return step.Retry(ctx.Err()).Result()
	}
	after := image.DeepCopy()
	outcome := report(after, obs, r.Clock.Now(), r.Jitter())
	changes := step.ConditionEvents(image.Status.Conditions, after.Status.Conditions, "Check", v1alpha1.ConditionReady)
	return step.Finish(ctx, step.Writer{Client: r.Client, Recorder: r.Recorder}, &image, after, changes, outcome)
}
