package validation

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
	"github.com/ingot-dev/ingot/controllers/plan/verdict"
	"github.com/ingot-dev/ingot/controllers/serverclock"
	"github.com/ingot-dev/ingot/controllers/step"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
)

//+kubebuilder:rbac:groups=ingot.dev,resources=machines;nodetypes;nodetyperevisions;nodetyperenderings,verbs=get;list;watch
//+kubebuilder:rbac:groups=ingot.dev,resources=machines/status,verbs=patch
//+kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// defaultWorkers is the number of workers where Reconciler.Workers is 0.
const defaultWorkers = 16

// Reconciler judges the nodes of Machines.
type Reconciler struct {
	// Client reads and writes the management cluster.
	Client client.Client
	// Tenants gives access to the tenants' clusters.
	Tenants *tenantaccess.Registry
	// Recorder takes events.
	Recorder events.EventRecorder
	// Clock tells the time.
	Clock clock.PassiveClock
	// Workers is how many Machines are judged at the same time; 0: 16.
	Workers int

	shares           tenantaccess.Shares
	daemonSetCache   callCache[types.NamespacedName, []appsv1.DaemonSet]
	deviceClassCache callCache[classKey, verdict.DeviceClass]
	// probeTurns has a *sync.Mutex for each TenantCluster, under which its probes are counted and made.
	probeTurns sync.Map
}

// SetupWithManager starts the controller with the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := step.CheckDependencies("validation", r); err != nil {
		return err
	}
	r.shares.Tenants, r.shares.Workers = r.Tenants, cmp.Or(r.Workers, defaultWorkers)
	return r.watch(ctrl.NewControllerManagedBy(mgr).Named("validation")).WithOptions(controller.Options{MaxConcurrentReconciles: r.shares.Workers}).Complete(r)
}

// Reconcile judges one Machine's node.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	defer r.shares.Skip(req)
	var machine v1alpha1.Machine
	if err := r.Client.Get(ctx, req.NamespacedName, &machine); err != nil {
		return step.Retry(client.IgnoreNotFound(err)).Result()
	}
	if !mustJudge(&machine) {
		return step.Done().Result()
	}
	round := r.shares.Begin(ctx, tenantKey(&machine), req)
	if round == nil {
		// The request is sent again when a worker is free.
		return step.Done().Result()
	}
	defer round.End()
	return r.judge(ctx, round.Context, &machine)
}

// judge judges the Machine's node. It calls the tenant with the context calls.
func (r *Reconciler) judge(ctx, calls context.Context, machine *v1alpha1.Machine) (reconcile.Result, error) {
	obs, err := r.observe(calls, machine)
	if err = errors.Join(err, tenantaccess.InterruptionOf(calls)); err != nil {
		return step.Retry(err).Result()
	}
	if obs.unjudged != nil {
		guard, err := r.guardUnjudgedNode(calls, obs, machine)
		if err != nil {
			return step.Retry(err).Result()
		}
		return r.writeUnjudgedReason(ctx, machine, *obs.unjudged, guard)
	}
	if obs.node == nil {
		return step.Done().Result()
	}
	decision, probing, err := r.decide(calls, obs, machine)
	if err != nil {
		return step.Retry(err).Result()
	}
	decision = withoutEarlyReason(machine, decision, r.Clock.Now())
	if err := r.act(calls, obs, machine, decision); err != nil {
		return step.Retry(err).Result()
	}
	if isJoinWrittenNext(machine, decision) {
		// The machine controller writes next that the Node joined, and that update starts another reconcile, which writes the
		// verdict. If both wrote at once, the API server would reject one of the requests with a conflict.
		// A change of the gate is not delayed.
		return step.Done().Result()
	}
	if left := firstVerdictDelay(machine, decision, r.Clock.Now()); left > 0 {
		return step.Wait("a new node may pass its checks before the first verdict is written", left).Result()
	}
	return r.writeAndProbe(ctx, calls, obs, machine, decision, probing)
}

// isJoinWrittenNext reports whether the machine controller is about to write that the Node joined, and there is nothing to do about its gate.
func isJoinWrittenNext(m *v1alpha1.Machine, d verdict.Decision) bool {
	return m.Status.Phase == v1alpha1.MachineJoining && d.Gate == verdict.KeepGate && len(d.Events) == 0
}

// withoutEarlyReason leaves out what the Node says about its gate while its first verdict is not written either, so that most nodes are written once.
func withoutEarlyReason(m *v1alpha1.Machine, d verdict.Decision, now time.Time) verdict.Decision {
	if isJoinWrittenNext(m, d) || firstVerdictDelay(m, d, now) > 0 {
		d.GateReason = nil
	}
	return d
}

// writeAndProbe writes the verdict, and then does what was decided about the pod of a probe. Without this order: the manager makes the pod and is killed, the probe is
// removed from the NodeType, and nobody knows that there is a pod.
func (r *Reconciler) writeAndProbe(ctx, calls context.Context, obs observation, machine *v1alpha1.Machine, decision verdict.Decision, p probing) (reconcile.Result, error) {
	result, err := r.writeVerdict(ctx, machine, decision)
	if err == nil {
		err = r.actOnProbe(calls, obs, machine, p)
	}
	if err != nil {
		return step.Retry(err).Result()
	}
	return result, nil
}

// decide judges the node, and decides about its probe where it has one.
func (r *Reconciler) decide(calls context.Context, obs observation, machine *v1alpha1.Machine) (verdict.Decision, probing, error) {
	input := obs.input(serverclock.Of(r.Clock), machine)
	input.DeviceClasses = r.deviceClasses(calls, obs, input)
	if err := cmp.Or(tenantaccess.InterruptionOf(calls), context.Cause(calls)); err != nil {
		return verdict.Decision{}, probing{}, err
	}
	decision := verdict.Judge(input)
	p, err := r.observeProbe(calls, obs, input, decision)
	if err = errors.Join(err, tenantaccess.InterruptionOf(calls)); err != nil || !p.isNeeded {
		return decision, p, err
	}
	input.ProbeChecks, input.ProbedAt = p.decision.Checks, p.decision.ProbedAt
	return verdict.Judge(input), p, nil
}

// firstVerdictDelay returns how long the first verdict of a node that has just joined is not written while its checks wait. Most
// nodes pass within that time, so one write is saved for each. A check that fails, and a change of the gate, is written at once.
func firstVerdictDelay(m *v1alpha1.Machine, d verdict.Decision, now time.Time) time.Duration {
	at := len(m.Status.Timeline) - 1
	if m.Status.Verdict != nil || d.Gate != verdict.KeepGate || len(d.Events) > 0 || d.Verdict.Result != v1alpha1.CheckWait ||
		at < 1 || m.Status.Timeline[at].Phase != v1alpha1.MachineValidating || m.Status.Timeline[at-1].Phase != v1alpha1.MachineJoining {
		return 0
	}
	return m.Status.Timeline[at].At.Add(lifecycle.JoinGracePeriod).Sub(now)
}

// mustJudge reports whether the Machine is in a phase in which its node is judged. In an earlier phase there is no node, in a
// later one the node is being removed. The node of a server that spec.powerOff keeps off is judged, so that its gate is back before the
// server is powered on.
func mustJudge(m *v1alpha1.Machine) bool {
	if !m.DeletionTimestamp.IsZero() {
		return false
	}
	switch m.Status.Phase {
	case v1alpha1.MachineJoining, v1alpha1.MachineValidating, v1alpha1.MachineReady:
		return true
	case v1alpha1.MachineDraining:
		return m.Status.PowerOff != nil && m.Status.PowerOffRequestedAt == nil
	}
	return false
}

// tenantKey returns the name of the Machine's TenantCluster.
func tenantKey(m *v1alpha1.Machine) types.NamespacedName {
	return types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.TenantClusterRef.Name}
}
