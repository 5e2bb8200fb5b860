package tenant

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/tenantaccess"
	"github.com/ingot-dev/ingot/test/loopback"
	"github.com/ingot-dev/ingot/test/management"
)

// silentServer accepts connections, reads what comes and never answers. It returns its address and how many it has accepted.
func silentServer(t *testing.T) (string, *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	accepted := new(atomic.Int64)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			go func() {
				_, _ = io.Copy(io.Discard, connection)
				_ = connection.Close()
			}()
		}
	}()
	return listener.Addr().String(), accepted
}

// fleet is many TenantClusters of one registry.
type fleet struct {
	registry *tenantaccess.Registry
	healthy  []types.NamespacedName
	silent   []types.NamespacedName
	accepted []*atomic.Int64
}

// runFleet makes total TenantClusters in a namespace, of which silent never answer. Their requests have an hour: none of
// them ends in this test.
func runFleet(t *testing.T, total, silent int) *fleet {
	t.Helper()
	f := &fleet{registry: tenantaccess.New(tenantaccess.Options{PrivateNetworks: loopback.Networks(), Scheme: server.Scheme, Timeout: time.Hour})}
	server.Run(t, func(mgr ctrl.Manager) error {
		r := &Reconciler{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Tenants: f.registry, Recorder: mgr.GetEventRecorder("tenant"), Clock: clock.RealClock{}}
		return errors.Join(mgr.Add(f.registry), r.SetupWithManager(mgr))
	})
	namespace := server.Namespace(t)
	for i := range total {
		key := types.NamespacedName{Namespace: namespace, Name: fmt.Sprintf("tenant-%02d", i)}
		kubeconfig := string(server.Cluster.Kubeconfig())
		// Spread over the whole order of work, the first one included.
		if i*silent%total < silent {
			address, accepted := silentServer(t)
			kubeconfig = strings.Replace(kubeconfig, server.Cluster.Endpoint(), "https://"+address, 1)
			f.silent, f.accepted = append(f.silent, key), append(f.accepted, accepted)
		} else {
			f.healthy = append(f.healthy, key)
		}
		server.Create(t,
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: key.Name}, StringData: map[string]string{kubeconfigKey: kubeconfig}},
			&v1alpha1.TenantCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: key.Name}, Spec: v1alpha1.TenantClusterSpec{
				KubeconfigSecretRef: v1alpha1.LocalReference{Name: key.Name}, Join: v1alpha1.JoinSpec{TLSBootstrap: &v1alpha1.EndpointJoin{}}}})
	}
	t.Cleanup(func() { deleteTenants(t, namespace) })
	return f
}

// deleteTenants deletes the TenantClusters while their controller still runs, so that the next test's begins with none.
func deleteTenants(t *testing.T, namespace string) {
	if err := server.Client.DeleteAllOf(context.Background(), &v1alpha1.TenantCluster{}, client.InNamespace(namespace)); err != nil {
		t.Error(err)
	}
	management.Eventually(t, "the TenantClusters are gone", func() bool {
		var left v1alpha1.TenantClusterList
		return server.Client.List(context.Background(), &left, client.InNamespace(namespace)) == nil && len(left.Items) == 0
	})
}

// slowest waits until every healthy tenant is Ready, has each do some work, and returns how long the slowest one took.
func (f *fleet) slowest(t *testing.T) time.Duration {
	t.Helper()
	for _, key := range f.healthy {
		awaitReady(t, key, v1alpha1.ReasonReady, "")
	}
	var longest time.Duration
	for _, key := range f.healthy {
		began := time.Now()
		access, err := f.registry.For(key)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(access.Cache.List(t.Context(), &corev1.NodeList{}), access.Client.List(t.Context(), &corev1.NodeList{})); err != nil {
			t.Fatal(err)
		}
		longest = max(longest, time.Since(began))
	}
	return longest
}

func TestFiveOfFiftyTenantsThatNeverAnswerDelayNoOther(t *testing.T) {
	var usual, beside time.Duration
	t.Run("all healthy", func(t *testing.T) { usual = runFleet(t, 45, 0).slowest(t) })
	t.Run("five silent", func(t *testing.T) {
		f := runFleet(t, 50, 5)
		for i, accepted := range f.accepted {
			management.Eventually(t, f.silent[i].Name+" is asked", func() bool { return accepted.Load() > 0 })
		}
		beside = f.slowest(t)
		if len(f.healthy) != 45 || len(f.silent) != 5 {
			t.Fatalf("%d healthy, %d silent", len(f.healthy), len(f.silent))
		}
		// The requests of the silent still wait, and all that the healthy had to do is done: nothing of it waited for them.
		for _, key := range f.silent {
			_, err := f.registry.For(key)
			var typed *tenantaccess.Error
			if !errors.As(err, &typed) || typed.Reason != v1alpha1.ReasonTenantUnreachable || !strings.Contains(err.Error(), "no Kubernetes API server") {
				t.Errorf("%s: %v, want a request that still waits", key, err)
			}
			awaitReady(t, key, v1alpha1.ReasonTenantUnreachable, "no Kubernetes API server")
		}
	})
	t.Logf("the slowest operation on a healthy tenant took %s among healthy ones, and %s beside five silent ones", usual, beside)
}
