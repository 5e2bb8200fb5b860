// Package management starts, for tests of controllers, a real API server that knows Ingot's kinds and BareMetalHosts.
package management

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hostindex"
	"github.com/ingot-dev/ingot/controllers/readyourwrites"
	"github.com/ingot-dev/ingot/test/cluster"
)

// startLimit is the time that a start may take on a busy machine.
const startLimit = 3 * time.Minute

// Server is a management cluster that runs.
type Server struct {
	// Cluster is the control plane.
	Cluster *cluster.Cluster
	// Config is the administrator's client configuration.
	Config *rest.Config
	// Scheme has the kinds of Kubernetes, Ingot and Metal3.
	Scheme *apiruntime.Scheme
	// Client reads and writes without a cache.
	Client client.Client

	namespaces atomic.Int64
}

// Main runs the tests of a package against one server, which it stores in *server, and returns the exit status. It is
// called by TestMain. With -short it runs no test, because starting a control plane takes longer than a unit test may.
func Main(m *testing.M, server **Server) int {
	flag.Parse()
	if testing.Short() {
		fmt.Println("left out with -short: these tests start a control plane")
		return 0
	}
	if flag.Lookup("test.fuzz").Value.String() != "" || flag.Lookup("test.fuzzworker").Value.String() == "true" {
		return m.Run() // fuzz targets ask no server, and each worker would start one
	}
	dir, err := os.MkdirTemp("", "ingot-management-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	started, err := Start(context.Background(), dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	*server = started
	code := m.Run()
	if err := started.Cluster.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// Start runs a control plane in dir and installs the CRDs. The caller stops its Cluster.
func Start(ctx context.Context, dir string) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	started, err := cluster.Start(ctx, cluster.Options{Dir: dir, Stderr: os.Stderr})
	if err != nil {
		return nil, err
	}
	server, err := prepare(started)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the management cluster: %w", err), started.Stop())
	}
	return server, nil
}

func prepare(started *cluster.Cluster) (*Server, error) {
	config, err := started.RESTConfig()
	if err != nil {
		return nil, err
	}
	scheme := apiruntime.NewScheme()
	for _, add := range []func(*apiruntime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, metal3.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	_, file, _, _ := runtime.Caller(0)
	crds := filepath.Join(filepath.Dir(file), "..", "..", "config", "crd")
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{
		Scheme: scheme, Paths: []string{filepath.Join(crds, "bases"), filepath.Join(crds, "metal3")}, ErrorIfPathMissing: true,
	}); err != nil {
		return nil, fmt.Errorf("install the CRDs: %w", err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	return &Server{Cluster: started, Config: config, Scheme: scheme, Client: c}, nil
}

// Namespace creates a namespace with a new name for one test.
func (s *Server) Namespace(t *testing.T) string {
	t.Helper()
	namespace := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("test-%d", s.namespaces.Add(1))}}
	if err := s.Client.Create(t.Context(), &namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

// KubeconfigFile writes the kubeconfig of the control plane into a file that exists until the test ends, and returns its path.
func (s *Server) KubeconfigFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, s.Cluster.Kubeconfig(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Create creates the objects and, for kinds that have one, their status.
func (s *Server) Create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		wanted := object.DeepCopyObject().(client.Object)
		if err := s.Client.Create(t.Context(), object); err != nil {
			t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
		// A patch and not an update, because the control plane's own controllers write to Nodes at the same time.
		wanted.SetResourceVersion("")
		if err := s.Client.Status().Patch(t.Context(), wanted, client.Merge); client.IgnoreNotFound(err) != nil {
			t.Fatalf("status of %T %s: %v", object, object.GetName(), err)
		}
		object.SetResourceVersion(wanted.GetResourceVersion())
	}
}

// Run runs controllers until stop is called or the test ends. setup registers them.
func (s *Server) Run(t *testing.T, setup func(ctrl.Manager) error) (stop func()) {
	t.Helper()
	skipValidation := true
	mgr, err := ctrl.NewManager(s.Config, ctrl.Options{
		Scheme: s.Scheme, Metrics: metricsserver.Options{BindAddress: "0"}, NewClient: readyourwrites.NewClient,
		// Several tests run a controller of the same name, one after the other.
		Controller: config.Controller{SkipNameValidation: &skipValidation},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := hostindex.Add(t.Context(), mgr.GetFieldIndexer()); err != nil {
		t.Fatal(err)
	}
	if err := setup(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the controllers: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// The pauses between two looks of Eventually.
const firstPause, longestPause = 5 * time.Millisecond, 60 * time.Millisecond

// Eventually polls the condition for half a minute, and fails the test when it does not become true.
func Eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	// Most conditions hold soon. Later looks are rarer, because each costs the API server what others wait for.
	pause := firstPause
	for deadline := time.Now().Add(2 * time.Minute); !condition(); pause = min(pause*5/4, longestPause) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(pause)
	}
}
