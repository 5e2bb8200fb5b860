package nodequota

import (
	"context"
	"fmt"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/quota"
	"github.com/ingot-dev/ingot/controllers/step"
)

// Reconciler reconciles NodeQuotas. All fields are required.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// APIReader reads the NodeQuota and the Machines from the API server before a reservation is dropped.
	APIReader client.Reader
	// Recorder publishes events.
	Recorder events.EventRecorder
	// Clock tells the time.
	Clock clock.PassiveClock
}

//+kubebuilder:rbac:groups=ingot.dev,resources=nodequotas;machines;nodetypes,verbs=get;list;watch
//+kubebuilder:rbac:groups=ingot.dev,resources=nodequotas/status,verbs=patch
//+kubebuilder:rbac:groups=metal3.io,resources=baremetalhosts,verbs=get;list;watch
//+kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := step.CheckDependencies("nodequota", r); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("nodequota").
		For(&v1alpha1.NodeQuota{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.NodeType{}, handler.EnqueueRequestsFromMapFunc(r.all), builder.WithPredicates(step.CreatedOrDeleted)).
		Watches(&v1alpha1.Machine{}, enqueue, builder.WithPredicates(step.OnUpdate(isCountedOtherwise))).
		Complete(r)
}

// Reconcile reports what the namespace of one NodeQuota uses.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	before, facts, unknown, err := r.observe(ctx, r.Client, request.NamespacedName)
	if err != nil || before == nil {
		return step.Retry(err).Result()
	}
	if len(quota.Needed(facts)) < len(facts.Reservations) {
		// A cache that does not show a new Machine yet would drop its reservation.
		if before, facts, unknown, err = r.observe(ctx, r.APIReader, request.NamespacedName); err != nil || before == nil {
			return step.Retry(err).Result()
		}
	}
	after := before.DeepCopy()
	report(after, facts, unknown)
	outcome := step.Done()
	if len(after.Status.Reservations) > 0 {
		outcome = step.Wait("a Machine claims a host, or has given its claim up", quota.ReservationTimeout)
	}
	changes := step.ConditionEvents(before.Status.Conditions, after.Status.Conditions, "Count", v1alpha1.ConditionWithinLimits, v1alpha1.ConditionNodeTypesKnown)
	return step.Finish(ctx, step.Writer{Client: r.Client, Recorder: r.Recorder}, before, after, changes, outcome)
}

// observe reads the NodeQuota, and then the Machines: a reservation that was written in between is not in the NodeQuota, and its write makes that of the
// status fail. The NodeQuota is nil where it does not exist. unknown says which NodeTypes are limited that do not exist; empty: all exist.
func (r *Reconciler) observe(ctx context.Context, reader client.Reader, key types.NamespacedName) (found *v1alpha1.NodeQuota, facts quota.Facts, unknown string, err error) {
	var limits v1alpha1.NodeQuota
	if err := reader.Get(ctx, key, &limits); err != nil {
		return nil, facts, "", client.IgnoreNotFound(err)
	}
	var machines v1alpha1.MachineList
	if err := reader.List(ctx, &machines, client.InNamespace(key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, facts, "", fmt.Errorf("list Machines: %w", err)
	}
	var nodeTypes v1alpha1.NodeTypeList
	if err := r.Client.List(ctx, &nodeTypes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, facts, "", fmt.Errorf("list NodeTypes: %w", err)
	}
	var hosts metal3.BareMetalHostList
	if err := r.Client.List(ctx, &hosts, client.UnsafeDisableDeepCopy); err != nil {
		return nil, facts, "", fmt.Errorf("list BareMetalHosts: %w", err)
	}
	named := map[types.UID]bool{}
	for i := range hosts.Items {
		if ref := hosts.Items[i].Spec.ConsumerRef; v1alpha1.IsMachineRef(ref) {
			named[ref.UID] = true
		}
	}
	isNamed := func(m *v1alpha1.Machine) bool { return named[m.ClaimUID()] }
	facts = quota.FactsOf(r.Clock.Now(), &limits, machines.Items, quota.GPUsOf(nodeTypes.Items), isNamed)
	return &limits, facts, quota.UnknownNodeTypes(limits.Spec, nodeTypes.Items), nil
}

// report sets the status. unknown says which NodeTypes do not exist.
func report(after *v1alpha1.NodeQuota, facts quota.Facts, unknown string) {
	use := quota.Summarize(facts)
	status := &after.Status
	status.ObservedGeneration, status.Machines, status.GPUs, status.Waiting = after.Generation, use.Machines, use.GPUs, use.Waiting
	status.Reservations = quota.Needed(facts)
	is, reason, message := metav1.ConditionTrue, v1alpha1.ReasonWithinLimits, "the Machines of the namespace are within the limits"
	if use.Excess != "" {
		is, reason, message = metav1.ConditionFalse, v1alpha1.ReasonLimitLowered, use.Excess+": no Machine loses its host, and none gets another one"
	}
	step.SetCondition(&status.Conditions, after.Generation, facts.Now, v1alpha1.ConditionWithinLimits, is, reason, message)
	switch {
	case unknown != "":
		step.SetCondition(&status.Conditions, after.Generation, facts.Now, v1alpha1.ConditionNodeTypesKnown, metav1.ConditionFalse, v1alpha1.ReasonNodeTypeUnknown, unknown)
	case meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionNodeTypesKnown) != nil:
		step.SetCondition(&status.Conditions, after.Generation, facts.Now, v1alpha1.ConditionNodeTypesKnown, metav1.ConditionTrue, v1alpha1.ReasonNodeTypesKnown, "every NodeType that is limited is there")
	}
}

// batchDelay delays the count after a change of a Machine, so that a hundred claims cause few writes.
const batchDelay = time.Second
