package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
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
	"github.com/ingot-dev/ingot/test/loopback"
	"github.com/ingot-dev/ingot/test/rack"
)

// Tenant is a tenant's cluster, which nodes join.
type Tenant struct {
	Name    string
	Cluster *cluster.Cluster
	Client  client.WithWatch
}

// Environment is everything that a run starts: clusters, servers, an image server and the manager.
type Environment struct {
	// Dir holds the files of the run.
	Dir        string
	Management *cluster.Cluster
	// ManagementClient is a client of the management cluster.
	ManagementClient client.Client
	// Tenants are in the order in which they were named. Tenant and TenantClient are the first one's.
	Tenants      []*Tenant
	Tenant       *cluster.Cluster
	TenantClient client.WithWatch
	Images       *ImageServer
	Rack         *rack.Rack
	Manager      *Process
	// BootFiles is the folder with the agent's kernel and ramdisk; empty: that which WriteBootFiles writes.
	BootFiles string
	// BootAddress is the address of the boot service.
	BootAddress string
	// secureBoot is the address of its HTTPS, once it is chosen.
	secureBoot string
	// WebhookAddress is the address of the manager's webhook server; empty: the manager starts none.
	WebhookAddress string
	// ProgramDir holds the programs that are started; empty: the folder of the running program.
	ProgramDir string
	// ManagementAddress and TenantAddress are the IP addresses of the clusters' API servers; empty is 127.0.0.1.
	ManagementAddress, TenantAddress string
	// Timing of the servers, before it is divided by their speed; zero: that of real servers.
	Timing rack.Timing
	// HasNoBoot has the manager serve no boots.
	HasNoBoot bool
	// ChangeSettings, if set, changes the manager's settings before it starts.
	ChangeSettings func(*settings.Settings)
	// Secrets are the passwords and tokens of this run, which must not appear in a log, an event or a status.
	Secrets []string
}

// scheme returns a scheme with every kind that a run reads.
func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, metal3.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // two kinds of one name: a mistake of this program
		}
	}
	return s
}

// StartClusters starts the control planes of the management cluster and of the tenants, all at the same time. Without names
// there is one tenant, "tenant".
func (e *Environment) StartClusters(ctx context.Context, tenants ...string) error {
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
			address := e.TenantAddress
			if i == 0 {
				address = e.ManagementAddress
			}
			all[i].c, all[i].err = cluster.Start(ctx, cluster.Options{Dir: filepath.Join(e.Dir, name), Address: address, AuditLog: e.AuditLog(name)})
		})
	}
	group.Wait()
	var errs []error
	e.Management = all[0].c
	for i, name := range tenants {
		e.Tenants = append(e.Tenants, &Tenant{Name: name, Cluster: all[i+1].c})
	}
	for _, one := range all {
		errs = append(errs, one.err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var err error
	if e.ManagementClient, err = clientFor(e.Management); err != nil {
		return err
	}
	for _, t := range e.Tenants {
		if t.Client, err = clientFor(t.Cluster); err != nil {
			return err
		}
	}
	e.Tenant, e.TenantClient = e.Tenants[0].Cluster, e.Tenants[0].Client
	return nil
}

// ReplaceManagement starts another, empty control plane in place of the management cluster's, and stops that one. The name is that of its folder.
func (e *Environment) ReplaceManagement(ctx context.Context, name string) error {
	fresh, err := cluster.Start(ctx, cluster.Options{Dir: filepath.Join(e.Dir, name), AuditLog: e.AuditLog(name)})
	if err != nil {
		return err
	}
	err = e.Management.Stop()
	e.Management = fresh
	if err != nil {
		return fmt.Errorf("stop the earlier control plane: %w", err)
	}
	e.ManagementClient, err = clientFor(fresh)
	return err
}

// AuditLog returns the path of the audit log of a cluster. The name is "management" or that of a tenant.
func (e *Environment) AuditLog(name string) string { return filepath.Join(e.Dir, name+"-audit.log") }

// clientFor returns a client of the cluster.
func clientFor(c *cluster.Cluster) (client.WithWatch, error) {
	config, err := c.RESTConfig()
	if err != nil {
		return nil, err
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme()})
}

// StartRack starts a rack with the servers. They are powered off.
func (e *Environment) StartRack(ctx context.Context, servers []rack.ServerSpec, speed float64) error {
	r, err := rack.New(rack.Options{
		Name: "rack-1", Dir: filepath.Join(e.Dir, "disks"), Servers: servers, BootURL: "http://" + e.BootAddress, Speed: speed, Timing: e.Timing,
	})
	if err != nil {
		return err
	}
	e.Rack = r
	return r.Start(ctx)
}

// Program returns the path of a program that make build makes.
func (e *Environment) Program(name string) (string, error) {
	if e.ProgramDir == "" {
		return ProgramBeside(name)
	}
	path := filepath.Join(e.ProgramDir, name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is not in %s: run `make build`", name, e.ProgramDir)
	}
	return path, nil
}

// StartManager starts the real manager with short intervals. A manager that was started before must have exited.
func (e *Environment) StartManager(ctx context.Context, speed float64) error {
	program, err := e.Program("ingot-manager")
	if err != nil {
		return err
	}
	s := settings.Default()
	s.Namespace = managerNamespace
	s.Tenants.PrivateNetworks = loopback.Networks()
	if address, err := netip.ParseAddr(e.TenantAddress); err == nil {
		s.Tenants.PrivateNetworks = append(s.Tenants.PrivateNetworks, netip.PrefixFrom(address, address.BitLen()))
	}
	s.Health.Address, s.Metrics.Address = "127.0.0.1:0", "0"
	s.Log.Format = "text"
	// The NodeProvider of the servers names the boot service, and takes precedence over this URL.
	s.Boot.Address, s.Boot.URL, s.Boot.Files = e.BootAddress, "http://boot.invalid", cmp.Or(e.BootFiles, filepath.Join(e.Dir, "boot"))
	if s.Boot.TLS.Address, err = e.SecureBootAddress(); err != nil {
		return err
	}
	fast := metav1.Duration{Duration: time.Duration(max(200, 2000/speed)) * time.Millisecond}
	s.Boot.ProgressInterval, s.Intervals.Working = metav1.Duration{Duration: time.Second}, fast
	if e.WebhookAddress != "" {
		s.Webhook.Address = e.WebhookAddress
	}
	if e.ChangeSettings != nil {
		e.ChangeSettings(&s)
	}
	text, err := s.YAML()
	if err != nil {
		return err
	}
	file := filepath.Join(e.Dir, "manager.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("configure the manager: %w", err)
	}
	kubeconfig, err := e.AccountKubeconfig(ctx, s.Namespace, managerName)
	if err != nil {
		return err
	}
	args := []string{"--config", file, "--kubeconfig", kubeconfig}
	if !e.HasNoBoot {
		args = append(args, "--embed-boot")
	}
	e.Manager, err = StartProcess(e.Dir, "manager", program, args...)
	return err
}

// SecureBootAddress returns the address of the boot service's HTTPS, the same for every manager of the environment.
func (e *Environment) SecureBootAddress() (string, error) {
	host, _, err := net.SplitHostPort(e.BootAddress)
	if err != nil || e.secureBoot != "" {
		return e.secureBoot, err
	}
	port := "8092"
	if strings.HasPrefix(host, "127.") {
		if port, err = loopback.FreePort(host); err != nil {
			return "", err
		}
	}
	e.secureBoot = net.JoinHostPort(host, port)
	return e.secureBoot, nil
}

// InstallIngot applies the CRDs, the RBAC and the policies of an installation. There is no Deployment, because the manager is a
// process here; see ConfigureWebhook for the webhook.
func (e *Environment) InstallIngot(ctx context.Context) error {
	if err := e.ManagementClient.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: managerNamespace}}); err != nil {
		return fmt.Errorf("make namespace %s: %w", managerNamespace, err)
	}
	for _, dir := range []string{"crd", "rbac", "policy", "embed-boot/rbac"} {
		objects, err := ReadManifests(config.Files, dir)
		if err != nil {
			return err
		}
		if err := Apply(ctx, e.ManagementClient, objects); err != nil {
			return err
		}
	}
	return nil
}

// UseMetal3 gives the manager the rights and the settings of config/metal3, and no others. It is called after InstallIngot and before StartManager.
func (e *Environment) UseMetal3(ctx context.Context) error {
	rights, err := ReadManifests(config.Files, "metal3/rbac")
	if err != nil {
		return err
	}
	before := e.ChangeSettings
	e.HasNoBoot = true
	e.ChangeSettings = func(s *settings.Settings) {
		s.Boot.URL, s.Boot.TLS.Address = "", "0"
		if before != nil {
			before(s)
		}
	}
	return Apply(ctx, e.ManagementClient, rights)
}

// ServeMetrics has the manager, which is started later, serve its metrics to everybody on this machine, and returns their URL.
func (e *Environment) ServeMetrics() (string, error) {
	address, err := loopback.FreeAddress()
	if err != nil {
		return "", err
	}
	before := e.ChangeSettings
	e.ChangeSettings = func(s *settings.Settings) {
		if before != nil {
			before(s)
		}
		s.Metrics.Address, s.Metrics.Secure = address, false
	}
	return "http://" + address + "/metrics", nil
}

// RackManifests returns the BareMetalHosts of the servers and the Secrets of their BMCs.
func (e *Environment) RackManifests(namespace string) ([]*unstructured.Unstructured, error) {
	text, err := e.Rack.Manifests(namespace)
	if err != nil {
		return nil, err
	}
	return Decode(text)
}

// Stop stops everything that was started, and what others depend on after them.
func (e *Environment) Stop() error {
	var errs []error
	errs = append(errs, e.Manager.Stop())
	if e.Rack != nil {
		errs = append(errs, e.Rack.Stop())
	}
	errs = append(errs, e.Images.Stop())
	for _, t := range e.Tenants {
		if t.Cluster != nil {
			errs = append(errs, t.Cluster.Stop())
		}
	}
	if e.Management != nil {
		errs = append(errs, e.Management.Stop())
	}
	return errors.Join(errs...)
}

// RemoveAllButLogs removes the large files: disks, images and the trees that they were packed from.
func (e *Environment) RemoveAllButLogs() error {
	var errs []error
	for _, dir := range []string{"disks", "images", "tree", "boot"} {
		errs = append(errs, os.RemoveAll(filepath.Join(e.Dir, dir)))
	}
	return errors.Join(errs...)
}
