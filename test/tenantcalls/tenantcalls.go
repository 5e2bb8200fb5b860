// Package tenantcalls lists the calls that the manager makes to tenants' API servers.
//
// The tests of the controllers record their calls and compare them with the list. The tests of tenantaccess answer each call of the list
// without end, and in other ways in which a tenant may harm the manager.
package tenantcalls

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Call is a kind of request: a verb and a resource, such as list and pods, or get and the path of what is no resource.
type Call struct{ Verb, Resource string }

// All are the calls that the manager makes.
var All = []Call{
	{"get", "/version"}, {"get", "/discovery"},
	{"list", "nodes"}, {"watch", "nodes"}, {"get", "nodes"}, {"patch", "nodes"}, {"delete", "nodes"}, {"create", "events"},
	{"list", "resourceslices"}, {"watch", "resourceslices"},
	{"list", "secrets"}, {"create", "secrets"}, {"patch", "secrets"}, {"delete", "secrets"},
	{"list", "pods"}, {"create", "pods/eviction"}, {"list", "poddisruptionbudgets"},
	{"get", "namespaces"}, {"get", "services"}, {"get", "configmaps"},
	{"list", "daemonsets"}, {"get", "deviceclasses"},
	{"get", "pods"}, {"create", "pods"}, {"delete", "pods"}, {"create", "resourceclaims"}, {"delete", "resourceclaims"},
	{"create", "selfsubjectaccessreviews"}, {"list", "certificatesigningrequests"}, {"watch", "certificatesigningrequests"},
	{"get", "certificatesigningrequests"}, {"update", "certificatesigningrequests/approval"},
	// What enforces Entitlements.
	{"list", "namespaces"}, {"list", "events"}, {"list", "resourceclaims"}, {"watch", "resourceclaims"},
	{"list", "deviceclasses"}, {"patch", "deviceclasses"}, {"delete", "deviceclasses"},
	{"get", "resourcequotas"}, {"list", "resourcequotas"}, {"patch", "resourcequotas"}, {"delete", "resourcequotas"},
	{"get", "validatingadmissionpolicies"}, {"list", "validatingadmissionpolicies"}, {"patch", "validatingadmissionpolicies"}, {"delete", "validatingadmissionpolicies"},
	{"get", "validatingadmissionpolicybindings"}, {"list", "validatingadmissionpolicybindings"}, {"patch", "validatingadmissionpolicybindings"}, {"delete", "validatingadmissionpolicybindings"},
}

// Of returns the call that a request is.
func Of(r *http.Request) Call {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	prefix := map[string]int{"api": 2, "apis": 3}[parts[0]]
	if prefix == 0 {
		return Call{"get", r.URL.Path}
	}
	if len(parts) <= prefix {
		return Call{"get", "/discovery"}
	}
	parts = parts[prefix:]
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	verb := map[string]string{http.MethodPost: "create", http.MethodPatch: "patch", http.MethodDelete: "delete", http.MethodPut: "update"}[r.Method]
	switch {
	case verb != "":
	case r.URL.Query().Has("watch"):
		verb = "watch"
	case len(parts) == 1:
		verb = "list"
	default:
		verb = "get"
	}
	if len(parts) > 2 {
		return Call{verb, parts[0] + "/" + parts[2]}
	}
	return Call{verb, parts[0]}
}

// Recorder records calls.
type Recorder struct {
	mu    sync.Mutex
	calls []Call
}

// Wrap returns a transport whose requests are recorded.
func (r *Recorder) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		r.mu.Lock()
		if call := Of(request); !slices.Contains(r.calls, call) {
			r.calls = append(r.calls, call)
		}
		r.mu.Unlock()
		return next.RoundTrip(request)
	})
}

// Calls returns what was recorded, each call once.
func (r *Recorder) Calls() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// Check fails the test for each recorded call that is not in All.
func (r *Recorder) Check(t *testing.T) {
	t.Helper()
	for _, call := range r.Calls() {
		if !slices.Contains(All, call) {
			t.Errorf("the manager calls a tenant to %s %s: add it to tenantcalls.All, so that an answer without end is tested", call.Verb, call.Resource)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
