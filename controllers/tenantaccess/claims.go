package tenantaccess

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// claimKind are the claims of devices, in a cluster that tenants share.
var claimKind = kind{
	plural: "ResourceClaims", object: &resourcev1.ResourceClaim{}, trim: trimmed(trimClaim), page: 4, handler: claimHandler, isOptional: true,
	rights: []authorizationv1.ResourceAttributes{
		{Group: resourcev1.GroupName, Resource: "resourceclaims", Verb: "list"},
		{Group: resourcev1.GroupName, Resource: "resourceclaims", Verb: "watch"},
	},
}

// WatchClaims says whether the ResourceClaims of the tenant are watched.
func (r *Registry) WatchClaims(key types.NamespacedName, wanted bool) {
	r.watchOptional(key, claimKind, wanted)
}

// ErrClaimsUnread is returned while the ResourceClaims have not been read yet.
var ErrClaimsUnread = errors.New("the ResourceClaims have not been read yet")

// Claims returns the ResourceClaims from the cache, where WatchClaims has asked for them, or why it has none. The objects are trimmed, belong to the cache and
// must not be changed.
func (a *Access) Claims(ctx context.Context) ([]resourcev1.ResourceClaim, error) {
	switch watched := a.WatchedClaims; {
	case len(watched.Denied) > 0:
		return nil, fmt.Errorf("the kubeconfig's user may not %s: an administrator of the shared cluster applies what ingot tenant add --entitlements --tenant-side prints", strings.Join(watched.Denied, ", "))
	case watched.Problem != "":
		return nil, errors.New(watched.Problem)
	case !watched.Watched:
		return nil, ErrClaimsUnread
	}
	var list resourcev1.ResourceClaimList
	if err := a.Cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the ResourceClaims: %w", err)
	}
	return list.Items, nil
}

// ClaimSource returns a source that enqueues the requests that toRequests returns for a change of a ResourceClaim. before is nil for a claim that is new or
// seen for the first time, and after for one that is gone. toRequests must not change them. The requests wait for delay, so that several changes are looked at
// together.
func (r *Registry) ClaimSource(name string, delay time.Duration, toRequests func(tenant types.NamespacedName, before, after *resourcev1.ResourceClaim) []reconcile.Request) source.Source {
	return &subscription{registry: r, name: name, ofClaim: toRequests, delay: delay}
}

// claimHandler sends the changes of claims.
func claimHandler(s *clientSet) toolscache.ResourceEventHandler {
	send := func(before, after any) {
		old, _ := unwrapDeleted(before).(*resourcev1.ResourceClaim)
		now, _ := after.(*resourcev1.ResourceClaim)
		if s.ctx.Err() == nil && (old != nil || now != nil) && !isSameClaim(old, now) {
			s.hub.claimChanged(s.key, old, now)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(after any) { send(nil, after) },
		UpdateFunc: send,
		DeleteFunc: func(before any) { send(before, nil) },
	}
}

// isSameClaim tells whether two trimmed claims differ only in the resourceVersion.
func isSameClaim(before, after *resourcev1.ResourceClaim) bool {
	if before == nil || after == nil {
		return false
	}
	copied := *before
	copied.ResourceVersion = after.ResourceVersion
	return equality.Semantic.DeepEqual(&copied, after)
}

func (h *hub) claimChanged(tenant types.NamespacedName, before, after *resourcev1.ResourceClaim) {
	for _, s := range h.list() {
		if s.ofClaim != nil {
			for _, request := range s.ofClaim(tenant, before, after) {
				s.queue.AddAfter(request, s.delay)
			}
		}
	}
}

// The limits of the API server on the names of namespaces, of other objects, and on uids.
const (
	maxNamespace = 63
	maxName      = 253
	maxUID       = 128
)

// trimClaim returns the part of a ResourceClaim that says what it asks for, what it has, and where. Names that no API server stores are cut: they are written
// to the status of an Entitlement.
func trimClaim(claim *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	kept := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: limitTo(claim.Namespace, maxNamespace), Name: limitTo(claim.Name, maxName), UID: types.UID(limitTo(string(claim.UID), maxUID)), ResourceVersion: limitText(claim.ResourceVersion),
		CreationTimestamp: claim.CreationTimestamp, DeletionTimestamp: claim.DeletionTimestamp,
	}}
	for _, r := range head(claim.Spec.Devices.Requests, resourcev1.DeviceRequestsMaxSize) {
		kept.Spec.Devices.Requests = append(kept.Spec.Devices.Requests, trimClaimRequest(r))
	}
	if from := claim.Status.Allocation; from != nil {
		to := &resourcev1.AllocationResult{NodeSelector: trimNodeSelector(from.NodeSelector), AllocationTimestamp: from.AllocationTimestamp}
		for _, result := range head(from.Devices.Results, resourcev1.AllocationResultsMaxSize) {
			to.Devices.Results = append(to.Devices.Results, resourcev1.DeviceRequestAllocationResult{
				Request: limitText(result.Request), Driver: limitText(result.Driver), Pool: limitText(result.Pool), Device: limitText(result.Device),
			})
		}
		kept.Status.Allocation = to
	}
	return kept
}

// trimNodeSelector returns the part of a selector that names one node.
func trimNodeSelector(from *corev1.NodeSelector) *corev1.NodeSelector {
	if from == nil {
		return nil
	}
	to := &corev1.NodeSelector{}
	for _, term := range head(from.NodeSelectorTerms, maxNodeTerms) {
		for _, field := range head(term.MatchFields, maxNodeTerms) {
			if field.Key == metav1.ObjectNameField && field.Operator == corev1.NodeSelectorOpIn && len(field.Values) == 1 && len(field.Values[0]) <= maxName {
				to.NodeSelectorTerms = append(to.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{
					Key: field.Key, Operator: field.Operator, Values: slices.Clone(field.Values),
				}}})
			}
		}
	}
	return to
}

// maxNodeTerms is how many terms of a selector are read. The scheduler writes one.
const maxNodeTerms = 4

func trimClaimRequest(from resourcev1.DeviceRequest) resourcev1.DeviceRequest {
	to := resourcev1.DeviceRequest{Name: limitText(from.Name)}
	if e := from.Exactly; e != nil {
		to.Exactly = &resourcev1.ExactDeviceRequest{DeviceClassName: limitTo(e.DeviceClassName, maxName), AllocationMode: e.AllocationMode, Count: e.Count}
	}
	for _, f := range head(from.FirstAvailable, resourcev1.FirstAvailableDeviceRequestMaxSize) {
		to.FirstAvailable = append(to.FirstAvailable, resourcev1.DeviceSubRequest{
			Name: limitText(f.Name), DeviceClassName: limitTo(f.DeviceClassName, maxName), AllocationMode: f.AllocationMode, Count: f.Count,
		})
	}
	return to
}
