package hardwaredata

import (
	"context"
	"fmt"
	"maps"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/event"
	"github.com/ingot-dev/ingot/controllers/plan/inventory"
	"github.com/ingot-dev/ingot/controllers/step"
)

// Reconciler labels hosts. All fields are required.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// APIReader reads HardwareData from the API server.
	APIReader client.Reader
	// Recorder publishes events.
	Recorder events.EventRecorder
}

//+kubebuilder:rbac:groups=ingot.dev,resources=nodeproviders,verbs=get;list;watch
//+kubebuilder:rbac:groups=metal3.io,resources=baremetalhosts,verbs=get;list;watch;patch
//+kubebuilder:rbac:groups=metal3.io,resources=hardwaredata,verbs=get
//+kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := step.CheckDependencies("hardwaredata", r); err != nil {
		return err
	}
	return r.watch(ctrl.NewControllerManagedBy(mgr).Named("hardwaredata")).Complete(r)
}

// Reconcile labels one host.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	host, found, err := r.observe(ctx, request.NamespacedName)
	if err != nil || found == nil {
		return step.Retry(err).Result()
	}
	change := inventory.ServedLabelChange(host.Labels, found)
	if change.IsEmpty() {
		return step.Done().Result()
	}
	after := host.DeepCopy()
	if after.Labels == nil {
		after.Labels = map[string]string{}
	}
	maps.Copy(after.Labels, change.Set)
	for _, key := range change.Remove {
		delete(after.Labels, key)
	}
	// The labels are Ingot's own and follow from the inventory, so that only another host of that name would be wrong: with a lock on what else changes, a
	// baremetal-operator that writes a new host's status again and again has one of them refused.
	before := host.DeepCopy()
	before.UID = "" // the patch has the uid then, which must be the host's
	if err := r.Client.Patch(ctx, after, client.MergeFrom(before)); err != nil {
		return step.Retry(fmt.Errorf("label the host by its hardware: %w", err)).Result()
	}
	var changes []event.Event
	if change.Reason != "" {
		changes = append(changes, event.New(change.Warning, change.Reason, "Inspect", change.Message))
	}
	return step.Finish(ctx, step.Writer{Client: r.Client, Recorder: r.Recorder}, after, after, changes, step.Done())
}

// canLabel reports whether the host may be written.
func canLabel(host *metal3.BareMetalHost) bool {
	_, isPaused := host.Annotations[metal3.PausedAnnotation]
	isOthers := host.Spec.ConsumerRef != nil && !v1alpha1.IsMachineRef(host.Spec.ConsumerRef)
	return host.DeletionTimestamp == nil && !isPaused && !isOthers
}
