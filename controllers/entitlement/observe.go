package entitlement

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/entitlement"
	"github.com/ingot-dev/ingot/controllers/serverclock"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
	"github.com/ingot-dev/ingot/presentation"
)

// observation is everything that one reconcile reads.
type observation struct {
	// entitlement that is reconciled; nil: it is gone. observe sets it.
	entitlement *v1alpha1.Entitlement
	// isClusterGone is true where the TenantCluster does not exist, or is being deleted and cannot be reached for releaseTime. observe sets it.
	isClusterGone bool
	// access to the shared cluster; nil: problem says why there is none. observe sets it.
	access *tenantaccess.Access
	// problem is why nothing can be enforced. observe sets it, and leaves out what it could not read.
	problem *problem
	// ours are the objects of the shared cluster that the Entitlement has made. observe sets it.
	ours map[identity]*unstructured.Unstructured
	// input is what the plan follows from. observe sets it.
	input entitlement.Input
	// mustWatchClaims is true while an Entitlement of the TenantCluster stays. observe sets it.
	mustWatchClaims bool
	// plan is what the shared cluster must have. observe sets it.
	plan entitlement.Plan
	// isFirstLook is true where this manager has seen none of the objects as it should be. enforce sets it.
	isFirstLook bool
	// clusters are the TenantClusters that are the shared cluster. observe sets it.
	clusters map[types.NamespacedName]bool
	// use is what the tenant has and waits for. observeUse sets it.
	use use
}

// releaseTime is how long a TenantCluster that is being deleted must be out of reach until the objects in it are given up. Without it: a cluster that is gone for
// ever keeps its Entitlements, and they keep its TenantCluster.
const releaseTime = 10 * time.Minute

// problem is why an Entitlement is not enforced.
type problem struct {
	// status is that of the condition Enforced.
	status          metav1.ConditionStatus
	reason, message string
	// again is when it is tried again; 0: with the steady look.
	again time.Duration
	// isReachable: the shared cluster answers, so that what the tenant has can be told all the same.
	isReachable bool
}

// problemOf returns what an error of the shared cluster's API server means; nil: there is none.
func problemOf(doing string, err error) *problem {
	if err == nil {
		return nil
	}
	p := &problem{status: metav1.ConditionUnknown, reason: v1alpha1.ReasonTenantUnreachable, message: doing + ": " + input.Line(err.Error(), tenantaccess.MaxQuoted)}
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), apierrors.IsConflict(err), apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err):
		// What was read a moment ago is so no more: the next look knows. An admission webhook may answer the same for ever.
		p.again = time.Second
	case apierrors.IsForbidden(err):
		p.status, p.reason = metav1.ConditionFalse, v1alpha1.ReasonEntitlementRightsMissing
		p.message += ". An administrator of the shared cluster applies what ingot tenant add --entitlements --tenant-side prints"
	case meta.IsNoMatchError(err):
		p.status, p.reason = metav1.ConditionFalse, v1alpha1.ReasonServerLacksFeature
		p.message += ". Expected is Kubernetes 1.34 or later, which serves resource.k8s.io/v1 and ValidatingAdmissionPolicies"
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		p.status, p.reason = metav1.ConditionFalse, v1alpha1.ReasonObjectRefused
	}
	return p
}

func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName) (observation, error) {
	var obs observation
	found := &v1alpha1.Entitlement{}
	if err := r.Client.Get(ctx, key, found); err != nil {
		return obs, client.IgnoreNotFound(err)
	}
	obs.entitlement = found
	cluster := clusterOf(found)
	var tenant v1alpha1.TenantCluster
	if err := r.Client.Get(ctx, cluster, &tenant); apierrors.IsNotFound(err) {
		obs.isClusterGone = true
		obs.problem = &problem{status: metav1.ConditionFalse, reason: v1alpha1.ReasonTenantNotFound, message: fmt.Sprintf("there is no TenantCluster %s: create it", cluster)}
	} else if err != nil {
		return obs, fmt.Errorf("read TenantCluster %s: %w", cluster, err)
	}
	var entitlements v1alpha1.EntitlementList
	if err := r.Client.List(ctx, &entitlements, client.UnsafeDisableDeepCopy); err != nil {
		return obs, fmt.Errorf("list Entitlements: %w", err)
	}
	obs.input.Entitlement = found
	obs.mustWatchClaims = slices.ContainsFunc(entitlements.Items, func(e v1alpha1.Entitlement) bool { return clusterOf(&e) == cluster && e.DeletionTimestamp == nil })
	if err := r.observePromises(ctx, &obs.input, entitlements.Items); err != nil {
		return obs, err
	}
	if obs.problem == nil {
		obs.access, obs.problem = r.reach(cluster)
		obs.isClusterGone = obs.problem != nil && r.isGivenUp(&tenant)
	}
	return obs, r.observeCluster(ctx, &obs, &tenant, entitlements.Items)
}

// isGivenUp reports whether a TenantCluster that cannot be reached was deleted so long ago that nobody waits for it any more.
func (r *Reconciler) isGivenUp(tenant *v1alpha1.TenantCluster) bool {
	return tenant.DeletionTimestamp != nil && serverclock.Of(r.Clock).Elapsed(tenant.DeletionTimestamp.Time) > releaseTime
}

// observeCluster reads what of the shared cluster the plan follows from, and makes the plan.
func (r *Reconciler) observeCluster(ctx context.Context, obs *observation, tenant *v1alpha1.TenantCluster, entitlements []v1alpha1.Entitlement) error {
	// Of one that is being deleted the objects are enough.
	if obs.problem == nil && obs.entitlement.DeletionTimestamp.IsZero() {
		var err error
		if obs.problem, err = r.observeNamespaces(ctx, obs, tenant, entitlements); err != nil {
			return err
		}
	}
	if obs.problem == nil {
		obs.problem = r.observeOurs(ctx, obs)
	}
	obs.plan = entitlement.Make(obs.input)
	return nil
}

// readShared returns what of a kind is in the shared cluster: of a moment ago where no change of the Entitlement has led to this look.
func readShared[T any](r *Reconciler, obs *observation, kind string, of func() (T, error)) (T, error) {
	e := obs.entitlement
	isFresh := e.Generation != e.Status.ObservedGeneration || e.DeletionTimestamp != nil
	value, err := r.lists.get(obs.access.Client, kind, r.Clock.Now(), isFresh, func() (any, error) { return of() })
	if err != nil {
		var none T
		return none, err
	}
	return value.(T), nil
}

// reach returns the access to the shared cluster, or why there is none.
func (r *Reconciler) reach(cluster types.NamespacedName) (*tenantaccess.Access, *problem) {
	access, err := r.Tenants.For(cluster)
	var typed *tenantaccess.Error
	switch {
	case errors.As(err, &typed):
		return nil, &problem{status: metav1.ConditionUnknown, reason: typed.Reason, message: "the shared cluster cannot be used: " + typed.Err.Error()}
	case err != nil:
		return nil, &problem{status: metav1.ConditionUnknown, reason: v1alpha1.ReasonTenantUnreachable, message: err.Error()}
	case !access.SlicesServed:
		return nil, &problem{status: metav1.ConditionFalse, reason: v1alpha1.ReasonServerLacksFeature, message: fmt.Sprintf("the shared cluster's API server %s does not serve resource.k8s.io/v1: "+
			"expected is Kubernetes 1.34 or later", access.Version)}
	}
	return access, nil
}

// observePromises reads what the NodeTypes promise, and their gates.
func (r *Reconciler) observePromises(ctx context.Context, into *entitlement.Input, entitlements []v1alpha1.Entitlement) error {
	var nodeTypes v1alpha1.NodeTypeList
	if err := r.Client.List(ctx, &nodeTypes, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list NodeTypes: %w", err)
	}
	into.GateKeys, into.Promises = entitlement.GateKeys(nodeTypes.Items), map[string]entitlement.Promise{}
	for i := range nodeTypes.Items {
		promise, err := r.promiseOf(ctx, &nodeTypes.Items[i])
		if err != nil {
			return err
		}
		gpu := nodeTypes.Items[i].Spec.GPU
		promise.IsDedicated = gpu != nil && gpu.Vendor == v1alpha1.VendorNVIDIA && gpu.Tenancy != v1alpha1.TenancyShared
		into.Promises[nodeTypes.Items[i].Name] = promise
	}
	expectations, err := r.expectations(ctx)
	if err != nil {
		return err
	}
	into.Guarded = entitlement.Guarded(expectations, nodeTypes.Items, entitlements)
	return nil
}

// expectations returns what all renderings promise that this version can read: nodes of an earlier revision run until they are rolled, those of a later one
// come with a rollout.
func (r *Reconciler) expectations(ctx context.Context) ([]v1alpha1.NodeExpectation, error) {
	var list v1alpha1.NodeTypeRenderingList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list NodeTypeRenderings: %w", err)
	}
	r.plans.keepOnly(list.Items)
	var out []v1alpha1.NodeExpectation
	for i := range list.Items {
		if plan, err := r.plans.of(&list.Items[i]); err == nil {
			out = append(out, plan.Expectation)
		}
	}
	return out, nil
}

func (r *Reconciler) promiseOf(ctx context.Context, nodeType *v1alpha1.NodeType) (entitlement.Promise, error) {
	name := nodeType.Status.StableRendering
	if name == "" {
		return entitlement.Promise{Problem: "it has no rendering yet: kubectl describe nodetype " + nodeType.Name + " says why"}, nil
	}
	var rendered v1alpha1.NodeTypeRendering
	if err := r.Client.Get(ctx, types.NamespacedName{Name: name}, &rendered); apierrors.IsNotFound(err) {
		return entitlement.Promise{Problem: "its NodeTypeRendering " + name + " is not there"}, nil
	} else if err != nil {
		return entitlement.Promise{}, fmt.Errorf("read NodeTypeRendering %s: %w", name, err)
	}
	plan, err := r.plans.of(&rendered)
	if err != nil {
		return entitlement.Promise{Problem: err.Error()}, nil //nolint:nilerr // the class says why
	}
	expectation, err := presentation.WithDeclaredResources(plan.Expectation, nodeType.Spec.Resources)
	if err != nil {
		return entitlement.Promise{Problem: err.Error()}, nil //nolint:nilerr // the class says why
	}
	return entitlement.Promise{Expectation: expectation}, nil
}

// observeNamespaces reads the namespaces of the shared cluster, and looks for an older Entitlement that contradicts this one.
func (r *Reconciler) observeNamespaces(ctx context.Context, obs *observation, tenant *v1alpha1.TenantCluster, entitlements []v1alpha1.Entitlement) (*problem, error) {
	all, err := readShared(r, obs, "Namespace", func() (all []entitlement.Namespace, err error) {
		err = tenantaccess.EachPage(ctx, obs.access.Client, func() *corev1.NamespaceList { return &corev1.NamespaceList{} }, func(page *corev1.NamespaceList) {
			for i := range page.Items {
				n := &page.Items[i]
				all = append(all, entitlement.Namespace{Name: n.Name, Labels: n.Labels, IsTerminating: n.DeletionTimestamp != nil})
			}
		})
		return all, err
	})
	if err != nil {
		return problemOf("list the namespaces of the shared cluster", err), nil
	}
	obs.input.Terminating = map[string]bool{}
	for _, n := range all {
		obs.input.Terminating[n.Name] = n.IsTerminating
	}
	if obs.input.Namespaces, err = entitlement.NamespacesOf(obs.entitlement.Spec.Namespaces, all); err != nil {
		return &problem{status: metav1.ConditionFalse, reason: v1alpha1.ReasonObjectRefused, message: err.Error()}, nil //nolint:nilerr // the condition says why
	}
	if obs.clusters, err = r.clustersOf(ctx, tenant); err != nil {
		return nil, err
	}
	var others []v1alpha1.Entitlement
	for i := range entitlements {
		if obs.clusters[clusterOf(&entitlements[i])] {
			others = append(others, entitlements[i])
		}
	}
	if conflict := entitlement.Conflict(obs.entitlement, others, all); conflict != "" {
		conflict += ". Until then nothing is written for this one, and what it has in the shared cluster stays: in a namespace of both, each fence refuses the classes of the other tenant, and no device can be asked for"
		return &problem{status: metav1.ConditionFalse, reason: v1alpha1.ReasonEntitlementConflict, message: conflict}, nil
	}
	return nil, nil
}

// clustersOf returns the TenantClusters that are the same cluster as one: several may be.
func (r *Reconciler) clustersOf(ctx context.Context, tenant *v1alpha1.TenantCluster) (map[types.NamespacedName]bool, error) {
	var clusters v1alpha1.TenantClusterList
	if err := r.Client.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list TenantClusters: %w", err)
	}
	same := map[types.NamespacedName]bool{client.ObjectKeyFromObject(tenant): true}
	for i := range clusters.Items {
		if uid := clusters.Items[i].Status.ClusterUID; uid != "" && uid == tenant.Status.ClusterUID {
			same[client.ObjectKeyFromObject(&clusters.Items[i])] = true
		}
	}
	return same, nil
}

// underWay says which Machines of the shared cluster are being installed or rolled, by NodeType.
func (r *Reconciler) underWay(ctx context.Context, clusters map[types.NamespacedName]bool) (map[string]string, error) {
	var list v1alpha1.MachineList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Machines: %w", err)
	}
	var machines []v1alpha1.Machine
	for i := range list.Items {
		if m := &list.Items[i]; clusters[types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.TenantClusterRef.Name}] {
			machines = append(machines, *m)
		}
	}
	return entitlement.UnderWay(machines), nil
}

// observeOurs reads the objects that the Entitlement has made, and what their DeviceClasses were made for.
func (r *Reconciler) observeOurs(ctx context.Context, obs *observation) (p *problem) {
	if obs.ours, p = r.listOurs(ctx, obs); p != nil || obs.entitlement.DeletionTimestamp != nil {
		return p
	}
	obs.input.Made, p = madeClasses(obs.ours)
	return p
}

// madeClasses returns what was made of the DeviceClasses.
func madeClasses(ours map[identity]*unstructured.Unstructured) (map[string]entitlement.MadeClass, *problem) {
	out := map[string]entitlement.MadeClass{}
	for id, object := range ours {
		if id.GroupVersionKind != deviceClassKind {
			continue
		}
		var c resourcev1.DeviceClass
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &c); err != nil {
			return nil, &problem{status: metav1.ConditionFalse, reason: v1alpha1.ReasonObjectRefused, message: fmt.Sprintf("read DeviceClass %s of the shared cluster: %s", id.Name, input.Line(err.Error(), tenantaccess.MaxQuoted))}
		}
		made := entitlement.MadeClass{MadeFor: c.Annotations[v1alpha1.AnnotationMadeFor]}
		if len(c.Spec.Selectors) == 1 && c.Spec.Selectors[0].CEL != nil {
			made.Selector = c.Spec.Selectors[0].CEL.Expression
		}
		out[id.Name] = made
	}
	return out, nil
}

// listOurs returns the objects that the Entitlement has made. Nobody may change them.
func (r *Reconciler) listOurs(ctx context.Context, obs *observation) (map[identity]*unstructured.Unstructured, *problem) {
	out := map[identity]*unstructured.Unstructured{}
	for _, kind := range kinds {
		objects, err := readShared(r, obs, kind.Kind, func() (map[string][]*unstructured.Unstructured, error) {
			return listByLabel(ctx, obs.access.Client, kind)
		})
		if err != nil {
			return nil, problemOf("list "+kind.Kind+" objects of the shared cluster", err)
		}
		for _, object := range objects[string(obs.entitlement.ObjectsUID())] {
			if entitlement.IsNameOf(obs.entitlement, object.GetKind(), object.GetName()) {
				out[identityOf(object)] = object
			}
		}
	}
	return out, nil
}

// listByLabel returns the objects of a kind that Entitlements have made, by their label.
func listByLabel(ctx context.Context, c client.Client, kind schema.GroupVersionKind) (map[string][]*unstructured.Unstructured, error) {
	newPage := func() *unstructured.UnstructuredList {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		return page
	}
	out := map[string][]*unstructured.Unstructured{}
	err := tenantaccess.EachPage(ctx, c, newPage, func(page *unstructured.UnstructuredList) {
		for i := range page.Items {
			uid := page.Items[i].GetLabels()[v1alpha1.LabelEntitlement]
			out[uid] = append(out[uid], &page.Items[i])
		}
	}, client.HasLabels{v1alpha1.LabelEntitlement})
	return out, err
}
