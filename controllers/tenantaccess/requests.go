package tenantaccess

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

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

// requestKind are the requests for serving certificates of kubelets. A tenant is used also while they cannot be watched.
var requestKind = kind{
	plural: "CertificateSigningRequests", object: &certificatesv1.CertificateSigningRequest{}, trim: trimmed(trimRequest), page: 4, handler: requestHandler,
	indexes:  map[string]client.IndexerFunc{UsernameField: requestUser},
	selector: fields.OneTermEqualSelector("spec.signerName", certificatesv1.KubeletServingSignerName), isOptional: true,
}

// ServingRequests says whether the requests for serving certificates of a tenant's kubelets can be seen and approved.
type ServingRequests struct {
	// Watched is true if an Access's Cache has them.
	Watched bool
	// Denied are the rights that the kubeconfig's user lacks: "update certificatesigningrequests/approval".
	Denied []string
	// Problem is why they are not watched although the rights are there; empty: that is not known yet, or they are.
	Problem string
}

// The intervals at which the rights are asked for again, and at which a watch that ended for its size is begun anew.
const (
	rightsInterval = time.Minute
	requestsPause  = 10 * time.Minute
)

// requestRights are the rights to see and to approve requests.
var requestRights = []authorizationv1.ResourceAttributes{
	{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests", Verb: "get"},
	{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests", Verb: "list"},
	{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests", Verb: "watch"},
	{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests", Subresource: "approval", Verb: "update"},
	{Group: certificatesv1.GroupName, Resource: "signers", Name: certificatesv1.KubeletServingSignerName, Verb: "approve"},
}

// requests is what a client set knows of the requests for serving certificates. The mu of the client set guards it.
type requests struct {
	// wanted is what Registry.WatchRequests says.
	wanted bool
	watch  *kindWatch
	denied []string
	// problem is why there is no watch, apart from that of the watch.
	problem string
	// askedAt is when the rights were asked for; zero: they were not. until is before when no watch is begun.
	askedAt, until time.Time
}

// WatchRequests says whether the requests for serving certificates of the tenant's kubelets are watched. It is called before Set.
func (r *Registry) WatchRequests(key types.NamespacedName, wanted bool) {
	r.mu.Lock()
	if r.requests == nil {
		r.requests = map[types.NamespacedName]bool{}
	}
	r.requests[key] = wanted
	known := r.tenants[key]
	r.mu.Unlock()
	if known == nil || known.clients == nil {
		return
	}
	s := known.clients
	s.mu.Lock()
	isChanged := s.requests.wanted != wanted
	s.requests.wanted = wanted
	s.mu.Unlock()
	if !isChanged {
		return
	}
	select {
	case s.probeNow <- struct{}{}:
	default:
	}
}

// observeRequests asks for the rights when that is due, and starts or ends the watch. What goes wrong with it is kept, and says nothing about the tenant.
func (s *clientSet) observeRequests(parts *sync.WaitGroup) {
	s.mu.Lock()
	known := s.requests
	s.mu.Unlock()
	next := s.askForRequests(known)
	if !next.canWatch(s.options.Clock.Now()) {
		stopWatches(known.watch)
		next.watch = nil
	} else if known.watch == nil {
		watch, err := s.startWatch(parts, requestKind)
		if next.watch = watch; err != nil {
			next.problem = err.Error()
		}
	}
	if s.setRequests(known, next); !slices.Equal(known.denied, next.denied) || known.problem != next.problem {
		s.hub.requestsRead(s)
	}
}

// askForRequests returns what is known with the rights, which are asked for when that is due.
func (s *clientSet) askForRequests(known requests) requests {
	now := s.options.Clock.Now()
	if !known.wanted {
		return requests{watch: known.watch}
	}
	next := known
	if known.askedAt.IsZero() || now.Sub(known.askedAt) >= rightsInterval {
		next.askedAt = now
		if next.denied, next.problem = s.readRequestRights(); next.problem == "" && now.Before(known.until) {
			next.problem = known.problem
		}
	}
	return next
}

// canWatch reports whether requests can be watched now.
func (r requests) canWatch(now time.Time) bool {
	return r.wanted && r.problem == "" && !slices.ContainsFunc(r.denied, isToWatch) && !now.Before(r.until)
}

// setRequests records what was observed. If the tenant, or the watch, was too large meanwhile, it stops the watch.
func (s *clientSet) setRequests(known, next requests) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isSuspended() || s.requests.until.After(known.until) {
		stopWatches(next.watch)
		return
	}
	next.wanted = s.requests.wanted
	s.requests = next
}

// isToWatch reports whether a right is needed to watch requests.
func isToWatch(right string) bool {
	return strings.HasPrefix(right, "list ") || strings.HasPrefix(right, "watch ")
}

// readRequestRights returns which rights the user lacks, or why that cannot be found out.
func (s *clientSet) readRequestRights() (denied []string, problem string) {
	for i := range requestRights {
		a := requestRights[i]
		allowed, err := s.isAllowed(a)
		if err != nil {
			return nil, fmt.Sprintf("the rights of the kubeconfig's user cannot be asked for: %v", err)
		}
		if !allowed {
			name := a.Resource
			for _, part := range []string{a.Subresource, a.Name} {
				if part != "" {
					name += "/" + part
				}
			}
			denied = append(denied, a.Verb+" "+name)
		}
	}
	return denied, ""
}

// isAllowed asks the tenant's API server whether the user has a right. Every user may ask that (ClusterRole system:basic-user).
func (s *clientSet) isAllowed(right authorizationv1.ResourceAttributes) (bool, error) {
	body, err := json.Marshal(authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectAccessReview"},
		Spec:     authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right},
	})
	if err != nil {
		return false, err
	}
	path := "/apis/" + authorizationv1.SchemeGroupVersion.String() + "/selfsubjectaccessreviews"
	raw, err := s.prober.Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body(body).Do(s.ctx).Raw()
	if err != nil {
		return false, err
	}
	var review authorizationv1.SelfSubjectAccessReview
	if err := json.Unmarshal(raw, &review); err != nil {
		return false, errors.New("POST " + path + " answered something else")
	}
	return review.Status.Allowed, nil
}

// servingRequests returns what is known. The caller must hold mu.
func (s *clientSet) servingRequests() ServingRequests {
	out := ServingRequests{Denied: s.requests.denied, Problem: s.requests.problem}
	if w := s.requests.watch; w != nil {
		out.Watched = w.synced && w.broken == nil
		if w.broken != nil {
			out.Problem = fmt.Sprintf("watch %s: %v", w.path, w.broken)
		}
	}
	return out
}

// stopRequests ends the watch of requests for a while, because they are more than is kept of a tenant. Without it: whoever holds the credentials of one
// node creates requests without end, and the tenant with all its nodes is not used any more.
func (s *clientSet) stopRequests(what string, cause *tooLargeError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stopWatches(s.requests.watch)
	s.requests.watch, s.requests.until = nil, s.options.Clock.Now().Add(requestsPause)
	s.requests.problem = fmt.Sprintf("%s: %v: %s; they are not watched, and are tried again after %s", what, cause, cause.advice(), requestsPause)
}

// exceed ends the use of the tenant, or of the kind alone, because of what is watched.
func (s *clientSet) exceed(w *kindWatch, what string, cause *tooLargeError) {
	if w.kind.isOptional {
		s.stopRequests(what, cause)
		return
	}
	s.suspend(what, cause)
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

// requestsRead sends the nodes that have requests, and the tenant, once the requests have been read.
func (h *hub) requestsRead(set *clientSet) {
	for _, s := range h.list() {
		if s.ofRequest != nil || s.ofTenant != nil {
			s.tenantChanged(set)
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
