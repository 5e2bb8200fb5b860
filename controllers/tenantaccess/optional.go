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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// OptionalWatch says whether the objects of a kind can be seen without which a tenant is used too.
type OptionalWatch struct {
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
	optionalPause  = 10 * time.Minute
)

// optional is what a client set knows of the objects of an optional kind. The mu of the client set guards it.
type optional struct {
	kind kind
	// wanted is what the Registry was told.
	wanted bool
	watch  *kindWatch
	denied []string
	// problem is why there is no watch, apart from that of the watch.
	problem string
	// askedAt is when the rights were asked for; zero: they were not. until is before when no watch is begun.
	askedAt, until time.Time
}

// optionalKey is a kind of a tenant.
type optionalKey struct {
	tenant types.NamespacedName
	plural string
}

// watchOptional says whether the objects of a kind are watched.
func (r *Registry) watchOptional(key types.NamespacedName, k kind, wanted bool) {
	r.mu.Lock()
	if r.wanted == nil {
		r.wanted = map[optionalKey]bool{}
	}
	r.wanted[optionalKey{key, k.plural}] = wanted
	known := r.tenants[key]
	r.mu.Unlock()
	if known == nil || known.clients == nil {
		return
	}
	s := known.clients
	s.mu.Lock()
	of := s.optionalOf(k)
	isChanged := of.wanted != wanted
	of.wanted = wanted
	s.mu.Unlock()
	if !isChanged {
		return
	}
	select {
	case s.probeNow <- struct{}{}:
	default:
	}
}

// allOptional returns what is known of each optional kind. The caller must hold mu to read it.
func (s *clientSet) allOptional() []*optional { return []*optional{&s.requests, &s.claims} }

// optionalOf returns what is known of an optional kind. The caller must hold mu to read it.
func (s *clientSet) optionalOf(k kind) *optional {
	for _, of := range s.allOptional() {
		if of.kind.plural == k.plural {
			return of
		}
	}
	return &optional{kind: k}
}

// observeOptional asks for the rights of a kind when that is due, and starts or ends the watch. What goes wrong with it is kept, and says nothing about the
// tenant.
func (s *clientSet) observeOptional(parts *sync.WaitGroup, of *optional) {
	s.mu.Lock()
	known := *of
	s.mu.Unlock()
	next := s.askForOptional(known)
	if !next.canWatch(s.options.Clock.Now()) {
		stopWatches(known.watch)
		next.watch = nil
	} else if known.watch == nil {
		watch, err := s.startWatch(parts, known.kind)
		if next.watch = watch; err != nil {
			next.problem = err.Error()
		}
	}
	if s.setOptional(of, known, next); !slices.Equal(known.denied, next.denied) || known.problem != next.problem {
		s.hub.optionalRead(s)
	}
}

// askForOptional returns what is known with the rights, which are asked for when that is due.
func (s *clientSet) askForOptional(known optional) optional {
	now := s.options.Clock.Now()
	if !known.wanted {
		return optional{kind: known.kind, watch: known.watch}
	}
	next := known
	if known.askedAt.IsZero() || now.Sub(known.askedAt) >= rightsInterval {
		next.askedAt = now
		switch denied, problem := s.readRights(known.kind.rights); {
		case problem != "" && known.watch != nil:
			// What is watched says by itself when it may not be: one answer that is missing ends nothing.
		case problem == "" && now.Before(known.until):
			next.denied = denied
		default:
			next.denied, next.problem = denied, problem
		}
	}
	return next
}

// canWatch reports whether the objects can be watched now.
func (o optional) canWatch(now time.Time) bool {
	return o.wanted && o.problem == "" && !slices.ContainsFunc(o.denied, isToWatch) && !now.Before(o.until)
}

// setOptional records what was observed. If the tenant, or the watch, was too large meanwhile, it stops the watch.
func (s *clientSet) setOptional(of *optional, known, next optional) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isSuspended() || of.until.After(known.until) {
		stopWatches(next.watch)
		return
	}
	next.wanted = of.wanted
	*of = next
}

// isToWatch reports whether a right is needed to watch objects.
func isToWatch(right string) bool {
	return strings.HasPrefix(right, "list ") || strings.HasPrefix(right, "watch ")
}

// readRights returns which rights the user lacks, or why that cannot be found out.
func (s *clientSet) readRights(wanted []authorizationv1.ResourceAttributes) (denied []string, problem string) {
	for _, a := range wanted {
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

// report returns what is known. The caller must hold mu.
func (o *optional) report() OptionalWatch {
	out := OptionalWatch{Denied: o.denied, Problem: o.problem}
	if w := o.watch; w != nil {
		out.Watched = w.synced && w.broken == nil
		if w.broken != nil {
			out.Problem = fmt.Sprintf("watch %s: %v", w.path, w.broken)
		}
	}
	return out
}

// stopOptional ends the watch of a kind for a while, because its objects are more than is kept of a tenant. Without it: whoever holds the credentials of one
// node, or a namespace, creates objects without end, and the tenant with all its nodes is not used any more.
func (s *clientSet) stopOptional(k kind, what string, cause *tooLargeError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.optionalOf(k)
	stopWatches(of.watch)
	of.watch, of.until = nil, s.options.Clock.Now().Add(optionalPause)
	of.problem = fmt.Sprintf("%s: %v: %s; they are not watched, and are tried again after %s", what, cause, cause.advice(), optionalPause)
}

// exceed ends the use of the tenant, or of the kind alone, because of what is watched.
func (s *clientSet) exceed(w *kindWatch, what string, cause *tooLargeError) {
	if w.kind.isOptional {
		s.stopOptional(w.kind, what, cause)
		return
	}
	s.suspend(what, cause)
}

// optionalRead sends the tenant, and the nodes that have requests, once the objects of an optional kind have been read.
func (h *hub) optionalRead(set *clientSet) {
	for _, s := range h.list() {
		if s.ofRequest != nil || s.ofTenant != nil {
			s.tenantChanged(set)
		}
	}
}
