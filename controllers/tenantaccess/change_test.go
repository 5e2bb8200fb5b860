package tenantaccess

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

func TestATenantThatLaterServesSlicesIsNoticedAndSoIsOneThatCeasesTo(t *testing.T) {
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "later-gpu"},
		Spec:       resourcev1.ResourceSliceSpec{Driver: "gpu.nvidia.com", NodeName: new("later"), Pool: resourcev1.ResourcePool{Name: "later", ResourceSliceCount: 1}},
	}
	server.Create(t, slice)
	t.Cleanup(func() { _ = server.Client.Delete(context.Background(), slice) })
	var serves atomic.Bool
	proxy, ca := newTLSServer(t, gatekeeper(t, func(path string) int {
		if !serves.Load() && strings.HasPrefix(path, "/apis/resource.k8s.io") {
			return http.StatusNotFound
		}
		return 0
	}))
	r := newRegistry(t, Options{ProbeInterval: 50 * time.Millisecond})
	var told atomic.Int64
	if err := r.TenantSource("test", func(types.NamespacedName) []reconcile.Request { told.Add(1); return nil }).Start(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := r.Set(t.Context(), tenantKey, configOf(proxy.URL, ca, "", "token: a")); err != nil {
		t.Fatal(err)
	}
	access := usable(t, r, tenantKey)
	if access.SlicesServed {
		t.Error("slices are said to be served, and they are not")
	}
	if err := access.Cache.List(t.Context(), &resourcev1.ResourceSliceList{}); err == nil {
		t.Error("slices that are not served can be listed")
	}
	served := func(want bool) func() bool {
		return func() bool {
			var err error
			access, err = r.For(tenantKey)
			return err == nil && access.SlicesServed == want
		}
	}

	before := told.Load()
	serves.Store(true)
	eventually(t, "the tenant serves slices now", served(true))
	var slices resourcev1.ResourceSliceList
	if err := access.Cache.List(t.Context(), &slices, client.MatchingFields{NodeNameField: "later"}); err != nil || len(slices.Items) != 1 {
		t.Errorf("%d slices, error %v", len(slices.Items), err)
	}
	eventually(t, "the controllers are told", func() bool { return told.Load() > before })

	before = told.Load()
	serves.Store(false)
	eventually(t, "the tenant serves none any more", served(false))
	eventually(t, "the controllers are told again", func() bool { return told.Load() > before })
	if err := access.Cache.List(t.Context(), &corev1.NodeList{}); err != nil {
		t.Error(err)
	}
}

func TestTheFirstRequestWithoutAnAnswerLosesTheTenantForEverybody(t *testing.T) {
	var silent atomic.Bool
	release := make(chan struct{})
	inner := gatekeeper(t, func(string) int { return 0 })
	proxy, ca := newTLSServer(t, http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if silent.Load() {
			select {
			case <-release:
			case <-request.Context().Done():
			}
		}
		inner.ServeHTTP(w, request)
	}))
	t.Cleanup(func() { close(release) })
	// No probe comes by itself while this test runs: what is noticed is noticed by the request.
	r := newRegistry(t, Options{Timeout: 3 * time.Second, ProbeInterval: time.Hour})
	if err := r.Set(t.Context(), tenantKey, configOf(proxy.URL, ca, "", "token: a")); err != nil {
		t.Fatal(err)
	}
	access := usable(t, r, tenantKey)
	silent.Store(true)
	if err := access.Client.List(t.Context(), &corev1.SecretList{}); err == nil {
		t.Fatal("a silent tenant answered")
	}
	if _, err := r.For(tenantKey); reasonOf(err) != v1alpha1.ReasonTenantUnreachable || !strings.Contains(err.Error(), "did not answer in time") {
		t.Errorf("after a request without an answer the next one is let through: %v", err)
	}
	silent.Store(false)
	usable(t, r, tenantKey)
}
