package machine

import (
	"context"
	"fmt"
	"slices"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
)

// view is what one reconcile has seen: the facts, and the objects that its action needs.
type view struct {
	facts    lifecycle.Facts
	machine  *v1alpha1.Machine
	nodeType *v1alpha1.NodeType
	provider *v1alpha1.NodeProvider
	revision *v1alpha1.NodeTypeRevision
	image    *v1alpha1.OSImage
	tenant   *v1alpha1.TenantCluster
	access   *tenantaccess.Access // nil: cannot be used now
	host     *metal3api.BareMetalHost
	record   *v1alpha1.HostRecord
	secret   *corev1.Secret // the claim Secret, whoever it was written for
	node     *corev1.Node
	token    *corev1.Secret // in the tenant's cluster
	pods     []corev1.Pod   // that an eviction must still remove
}

// observe reads what the Machine's phase needs.
func (r *Reconciler) observe(ctx context.Context, machine *v1alpha1.Machine) (*view, error) {
	v := &view{machine: machine.DeepCopy(), facts: lifecycle.Facts{Now: r.Clock(), Timeouts: r.Timeouts}}
	v.facts.Machine = lifecycle.Machine{
		Namespace: machine.Namespace, Name: machine.Name, UID: machine.UID, Generation: machine.Generation,
		Created: machine.CreationTimestamp.Time, Deleting: machine.DeletionTimestamp != nil,
		Finalizer: controllerutil.ContainsFinalizer(machine, v1alpha1.MachineFinalizer),
		Spec:      machine.Spec, Status: machine.Status,
	}
	for _, look := range []func(context.Context, *view) error{
		r.observeNodeType, r.observeRevision, r.observeTenant, r.observeHost, r.observeToken, r.observeNode,
	} {
		if err := look(ctx, v); err != nil {
			return nil, err
		}
	}
	r.checkRendering(v)
	return v, nil
}

// read gets a cluster-scoped object from the cache, and nil when it does not exist.
func read[T client.Object](ctx context.Context, reader client.Reader, key types.NamespacedName, into T) (T, error) {
	var none T
	if key.Name == "" {
		return none, nil
	}
	if err := reader.Get(ctx, key, into); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return none, nil
		}
		return none, fmt.Errorf("read %T %s: %w", into, key, err)
	}
	return into, nil
}

func named(name string) types.NamespacedName { return types.NamespacedName{Name: name} }

func isReady(t *v1alpha1.NodeType) bool {
	return meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionReady)
}

func (r *Reconciler) observeNodeType(ctx context.Context, v *view) error {
	t, err := read(ctx, r.Client, named(v.machine.Spec.NodeTypeRef.Name), &v1alpha1.NodeType{})
	if err != nil || t == nil {
		return err
	}
	v.nodeType = t
	facts := lifecycle.NodeType{Found: true, Ready: isReady(t), Stable: t.Status.StableRevision, Target: t.Status.TargetRevision}
	if c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		facts.Reason, facts.Message = c.Reason, c.Message
	}
	v.facts.NodeType = facts
	limits := &v.facts.Timeouts
	if d := t.Spec.Validation.Timeout; d != nil {
		limits.Validating = d.Duration
	}
	if p := t.Spec.Rollout; p != nil && p.Drain != nil && p.Drain.Timeout != nil {
		// A release has what the NodeType gives its pods, and as long as otherwise for the rest.
		limits.Releasing += p.Drain.Timeout.Duration - limits.Draining
		limits.Draining = p.Drain.Timeout.Duration
	}
	v.provider, err = read(ctx, r.Client, named(t.Spec.ProviderRef.Name), &v1alpha1.NodeProvider{})
	if err != nil || v.provider == nil {
		return err
	}
	spec := v.provider.Spec
	v.facts.Provider = lifecycle.Provider{Found: true, HostNamespace: spec.HostNamespace, Records: spec.Metal3 == nil, Erase: v1alpha1.EraseMetadata}
	if spec.Erase != nil && spec.Erase.OnRelease != "" {
		v.facts.Provider.Erase = spec.Erase.OnRelease
	}
	return nil
}

func (r *Reconciler) observeRevision(ctx context.Context, v *view) error {
	facts := &v.facts.Revision
	facts.Name = lifecycle.WantedRevision(v.facts.Machine, v.facts.NodeType)
	if facts.Name == "" {
		return nil
	}
	var err error
	if v.revision, err = read(ctx, r.Client, named(facts.Name), &v1alpha1.NodeTypeRevision{}); err != nil {
		return err
	}
	if v.revision == nil {
		facts.Problem = "it does not exist: correct spec.revision, or delete this Machine"
		return nil
	}
	if owner := v.revision.Spec.NodeTypeRef.Name; owner != v.machine.Spec.NodeTypeRef.Name {
		facts.Problem = "it belongs to NodeType " + owner + ": correct spec.revision, or delete this Machine"
		return nil
	}
	image := v.revision.Spec.Image
	if v.image, err = read(ctx, r.Client, named(image.Name), &v1alpha1.OSImage{}); err != nil {
		return err
	}
	if v.image == nil {
		facts.Problem = "its OSImage " + image.Name + " does not exist: create it again"
		return nil
	}
	facts.Image = v1alpha1.ExactImage{URL: v.image.Spec.URL, Checksum: image.Checksum, Format: image.Format}
	facts.Kubelet = v.image.Spec.Software.Kubelet
	switch {
	case v.nodeType == nil:
		facts.Problem = "its NodeType " + v.machine.Spec.NodeTypeRef.Name + " does not exist: create it again, or delete this Machine"
	case v.provider == nil:
		facts.Problem = "its NodeProvider " + v.nodeType.Spec.ProviderRef.Name + " does not exist: create it again"
	}
	return nil
}

func (r *Reconciler) observeTenant(ctx context.Context, v *view) error {
	key := tenantKey(v.machine)
	var err error
	if v.tenant, err = read(ctx, r.Client, key, &v1alpha1.TenantCluster{}); err != nil || v.tenant == nil {
		return err
	}
	facts := lifecycle.Tenant{Found: true}
	access, err := r.Tenants.For(key)
	switch {
	case err != nil:
		facts.Reason, facts.Message = tenantTrouble(err)
	case v.tenant.Spec.Join.TLSBootstrap == nil:
		facts.Reason, facts.Message = v1alpha1.ReasonJoinUnsupported, "set spec.join.tlsBootstrap, the join method of this version"
	default:
		v.access = access
		facts.Reachable, facts.Version = true, access.Version
	}
	v.facts.Tenant = facts
	return nil
}

// alive says whether the Machine has, or may have, a Node.
func alive(phase v1alpha1.MachinePhase) bool {
	return slices.Contains([]v1alpha1.MachinePhase{
		v1alpha1.MachineJoining, v1alpha1.MachineValidating, v1alpha1.MachineReady, v1alpha1.MachineDraining, v1alpha1.MachineReleasing,
	}, phase)
}
