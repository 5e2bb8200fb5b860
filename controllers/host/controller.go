package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/grants"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/host/secretwatch"
	"github.com/ingot-dev/ingot/controllers/plan/event"
	plan "github.com/ingot-dev/ingot/controllers/plan/host"
	"github.com/ingot-dev/ingot/controllers/step"
)

//+kubebuilder:rbac:groups=metal3.io,resources=baremetalhosts,verbs=get;list;watch;patch
//+kubebuilder:rbac:groups=metal3.io,resources=baremetalhosts/status,verbs=patch
//+kubebuilder:rbac:groups=metal3.io,resources=baremetalhosts/finalizers,verbs=update
//+kubebuilder:rbac:groups=metal3.io,resources=hardwaredata,verbs=create;patch
//+kubebuilder:rbac:groups=ingot.dev,resources=hostrecords,verbs=get;list;watch;create;patch
//+kubebuilder:rbac:groups=ingot.dev,resources=hostrecords/status,verbs=patch
//+kubebuilder:rbac:groups=ingot.dev,resources=machines,verbs=get;list;watch
//+kubebuilder:rbac:groups=ingot.dev,resources=nodeproviders,verbs=get;list;watch
//+kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
//+kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch,roleName=ingot-manager-hosts
//+kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// DefaultWorkers is the number of workers where Reconciler.Workers is 0. It is high because a worker mostly waits for a BMC.
const DefaultWorkers = 64

// Installers returns the Installer of a NodeProvider that Ingot serves itself. Every call for one NodeProvider returns the same, until its spec changes.
type Installers func(provider *v1alpha1.NodeProvider) hardware.Installer

// ConfigDrives reads config drives for Installers that must have them to begin (Capabilities.NeedsConfigDrive). It returns an *hardware.Error of the kind
// Busy until every document is written for this attempt.
type ConfigDrives interface {
	ConfigDrive(ctx context.Context, hostUID string, attempt int64) (hardware.ConfigDrive, error)
}

// Reconciler reconciles the BareMetalHosts of redfish and ironic NodeProviders. All fields are required unless they say otherwise.
type Reconciler struct {
	// Client writes, and reads from a cache that is never older than its own writes (package readyourwrites).
	Client client.Client
	// APIReader reads Secrets from the API server, and objects for decisions that must not miss a change by another process.
	APIReader client.Reader
	// Installers inspect, install, erase and power the servers.
	Installers Installers
	// ConfigDrives reads the documents of claims.
	ConfigDrives ConfigDrives
	// Grants answers what erases hosts that nobody has asked to be erased.
	Grants *grants.Desk
	// Recorder publishes events.
	Recorder events.EventRecorder
	// Clock tells the time.
	Clock clock.PassiveClock
	// Jitter returns numbers in [0, 1) that spread retries over time.
	Jitter func() float64
	// Timeouts are the time limits of the work on hosts.
	Timeouts plan.Timeouts
	// Workers is how many hosts are reconciled at the same time; 0: DefaultWorkers. Hosts whose BMCs may not answer use a part of them.
	Workers int

	generations generations
	secrets     secretCache
	secretWatch *secretwatch.Source
	lanes       lanes
	turns       turns
	powerOns    powerOns
}

// workers returns how many hosts are reconciled at the same time.
func (r *Reconciler) workers() int { return cmp.Or(r.Workers, DefaultWorkers) }

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := step.CheckDependencies("host", r); err != nil {
		return err
	}
	if r.Timeouts.PollInterval <= 0 || r.Timeouts.IdleInterval <= 0 || r.Timeouts.RetryBase <= 0 {
		return errors.New("host controller: Timeouts are not set: start from plan/host.DefaultTimeouts")
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &metal3.BareMetalHost{}, indexForeign, foreignIndex); err != nil {
		return fmt.Errorf("host controller: index BareMetalHosts by their finalizer: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &metal3.BareMetalHost{}, indexCredentials, credentialsIndex); err != nil {
		return fmt.Errorf("host controller: index BareMetalHosts by their Secret: %w", err)
	}
	r.secretWatch = secretwatch.New(mgr, r.hostsNaming)
	return r.watch(ctrl.NewControllerManagedBy(mgr).Named("host")).WithOptions(controller.Options{MaxConcurrentReconciles: r.workers()}).Complete(r)
}

// Reconcile carries out the next step for one host.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	defer r.lanes.skip(request)
	provider, err := r.provider(ctx, request.Namespace)
	if err != nil {
		return step.Retry(err).Result()
	}
	host, err := r.readHost(ctx, provider, request.NamespacedName)
	if err != nil || host == nil {
		return step.Retry(err).Result()
	}
	if foreignHost, err := r.foreignHost(ctx, host); err != nil || foreignHost != "" {
		return r.refuse(ctx, host, foreignHost, err)
	}
	if err := r.secretWatch.Begin(request.Namespace); err != nil {
		return step.Retry(err).Result()
	}
	facts := hostFacts(host)
	if facts.Paused || facts.Deleting && !isManaged(host) {
		r.withdraw(request.NamespacedName)
		return step.Done().Result()
	}
	if !isManaged(host) {
		return r.addFinalizer(ctx, host)
	}
	record, err := r.record(ctx, host)
	if err != nil {
		return step.Retry(err).Result()
	}
	return r.reconcileInLane(ctx, provider, host, record)
}

// readHost returns the host; nil: there is none, or no NodeProvider has its namespace.
func (r *Reconciler) readHost(ctx context.Context, provider *v1alpha1.NodeProvider, key types.NamespacedName) (*metal3.BareMetalHost, error) {
	host := &metal3.BareMetalHost{}
	err := r.Client.Get(ctx, key, host)
	switch {
	case apierrors.IsNotFound(err):
		r.generations.forget(key)
	case err != nil:
		return nil, fmt.Errorf("read BareMetalHost: %w", err)
	case provider != nil:
		return host, nil
	}
	r.endSecretWatch(ctx, provider, key.Namespace)
	r.withdraw(key)
	r.powerOns.leave(key)
	return nil, nil
}

// addFinalizer adds Ingot's finalizer before anything else is done with the host.
func (r *Reconciler) addFinalizer(ctx context.Context, host *metal3.BareMetalHost) (reconcile.Result, error) {
	before := host.DeepCopy()
	host.Finalizers = append(host.Finalizers, v1alpha1.HostFinalizer)
	if !v1alpha1.IsRestored(host) {
		v1alpha1.Register(host)
	}
	if err := r.Client.Patch(ctx, host, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return step.Retry(fmt.Errorf("add finalizer: %w", err)).Result()
	}
	return step.Wait("the finalizer is written", requeueDelay).Result()
}

// requeueDelay is the pause after a write whose watch event may not start a reconcile.
const requeueDelay = time.Millisecond

// refuse publishes why nothing is done in a namespace whose hosts a baremetal-operator drives.
func (r *Reconciler) refuse(ctx context.Context, host *metal3.BareMetalHost, foreignHost string, err error) (reconcile.Result, error) {
	if err != nil {
		return step.Retry(err).Result()
	}
	r.withdraw(client.ObjectKeyFromObject(host))
	message := fmt.Sprintf(
		"host %s has the finalizer %s, so a baremetal-operator drives this namespace: nothing is done here. Use a metal3 NodeProvider, or move the hosts away from it and remove the finalizer",
		foreignHost, metal3.BareMetalHostFinalizer)
	warning := []event.Event{event.Warning("ForeignController", "Serve", message)}
	return step.Finish(ctx, step.Writer{Client: r.Client, Recorder: r.Recorder}, host, host, warning, step.Wait("another controller drives the namespace", r.Timeouts.IdleInterval))
}

// removeFinalizers removes the finalizers of the record and then of the host.
func (r *Reconciler) removeFinalizers(ctx context.Context, host *metal3.BareMetalHost, record *v1alpha1.HostRecord) error {
	for _, o := range []client.Object{record, host} {
		if o.GetUID() == "" {
			continue
		}
		if err := r.removeFinalizer(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) removeFinalizer(ctx context.Context, o client.Object) error {
	before := o.DeepCopyObject().(client.Object)
	var kept []string
	for _, f := range o.GetFinalizers() {
		if f != v1alpha1.HostFinalizer {
			kept = append(kept, f)
		}
	}
	if len(kept) == len(o.GetFinalizers()) {
		return nil
	}
	o.SetFinalizers(kept)
	err := r.Client.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove finalizer: %w", err)
	}
	return nil
}
