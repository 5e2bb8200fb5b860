package machine_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
)

// answerDeletions answers each request to delete something of kind with a code, and counts them. Nothing is deleted.
func answerDeletions(kind string, code int, body string, count *atomic.Int32) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(q *http.Request) (*http.Response, error) {
			if q.Method != http.MethodDelete || !strings.Contains(q.URL.Path, "/"+kind+"/") {
				return next.RoundTrip(q)
			}
			count.Add(1)
			return &http.Response{
				StatusCode: code, Request: q, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewBufferString(body)),
			}, nil
		})
	}
}

const (
	webhookFails = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,"message":"failed calling webhook \"guard.example.com\""}`
	conflicts    = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"message":"try again"}`
	isBusy       = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429,"message":"too many"}`
	isDone       = `{"kind":"Status","apiVersion":"v1","status":"Success"}`
)

// TestATenantThatDoesNotDeleteHoldsNoHost: the pods' time is over at once. What the tenant's API server answers to each deletion differs.
func TestATenantThatDoesNotDeleteHoldsNoHost(t *testing.T) {
	for name, c := range map[string]struct {
		kind string
		code int
		body string
		want string
	}{
		"a webhook of the tenant fails":                   {"nodes", http.StatusInternalServerError, webhookFails, "may remain"},
		"a webhook of the tenant answers a conflict":      {"nodes", http.StatusConflict, conflicts, "may remain"},
		"the tenant is too busy":                          {"nodes", http.StatusTooManyRequests, isBusy, "may remain"},
		"the tenant says that it is done, and keeps it":   {"nodes", http.StatusOK, isDone, "may remain"},
		"a webhook fails for the bootstrap token":         {"secrets", http.StatusInternalServerError, webhookFails, "remains in the tenant's cluster until it expires"},
		"the tenant says that the token is, and keeps it": {"secrets", http.StatusOK, isDone, "remains in the tenant's cluster until it expires"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1)
			r.quickDrain()
			var deletions atomic.Int32
			r.tenantWrap = answerDeletions(c.kind, c.code, c.body, &deletions)
			m := r.installed(r.namespace)
			if c.kind == "nodes" {
				node := &corev1.Node{}
				node.Name, node.Spec.ProviderID = m.Name, fmt.Sprintf("%s%s/%d", v1alpha1.ProviderIDPrefix, m.UID, m.Status.Attempt)
				server.Create(t, node)
			}
			if err := server.Client.Delete(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			management.Eventually(t, "the Machine is gone", func() bool { r.play("server-00"); return r.machine(r.namespace).UID == "" })
			h, record := r.host("server-00")
			if h.Spec.ConsumerRef != nil || record.Spec.Machine != nil {
				t.Errorf("the host keeps %+v, its record %+v", h.Spec, record.Spec)
			}
			if isNamed := len(record.Spec.RemainingNodes) == 1; isNamed != (c.kind == "nodes") {
				t.Errorf("the record names %+v", record.Spec.RemainingNodes)
			}
			// Each phase of the release asks once; the client repeats what a busy server refuses.
			if n := deletions.Load(); n == 0 || n > 20 {
				t.Errorf("the tenant was asked %d times", n)
			}
			management.Eventually(t, "it is reported", func() bool {
				events := r.events(v1alpha1.ReasonNodeRemains)
				return len(events) == 1 && strings.Contains(events[0].Note, c.want)
			})
		})
	}
}

func TestABootstrapTokenWithAFinalizerHoldsNoHost(t *testing.T) {
	r := newRig(t, 1)
	r.quickDrain()
	m := r.installed(r.namespace)
	token := r.token(m)
	r.patch(token, `{"metadata":{"finalizers":["example.com/kept"]}}`)
	t.Cleanup(func() { r.patchLate(token, `{"metadata":{"finalizers":null}}`) })
	if err := server.Client.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the Machine is gone", func() bool { r.play("server-00"); return r.machine(r.namespace).UID == "" })
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(token), token); err != nil || token.DeletionTimestamp == nil {
		t.Errorf("the token: %v", err)
	}
	if h, _ := r.host("server-00"); h.Spec.ConsumerRef != nil {
		t.Errorf("the host keeps %+v", h.Spec.ConsumerRef)
	}
}
