package tenantaccess

import (
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// UsernameField is the field by which CertificateSigningRequests of a user can be listed from an Access's Cache.
const UsernameField = "spec.username"

// requestKind are the requests for serving certificates of kubelets.
var requestKind = kind{
	plural: "CertificateSigningRequests", object: &certificatesv1.CertificateSigningRequest{}, trim: trimmed(trimRequest), page: 4, handler: requestHandler,
	indexes:  map[string]client.IndexerFunc{UsernameField: requestUser},
	selector: fields.OneTermEqualSelector("spec.signerName", certificatesv1.KubeletServingSignerName), isOptional: true,
	// To see and to approve them.
	rights: []authorizationv1.ResourceAttributes{
		{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests", Verb: "get"},
		{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests", Verb: "list"},
		{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests", Verb: "watch"},
		{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests", Subresource: "approval", Verb: "update"},
		{Group: certificatesv1.GroupName, Resource: "signers", Name: certificatesv1.KubeletServingSignerName, Verb: "approve"},
	},
}

// WatchRequests says whether the requests for serving certificates of the tenant's kubelets are watched.
func (r *Registry) WatchRequests(key types.NamespacedName, wanted bool) {
	r.watchOptional(key, requestKind, wanted)
}

// The limits of what is kept of a request.
const (
	// maxServingRequest is more than package servingcert reads.
	maxServingRequest = 16<<10 + 1
	maxRequestLists   = 32
	nodeUserPrefix    = "system:node:"
)

// trimRequest returns the part of a request that is decided by. Of one that is no node's only the name remains.
func trimRequest(request *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
	kept := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{
		Name: request.Name, UID: request.UID, ResourceVersion: limitText(request.ResourceVersion), CreationTimestamp: request.CreationTimestamp,
	}}
	if !strings.HasPrefix(request.Spec.Username, nodeUserPrefix) {
		return kept
	}
	from, to := &request.Spec, &kept.Spec
	to.SignerName, to.Username, to.Request = limitText(from.SignerName), limitText(from.Username), slices.Clone(head(from.Request, maxServingRequest))
	for _, group := range head(from.Groups, maxRequestLists) {
		to.Groups = append(to.Groups, limitText(group))
	}
	for _, usage := range head(from.Usages, maxRequestLists) {
		to.Usages = append(to.Usages, certificatesv1.KeyUsage(limitText(string(usage))))
	}
	for _, c := range head(request.Status.Conditions, maxRequestLists) {
		kept.Status.Conditions = append(kept.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.RequestConditionType(limitText(string(c.Type))), Status: c.Status, LastUpdateTime: c.LastUpdateTime,
		})
	}
	return kept
}

func requestUser(object client.Object) []string {
	if request, ok := object.(*certificatesv1.CertificateSigningRequest); ok && request.Spec.Username != "" {
		return []string{request.Spec.Username}
	}
	return nil
}

// RequestSource returns a source that enqueues the requests that toRequests returns for a node when a CertificateSigningRequest of it changes, and for
// all nodes with one when its tenant becomes usable or the CertificateSigningRequests have been read.
func (r *Registry) RequestSource(name string, toRequests func(tenant types.NamespacedName, node string) []reconcile.Request) source.Source {
	return &subscription{registry: r, name: name, ofRequest: toRequests}
}

// requestHandler sends the nodes whose requests change.
func requestHandler(s *clientSet) toolscache.ResourceEventHandler {
	changed := func(object any) {
		request, ok := unwrapDeleted(object).(*certificatesv1.CertificateSigningRequest)
		if !ok || s.ctx.Err() != nil {
			return
		}
		if node, isNode := strings.CutPrefix(request.Spec.Username, nodeUserPrefix); isNode {
			s.hub.requestChanged(s.key, node)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{AddFunc: changed, UpdateFunc: func(_, after any) { changed(after) }}
}

func (h *hub) requestChanged(tenant types.NamespacedName, node string) {
	for _, s := range h.list() {
		if s.ofRequest != nil {
			s.send(s.ofRequest(tenant, node))
		}
	}
}

// requestingNodes returns the names of the nodes with requests in the cache.
func (s *clientSet) requestingNodes() []string {
	s.mu.Lock()
	watch := s.requests.watch
	isRead := watch != nil && watch.synced
	s.mu.Unlock()
	if !isRead {
		return nil
	}
	var list certificatesv1.CertificateSigningRequestList
	if err := watch.reader.List(s.ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	var out []string
	for i := range list.Items {
		if node, isNode := strings.CutPrefix(list.Items[i].Spec.Username, nodeUserPrefix); isNode && !slices.Contains(out, node) {
			out = append(out, node)
		}
	}
	return out
}
