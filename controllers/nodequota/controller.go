package nodequota

import (
	"context"
	"fmt"
	"slices"
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
	"github.com/ingot-dev/ingot/controllers/serverclock"
	"github.com/ingot-dev/ingot/controllers/step"
)

// Reconciler reconciles NodeQuotas. All fields are required.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// APIReader reads from the API server the Machines that the cache may show as they were.
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

// Reconcile gives places to Machines that ask for one, and reports what the namespace of one NodeQuota uses.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	before := &v1alpha1.NodeQuota{}
	if err := r.Client.Get(ctx, request.NamespacedName, before); err != nil {
		return step.Retry(client.IgnoreNotFound(err)).Result()
	}
	facts, unknown, err := r.observe(ctx, before)
	if err != nil {
		return step.Retry(err).Result()
	}
	decision, after := quota.Decide(facts), before.DeepCopy()
	report(after, facts.Now, decision, unknown)
	outcome := step.Done()
	switch {
	case decision.MachinesResourceVersion == "":
		outcome = step.Wait("a place that was not used can be given to another Machine", batchDelay)
	case len(decision.Reservations) > 0:
		outcome = step.Wait("a Machine claims a host, or has given its claim up", quota.ReservationTimeout)
	}
	changes := step.ConditionEvents(before.Status.Conditions, after.Status.Conditions, "Count", v1alpha1.ConditionWithinLimits, v1alpha1.ConditionNodeTypesKnown)
	return step.Finish(ctx, step.Writer{Client: r.Client, Recorder: r.Recorder}, before, after, changes, outcome)
}

// observe reads what the decision depends on: Machines from the cache where it is new enough, and from the API server otherwise. unknown says which
// NodeTypes are limited that do not exist; empty: all exist.
func (r *Reconciler) observe(ctx context.Context, limits *v1alpha1.NodeQuota) (facts quota.Facts, unknown string, err error) {
	var nodeTypes v1alpha1.NodeTypeList
	if err := r.Client.List(ctx, &nodeTypes, client.UnsafeDisableDeepCopy); err != nil {
		return facts, "", fmt.Errorf("list NodeTypes: %w", err)
	}
	factsOf, err := r.machineFacts(ctx, quota.GPUsOf(nodeTypes.Items))
	if err != nil {
		return facts, "", err
	}
	facts = quota.FactsOf(serverclock.Of(r.Clock), limits)
	if facts.Machines, err = listMachines(ctx, r.Client, limits.Namespace, factsOf); err != nil {
		return facts, "", err
	}
	if !facts.IsCurrent() {
		// Rare: nothing was decided yet, a place was given up, or the newest Machine is gone. And where this cache lags behind, it would give a place twice.
		facts.IsLive = true
		facts.Machines, err = listMachines(ctx, r.APIReader, limits.Namespace, factsOf)
	} else {
		err = r.verifyEnding(ctx, &facts, factsOf)
	}
	return facts, quota.UnknownNodeTypes(limits.Spec, nodeTypes.Items), err
}

// machineFacts returns what makes the facts of a Machine. gpus returns the gpu.count of a NodeType.
func (r *Reconciler) machineFacts(ctx context.Context, gpus func(nodeType string) int32) (func(*v1alpha1.Machine) quota.Machine, error) {
	var hosts metal3.BareMetalHostList
	if err := r.Client.List(ctx, &hosts, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list BareMetalHosts: %w", err)
	}
	// By name: a Machine that was created again in a restore does not know yet by which uid its host names it.
	named := map[types.NamespacedName]bool{}
	for i := range hosts.Items {
		if ref := hosts.Items[i].Spec.ConsumerRef; v1alpha1.IsMachineRef(ref) {
			named[types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}] = true
		}
	}
	return func(m *v1alpha1.Machine) quota.Machine {
		return quota.MachineOf(m, gpus(m.Spec.NodeTypeRef.Name), named[client.ObjectKeyFromObject(m)])
	}, nil
}

func listMachines(ctx context.Context, reader client.Reader, namespace string, factsOf func(*v1alpha1.Machine) quota.Machine) ([]quota.Machine, error) {
	var list v1alpha1.MachineList
	if err := reader.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Machines: %w", err)
	}
	out := make([]quota.Machine, len(list.Items))
	for i := range list.Items {
		out[i] = factsOf(&list.Items[i])
	}
	return out, nil
}

// verifyEnding reads from the API server each Machine whose reservation would end without a host. Without it: a new leader's cache does not show a new Machine
// yet, which is about to write its claim, and its place is given to another.
func (r *Reconciler) verifyEnding(ctx context.Context, facts *quota.Facts, factsOf func(*v1alpha1.Machine) quota.Machine) error {
	for _, ending := range facts.Ending() {
		var m v1alpha1.Machine
		err := r.APIReader.Get(ctx, types.NamespacedName{Namespace: facts.Namespace, Name: ending.Machine}, &m)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read Machine %s: %w", ending.Machine, err)
		}
		facts.Machines = slices.DeleteFunc(facts.Machines, func(f quota.Machine) bool { return string(f.UID) == ending.UID })
		if err == nil && string(m.ClaimUID()) == ending.UID {
			facts.Machines = append(facts.Machines, factsOf(&m))
		}
	}
	return nil
}

// report sets the status. unknown says which NodeTypes do not exist.
func report(after *v1alpha1.NodeQuota, now time.Time, decision quota.Decision, unknown string) {
	use, status := decision.Report, &after.Status
	status.ObservedGeneration, status.Machines, status.GPUs, status.Waiting, status.Next = after.Generation, use.Machines, use.GPUs, use.Waiting, use.Next
	status.Reservations, status.MachinesResourceVersion = decision.Reservations, decision.MachinesResourceVersion
	is, reason, message := metav1.ConditionTrue, v1alpha1.ReasonWithinLimits, "the Machines of the namespace are within the limits"
	if use.Excess != "" {
		is, reason, message = metav1.ConditionFalse, v1alpha1.ReasonLimitLowered, use.Excess+": no Machine loses its host, and none gets another one"
	}
	step.SetCondition(&status.Conditions, after.Generation, now, v1alpha1.ConditionWithinLimits, is, reason, message)
	switch {
	case unknown != "":
		step.SetCondition(&status.Conditions, after.Generation, now, v1alpha1.ConditionNodeTypesKnown, metav1.ConditionFalse, v1alpha1.ReasonNodeTypeUnknown, unknown)
	case meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionNodeTypesKnown) != nil:
		step.SetCondition(&status.Conditions, after.Generation, now, v1alpha1.ConditionNodeTypesKnown, metav1.ConditionTrue, v1alpha1.ReasonNodeTypesKnown, "every NodeType that is limited is there")
	}
}

// batchDelay delays the decision after a change of a Machine, so that a thousand Machines that ask together are decided about by one write.
const batchDelay = time.Second
