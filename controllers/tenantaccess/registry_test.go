package tenantaccess

import (
	"context"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/loopback"
	"github.com/ingot-dev/ingot/test/management"
)

var server *management.Server

func TestMain(m *testing.M) { os.Exit(management.Main(m, &server)) }

func pemOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func testScheme(t testing.TB) *apiruntime.Scheme {
	t.Helper()
	scheme := apiruntime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// newRegistry runs a Registry and sees to it that nothing of it remains.
func newRegistry(t *testing.T, options Options) *Registry {
	t.Helper()
	options.Scheme = testScheme(t)
	if options.PrivateNetworks == nil {
		options.PrivateNetworks = loopback.Networks()
	}
	r := New(options)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			buffer := make([]byte, 1<<20)
			t.Errorf("the registry does not end:\n%s", buffer[:runtime.Stack(buffer, true)])
		}
	})
	return r
}

// eventually polls: what is awaited happens in other goroutines and over the network.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func usable(t *testing.T, r *Registry, key types.NamespacedName) *Access {
	t.Helper()
	var access *Access
	var err error
	defer func() {
		if t.Failed() {
			t.Log("last error:", err)
		}
	}()
	eventually(t, key.String()+" is usable", func() bool { access, err = r.For(key); return err == nil })
	return access
}

func reasonOf(err error) string {
	var typed *Error
	if errors.As(err, &typed) {
		return typed.Reason
	}
	return ""
}

func TestAnUnknownTenantIsATypedError(t *testing.T) {
	if _, err := New(Options{}).For(tenantKey); reasonOf(err) != v1alpha1.ReasonKubeconfigMissing {
		t.Errorf("error %v", err)
	}
}

func TestATenantThatNeverAnswersDelaysNobody(t *testing.T) {
	var asked atomic.Int64
	release := make(chan struct{})
	silent, ca := newTLSServer(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1); <-release }))
	t.Cleanup(func() { close(release) })
	r := newRegistry(t, Options{Timeout: time.Second})
	key := types.NamespacedName{Namespace: "bad", Name: "silent"}
	if err := r.Set(t.Context(), key, configOf(silent.URL, ca, "", "token: a")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.For(key); reasonOf(err) != v1alpha1.ReasonTenantUnreachable {
		t.Errorf("error %v", err)
	}
	eventually(t, "the silent tenant is asked", func() bool { return asked.Load() > 0 })
	if err := r.Set(t.Context(), tenantKey, server.Cluster.Kubeconfig()); err != nil {
		t.Fatal(err)
	}
	usable(t, r, tenantKey)
	eventually(t, "the error says what happened", func() bool {
		_, err := r.For(key)
		return reasonOf(err) == v1alpha1.ReasonTenantUnreachable && errors.Is(err, errNoResponse)
	})
}

func TestRefusedCredentialsAreNamedSo(t *testing.T) {
	r := newRegistry(t, Options{})
	config, err := Vet(server.Cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Set(t.Context(), tenantKey, configOf(config.Host, config.CAData, "", "token: wrong")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "TenantUnauthorized", func() bool {
		_, err := r.For(tenantKey)
		return reasonOf(err) == v1alpha1.ReasonTenantUnauthorized
	})
}

func TestNodesThatMayNotBeWatchedAreNamed(t *testing.T) {
	s, ca := newTLSServer(t, gatekeeper(t, func(path string) int {
		if strings.HasPrefix(path, "/api/v1/nodes") {
			return http.StatusForbidden
		}
		return 0
	}))
	r := newRegistry(t, Options{})
	err := r.Set(t.Context(), tenantKey, configOf(s.URL, ca, "", "token: narrow"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { t.Log(err) }()
	eventually(t, "the error names what must be allowed", func() bool {
		_, err = r.For(tenantKey)
		return reasonOf(err) == v1alpha1.ReasonTenantUnauthorized && strings.Contains(err.Error(), "/api/v1/nodes")
	})
}

func newNode(t *testing.T, name string) *corev1.Node {
	t.Helper()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"nfd.node.kubernetes.io/feature-labels": "long", v1alpha1.AnnotationCordoned: "true", "ingot.dev/other": "long"}},
		Status: corev1.NodeStatus{
			Images:       []corev1.ContainerImage{{Names: []string{"pause"}, SizeBytes: 1}},
			VolumesInUse: []corev1.UniqueVolumeName{"v"},
			NodeInfo:     corev1.NodeSystemInfo{BootID: "boot-1"},
			Conditions:   []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}},
		},
	}
	server.Create(t, node)
	t.Cleanup(func() { _ = server.Client.Delete(context.Background(), node) })
	return node
}

func TestARealTenantIsWatchedTrimmedAndCalledDirectly(t *testing.T) {
	newNode(t, "trimmed")
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "trimmed-gpu"},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: "gpu.nvidia.com", NodeName: new("trimmed"), Pool: resourcev1.ResourcePool{Name: "trimmed", ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{Name: "gpu-0"}},
		},
	}
	server.Create(t, slice)
	t.Cleanup(func() { _ = server.Client.Delete(context.Background(), slice) })
	r := newRegistry(t, Options{})
	if err := r.Set(t.Context(), tenantKey, server.Cluster.Kubeconfig()); err != nil {
		t.Fatal(err)
	}
	access := usable(t, r, tenantKey)
	var node corev1.Node
	if err := access.Cache.Get(t.Context(), types.NamespacedName{Name: "trimmed"}, &node); err != nil {
		t.Fatal(err)
	}
	if node.ManagedFields != nil || node.Status.Images != nil || node.Status.VolumesInUse != nil || node.Annotations[v1alpha1.AnnotationCordoned] != "true" || len(node.Annotations) != 1 ||
		node.Status.NodeInfo.BootID != "boot-1" || len(node.Status.Conditions) != 1 {
		t.Errorf("cached %+v", node)
	}
	var slices resourcev1.ResourceSliceList
	if err := access.Cache.List(t.Context(), &slices, client.MatchingFields{NodeNameField: "trimmed"}); err != nil || len(slices.Items) != 1 || !access.SlicesServed {
		t.Errorf("%d slices, error %v", len(slices.Items), err)
	}
	if err := access.Cache.List(t.Context(), &corev1.SecretList{}); err == nil {
		t.Error("Secrets are read from the cache: all of the tenant's would be watched")
	}
	if err := access.Client.List(t.Context(), &corev1.SecretList{}); err != nil {
		t.Error(err)
	}
	if access.Version != "v1.37.0" || access.Server != server.Cluster.Endpoint() || string(access.CA) != string(server.Cluster.CA()) {
		t.Errorf("access %s %s", access.Version, access.Server)
	}
}

func TestNodeEventsReachControllers(t *testing.T) {
	first := newNode(t, "first")
	r := newRegistry(t, Options{})
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	source := r.NodeSource("test", func(tenant types.NamespacedName, node *corev1.Node) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: tenant.Name, Name: node.Name}}}
	})
	if err := source.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	seen := func(name string) bool {
		for queue.Len() > 0 {
			request, _ := queue.Get()
			queue.Done(request)
			if request.Name == name && request.Namespace == tenantKey.Name {
				return true
			}
		}
		return false
	}
	if err := r.Set(t.Context(), tenantKey, server.Cluster.Kubeconfig()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a Node that was there before is sent", func() bool { return seen("first") })
	newNode(t, "second")
	eventually(t, "a new Node is sent", func() bool { return seen("second") })
	if err := server.Client.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a deleted Node is sent", func() bool { return seen("first") })
}

func TestAHeartbeatIsNoEventAndALostTaintIs(t *testing.T) {
	trimmed := func(version string, beat time.Time, taints ...corev1.Taint) *corev1.Node {
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: version},
			Spec:       corev1.NodeSpec{Taints: taints},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, LastHeartbeatTime: metav1.NewTime(beat)}}},
		}
		return trimNode(node)
	}
	gate := corev1.Taint{Key: v1alpha1.DefaultGateTaintKey, Effect: corev1.TaintEffectNoSchedule}
	now := time.Now()
	if !isSameNode(trimmed("1", now, gate), trimmed("2", now.Add(time.Minute), gate)) {
		t.Error("a heartbeat wakes the controllers")
	}
	if isSameNode(trimmed("1", now, gate), trimmed("2", now)) {
		t.Error("the gate was taken away and no controller is told")
	}
}

func TestAnotherKubeconfigReplacesTheClientSetAndRemoveEndsIt(t *testing.T) {
	r := newRegistry(t, Options{ProbeInterval: 50 * time.Millisecond})
	var lost atomic.Int64
	source := r.TenantSource("test", func(types.NamespacedName) []reconcile.Request { lost.Add(1); return nil })
	if err := source.Start(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	set := func(kubeconfig string) *clientSet {
		if err := r.Set(t.Context(), tenantKey, []byte(kubeconfig)); err != nil {
			t.Fatal(err)
		}
		return r.clientSets()[0]
	}
	kubeconfig := string(server.Cluster.Kubeconfig())
	first := set(kubeconfig)
	old := usable(t, r, tenantKey)
	if set(kubeconfig) != first {
		t.Error("the same kubeconfig made another client set")
	}
	if set(kubeconfig+"\n# rotated\n") == first || first.ctx.Err() == nil {
		t.Error("another kubeconfig did not replace the client set")
	}
	if fresh := usable(t, r, tenantKey); fresh.Cache == old.Cache {
		t.Error("the access is the old one")
	}
	before := lost.Load()
	r.Remove(tenantKey)
	if _, err := r.For(tenantKey); reasonOf(err) != v1alpha1.ReasonKubeconfigMissing || lost.Load() != before+1 {
		t.Errorf("error %v, %d events", err, lost.Load()-before)
	}
	r.running.Wait()
}

func TestATenantThatIsLostIsSaidSoAndComesBack(t *testing.T) {
	var down atomic.Bool
	proxy, ca := newTLSServer(t, gatekeeper(t, func(string) int {
		if down.Load() {
			return http.StatusServiceUnavailable
		}
		return 0
	}))
	r := newRegistry(t, Options{ProbeInterval: 20 * time.Millisecond})
	if err := r.Set(t.Context(), tenantKey, configOf(proxy.URL, ca, "", "token: a")); err != nil {
		t.Fatal(err)
	}
	usable(t, r, tenantKey)
	down.Store(true)
	eventually(t, "the loss is noticed", func() bool {
		_, err := r.For(tenantKey)
		return reasonOf(err) == v1alpha1.ReasonTenantUnreachable
	})
	down.Store(false)
	usable(t, r, tenantKey)
}
