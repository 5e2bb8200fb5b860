package remainingnode

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
	"github.com/ingot-dev/ingot/test/loopback"
	"github.com/ingot-dev/ingot/test/management"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

// TestATenantThatKeepsItsNodeIsAskedEverMoreSeldom: the tenant's API server answers each deletion without doing it.
func TestATenantThatKeepsItsNodeIsAskedEverMoreSeldom(t *testing.T) {
	for name, c := range map[string]struct {
		code       int
		body, told string
	}{
		"it says that the Node is deleted": {http.StatusOK, `{"kind":"Status","apiVersion":"v1","status":"Success"}`, "its deletion is requested"},
		"a webhook of the tenant refuses":  {http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"denied by guard"}`, "is not removed: the tenant's API server does not delete it: denied by guard"},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := server.Namespace(t)
			tenant := types.NamespacedName{Namespace: namespace, Name: "research"}
			uid := types.UID("uid-" + namespace)
			newNode(t, namespace, v1alpha1.ProviderID(uid, 1))
			record := &v1alpha1.HostRecord{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "server-00"}}
			record.Spec.RemainingNodes = []v1alpha1.ReleasedNode{{Tenant: tenant.String(), Name: namespace, MachineUID: uid, Since: metav1.NowMicro()}}
			server.Create(t, record, &v1alpha1.TenantCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: tenant.Name}, Spec: v1alpha1.TenantClusterSpec{
				KubeconfigSecretRef: v1alpha1.LocalReference{Name: "admin"}, Join: v1alpha1.JoinSpec{TLSBootstrap: &v1alpha1.EndpointJoin{}},
			}})
			var deletions atomic.Int32
			tenants := tenantaccess.New(tenantaccess.Options{PrivateNetworks: loopback.Networks(), Scheme: server.Scheme, Log: logr.Discard(), WrapTransport: func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(q *http.Request) (*http.Response, error) {
					if q.Method != http.MethodDelete {
						return next.RoundTrip(q)
					}
					deletions.Add(1)
					return &http.Response{StatusCode: c.code, Request: q, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewBufferString(c.body))}, nil
				})
			}})
			server.Run(t, func(mgr ctrl.Manager) error { return mgr.Add(tenants) })
			if err := tenants.Set(t.Context(), tenant, server.Cluster.Kubeconfig()); err != nil {
				t.Fatal(err)
			}
			management.Eventually(t, "the tenant can be used", func() bool { _, err := tenants.For(tenant); return err == nil })
			clock, told := clocktesting.NewFakePassiveClock(time.Now()), events.NewFakeRecorder(100)
			r := &Reconciler{Client: server.Client, Tenants: tenants, Recorder: told, Clock: clock}
			r.deletions.MaxPause = recheckInterval
			look := func() time.Duration {
				t.Helper()
				result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(record)})
				if err != nil {
					t.Fatal(err)
				}
				return result.RequeueAfter
			}
			var pauses []time.Duration
			for i := range 7 {
				look()
				if pause := look(); deletions.Load() == int32(i+1) {
					pauses = append(pauses, pause)
					clock.SetTime(clock.Now().Add(pause))
				}
				if text := <-told.Events; !strings.Contains(text, c.told) {
					t.Errorf("told: %s", text)
				}
			}
			for i, want := range []time.Duration{30, 60, 120, 240, 480, 600, 600} {
				if i >= len(pauses) || pauses[i] != want*time.Second {
					t.Fatalf("%d requests, with the pauses %v", deletions.Load(), pauses)
				}
			}
			if !hasNode(t, namespace) {
				t.Error("the Node is gone")
			}
		})
	}
}
