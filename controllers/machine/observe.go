package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit"
	"github.com/ingot-dev/ingot/controllers/machine/documents"
	"github.com/ingot-dev/ingot/controllers/plan/event"
	"github.com/ingot-dev/ingot/controllers/plan/join"
	"github.com/ingot-dev/ingot/controllers/plan/lifecycle"
	"github.com/ingot-dev/ingot/controllers/plan/rendering"
	"github.com/ingot-dev/ingot/controllers/serverclock"
	"github.com/ingot-dev/ingot/controllers/step"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
)

// observation is everything that one reconcile of a Machine reads: the facts that lifecycle.Plan decides by, and the objects that
// an action needs. What does not exist, or was not read, is nil.
type observation struct {
	// facts are what lifecycle.Plan decides by. Every observe function sets its part.
	facts lifecycle.Facts
	// machine is the Machine as the cache has it. observe sets it.
	machine *v1alpha1.Machine
	// nodeType is the Machine's NodeType. observeNodeType sets it.
	nodeType *v1alpha1.NodeType
	// provider is the NodeProvider of the Machine's host or, before there is one, of its NodeType. observeProvider sets it.
	provider *v1alpha1.NodeProvider
	// current is what the Machine is installed with, or is being installed with. observeRevisions sets it.
	current revisionObjects
	// next is what the Machine is to be rolled to. observeRevisions sets it.
	next revisionObjects
	// tenant is the Machine's TenantCluster. observeTenant sets it.
	tenant *v1alpha1.TenantCluster
	// access reaches the tenant's cluster. observeTenant sets it where the cluster can be used, and setUnreachable clears it when a
	// call fails.
	access *tenantaccess.Access
	// host is the Machine's host. observeHost sets it.
	host *metal3.BareMetalHost
	// observedGeneration is which generation of the host the conditions in its status have observed. observeHost sets it for a metal3 provider's
	// hosts, where they have conditions.
	observedGeneration *int64
	// manageable is whether these conditions say that the operator manages the host. observeHost sets it with observedGeneration.
	manageable *bool
	// record is the host's HostRecord. observeHost sets it; a metal3 provider's hosts have none.
	record *v1alpha1.HostRecord
	// secret is the claim Secret of the host, also where it was written for an earlier Machine. observeSecret sets it.
	secret *corev1.Secret
	// isCurrent is whether nothing is taken from the cache or from memory that confirm would read again. observe sets it.
	isCurrent bool
	// unconfirmedHost is the host that was read from the cache in a phase that needs a current one. observeHost sets it, and a decision of consequence is
	// confirmed then.
	unconfirmedHost types.NamespacedName
	// unconfirmedSecret is whether what the claim Secret says is remembered, which is confirmed likewise. observeSecret sets it.
	unconfirmedSecret bool
	// unconfirmedNode is whether the Node, or that there is none, is taken from the cache in a phase that needs the current one. observeNode sets it.
	unconfirmedNode bool
	// node is the Machine's Node in the tenant's cluster. observeNode sets it in the phases in which there may be one.
	node *corev1.Node
	// unconfirmedToken is whether a token about which something is to be done, or that there is none, is remembered, which is confirmed before. observeToken sets it.
	unconfirmedToken bool
	// token is the bootstrap token's Secret in the tenant's cluster. observeToken sets it where the tenant had to be asked.
	token *corev1.Secret
	// pods are those that must be evicted. observePods sets them while the node is drained.
	pods []corev1.Pod
	// warnings are events about documents that were accepted with reservations. The action that writes the claim Secret adds them.
	warnings []event.Event
}

// observe reads what lifecycle.Plan needs in the Machine's phase; with isCurrent from the API server where a decision could do harm.
func (r *Reconciler) observe(ctx context.Context, machine *v1alpha1.Machine, isCurrent bool) (*observation, error) {
	obs := &observation{machine: machine.DeepCopy(), isCurrent: isCurrent, facts: lifecycle.Facts{Clock: serverclock.Of(r.Clock), Timeouts: r.Timeouts}}
	obs.facts.Machine = machineFacts(machine)
	for _, observe := range []func(context.Context, *observation) error{
		r.observeNodeType, r.observeProvider, r.observeRevisions, r.observeTenant, r.observeHost, r.observeToken, r.observeNode,
	} {
		if err := observe(ctx, obs); err != nil {
			return nil, err
		}
	}
	if err := r.observeDocumentProblems(ctx, obs); err != nil {
		return nil, err
	}
	return obs, nil
}

// machineFacts returns the facts about the Machine itself.
func machineFacts(machine *v1alpha1.Machine) lifecycle.Machine {
	return lifecycle.Machine{
		Namespace: machine.Namespace, Name: machine.Name, UID: machine.ClaimUID(), Generation: machine.Generation,
		Created: machine.CreationTimestamp.Time, Deleting: machine.DeletionTimestamp != nil,
		Finalizer: controllerutil.ContainsFinalizer(machine, v1alpha1.MachineFinalizer), NodePool: v1alpha1.NodePoolOf(machine),
		Spec: machine.Spec, Status: machine.Status,
	}
}

// read returns an object, and nil when it does not exist.
func read[T client.Object](ctx context.Context, reader client.Reader, key types.NamespacedName, into T) (T, error) {
	var none T
	if key.Name == "" {
		return none, nil
	}
	if err := reader.Get(ctx, key, into); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return none, nil
		}
		return none, fmt.Errorf("read %s %s: %w", step.Kind(into), key, err)
	}
	return into, nil
}

func clusterKey(name string) types.NamespacedName { return types.NamespacedName{Name: name} }

func isReady(t *v1alpha1.NodeType) bool {
	return meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionReady)
}

func (r *Reconciler) observeNodeType(ctx context.Context, obs *observation) error {
	t, err := read(ctx, r.Client, clusterKey(obs.machine.Spec.NodeTypeRef.Name), &v1alpha1.NodeType{})
	if err != nil || t == nil {
		return err
	}
	obs.nodeType = t
	observed := lifecycle.NodeType{Found: true, Ready: isReady(t), Generation: t.Generation, Hardware: t.Spec.Hardware, Stable: t.Status.Stable(), Target: t.Status.Target()}
	if c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		observed.Reason, observed.Message = c.Reason, c.Message
	}
	if t.DeletionTimestamp != nil {
		observed.Ready, observed.Reason, observed.Message = false, v1alpha1.ReasonInUse, "it is being deleted and takes no further Machines: "+
			obs.facts.Machine.RemovalAdvice()+"; or make the NodeType again under another name"
	}
	obs.facts.NodeType = observed
	limits := &obs.facts.Timeouts
	if d := t.Spec.Validation.Timeout; d != nil {
		limits.Validating = d.Duration
	}
	if p := t.Spec.Rollout; p != nil && p.Drain != nil && p.Drain.Timeout != nil {
		// A release has what the NodeType gives its pods, and as long as otherwise for the rest.
		limits.Releasing += p.Drain.Timeout.Duration - limits.Draining
		limits.Draining = p.Drain.Timeout.Duration
	}
	return nil
}

// observeProvider reads the NodeProvider that the Machine's host belongs to and, before there is one, that of its NodeType. Without the first: a
// NodeType gets another providerRef or is deleted by force, the Machine is released by the rules of a NodeProvider that its host is not of, and
// its power-off is never confirmed.
func (r *Reconciler) observeProvider(ctx context.Context, obs *observation) error {
	var named *v1alpha1.NodeProvider
	if obs.nodeType != nil {
		var err error
		if named, err = read(ctx, r.Client, clusterKey(obs.nodeType.Spec.ProviderRef.Name), &v1alpha1.NodeProvider{}); err != nil {
			return err
		}
	}
	obs.provider = named
	if host := obs.machine.Status.HostRef; host != nil && (named == nil || named.Spec.HostNamespace != host.Namespace) {
		var err error
		if obs.provider, err = r.providerOfNamespace(ctx, host.Namespace); err != nil {
			return err
		}
	}
	if obs.provider == nil {
		return nil
	}
	spec := obs.provider.Spec
	obs.facts.Provider = lifecycle.Provider{Found: true, HostNamespace: spec.HostNamespace, HasRecords: spec.Metal3 == nil, Erase: v1alpha1.EraseMetadata}
	obs.facts.Provider.BootProblem = obs.provider.BootProblem()
	if spec.Erase != nil && spec.Erase.OnRelease != "" {
		obs.facts.Provider.Erase = spec.Erase.OnRelease
	}
	return nil
}

// erasePolicy returns the policy of the NodeProvider; nil: it has none, or does not exist.
func (obs *observation) erasePolicy() *v1alpha1.ErasePolicy {
	if obs.provider == nil {
		return nil
	}
	return obs.provider.Spec.Erase
}

// providerOfNamespace returns the NodeProvider whose hosts live in the namespace, and nil if there is none. Of two that name it, one is Ready.
func (r *Reconciler) providerOfNamespace(ctx context.Context, namespace string) (*v1alpha1.NodeProvider, error) {
	var list v1alpha1.NodeProviderList
	if err := r.Client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list NodeProviders: %w", err)
	}
	var found *v1alpha1.NodeProvider
	for i := range list.Items {
		p := &list.Items[i]
		if p.Spec.HostNamespace == namespace && (found == nil || meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady)) {
			found = p
		}
	}
	return found, nil
}

// revisionObjects are a revision with its rendering and its OSImage. What does not exist is nil; the facts then say so.
type revisionObjects struct {
	revision  *v1alpha1.NodeTypeRevision
	rendering *v1alpha1.NodeTypeRendering
	image     *v1alpha1.OSImage
	// imageWarning says why the manager cannot read the image, where that does not prevent its installation. It is empty otherwise.
	imageWarning string
}

// joinProblem returns why a node of the revision cannot join the tenant's cluster as it says; empty: it can, or there is no revision.
func (o revisionObjects) joinProblem(tenant *v1alpha1.TenantCluster) string {
	if o.revision == nil {
		return ""
	}
	return join.SettingsProblem(tenant.Spec.Join, v1alpha1.KubeletMembers(o.revision.Spec.Kubelet))
}

// observeRevisions reads what the Machine is installed with and what it is to be rolled to.
func (r *Reconciler) observeRevisions(ctx context.Context, obs *observation) error {
	m, err := obs.facts.Machine, error(nil)
	if obs.current, obs.facts.Revision, err = r.readRevision(ctx, obs, lifecycle.CurrentRevision(m, obs.facts.NodeType)); err != nil {
		return err
	}
	obs.next, obs.facts.NextRevision, err = r.readRevision(ctx, obs, lifecycle.NextRevision(m))
	return err
}

// readRevision reads a revision, its rendering and its OSImage.
func (r *Reconciler) readRevision(ctx context.Context, obs *observation, asked v1alpha1.RenderedRevision) (objects revisionObjects, f lifecycle.Revision, err error) {
	f.Name, f.Rendering = asked.Revision, asked.Rendering
	if f.Name == "" {
		return objects, f, nil
	}
	if objects.revision, err = read(ctx, r.Client, clusterKey(f.Name), &v1alpha1.NodeTypeRevision{}); err != nil {
		return objects, f, err
	}
	if objects.revision == nil {
		f.Problem = "it does not exist: restore it from a backup, or " + obs.facts.Machine.RemovalAdvice()
		return objects, f, nil
	}
	if owner := objects.revision.Spec.NodeTypeRef.Name; owner != obs.machine.Spec.NodeTypeRef.Name {
		f.Problem = "it belongs to NodeType " + owner + ": " + obs.facts.Machine.RemovalAdvice()
		return objects, f, nil
	}
	if objects.rendering, err = r.observeRendering(ctx, obs, &f); err != nil || f.Problem != "" {
		return objects, f, err
	}
	image := objects.revision.Spec.Image
	if objects.image, err = read(ctx, r.Client, clusterKey(image.Name), &v1alpha1.OSImage{}); err != nil {
		return objects, f, err
	}
	if objects.image == nil {
		f.Problem = "its OSImage " + image.Name + " does not exist: create it again"
		return objects, f, nil
	}
	obs.observeImage(&objects, &f)
	if gpu := objects.revision.Spec.GPU; gpu != nil {
		f.GPUs = &v1alpha1.ExpectedGPUs{Vendor: gpu.Vendor, Model: gpu.Model, Count: gpu.Count}
	}
	f.Kubelet, f.DRA = objects.image.Spec.Software.Kubelet, len(objects.rendering.Spec.Plan.Expectation.Slices) > 0
	switch {
	case obs.nodeType == nil:
		f.Problem = "its NodeType " + obs.machine.Spec.NodeTypeRef.Name + " does not exist: create it again, or " + obs.facts.Machine.RemovalAdvice()
	case obs.provider == nil:
		f.Problem = "its NodeProvider " + obs.nodeType.Spec.ProviderRef.Name + " does not exist: create it again"
	}
	return objects, f, nil
}

// observeRendering reads the rendering that the facts name or, where only a revision is wanted, the one that the NodeType has
// for it.
func (r *Reconciler) observeRendering(ctx context.Context, obs *observation, f *lifecycle.Revision) (*v1alpha1.NodeTypeRendering, error) {
	if f.Rendering == "" && f.Name == obs.machine.Status.Revision {
		f.Problem = "this Machine was installed by an earlier version of Ingot, which kept no rendering, so what it is to be judged by is not known: delete this Machine and make it again"
		return nil, nil
	}
	if f.Rendering == "" && obs.nodeType != nil {
		var kept v1alpha1.NodeTypeRenderingList
		if err := r.Client.List(ctx, &kept, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list NodeTypeRenderings: %w", err)
		}
		f.Rendering = rendering.NameForRevision(f.Name, obs.nodeType.Status, kept.Items)
	}
	kept, err := read(ctx, r.Client, clusterKey(f.Rendering), &v1alpha1.NodeTypeRendering{})
	switch {
	case err != nil:
	case kept == nil && f.Rendering == "":
		f.Problem = "it has no NodeTypeRendering: restore one from a backup, or " + obs.facts.Machine.RemovalAdvice()
	case kept == nil:
		f.Problem = "its NodeTypeRendering " + f.Rendering + " does not exist: restore it from a backup, or " + obs.facts.Machine.RemovalAdvice()
	case kept.Spec.RevisionRef.Name != f.Name:
		f.Problem = "NodeTypeRendering " + f.Rendering + " is of revision " + kept.Spec.RevisionRef.Name + ": " + obs.facts.Machine.RemovalAdvice()
	default:
		if _, err := rendering.Plan(kept); err != nil {
			f.Problem = err.Error()
		}
	}
	return kept, err
}

func (r *Reconciler) observeTenant(ctx context.Context, obs *observation) error {
	key := tenantKey(obs.machine)
	var err error
	if obs.tenant, err = read(ctx, r.Client, key, &v1alpha1.TenantCluster{}); err != nil || obs.tenant == nil {
		return err
	}
	obs.facts.Revision.JoinProblem, obs.facts.NextRevision.JoinProblem = obs.current.joinProblem(obs.tenant), obs.next.joinProblem(obs.tenant)
	observed := lifecycle.Tenant{Found: true, Join: obs.tenant.Spec.Join.Method(), ProviderID: obs.tenant.Spec.Join.ProviderID, Deleting: obs.tenant.DeletionTimestamp != nil, ClusterUID: obs.tenant.Status.ClusterUID, UID: obs.tenant.UID}
	access, err := r.Tenants.For(key)
	if err != nil {
		observed.Reason, observed.Message = tenantProblem(err)
	} else {
		obs.access = access
		observed.JoinProblem = join.Problem(obs.tenant.Spec.Join, obs.endpoint(access), access.CA)
		observed.Reachable, observed.Version, observed.ServesDRA = true, access.Version, access.SlicesServed
		observed.ClusterUID = cmp.Or(access.ClusterUID, observed.ClusterUID)
	}
	obs.facts.Tenant = observed
	return nil
}

// endpoint returns what the node is given to reach the tenant's API server.
func (obs *observation) endpoint(access *tenantaccess.Access) string {
	return cmp.Or(obs.tenant.Spec.Join.Endpoint(), access.Server)
}

// canHaveNode tells whether a Machine in that phase may have a Node.
func canHaveNode(phase v1alpha1.MachinePhase) bool {
	return slices.Contains([]v1alpha1.MachinePhase{
		v1alpha1.MachineJoining, v1alpha1.MachineValidating, v1alpha1.MachineReady, v1alpha1.MachineDraining, v1alpha1.MachineReleasing,
	}, phase)
}

// observeDocumentProblems renders the documents before a host is claimed, drained or installed, and reports in the facts that they
// cannot be rendered. For the next revision it also reads the Secrets that the documents need: a host must not be drained for a
// revision that cannot be installed.
func (r *Reconciler) observeDocumentProblems(ctx context.Context, obs *observation) error {
	plan := r.observeDocumentProblem(obs, obs.next, &obs.facts.NextRevision)
	if obs.facts.NextRevision.Name != "" && obs.facts.NextRevision.Problem == "" && obs.host != nil {
		_, err := documents.Secrets(ctx, r.APIReader, obs.host.Namespace, plan)
		if err == nil {
			_, err = documents.Script(ctx, r.APIReader, obs.tenant)
		}
		var missing *documents.Unreadable
		if err != nil && !errors.As(err, &missing) {
			return err
		}
		if err != nil {
			obs.facts.NextRevision.Problem = missing.Message
		}
	}
	switch obs.machine.Status.Phase {
	case "", v1alpha1.MachinePending, v1alpha1.MachineClaiming, v1alpha1.MachineProvisioning, v1alpha1.MachineDraining:
		if s := obs.facts.Secret; s.Found && s.Attempt == obs.machine.Status.Attempt {
			break // the documents of this attempt are in the claim Secret already: rendering them again cannot find another problem
		}
		r.observeDocumentProblem(obs, obs.current, &obs.facts.Revision)
	}
	return nil
}

// observeDocumentProblem renders the documents of a revision without their secrets, reports a failure in f, and returns the plan.
func (r *Reconciler) observeDocumentProblem(obs *observation, objects revisionObjects, f *lifecycle.Revision) v1alpha1.NodePlan {
	if f.Problem != "" || objects.rendering == nil {
		return v1alpha1.NodePlan{}
	}
	f.Problem = r.renders.problem(obs.documents(objects), objects.rendering)
	return objects.rendering.Spec.Plan
}

// documents returns what the documents of the Machine's node are rendered from.
func (obs *observation) documents(objects revisionObjects) documents.Node {
	return documents.Node{Machine: obs.machine, NodeType: obs.nodeType, Revision: objects.revision, Plan: objects.rendering.Spec.Plan, Image: objects.image, Host: obs.host, Tenant: obs.tenant, SecretAttempt: obs.secretAttempt()}
}

// addWarnings adds an event with the reservations under which the documents were accepted, once for each attempt. It adds none
// where the claim Secret is written again for the same attempt because its token was lost.
func (obs *observation) addWarnings(plan v1alpha1.NodePlan, d cloudinit.Documents) {
	warnings := documents.Warnings(plan, d)
	if problem := obs.current.imageWarning; problem != "" {
		warnings = append(warnings, problem+"; it is installed all the same, because what installs it may reach it")
	}
	if s := obs.facts.Secret; len(warnings) == 0 || s.Found && s.Attempt == obs.machine.Status.Attempt {
		return
	}
	obs.warnings = append(obs.warnings, event.Warning(v1alpha1.ReasonAcceptedWithWarnings, string(obs.machine.Status.Phase), strings.Join(warnings, "; ")))
}
