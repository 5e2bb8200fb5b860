package validation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/contest"
	"github.com/ingot-dev/ingot/controllers/plan/nodeidentity"
	"github.com/ingot-dev/ingot/controllers/plan/rendering"
	"github.com/ingot-dev/ingot/controllers/plan/verdict"
	"github.com/ingot-dev/ingot/controllers/plan/watched"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/spec"
)

// observation is everything that one reconcile reads of a Machine's node. Where unjudged is set the node cannot be judged, and only
// node, key, tenant and nodeType may be set beside it.
type observation struct {
	// unjudged is why the node cannot be judged; nil: it can. observe and observeExpectation set it.
	unjudged *unjudgedReason
	// node is the Machine's Node in the cache of the tenant; nil: there is none yet. observe sets it.
	node *corev1.Node
	// key names the Machine's TenantCluster. observe sets it.
	key types.NamespacedName
	// tenant is the client of the tenant's cluster. observe sets it.
	tenant client.Client
	// expectation is what the node must advertise. observeExpectation sets it.
	expectation v1alpha1.NodeExpectation
	// nodeType is the spec of the Machine's NodeType. observeExpectation sets it.
	nodeType v1alpha1.NodeTypeSpec
	// kubelet has the settings of kubelet that the node was installed with: those of its revision. observeExpectation sets it.
	kubelet []byte
	// gateKnown is true if nodeType was read, so that the key of the gate taint is known. observeExpectation sets it.
	gateKnown bool
	// taintWriter is who wrote the Node's taints last, where a gate that was placed is gone; empty: it is not known. observe sets it.
	taintWriter string
	// daemonSets are those of the tenant; nil: they were not needed or could not be listed. observe sets them.
	daemonSets []appsv1.DaemonSet
	// slices are the ResourceSlices that concern the node. observe sets them where the expectation has any.
	slices []resourcev1.ResourceSlice
	// served is true if the tenant's API server serves resource.k8s.io/v1. observe sets it.
	served bool
}

// unjudgedReason says why a node cannot be judged, as the condition Validated that is written instead of a verdict.
type unjudgedReason struct {
	status          metav1.ConditionStatus
	reason, message string
	// clearVerdict is true if the verdict must be removed, because its Node is no longer the Machine's.
	clearVerdict bool
	// requeueAfter is when to try again without an event; zero: only at an event.
	requeueAfter time.Duration
}

func (r *Reconciler) observe(ctx context.Context, m *v1alpha1.Machine) (observation, error) {
	key := tenantKey(m)
	access, err := r.Tenants.For(key)
	if err != nil {
		return observation{unjudged: tenantUnreachableReason(err)}, nil
	}
	var node corev1.Node
	if err := access.Cache.Get(ctx, client.ObjectKey{Name: m.Name}, &node); err != nil {
		if apierrors.IsNotFound(err) {
			return observation{unjudged: nodeLostReason(m)}, nil
		}
		return observation{}, fmt.Errorf("read Node %s of TenantCluster %s: %w", m.Name, key, err)
	}
	if found := nodeidentity.Of(nodeidentity.ClaimOf(m.ClaimUID(), m.Status), nodeidentity.NodeOf(&node)); found.Owner != nodeidentity.ThisAttempt {
		return observation{unjudged: nodeConflictReason(&node, found)}, nil
	}
	obs, err := r.observeExpectation(ctx, m)
	obs.node, obs.key, obs.tenant, obs.served = &node, key, access.Client, access.SlicesServed
	obs.taintWriter = readTaintWriter(ctx, obs, m)
	if err != nil || obs.unjudged != nil {
		return obs, err
	}
	if e := obs.expectation; len(e.Slices)+len(e.AbsentDrivers) > 0 {
		if obs.slices, err = access.SlicesOf(ctx, node.Name); err != nil {
			return observation{}, fmt.Errorf("read the ResourceSlices of Node %s of TenantCluster %s: %w", node.Name, key, err)
		}
	}
	if v := m.Status.Verdict; v == nil || v.Result != v1alpha1.CheckPass {
		obs.daemonSets = r.daemonSets(ctx, key, access)
	}
	return obs, nil
}

// readTaintWriter returns who wrote the Node's taints last, if the gate that was placed on it is gone. The cache has no managed fields. A name
// that cannot be read is only missing in a message.
func readTaintWriter(ctx context.Context, obs observation, m *v1alpha1.Machine) string {
	if g := m.Status.Gate; !obs.gateKnown || g == nil || g.NodeUID != obs.node.UID || verdict.HasGate(obs.node, obs.nodeType.Gate.Key()) {
		return ""
	}
	var node corev1.Node
	if err := obs.tenant.Get(ctx, client.ObjectKeyFromObject(obs.node), &node); err != nil {
		ctrl.LoggerFrom(ctx).Info("The Node whose gate was removed cannot be read", "Node", obs.node.Name, "error", err.Error())
		return ""
	}
	return contest.LastWriter(node.ManagedFields, "f:spec", "f:taints")
}

// observeExpectation reads what the Machine's node must advertise: what its rendering says, with the resources that its
// NodeType declares now.
func (r *Reconciler) observeExpectation(ctx context.Context, m *v1alpha1.Machine) (observation, error) {
	var nodeType v1alpha1.NodeType
	var promised v1alpha1.NodeTypeRendering
	missing, err := r.read(ctx, "NodeType", m.Spec.NodeTypeRef.Name, &nodeType)
	if missing != nil || err != nil {
		return observation{unjudged: missing}, err
	}
	obs := observation{nodeType: nodeType.Spec, gateKnown: true}
	unknown := func(reason, message string) (observation, error) {
		obs.unjudged = &unjudgedReason{status: metav1.ConditionUnknown, reason: reason, message: message}
		return obs, nil
	}
	if m.Status.Rendering == "" {
		return unknown(v1alpha1.ReasonOlderShape, "the Machine was installed by an earlier version of Ingot, which kept no rendering, so what the node promises is not known, and nothing is done to it: delete the Machine and make it again")
	}
	if obs.unjudged, err = r.read(ctx, "NodeTypeRendering", m.Status.Rendering, &promised); obs.unjudged != nil || err != nil {
		return obs, err
	}
	var revision v1alpha1.NodeTypeRevision
	if obs.unjudged, err = r.read(ctx, "NodeTypeRevision", promised.Spec.RevisionRef.Name, &revision); obs.unjudged != nil || err != nil {
		return obs, err
	}
	obs.kubelet = v1alpha1.KubeletMembers(revision.Spec.Kubelet)
	plan, err := rendering.Plan(&promised)
	if err != nil {
		return unknown(v1alpha1.ReasonRenderingUnreadable, err.Error())
	}
	obs.expectation, err = presentation.WithDeclaredResources(plan.Expectation, nodeType.Spec.Resources)
	var refusal *spec.Refusal
	if errors.As(err, &refusal) {
		return unknown(refusal.Reason, refusal.Error())
	}
	return obs, err
}

// read returns a cluster-scoped object that the expectation depends on, and the reason if it does not exist.
func (r *Reconciler) read(ctx context.Context, kind, name string, into client.Object) (missing *unjudgedReason, err error) {
	err = r.Client.Get(ctx, client.ObjectKey{Name: name}, into)
	if apierrors.IsNotFound(err) {
		return &unjudgedReason{
			status: metav1.ConditionUnknown, reason: v1alpha1.ReasonWaitingForNodeType, requeueAfter: time.Minute,
			message: fmt.Sprintf("what the node promises is not known: %s %s does not exist: restore it from a backup", kind, name),
		}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", kind, name, err)
	}
	return nil, nil
}

func tenantUnreachableReason(err error) *unjudgedReason {
	u := &unjudgedReason{status: metav1.ConditionUnknown, reason: v1alpha1.ReasonTenantUnreachable, message: err.Error()}
	var typed *tenantaccess.Error
	if errors.As(err, &typed) {
		u.reason = typed.Reason
	}
	return u
}

// nodeLostReason returns nil until the Node has appeared for the first time.
func nodeLostReason(m *v1alpha1.Machine) *unjudgedReason {
	if m.Status.NodeRef == nil && m.Status.Verdict == nil {
		return nil
	}
	if m.Status.Phase == v1alpha1.MachineJoining {
		return &unjudgedReason{status: metav1.ConditionFalse, reason: v1alpha1.ReasonChecksWaiting, clearVerdict: true, message: "the node has not joined yet"}
	}
	return &unjudgedReason{
		status: metav1.ConditionFalse, reason: v1alpha1.ReasonNodeLost, clearVerdict: true,
		message: "Node " + m.Name + " does not exist in the tenant's cluster",
	}
}

// nodeConflictReason says that the Node is not this installation's.
func nodeConflictReason(node *corev1.Node, found nodeidentity.Finding) *unjudgedReason {
	reason := v1alpha1.ReasonNodeConflict
	if found.Owner == nodeidentity.Unknown {
		reason = v1alpha1.ReasonServerUnidentified
	}
	return &unjudgedReason{
		status: metav1.ConditionFalse, reason: reason, clearVerdict: true,
		message: fmt.Sprintf("Node %s is not this installation's, and nothing is done to it: %s", node.Name, found.Message),
	}
}

func (o observation) input(clock watched.Clock, m *v1alpha1.Machine) verdict.Input {
	in := verdict.Input{
		Clock: clock, Expectation: o.expectation, Node: o.node, DaemonSets: o.daemonSets,
		SlicesServed: o.served, Slices: o.slices, Previous: m.Status.Verdict,
		Identity: verdict.Identity{
			Claim: nodeidentity.ClaimOf(m.ClaimUID(), m.Status), Revision: m.Status.Revision, Rendering: m.Status.Rendering,
		},
		PlacedGate: m.Status.Gate, TaintWriter: o.taintWriter,
		HasBeenReady: m.Status.HasBeenReady(),
		Gate:         o.nodeType.Gate.Key(), Settle: verdict.DefaultSettle, OnFailure: o.nodeType.Validation.OnFailure,
		GPUModeReport: o.nodeType.Validation.GPUModeReport, Kubelet: o.kubelet,
	}
	if s := o.nodeType.Validation.Settle; s != nil {
		in.Settle = s.Duration
	}
	if d := m.Status.Deadline; d != nil && m.Status.Phase == v1alpha1.MachineValidating {
		began := m.Status.PhaseStart(m.CreationTimestamp.Time)
		in.Deadline = clock.Now.Add(clock.Left(began, d.Sub(began)))
	}
	return in
}

// callCacheAge is how long the answer of a tenant is used again.
const callCacheAge = 10 * time.Second

// callCache keeps answers of tenants for callCacheAge, so that many waiting nodes of a tenant cost one call.
type callCache[K comparable, V any] struct {
	mu    sync.Mutex
	known map[K]reading[V]
}

type reading[V any] struct {
	at    time.Time
	value V
}

// get returns the answer. An answer to a reconcile whose time is over, whose worker was taken back, or whose answers found no room is not kept: it is
// an error that says nothing about the tenant.
func (r *callCache[K, V]) get(ctx context.Context, key K, now time.Time, read func() V) V {
	r.mu.Lock()
	known, ok := r.known[key]
	r.mu.Unlock()
	if age := now.Sub(known.at); ok && age >= 0 && age < callCacheAge {
		return known.value
	}
	value := read()
	if ctx.Err() != nil || tenantaccess.InterruptionOf(ctx) != nil {
		return value
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known = map[K]reading[V]{}
	}
	// No event reports that a tenant was removed, so each read also deletes the answers that are too old to be used.
	maps.DeleteFunc(r.known, func(_ K, old reading[V]) bool { return now.Sub(old.at) >= callCacheAge })
	r.known[key] = reading[V]{at: now, value: value}
	return value
}

// maxLogged is the limit of a tenant's text in the log, in bytes.
const maxLogged = 1024

// daemonSets lists the tenant's DaemonSets. The verdict does not depend on them: where they cannot be listed, it has no hints
// about them.
func (r *Reconciler) daemonSets(ctx context.Context, tenant types.NamespacedName, access *tenantaccess.Access) []appsv1.DaemonSet {
	return r.daemonSetCache.get(ctx, tenant, r.Clock.Now(), func() []appsv1.DaemonSet {
		sets, err := access.DaemonSets(ctx)
		if err != nil {
			ctrl.LoggerFrom(ctx).Info("The tenant's DaemonSets cannot be listed", "TenantCluster", tenant, "error", input.Line(err.Error(), maxLogged))
		}
		return sets
	})
}

// classKey names a DeviceClass of a tenant.
type classKey struct {
	tenant types.NamespacedName
	name   string
}

// deviceClasses reads the DeviceClasses that the verdict needs. Once the node is admitted it needs none.
func (r *Reconciler) deviceClasses(ctx context.Context, obs observation, in verdict.Input) map[string]verdict.DeviceClass {
	if !verdict.NeedsDeviceClasses(in) {
		return nil
	}
	out := map[string]verdict.DeviceClass{}
	for _, e := range in.Expectation.Slices {
		for _, c := range e.DeviceClasses {
			out[c.Name] = r.deviceClassCache.get(ctx, classKey{obs.key, c.Name}, in.Now, func() verdict.DeviceClass { return readDeviceClass(ctx, obs.tenant, c.Name) })
		}
	}
	return out
}

func readDeviceClass(ctx context.Context, c client.Client, name string) verdict.DeviceClass {
	var class resourcev1.DeviceClass
	err := c.Get(ctx, client.ObjectKey{Name: name}, &class)
	switch {
	case apierrors.IsNotFound(err):
		return verdict.DeviceClass{Missing: true}
	case err != nil:
		return verdict.DeviceClass{ReadError: err.Error()}
	}
	return verdict.DeviceClass{Selectors: verdict.Compile(&class)}
}
