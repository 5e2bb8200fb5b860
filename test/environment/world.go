package environment

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
	"github.com/ingot-dev/ingot/config"
	"github.com/ingot-dev/ingot/test/cluster"
	"github.com/ingot-dev/ingot/test/rack"
)

// Tenant is a cluster that nodes join.
type Tenant struct {
	Name    string
	Cluster *cluster.Cluster
	Nodes   client.WithWatch
}

// World is everything that the demo starts.
type World struct {
	Dir        string
	Management *cluster.Cluster
	Fleet      client.Client
	// Tenants in the order in which they were asked for; Tenant and Nodes are the first one's.
	Tenants []*Tenant
	Tenant  *cluster.Cluster
	Nodes   client.WithWatch
	Images  *ImageServer
	Rack    *rack.Rack
	Manager *Process
	// Boot is the address of the boot service.
	Boot string
	// Admission is the address at which the manager is asked before a NodeType is written; empty: it is not.
	Admission string
	// Programs is the folder of the programs that are started; empty: that of the running one.
	Programs string
	// Timing of the servers, before speed; zero: that of real ones.
	Timing rack.Timing
	// Tune changes the manager's settings before it starts; nil: nothing more than the demo's.
	Tune func(*settings.Settings)
	// Secrets are the passwords and tokens of this run, which must not appear anywhere.
	Secrets []string
}

// scheme knows every kind that the demo reads.
func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, metal3.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // two kinds of one name: a mistake of this program
		}
	}
	return s
}

// StartClusters starts the management and the tenants' control planes side by side.
func (w *World) StartClusters(ctx context.Context, tenants ...string) error {
	if len(tenants) == 0 {
		tenants = []string{"tenant"}
	}
	type started struct {
		c   *cluster.Cluster
		err error
	}
	names := append([]string{"management"}, tenants...)
	all := make([]started, len(names))
	var group sync.WaitGroup
	for i, name := range names {
		group.Go(func() {
			all[i].c, all[i].err = cluster.Start(ctx, cluster.Options{Dir: filepath.Join(w.Dir, name), AuditLog: w.AuditLog(name)})
		})
	}
	group.Wait()
	var errs []error
	w.Management = all[0].c
	for i, name := range tenants {
		w.Tenants = append(w.Tenants, &Tenant{Name: name, Cluster: all[i+1].c})
	}
	for _, one := range all {
		errs = append(errs, one.err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var err error
	if w.Fleet, err = clientFor(w.Management); err != nil {
		return err
	}
	for _, t := range w.Tenants {
		if t.Nodes, err = clientFor(t.Cluster); err != nil {
			return err
		}
	}
	w.Tenant, w.Nodes = w.Tenants[0].Cluster, w.Tenants[0].Nodes
	return nil
}

// AuditLog is the file that every request to a cluster is written to: "management", or a tenant's name.
func (w *World) AuditLog(name string) string { return filepath.Join(w.Dir, name+"-audit.log") }

func clientFor(c *cluster.Cluster) (client.WithWatch, error) {
	config, err := c.RESTConfig()
	if err != nil {
		return nil, err
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme()})
}

// StartRack racks the servers, powered off.
func (w *World) StartRack(ctx context.Context, servers []rack.ServerSpec, speed float64) error {
	r, err := rack.New(rack.Options{
		Name: "rack-1", Dir: filepath.Join(w.Dir, "disks"), Servers: servers, BootURL: "http://" + w.Boot, Speed: speed, Timing: w.Timing,
	})
	if err != nil {
		return err
	}
	w.Rack = r
	return r.Start(ctx)
}

// Program returns the path of one of the programs.
func (w *World) Program(name string) (string, error) {
	if w.Programs == "" {
		return Beside(name)
	}
	path := filepath.Join(w.Programs, name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is not in %s: run `make build`", name, w.Programs)
	}
	return path, nil
}

// StartManager starts the real operator with a configuration for a fast world. One that was started before must have ended.
func (w *World) StartManager(ctx context.Context, speed float64) error {
	program, err := w.Program("ingot-manager")
	if err != nil {
		return err
	}
	s := settings.Default()
	s.Namespace = managerNamespace
	s.Health.Address, s.Metrics.Address = "127.0.0.1:0", "0"
	s.Log.Format = "text"
	// The servers' NodeProvider says where the boot service is; its word wins over this one.
	s.Boot.Address, s.Boot.URL, s.Boot.Files = w.Boot, "http://boot.invalid", filepath.Join(w.Dir, "boot")
	fast := metav1.Duration{Duration: time.Duration(max(200, 2000/speed)) * time.Millisecond}
	s.Boot.ProgressInterval, s.Intervals.Working = metav1.Duration{Duration: time.Second}, fast
	if w.Admission != "" {
		s.Webhook.Address = w.Admission
	}
	if w.Tune != nil {
		w.Tune(&s)
	}
	text, err := s.YAML()
	if err != nil {
		return err
	}
	file := filepath.Join(w.Dir, "manager.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("configure the manager: %w", err)
	}
	kubeconfig, err := w.managerKubeconfig(ctx, s.Namespace, managerName)
	if err != nil {
		return err
	}
	w.Manager, err = StartProcess(w.Dir, "manager", program, "--config", file, "--kubeconfig", kubeconfig)
	return err
}

// Install applies what an installation of Ingot is, but for the Deployment and what asks its webhook: here the manager is a process.
func (w *World) Install(ctx context.Context) error {
	if err := w.Fleet.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: managerNamespace}}); err != nil {
		return fmt.Errorf("make namespace %s: %w", managerNamespace, err)
	}
	for _, dir := range []string{"crd", "rbac", "policy"} {
		objects, err := ReadManifests(config.Files, dir)
		if err != nil {
			return err
		}
		if err := Apply(ctx, w.Fleet, objects); err != nil {
			return err
		}
	}
	return nil
}

// RackManifests returns the BareMetalHosts and the Secrets of their BMCs.
func (w *World) RackManifests(namespace string) ([]*unstructured.Unstructured, error) {
	text, err := w.Rack.Manifests(namespace)
	if err != nil {
		return nil, err
	}
	return Decode(text)
}

// Stop ends everything in the order in which it leans on each other.
func (w *World) Stop() error {
	var errs []error
	errs = append(errs, w.Manager.Stop())
	if w.Rack != nil {
		errs = append(errs, w.Rack.Stop())
	}
	errs = append(errs, w.Images.Stop())
	for _, t := range w.Tenants {
		if t.Cluster != nil {
			errs = append(errs, t.Cluster.Stop())
		}
	}
	if w.Management != nil {
		errs = append(errs, w.Management.Stop())
	}
	return errors.Join(errs...)
}

// KeepLogs removes what is large: disks, images and what they were made of.
func (w *World) KeepLogs() error {
	var errs []error
	for _, dir := range []string{"disks", "images", "tree", "boot"} {
		errs = append(errs, os.RemoveAll(filepath.Join(w.Dir, dir)))
	}
	return errors.Join(errs...)
}

// FreeAddress finds a loopback address for a server that is told its port.
func FreeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}
