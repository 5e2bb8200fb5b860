package nodetype

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hostindex"
	"github.com/ingot-dev/ingot/controllers/plan/placement"
	"github.com/ingot-dev/ingot/controllers/plan/sameserver"
)

// observation is everything that one reconcile of a NodeType reads. observe sets all of it; what does not exist is nil. The objects
// of the lists belong to the cache and must not be changed.
type observation struct {
	// nodeType is nil where it does not exist, or is being deleted and is not kept or is deleted in the foreground; nothing else is read then.
	nodeType *v1alpha1.NodeType
	// image is the OSImage that the NodeType refers to.
	image *v1alpha1.OSImage
	// provider is the NodeProvider that the NodeType refers to.
	provider *v1alpha1.NodeProvider
	// namespace is the provider's host namespace.
	namespace *corev1.Namespace
	// hosts are all hosts of that namespace, with their HostRecords.
	hosts []placement.HostFacts
	// machines are those of this NodeType.
	machines []v1alpha1.Machine
	// rollouts are those that this controller created for this NodeType. createRollout and deleteRevision read them, and machines,
	// once more from the API server.
	rollouts []v1alpha1.Rollout
	// revisions are those of this NodeType, by name.
	revisions map[string]*v1alpha1.NodeTypeRevision
	// renderings are those of the revisions.
	renderings []v1alpha1.NodeTypeRendering
}

// isUsed tells whether a Machine has, or is to have, the rendering of that name.
func (obs observation) isUsed(rendering string) bool {
	return slices.ContainsFunc(obs.machines, func(m v1alpha1.Machine) bool {
		return obs.installed(&m).Rendering == rendering || m.Spec.Rendering == rendering
	})
}

func (r *Reconciler) observe(ctx context.Context, name string) (observation, error) {
	var obs observation
	var err error
	if obs.nodeType, err = get(ctx, r.Client, name, &v1alpha1.NodeType{}); err != nil || obs.nodeType == nil {
		return obs, err
	}
	// A NodeType that is kept for its Machines goes on. Without it: somebody deletes it while a bad revision is rolled out; the Rollout stops at its
	// canary, and setting the NodeType back makes no other one.
	if isGoing(obs.nodeType) || isCollected(obs.nodeType) {
		return observation{}, nil
	}
	spec := obs.nodeType.Spec
	if obs.image, err = get(ctx, r.Client, spec.OSImageRef.Name, &v1alpha1.OSImage{}); err != nil {
		return obs, err
	}
	if obs.provider, err = get(ctx, r.Client, spec.ProviderRef.Name, &v1alpha1.NodeProvider{}); err != nil {
		return obs, err
	}
	if err := r.observeHosts(ctx, &obs); err != nil {
		return obs, err
	}
	if obs.machines, err = machines(ctx, r.Client, name); err != nil {
		return obs, err
	}
	if obs.rollouts, err = rollouts(ctx, r.Client, obs.nodeType); err != nil {
		return obs, err
	}
	if obs.revisions, err = r.revisions(ctx, obs.nodeType); err != nil {
		return obs, err
	}
	obs.renderings, err = r.renderings(ctx, obs)
	return obs, err
}

// observeHosts reads the host namespace of the provider and its hosts, if the provider exists.
func (r *Reconciler) observeHosts(ctx context.Context, obs *observation) (err error) {
	if obs.provider == nil {
		return nil
	}
	if obs.namespace, err = get(ctx, r.Client, obs.provider.Spec.HostNamespace, &corev1.Namespace{}); err != nil {
		return err
	}
	obs.hosts, err = r.hosts(ctx, obs.provider.Spec.HostNamespace)
	return err
}

// get returns a cluster-scoped object; nil: it does not exist.
func get[T client.Object](ctx context.Context, c client.Reader, name string, object T) (T, error) {
	if err := c.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		var none T
		return none, client.IgnoreNotFound(err)
	}
	return object, nil
}

func (r *Reconciler) hosts(ctx context.Context, namespace string) ([]placement.HostFacts, error) {
	hosts, records, err := hostindex.List(ctx, r.Client, namespace)
	if err != nil {
		return nil, err
	}
	conflicts, err := hostindex.ConflictsOfAll(ctx, r.Client)
	if err != nil {
		return nil, err
	}
	facts := placement.Pair(hosts, records)
	for i := range facts {
		facts[i].SameServer = sameserver.Describe(conflicts[namespace+"/"+facts[i].Host.Name])
	}
	return facts, nil
}

func machines(ctx context.Context, reader client.Reader, nodeType string) ([]v1alpha1.Machine, error) {
	var list v1alpha1.MachineList
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Machines: %w", err)
	}
	var mine []v1alpha1.Machine
	for i := range list.Items {
		if list.Items[i].Spec.NodeTypeRef.Name == nodeType {
			mine = append(mine, list.Items[i])
		}
	}
	return mine, nil
}

func rollouts(ctx context.Context, reader client.Reader, nodeType *v1alpha1.NodeType) ([]v1alpha1.Rollout, error) {
	var list v1alpha1.RolloutList
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Rollouts: %w", err)
	}
	var mine []v1alpha1.Rollout
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], nodeType) {
			mine = append(mine, list.Items[i])
		}
	}
	return mine, nil
}

func (r *Reconciler) revisions(ctx context.Context, nodeType *v1alpha1.NodeType) (map[string]*v1alpha1.NodeTypeRevision, error) {
	var list v1alpha1.NodeTypeRevisionList
	if err := r.Client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list NodeTypeRevisions: %w", err)
	}
	mine := map[string]*v1alpha1.NodeTypeRevision{}
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], nodeType) {
			mine[list.Items[i].Name] = &list.Items[i]
		}
	}
	return mine, nil
}

// renderings lists the renderings of the NodeType's revisions. One that the status names and the cache does not have is read
// from the API server: it may have been created a moment ago, and it must not be reported as lost.
func (r *Reconciler) renderings(ctx context.Context, obs observation) ([]v1alpha1.NodeTypeRendering, error) {
	var list v1alpha1.NodeTypeRenderingList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list NodeTypeRenderings: %w", err)
	}
	status := obs.nodeType.Status
	all := slices.DeleteFunc(list.Items, func(r v1alpha1.NodeTypeRendering) bool {
		return obs.revisions[r.Spec.RevisionRef.Name] == nil || isGoing(&r)
	})
	for _, name := range slices.Compact([]string{status.StableRendering, status.TargetRendering}) {
		if name == "" || slices.ContainsFunc(all, func(r v1alpha1.NodeTypeRendering) bool { return r.Name == name }) {
			continue
		}
		made, err := get(ctx, r.APIReader, name, &v1alpha1.NodeTypeRendering{})
		if err != nil {
			return nil, fmt.Errorf("read NodeTypeRendering %s: %w", name, err)
		}
		if made != nil && !isGoing(made) {
			all = append(all, *made)
		}
	}
	return all, nil
}

// isCollected reports whether the garbage collector deletes what the NodeType owns before the NodeType itself, because that is deleted in the foreground.
//
// Without it: the collector deletes the Rollout and its target revision, and this controller makes both again, which the collector deletes, as fast as both
// can. Each new Rollout knows nothing of the one before: one that has stopped begins anew.
func isCollected(n *v1alpha1.NodeType) bool {
	return n.DeletionTimestamp != nil && controllerutil.ContainsFinalizer(n, metav1.FinalizerDeleteDependents)
}

// isGoing tells whether an object is being deleted and nothing keeps it. One that is kept is in use: the Machines that have it are judged by
// it, and it must not be reported as lost.
func isGoing(o client.Object) bool {
	return o.GetDeletionTimestamp() != nil && !controllerutil.ContainsFinalizer(o, v1alpha1.InUseFinalizer)
}
