package tenantaccess

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestClaimsAreWatchedWhereTheyAreWanted(t *testing.T) {
	r := newRegistry(t, Options{})
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	var mu sync.Mutex
	var seen []string
	source := r.ClaimSource("test", time.Millisecond, func(_ types.NamespacedName, before, after *resourcev1.ResourceClaim) []reconcile.Request {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case before == nil:
			seen = append(seen, "new "+after.Name)
		case after == nil:
			seen = append(seen, "gone "+before.Name)
		default:
			seen = append(seen, "changed "+after.Name)
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: after.Name}}}
		}
		return nil
	})
	if err := source.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	if err := r.Set(t.Context(), tenantKey, server.Cluster.Kubeconfig()); err != nil {
		t.Fatal(err)
	}
	if _, err := usable(t, r, tenantKey).Claims(t.Context()); err == nil {
		t.Error("claims are read that nobody wants: all of the tenant's would be watched")
	}
	r.WatchClaims(tenantKey, true)
	watched := func() bool { access, err := r.For(tenantKey); return err == nil && access.WatchedClaims.Watched }
	eventually(t, "the claims are watched", watched)
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: server.Namespace(t), Name: "training"}}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "a100", Count: 2}}}
	if err := server.Client.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	// Of this nothing is kept, so that it is no change.
	claim.Annotations = map[string]string{"changed": "true"}
	if err := server.Client.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{{Request: "gpu", Driver: "gpu.nvidia.com", Pool: "a", Device: "gpu-0"}, {Request: "gpu", Driver: "gpu.nvidia.com", Pool: "a", Device: "gpu-1"}},
	}}
	if err := server.Client.Status().Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the claim is in the cache", func() bool {
		claims, err := usable(t, r, tenantKey).Claims(t.Context())
		return err == nil && slices.ContainsFunc(claims, func(c resourcev1.ResourceClaim) bool {
			return c.UID == claim.UID && c.Namespace == claim.Namespace && c.Spec.Devices.Requests[0].Exactly.Count == 2 && c.Annotations == nil
		})
	})
	if err := server.Client.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	eventually(t, "each change is sent", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.Equal(seen, []string{"new training", "changed training", "gone training"})
	})
	if request, _ := queue.Get(); request.Name != "training" {
		t.Errorf("%s is enqueued", request)
	}
	r.WatchClaims(tenantKey, false)
	eventually(t, "nothing is watched", func() bool { return !watched() })
}

func TestAClaimKeepsWhatSaysWhatItHasAndNoMore(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	at := metav1.NewTime(time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC))
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", Labels: map[string]string{"a": long}, Annotations: map[string]string{"a": long}}}
	exactly := &resourcev1.ExactDeviceRequest{DeviceClassName: "a100", Count: 2, Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: long}}}}
	claim.Spec.Devices.Requests = slices.Repeat([]resourcev1.DeviceRequest{{Name: "r", Exactly: exactly}}, 100)
	claim.Spec.Devices.Requests[0].FirstAvailable = slices.Repeat([]resourcev1.DeviceSubRequest{{Name: "s", DeviceClassName: "b", Selectors: exactly.Selectors}}, 100)
	claim.Status.Allocation = &resourcev1.AllocationResult{
		AllocationTimestamp: &at, NodeSelector: &corev1.NodeSelector{},
		Devices: resourcev1.DeviceAllocationResult{Results: slices.Repeat([]resourcev1.DeviceRequestAllocationResult{{Request: "r", Device: long}}, 100)},
	}
	kept := trimClaim(claim)
	if size := footprint(kept); size > 96<<10 {
		t.Errorf("%d bytes are kept", size)
	}
	first := kept.Spec.Devices.Requests[0]
	if first.Exactly.DeviceClassName != "a100" || first.Exactly.Count != 2 || first.FirstAvailable[0].DeviceClassName != "b" || !kept.Status.Allocation.AllocationTimestamp.Equal(&at) ||
		kept.Namespace != "a" || kept.Labels != nil || len(kept.Status.Allocation.Devices.Results) != resourcev1.AllocationResultsMaxSize {
		t.Errorf("%+v", kept)
	}
}

// TestClaimsOfOneNameInTwoNamespacesAreTwo reads them as a list and as a watch does.
func TestClaimsOfOneNameInTwoNamespacesAreTwo(t *testing.T) {
	claims := &resourcev1.ResourceClaimList{}
	for _, namespace := range []string{"a", "b"} {
		claims.Items = append(claims.Items, resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "gpu"}})
	}
	r := newRegistry(t, Options{})
	account := r.book.open("test", func(*tooLargeError) {})
	m := &meteredListerWatcher{
		kind: claimKind, ledger: &ledger{account: account, plural: claimKind.plural, sizes: map[string]int64{}}, exceeded: func(err error) { t.Error(err) },
		from: &toolscache.ListWatch{ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) { return claims.DeepCopy(), nil }},
	}
	list, err := m.list(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := list.(*resourcev1.ResourceClaimList).Items; len(got) != 2 || len(m.ledger.sizes) != 2 {
		t.Errorf("%d claims are kept, and %d are counted", len(got), len(m.ledger.sizes))
	}
	if _, err := m.event(watch.Event{Type: watch.Deleted, Object: &claims.Items[0]}); err != nil || len(m.ledger.sizes) != 1 {
		t.Errorf("%d claims are counted when one is gone: %v", len(m.ledger.sizes), err)
	}
	claims.Items[1].Namespace = strings.Repeat("x", 1000)
	e, err := m.event(watch.Event{Type: watch.Added, Object: &claims.Items[1]})
	if err != nil || len(e.Object.(*resourcev1.ResourceClaim).Namespace) != maxNamespace {
		t.Errorf("%+v is kept, which no API server stores: %v", e, err)
	}
}
