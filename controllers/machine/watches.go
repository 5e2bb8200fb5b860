package machine

import (
	"context"
	"fmt"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
	"github.com/ingot-dev/ingot/controllers/plan/quota"
	"github.com/ingot-dev/ingot/controllers/step"
)

// Indexes of the manager's cache.
const (
	indexConsumerUID  = "machine.consumerUID"
	indexConsumerName = "machine.consumerName"
	indexNodeType     = "machine.nodeType"
	indexTenant       = "machine.tenant"
	indexHost         = "machine.host"
	indexWaiting      = "machine.waiting"
	indexAsking       = "machine.asking"
	indexClaiming     = "machine.claiming"
)

func (r *Reconciler) addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	host, machine := &metal3.BareMetalHost{}, &v1alpha1.Machine{}
	for _, index := range []struct {
		object client.Object
		field  string
		value  func(client.Object) []string
	}{
		{host, indexConsumerUID, indexHostByConsumer(func(ref *corev1.ObjectReference) string { return string(ref.UID) })},
		{host, indexConsumerName, indexHostByConsumer(func(ref *corev1.ObjectReference) string { return ref.Namespace + "/" + ref.Name })},
		{machine, indexNodeType, indexMachineBy(func(m *v1alpha1.Machine) string { return m.Spec.NodeTypeRef.Name })},
		{machine, indexTenant, indexMachineBy(func(m *v1alpha1.Machine) string { return m.Spec.TenantClusterRef.Name })},
		{machine, indexHost, indexMachineBy(claimedHost)},
		{machine, indexWaiting, indexMachineBy(waitingValue)},
		{machine, indexAsking, indexMachineBy(askingValue)},
		{machine, indexClaiming, indexMachineBy(claimingNamespace)},
	} {
		if err := indexer.IndexField(ctx, index.object, index.field, index.value); err != nil {
			return fmt.Errorf("machine controller: index %s: %w", index.field, err)
		}
	}
	return nil
}

// indexHostByConsumer returns an indexer of hosts by a value of the consumerRef, where it names a Machine.
func indexHostByConsumer(value func(*corev1.ObjectReference) string) client.IndexerFunc {
	return func(o client.Object) []string {
		h, ok := o.(*metal3.BareMetalHost)
		if !ok || !v1alpha1.IsMachineRef(h.Spec.ConsumerRef) {
			return nil
		}
		return []string{value(h.Spec.ConsumerRef)}
	}
}

// indexMachineBy returns an indexer of Machines by a value; a Machine whose value is empty is not in the index.
func indexMachineBy(value func(*v1alpha1.Machine) string) client.IndexerFunc {
	return func(o client.Object) []string {
		if m, ok := o.(*v1alpha1.Machine); ok {
			if v := value(m); v != "" {
				return []string{v}
			}
		}
		return nil
	}
}

func claimedHost(m *v1alpha1.Machine) string {
	if m.Status.HostRef == nil {
		return ""
	}
	return m.Status.HostRef.Namespace + "/" + m.Status.HostRef.Name
}

// claimingNamespace returns the namespace of the host that the Machine is about to claim; empty: it claims none.
func claimingNamespace(m *v1alpha1.Machine) string {
	if m.Status.HostRef == nil || m.Status.Phase != v1alpha1.MachineClaiming {
		return ""
	}
	return m.Status.HostRef.Namespace
}

// waitingValue returns the value of the index for a Machine that waits for a host, and an empty string for another.
func waitingValue(m *v1alpha1.Machine) string {
	if m.Status.HostRef == nil && m.DeletionTimestamp == nil {
		return "true"
	}
	return ""
}

// askingValue returns the value of the index for a Machine that asks for a place in the NodeQuota, and an empty string for another.
func askingValue(m *v1alpha1.Machine) string {
	if quota.IsAsking(m) {
		return "true"
	}
	return ""
}

func (r *Reconciler) watch(b *builder.Builder) *builder.Builder {
	return b.For(&v1alpha1.Machine{}).
		Watches(&v1alpha1.Machine{}, step.EnqueueFirst(requestFor, r.isUrgent)).
		Watches(&metal3.BareMetalHost{}, step.EnqueueFirst(r.hostToMachines, r.isUrgent)).
		Watches(&v1alpha1.HostRecord{}, step.EnqueueFirst(r.hostRecordToMachines, r.isUrgent), builder.WithPredicates(hostRecordChanged)).
		Watches(&v1alpha1.TenantCluster{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
			return r.tenantToMachines(ctx, client.ObjectKeyFromObject(o))
		}), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.NodeType{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
			return r.requestsFor(ctx, client.MatchingFields{indexNodeType: o.GetName()})
		}), builder.WithPredicates(nodeTypeChanged)).
		Watches(&v1alpha1.NodeQuota{}, step.EnqueueFirstByChange(r.quotaToMachines, r.isUrgent)).
		// The cache may have the NodeType that names a revision before it has the revision.
		Watches(&v1alpha1.NodeTypeRevision{}, handler.EnqueueRequestsFromMapFunc(r.revisionToMachines), builder.WithPredicates(revisionChanged)).
		Watches(&v1alpha1.NodeTypeRendering{}, handler.EnqueueRequestsFromMapFunc(r.renderingToMachines), builder.WithPredicates(revisionChanged)).
		WatchesRawSource(&r.shares).
		WatchesRawSource(r.Tenants.NodeSource(name, r.nodeToMachine)).
		WatchesRawSource(r.Tenants.TenantSource(name, func(tenant types.NamespacedName) []reconcile.Request {
			return r.tenantToMachines(context.Background(), tenant)
		}))
}

func requestFor(_ context.Context, o client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
}

// isUrgent reports whether the Machine of the request goes before others.
func (r *Reconciler) isUrgent(ctx context.Context, request reconcile.Request) bool {
	var m v1alpha1.Machine
	if r.Client.Get(ctx, request.NamespacedName, &m) != nil {
		return false // it is gone, or new to the cache: then it comes again
	}
	return isServerAwaited(m.Status.Phase)
}

// isServerAwaited reports whether a Machine in the phase waits for what its server does. Such Machines go first, because a server takes minutes for it. Without it: a pool
// grows by hundreds, and the last of them wait for their servers until all is written about the nodes of the first.
func isServerAwaited(phase v1alpha1.MachinePhase) bool {
	switch phase {
	case v1alpha1.MachineJoining, v1alpha1.MachineValidating, v1alpha1.MachineReady:
		return false
	default:
		return true
	}
}

// hostToMachines returns the Machines that a change of a host concerns: the one that has it, the one that had it, and, where it can be
// claimed, all that wait for a host.
func (r *Reconciler) hostToMachines(ctx context.Context, o client.Object) []reconcile.Request {
	host, ok := o.(*metal3.BareMetalHost)
	if !ok {
		return nil
	}
	requests := r.requestsFor(ctx, client.MatchingFields{indexHost: host.Namespace + "/" + host.Name})
	if ref := host.Spec.ConsumerRef; ref != nil {
		if v1alpha1.IsMachineRef(ref) {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}})
		}
		return requests
	}
	if s := host.Status.Provisioning.State; (s == metal3.StateAvailable || s == metal3.StateReady) && host.Spec.Image == nil {
		r.hosts.forget(host.Namespace)
		requests = append(requests, r.requestsFor(ctx, client.MatchingFields{indexWaiting: "true"})...)
	}
	return requests
}

// hostRecordToMachines returns the Machine that the record names, else the one that has its host, else, where the host can be claimed,
// all that wait for a host.
func (r *Reconciler) hostRecordToMachines(ctx context.Context, o client.Object) []reconcile.Request {
	record, ok := o.(*v1alpha1.HostRecord)
	if !ok {
		return nil
	}
	if m := record.Spec.Machine; m != nil {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: m.Namespace, Name: m.Name}}}
	}
	requests := r.requestsFor(ctx, client.MatchingFields{indexHost: record.Namespace + "/" + record.Name})
	if len(requests) == 0 && !record.Status.Wanted.IsOpen() {
		r.hosts.forget(record.Namespace)
		return r.requestsFor(ctx, client.MatchingFields{indexWaiting: "true"})
	}
	return requests
}

func (r *Reconciler) revisionToMachines(ctx context.Context, o client.Object) []reconcile.Request {
	revision, ok := o.(*v1alpha1.NodeTypeRevision)
	if !ok {
		return nil
	}
	return r.requestsFor(ctx, client.MatchingFields{indexNodeType: revision.Spec.NodeTypeRef.Name})
}

func (r *Reconciler) renderingToMachines(ctx context.Context, o client.Object) []reconcile.Request {
	rendering, ok := o.(*v1alpha1.NodeTypeRendering)
	if !ok {
		return nil
	}
	revision, err := read(ctx, r.Client, clusterKey(rendering.Spec.RevisionRef.Name), &v1alpha1.NodeTypeRevision{})
	if err != nil || revision == nil {
		return nil // the revision's own event comes, and finds the rendering
	}
	return r.revisionToMachines(ctx, revision)
}

func (r *Reconciler) tenantToMachines(ctx context.Context, tenant types.NamespacedName) []reconcile.Request {
	return r.requestsFor(ctx, client.InNamespace(tenant.Namespace), client.MatchingFields{indexTenant: tenant.Name})
}

// nodeToMachine returns the Machine that a Node is named after. Of the tenant's own Nodes there is none.
func (r *Reconciler) nodeToMachine(tenant types.NamespacedName, node *corev1.Node) []reconcile.Request {
	key := types.NamespacedName{Namespace: tenant.Namespace, Name: node.Name}
	if !strings.HasPrefix(node.Spec.ProviderID, v1alpha1.ProviderIDPrefix) {
		if machine, err := read(context.Background(), r.Client, key, &v1alpha1.Machine{}); err == nil && machine == nil {
			return nil
		}
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// requestsFor returns a request for each Machine that the options select.
func (r *Reconciler) requestsFor(ctx context.Context, which ...client.ListOption) []reconcile.Request {
	list := &v1alpha1.MachineList{}
	if err := r.Client.List(ctx, list, append(which, client.UnsafeDisableDeepCopy)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing Machines")
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// nodeTypeChanged lets an update of a NodeType through unless only the counts of hosts and Machines in its status differ. The reason
// and the message of its Ready condition do matter: a Machine that waits for the NodeType quotes them.
var nodeTypeChanged = step.OnUpdate(func(before, after *v1alpha1.NodeType) bool {
	return before.Generation != after.Generation || before.Status.Stable() != after.Status.Stable() ||
		before.Status.Target() != after.Status.Target() || step.NotReadyReason(before.Status.Conditions) != step.NotReadyReason(after.Status.Conditions)
})

// revisionChanged leaves out updates of the status of a NodeTypeRevision or a NodeTypeRendering, which only counts who uses it. Without it: two hundred Machines
// are ordered, every second another count is written, each write has all of them reconciled, and each of these reads the Secret of its claim.
var revisionChanged = predicate.GenerationChangedPredicate{}

// hostRecordChanged lets an update of a HostRecord through unless only the number of written bytes differs within a section
// of the image, which a Machine's status does not show.
var hostRecordChanged = step.OnUpdate(func(before, after *v1alpha1.HostRecord) bool {
	return before.Generation != after.Generation || recordDigest(before) != recordDigest(after)
})

// recordDigest returns a text that differs where two HostRecords differ in what concerns a Machine.
func recordDigest(r *v1alpha1.HostRecord) string {
	s := r.Status
	text := fmt.Sprint(s.Installed != nil, s.Erased != nil, s.LastTenant, s.LastTenantClusterUID, s.LastTenantUID)
	if s.Error != nil {
		text += " " + s.Error.Reason
	}
	if s.Power != nil {
		text += fmt.Sprint(" ", s.Power.State, s.Power.ObservedGeneration)
	}
	if q := s.Queue; q != nil {
		text += fmt.Sprint(" ", q.Operation, q.Place)
	}
	if w := s.Wanted; w != nil {
		text += fmt.Sprint(" ", w.Number, w.Outcome, w.ConfigDriveAwaitedAt != nil)
	}
	if a := s.Attempt; a != nil {
		text += fmt.Sprint(" ", a.Number, a.State, a.Step, lifecycle.ProgressSection(a.DoneBytes, a.TotalBytes), a.ConfigDriveAwaitedAt != nil, len(a.Findings))
	}
	return text
}
