package entitlement

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/plan/entitlement"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
)

// use is what a tenant has and waits for.
type use struct {
	entitlement.Known
	// waits are what waits for devices.
	waits []v1alpha1.DeviceWait
	// holdings are the claims that have devices, and changes what has happened to them since the look before.
	holdings []v1alpha1.DeviceHolding
	changes  []entitlement.Change
}

// observeUse reads what the classes select, what the claims of the tenant have, and what waits. What it cannot read takes nothing away from what is enforced.
func (r *Reconciler) observeUse(ctx context.Context, obs *observation) {
	seen := r.journal.take(obs)
	var err error
	if obs.use, err = r.readUse(ctx, obs, seen); err != nil {
		r.journal.putBack(clusterOf(obs.entitlement), seen, r.Clock.Now())
		obs.use = use{Known: entitlement.Known{Problem: err.Error(), IsUnread: errors.Is(err, tenantaccess.ErrClaimsUnread)}}
	}
}

// readUse reads the use. seen are the changes that were seen.
func (r *Reconciler) readUse(ctx context.Context, obs *observation, seen []entitlement.Change) (out use, err error) {
	claims, err := claimsOf(ctx, obs)
	if err != nil {
		return out, err
	}
	// Tenants make pods as large and as many as they like: what cannot be read of them makes nothing else unknown.
	pods, refusals, podsUnread := r.observePods(ctx, obs)
	out.Uses = entitlement.UsesOf(claims, quotaStatuses(obs), pods)
	if out.Seen, err = r.find(ctx, obs, out.Uses.Total()); err != nil {
		return out, err
	}
	// Only a class without devices says what is under way, and the Machines may be thousands.
	if slices.ContainsFunc(obs.plan.Classes, func(c entitlement.Class) bool { return c.DeviceClass != "" && out.Seen[c.DeviceClass].Admitted == 0 }) {
		if out.UnderWay, err = r.underWay(ctx, obs.clusters); err != nil {
			return out, err
		}
	}
	var waiting []resourcev1.ResourceClaim
	var holdings []v1alpha1.DeviceHolding
	for i := range claims {
		if holding, has := entitlement.HoldingOf(&claims[i]); has {
			holdings = append(holdings, holding)
		} else {
			waiting = append(waiting, claims[i])
		}
	}
	if podsUnread != nil {
		log.FromContext(ctx).Info("What waits for devices is not known", "reason", podsUnread.Error())
	} else {
		out.waits = entitlement.Waits(waiting, pods, refusals)
	}
	out.holdings, out.changes = r.journal.compare(obs, seen, holdings)
	return out, nil
}

// claimsOf returns the claims in the namespaces of the tenant.
func claimsOf(ctx context.Context, obs *observation) ([]resourcev1.ResourceClaim, error) {
	all, err := obs.access.Claims(ctx)
	if err != nil {
		return nil, err
	}
	isTenants := map[string]bool{}
	for _, namespace := range obs.input.Namespaces {
		isTenants[namespace] = true
	}
	var out []resourcev1.ResourceClaim
	for i := range all {
		if isTenants[all[i].Namespace] {
			out = append(out, all[i])
		}
	}
	return out, nil
}

// waitingPods are the pods without a node that ask for devices, and what Kubernetes said of their claims, by namespace.
type waitingPods struct {
	pods     map[string][]entitlement.Pod
	refusals map[string]entitlement.Refusals
}

// observePods returns the tenant's pods that wait.
func (r *Reconciler) observePods(ctx context.Context, obs *observation) ([]entitlement.Pod, entitlement.Refusals, error) {
	all, err := readShared(r, obs, "Pod", func() (*waitingPods, error) { return readPods(ctx, obs.access, obs.input.Guarded) })
	if err != nil {
		return nil, nil, fmt.Errorf("list the pods of the shared cluster that wait: %s", input.Line(err.Error(), tenantaccess.MaxQuoted))
	}
	var pods []entitlement.Pod
	refusals := entitlement.Refusals{}
	for _, namespace := range obs.input.Namespaces {
		pods = append(pods, all.pods[namespace]...)
		for name, message := range all.refusals[namespace] {
			refusals[name] = message
		}
	}
	return pods, refusals, nil
}

// reasonClaimNotMade is that of kube-controller-manager's event of a pod whose claim it cannot make (k8s.io/kubernetes/pkg/controller/resourceclaim).
const reasonClaimNotMade = "FailedResourceClaimCreation"

// combined begins the message of an event that stands for several (k8s.io/client-go/tools/record).
const combined = "(combined from similar events): "

// readPods reads the pods of a cluster that have no node, and what was said of those whose claim cannot be made.
func readPods(ctx context.Context, a *tenantaccess.Access, guarded []string) (*waitingPods, error) {
	out := &waitingPods{pods: map[string][]entitlement.Pod{}}
	lacksClaim := false
	err := tenantaccess.EachSparePage(ctx, a, func() *corev1.PodList { return &corev1.PodList{} }, func(page *corev1.PodList) {
		for i := range page.Items {
			if pod, asks := entitlement.PodOf(&page.Items[i], guarded); asks && page.Items[i].DeletionTimestamp == nil {
				out.pods[pod.Namespace] = append(out.pods[pod.Namespace], pod)
				lacksClaim = lacksClaim || pod.LacksClaim
			}
		}
	}, client.MatchingFields{"spec.nodeName": "", "status.phase": string(corev1.PodPending)})
	if err == nil && lacksClaim {
		out.refusals, err = readRefusals(ctx, a)
	}
	return out, err
}

// readRefusals reads the newest event of each pod whose claim cannot be made. Without the right to list events nothing is said of why.
func readRefusals(ctx context.Context, a *tenantaccess.Access) (map[string]entitlement.Refusals, error) {
	newest := map[string]corev1.Event{}
	err := tenantaccess.EachSparePage(ctx, a, func() *corev1.EventList { return &corev1.EventList{} }, func(page *corev1.EventList) {
		for _, e := range page.Items {
			name := e.InvolvedObject.Namespace + "/" + e.InvolvedObject.Name
			if last, isKnown := newest[name]; !isKnown || last.LastTimestamp.Before(&e.LastTimestamp) {
				newest[name] = e
			}
		}
	}, client.MatchingFields{"involvedObject.kind": "Pod", "reason": reasonClaimNotMade})
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	out := map[string]entitlement.Refusals{}
	for name, e := range newest {
		namespace := e.InvolvedObject.Namespace
		if out[namespace] == nil {
			out[namespace] = entitlement.Refusals{}
		}
		out[namespace][name] = input.Line(entitlement.RefusalText(strings.TrimPrefix(e.Message, combined)), v1alpha1.MaxWaitMessage)
	}
	return out, nil
}

// find returns what was found of the classes, of which the tenant has and asks for so much.
func (r *Reconciler) find(ctx context.Context, obs *observation, usage map[string]entitlement.Usage) (map[string]entitlement.Seen, error) {
	var published resourcev1.ResourceSliceList
	if err := obs.access.Cache.List(ctx, &published, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the ResourceSlices of the shared cluster: %w", err)
	}
	gated, err := gatedNodes(ctx, obs)
	if err != nil {
		return nil, fmt.Errorf("list the Nodes of the shared cluster: %w", err)
	}
	state := stateOf(published.Items, gated)
	if r.selections.isNews(obs.access.Client, state, r.Clock.Now()) {
		r.tellOthers(obs.entitlement)
	}
	seen := map[string]entitlement.Seen{}
	for _, c := range obs.plan.Classes {
		if c.DeviceClass == "" {
			seen[c.Resource] = entitlement.Seen{Usage: usage[c.Resource]}
			continue
		}
		s := entitlement.Seen{Usage: usage[c.DeviceClass]}
		if !c.IsKept {
			if s.Found, err = r.selections.find(obs.access.Client, state, c.Selector, published.Items, gated); err != nil {
				s.Problem = err.Error()
			}
		}
		seen[c.DeviceClass] = s
	}
	return seen, nil
}

// quotaStatuses returns what Kubernetes counts of the quotas that the Entitlement has made, by namespace.
func quotaStatuses(obs *observation) map[string]corev1.ResourceList {
	out := map[string]corev1.ResourceList{}
	for id, object := range obs.ours {
		if id.Kind != quotaKind.Kind {
			continue
		}
		used, _, err := unstructured.NestedStringMap(object.Object, "status", "used")
		if err != nil {
			continue // of another version of Kubernetes: nothing is known
		}
		list := corev1.ResourceList{}
		for name, text := range used {
			if quantity, err := resource.ParseQuantity(text); err == nil {
				list[corev1.ResourceName(name)] = quantity
			}
		}
		out[id.Namespace] = list
	}
	return out
}

// gatedNodes returns the Nodes that have a gate.
func gatedNodes(ctx context.Context, obs *observation) (map[string]bool, error) {
	var nodes corev1.NodeList
	if err := obs.access.Cache.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	isGate := map[string]bool{}
	for _, key := range obs.input.GateKeys {
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
