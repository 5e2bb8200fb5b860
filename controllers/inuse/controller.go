package inuse

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/inuse"
	"github.com/ingot-dev/ingot/controllers/step"
)

// Reconciler reconciles all objects that Machines depend on. All fields are required.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// APIReader reads from the API server before a finalizer is removed.
	APIReader client.Reader
	// Recorder publishes events.
	Recorder events.EventRecorder
	// Clock tells the time.
	Clock clock.PassiveClock

	// countedAt is when an object that was in use before was last written with another count of its users. There is one worker.
	countedAt time.Time
}

//+kubebuilder:rbac:groups=ingot.dev,resources=nodetypes;nodeproviders;osimages;nodetyperevisions;nodetyperenderings,verbs=get;list;watch;patch
//+kubebuilder:rbac:groups=ingot.dev,resources=nodetypes/status;nodeproviders/status;osimages/status;nodetyperevisions/status;nodetyperenderings/status,verbs=patch
//+kubebuilder:rbac:groups=ingot.dev,resources=machines;nodepools;rollouts,verbs=get;list;watch
//+kubebuilder:rbac:groups=metal3.io,resources=baremetalhosts,verbs=get;list;watch
//+kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
//+kubebuilder:rbac:groups="",resources=namespaces,verbs=patch,roleName=ingot-manager-hosts
//+kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := step.CheckDependencies("inuse", r); err != nil {
		return err
	}
	return r.watch(ctrl.NewControllerManagedBy(mgr).Named("inuse")).WithOptions(controller.Options{MaxConcurrentReconciles: 1}).Complete(r)
}

// Reconcile protects and counts all objects, and releases those that are deleted and that nothing uses.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	obs, err := r.observe(ctx, r.Client)
	if err != nil {
		return step.Retry(err).Result()
	}
	var failed []error
	now := r.Clock.Now()
	wait := step.CountingInterval - now.Sub(r.countedAt)
	isPostponed := false
	for _, o := range obs.objects {
		if hasOtherCountOnly(o, obs.users.Count(o.ref)) {
			if wait > 0 {
				isPostponed = true
				continue
			}
			r.countedAt = now
		}
		failed = append(failed, r.reconcileObject(ctx, obs, o))
	}
	if err := errors.Join(failed...); err != nil || !isPostponed {
		return step.Retry(err).Result()
	}
	return step.Wait("the users are counted every few seconds", wait).Result()
}

// hasOtherCountOnly reports whether an object that is in use, and was before, has another number of users, and there is nothing else to write. That may wait: the
// number is not 0, so nobody can delete the object.
func hasOtherCountOnly(o object, users *v1alpha1.UsedBy) bool {
	before, _ := usageOf(o.Object)
	return *before != nil && users != nil && (*before).String() != users.String() && !o.state().Deleting && inuse.Plan(o.state(), users) == inuse.None
}

func (r *Reconciler) reconcileObject(ctx context.Context, obs observation, o object) error {
	action := inuse.Plan(o.state(), obs.users.Count(o.ref))
	if action == inuse.Release {
		// The cache may lack a Machine that was created a moment ago.
		live, err := r.observe(ctx, r.APIReader)
		if err != nil {
			return err
		}
		obs, action = live, inuse.Plan(o.state(), live.users.Count(o.ref))
	}
	if action != inuse.None {
		return r.act(ctx, o, action)
	}
	after, events := report(o, obs.users.Count(o.ref), r.Clock.Now())
	_, err := step.Finish(ctx, step.Writer{Client: r.Client, Recorder: r.Recorder}, o.Object, after, events, step.Done())
	return err
}
