package entitlement

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/entitlement"
	"github.com/ingot-dev/ingot/controllers/plan/rendering"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
	"github.com/ingot-dev/ingot/presentation"
)

// observation is everything that one reconcile reads.
type observation struct {
	// entitlement that is reconciled; nil: it is gone. observe sets it.
	entitlement *v1alpha1.Entitlement
	// isClusterGone is true where the TenantCluster does not exist. observe sets it.
	isClusterGone bool
	// access to the shared cluster; nil: problem says why there is none. observe sets it.
	access *tenantaccess.Access
	// problem is why nothing can be enforced. observe sets it, and leaves out what it could not read.
	problem *problem
	// input is what the plan follows from. observe sets it, but for what was made, which enforce adds.
	input entitlement.Input
	// plan is what the shared cluster must have. observe sets it as if nothing was made, and enforce as it is.
	plan entitlement.Plan
	// namespaces of the tenant that exist, and terminating those of them that are being deleted. observe sets them.
	namespaces  []string
	terminating map[string]bool
	// seen is what was found of the DeviceClasses; nil: nothing could be read. enforce sets it.
	seen map[string]entitlement.Seen
	// gateKeys are the keys of all gates. observe sets it.
	gateKeys []string
}

// problem is why an Entitlement is not enforced.
type problem struct {
	// status is that of the condition Enforced.
	status          metav1.ConditionStatus
	reason, message string
	// again is when it is tried again; 0: with the steady look.
	again time.Duration
}

// problemOf returns what an error of the shared cluster's API server means; nil: there is none.
func problemOf(doing string, err error) *problem {
	switch {
	case err == nil:
		return nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), apierrors.IsConflict(err), apierrors.IsNotFound(err), apierrors.IsAlreadyExists(err):
		// What was read a moment ago is so no more: the next look knows. An admission webhook may answer the same for ever.
		return &problem{metav1.ConditionUnknown, v1alpha1.ReasonTenantUnreachable, doing + ": " + tenantaccess.Printable(err.Error()), time.Second}
	case apierrors.IsForbidden(err):
		return &problem{metav1.ConditionFalse, v1alpha1.ReasonEntitlementRightsMissing, fmt.Sprintf("%s: %s. An administrator of the shared cluster applies what "+
			"ingot tenant add --entitlements --tenant-side prints", doing, tenantaccess.Printable(err.Error())), 0}
	case meta.IsNoMatchError(err):
		return &problem{metav1.ConditionFalse, v1alpha1.ReasonServerLacksFeature, fmt.Sprintf("%s: %s. Expected is Kubernetes 1.34 or later, which serves "+
			"resource.k8s.io/v1 and ValidatingAdmissionPolicies", doing, tenantaccess.Printable(err.Error())), 0}
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return &problem{metav1.ConditionFalse, v1alpha1.ReasonObjectRefused, doing + ": " + tenantaccess.Printable(err.Error()), 0}
	}
	return &problem{metav1.ConditionUnknown, v1alpha1.ReasonTenantUnreachable, doing + ": " + tenantaccess.Printable(err.Error()), 0}
}

func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName) (observation, error) {
	var obs observation
	found := &v1alpha1.Entitlement{}
	if err := r.Client.Get(ctx, key, found); err != nil {
		return obs, client.IgnoreNotFound(err)
	}
	obs.entitlement = found
	cluster := types.NamespacedName{Namespace: key.Namespace, Name: found.Spec.TenantClusterRef.Name}
	var tenant v1alpha1.TenantCluster
	if err := r.Client.Get(ctx, cluster, &tenant); apierrors.IsNotFound(err) {
		obs.isClusterGone = true
		obs.problem = &problem{metav1.ConditionFalse, v1alpha1.ReasonTenantNotFound, fmt.Sprintf("there is no TenantCluster %s: create it", cluster), 0}
	} else if err != nil {
		return obs, fmt.Errorf("read TenantCluster %s: %w", cluster, err)
	}
	input := entitlement.Input{Entitlement: found}
	if err := r.observePromises(ctx, &input); err != nil {
		return obs, err
	}
	obs.gateKeys = input.GateKeys
	if obs.problem == nil {
		obs.access, obs.problem = r.reach(cluster)
	}
	if obs.problem == nil {
		var err error
		if obs.problem, err = r.observeNamespaces(ctx, &obs, &tenant); err != nil {
			return obs, err
		}
		input.Namespaces, input.Terminating = obs.namespaces, obs.terminating
	}
	obs.input, obs.plan = input, entitlement.Make(input)
	return obs, nil
}

// read returns what of a kind is in the shared cluster: of a moment ago where no change of the Entitlement has led to this look.
func read[T any](r *Reconciler, obs *observation, kind string, of func() (T, error)) (T, error) {
	e := obs.entitlement
	isFresh := e.Generation != e.Status.ObservedGeneration || e.DeletionTimestamp != nil
	value, err := r.lists.read(obs.access.Client, kind, r.Clock.Now(), isFresh, func() (any, error) { return of() })
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
		return nil, &problem{metav1.ConditionUnknown, typed.Reason, "the shared cluster cannot be used: " + typed.Err.Error(), 0}
	case err != nil:
		return nil, &problem{metav1.ConditionUnknown, v1alpha1.ReasonTenantUnreachable, err.Error(), 0}
	case !access.SlicesServed:
		return nil, &problem{metav1.ConditionFalse, v1alpha1.ReasonServerLacksFeature, fmt.Sprintf("the shared cluster's API server %s does not serve resource.k8s.io/v1: "+
			"expected is Kubernetes 1.34 or later", access.Version), 0}
	}
	return access, nil
}

// observePromises reads what the NodeTypes promise, and their gates.
func (r *Reconciler) observePromises(ctx context.Context, into *entitlement.Input) error {
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
		into.Promises[nodeTypes.Items[i].Name] = promise
	}
	expectations, err := r.expectations(ctx)
	if err != nil {
		return err
	}
	for _, promise := range into.Promises {
		expectations = append(expectations, promise.Expectation)
	}
	var entitlements v1alpha1.EntitlementList
	if err := r.Client.List(ctx, &entitlements, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list Entitlements: %w", err)
	}
	into.Guarded = entitlement.Guarded(expectations, nodeTypes.Items, entitlements.Items)
	return nil
}

// expectations returns what all renderings promise that this version can read: nodes of an earlier revision run until they are rolled, those of a later one
// come with a rollout.
func (r *Reconciler) expectations(ctx context.Context) ([]v1alpha1.NodeExpectation, error) {
	var list v1alpha1.NodeTypeRenderingList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list NodeTypeRenderings: %w", err)
	}
	var out []v1alpha1.NodeExpectation
	for i := range list.Items {
		if plan, err := rendering.Plan(&list.Items[i]); err == nil {
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
	plan, err := rendering.Plan(&rendered)
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
func (r *Reconciler) observeNamespaces(ctx context.Context, obs *observation, tenant *v1alpha1.TenantCluster) (*problem, error) {
	all, err := read(r, obs, "Namespace", func() (all []entitlement.Namespace, err error) {
		err = forEachPage(ctx, obs.access.Client, func() *corev1.NamespaceList { return &corev1.NamespaceList{} }, func(page *corev1.NamespaceList) {
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
	obs.terminating = map[string]bool{}
	for _, n := range all {
		obs.terminating[n.Name] = n.IsTerminating
	}
	if obs.namespaces, err = entitlement.NamespacesOf(obs.entitlement.Spec.Namespaces, all); err != nil {
		return &problem{metav1.ConditionFalse, v1alpha1.ReasonObjectRefused, err.Error(), 0}, nil //nolint:nilerr // the condition says why
	}
	others, err := r.entitlementsOf(ctx, tenant)
	if err != nil {
		return nil, err
	}
	if conflict := entitlement.Conflict(obs.entitlement, others, all); conflict != "" {
		return &problem{metav1.ConditionFalse, v1alpha1.ReasonEntitlementConflict, conflict, 0}, nil
	}
	return nil, nil
}

// entitlementsOf returns the Entitlements of a cluster. Two TenantClusters may be one cluster.
func (r *Reconciler) entitlementsOf(ctx context.Context, tenant *v1alpha1.TenantCluster) ([]v1alpha1.Entitlement, error) {
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
	var list v1alpha1.EntitlementList
	if err := r.Client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list Entitlements: %w", err)
	}
	var out []v1alpha1.Entitlement
	for i := range list.Items {
		if e := &list.Items[i]; same[types.NamespacedName{Namespace: e.Namespace, Name: e.Spec.TenantClusterRef.Name}] {
			out = append(out, *e)
		}
	}
	return out, nil
}

// observeUse reads what the classes select, and what the claims of the tenant have.
func (r *Reconciler) observeUse(ctx context.Context, obs *observation) *problem {
	var published resourcev1.ResourceSliceList
	if err := obs.access.Cache.List(ctx, &published, client.UnsafeDisableDeepCopy); err != nil {
		return problemOf("list the ResourceSlices of the shared cluster", err)
	}
	gated, err := gatedNodes(ctx, obs)
	if err != nil {
		return problemOf("list the Nodes of the shared cluster", err)
	}
	used, err := read(r, obs, "ResourceClaim", func() (map[string]map[string]entitlement.Usage, error) { return countClaims(ctx, obs.access.Client) })
	if err != nil {
		return problemOf("list the ResourceClaims of the shared cluster", err)
	}
	usage := map[string]entitlement.Usage{}
	for _, namespace := range obs.namespaces {
		for class, u := range used[namespace] {
			usage[class] = usage[class].Add(u)
		}
	}
	obs.seen = map[string]entitlement.Seen{}
	for _, c := range obs.plan.Classes {
		if c.DeviceClass == "" {
			continue
		}
		s := entitlement.Seen{Usage: usage[c.DeviceClass]}
		if c.IsKept {
			obs.seen[c.DeviceClass] = s
			continue
		}
		if s.Found, err = entitlement.Find(c.Selector, published.Items, func(node string) bool { return gated[node] }); err != nil {
			s.Problem = err.Error()
		}
		obs.seen[c.DeviceClass] = s
	}
	return nil
}

// countClaims returns what the claims have and ask for, by namespace and DeviceClass.
func countClaims(ctx context.Context, c client.Client) (map[string]map[string]entitlement.Usage, error) {
	out := map[string]map[string]entitlement.Usage{}
	err := forEachPage(ctx, c, func() *resourcev1.ResourceClaimList { return &resourcev1.ResourceClaimList{} }, func(page *resourcev1.ResourceClaimList) {
		for i := range page.Items {
			namespace := page.Items[i].Namespace
			if out[namespace] == nil {
				out[namespace] = map[string]entitlement.Usage{}
			}
			for class, u := range entitlement.Count(page.Items[i : i+1]) {
				out[namespace][class] = out[namespace][class].Add(u)
			}
		}
	})
	return out, err
}

// gatedNodes returns the Nodes that have a gate.
func gatedNodes(ctx context.Context, obs *observation) (map[string]bool, error) {
	var nodes corev1.NodeList
	if err := obs.access.Cache.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	isGate := map[string]bool{}
	for _, key := range obs.gateKeys {
		isGate[key] = true
	}
	gated := map[string]bool{}
	for i := range nodes.Items {
		for _, taint := range nodes.Items[i].Spec.Taints {
			gated[nodes.Items[i].Name] = gated[nodes.Items[i].Name] || isGate[taint.Key]
		}
	}
	return gated, nil
}
