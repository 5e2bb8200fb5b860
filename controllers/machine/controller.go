package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
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

//+kubebuilder:rbac:groups=ingot.dev,resources=machines,verbs=get;list;watch;patch
//+kubebuilder:rbac:groups=ingot.dev,resources=machines/status,verbs=patch
//+kubebuilder:rbac:groups=ingot.dev,resources=nodetypes;nodetyperevisions;nodetyperenderings;osimages;nodeproviders;tenantclusters;nodequotas,verbs=get;list;watch
//+kubebuilder:rbac:groups=ingot.dev,resources=hostrecords,verbs=get;list;watch;patch
//+kubebuilder:rbac:groups=metal3.io,resources=baremetalhosts,verbs=get;list;watch;patch
//+kubebuilder:rbac:groups="",resources=secrets,verbs=get;create;update;delete,roleName=ingot-manager-hosts
//+kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// defaultWorkers is the number of workers where Reconciler.Workers is 0.
const defaultWorkers = 16

// name of the controller, in metrics and logs.
const name = "machine"

// Reconciler reconciles Machines. All fields are required unless they say otherwise.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// APIReader reads from the API server itself.
	APIReader client.Reader
	// Tenants gives access to the clusters that Machines join.
	Tenants *tenantaccess.Registry
	// Claims remembers what claim Secrets said.
	Claims *ClaimCache
	// Recorder takes events.
	Recorder events.EventRecorder
	// Clock tells the time.
	Clock clock.PassiveClock
	// Random makes bootstrap tokens: crypto/rand.Reader.
	Random io.Reader
	// Timeouts where the NodeType says nothing; start from lifecycle.DefaultTimeouts.
	Timeouts lifecycle.Timeouts
	// Workers is how many Machines are reconciled at the same time; 0: 16.
	Workers int

	tokens    tokenCache
	hosts     hostLists
	renders   renderCache
	deletions tenantaccess.Deletions
	shares    tenantaccess.Shares
}

// SetupWithManager registers the controller and its indexes.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := step.CheckDependencies(name, r); err != nil {
		return err
	}
	if r.Timeouts.Claiming <= 0 || r.Timeouts.Joining <= 0 {
		return errors.New("machine controller: Timeouts are not set: start from lifecycle.DefaultTimeouts")
	}
	if err := r.addIndexes(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return err
	}
	r.shares.Tenants, r.shares.Workers = r.Tenants, cmp.Or(r.Workers, defaultWorkers)
	return r.watch(ctrl.NewControllerManagedBy(mgr).Named(name)).WithOptions(controller.Options{MaxConcurrentReconciles: r.shares.Workers}).Complete(r)
}

// Reconcile carries out the next step of the Machine's lifecycle.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	defer r.shares.Skip(request)
	machine := &v1alpha1.Machine{}
	err := r.Client.Get(ctx, request.NamespacedName, machine)
	if client.IgnoreNotFound(err) != nil {
		return step.Retry(fmt.Errorf("read the Machine: %w", err)).Result()
	}
	if ended, result, err := r.settleRestored(ctx, machine); ended {
		return result, err
	}
	// A Machine of the same name goes on while the release of an earlier one's host waits.
	written, err := r.settleClaims(ctx, request.NamespacedName, machine.ClaimUID())
	if isWritten := written != lifecycle.LeaveClaim && written != lifecycle.AwaitOneHost; err != nil || isWritten || machine.UID == "" {
		return settled(written, err).Result()
	}
	round := r.shares.Begin(ctx, tenantKey(machine), request)
	if round == nil {
		// The request is sent again when a worker is free.
		return step.Done().Result()
	}
	defer round.End()
	obs, decision, err := r.decide(round.Context, machine)
	if err = errors.Join(err, round.Interrupted()); err != nil {
		return step.Retry(fmt.Errorf("observe: %w", err)).Result()
	}
	var failure error
	if decision.Action != nil {
		failure = r.act(round.Context, obs, *decision.Action)
	}
	if err := round.Interrupted(); err != nil {
		return step.Retry(errors.Join(failure, err)).Result()
	}
	return r.finish(ctx, obs, decision, failure)
}

// tenantKey returns the name of the Machine's TenantCluster.
func tenantKey(m *v1alpha1.Machine) types.NamespacedName {
	return types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.TenantClusterRef.Name}
}

// patchHost changes a BareMetalHost under the resource version that was read.
func (r *Reconciler) patchHost(ctx context.Context, host *metal3.BareMetalHost, change func(*metal3.BareMetalHost)) error {
	before := host.DeepCopy()
	change(host)
	return r.Client.Patch(ctx, host, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// claimRef returns the consumerRef of a host that the Machine has.
func claimRef(m *v1alpha1.Machine) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "Machine", Namespace: m.Namespace, Name: m.Name, UID: m.ClaimUID(),
	}
}
