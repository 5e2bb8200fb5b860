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
	"sync/atomic"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/cluster"
)

// startLimit bounds the start on a busy machine.
const startLimit = 3 * time.Minute

// Server is a management cluster that runs.
type Server struct {
	// Cluster is the control plane.
	Cluster *cluster.Cluster
	// Config is the administrator's.
	Config *rest.Config
	// Scheme knows Kubernetes' own kinds, Ingot's and Metal3's.
	Scheme *apiruntime.Scheme
	// Client reads and writes without a cache.
	Client client.Client

	namespaces atomic.Int64
}

// Main is for TestMain: it runs the tests of one package against one server, kept in *server, and returns the exit
// status. With -short it runs none of them: a control plane takes longer than a unit suite may.
func Main(m *testing.M, server **Server) int {
	flag.Parse()
	if testing.Short() {
		fmt.Println("left out with -short: these tests start a control plane")
		return 0
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

// Start runs a control plane in dir and installs the CRDs. Stop its Cluster.
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

// Namespace makes a namespace for one test, with a name of its own.
func (s *Server) Namespace(t *testing.T) string {
	t.Helper()
	namespace := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("test-%d", s.namespaces.Add(1))}}
	if err := s.Client.Create(t.Context(), &namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

// Create makes objects and, where an object has one, its status.
func (s *Server) Create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		wanted := object.DeepCopyObject().(client.Object)
		if err := s.Client.Create(t.Context(), object); err != nil {
			t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
		// A patch, for the control plane's own controllers write to Nodes meanwhile.
		wanted.SetResourceVersion("")
		if err := s.Client.Status().Patch(t.Context(), wanted, client.Merge); client.IgnoreNotFound(err) != nil {
			t.Fatalf("status of %T %s: %v", object, object.GetName(), err)
		}
		object.SetResourceVersion(wanted.GetResourceVersion())
	}
}
