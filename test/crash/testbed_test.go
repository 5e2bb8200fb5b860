package crash

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/imagebuilder/pack"
	"github.com/ingot-dev/ingot/test/cluster"
	"github.com/ingot-dev/ingot/test/crash/relay"
	"github.com/ingot-dev/ingot/test/environment"
	"github.com/ingot-dev/ingot/test/invariants"
	"github.com/ingot-dev/ingot/test/loopback"
	"github.com/ingot-dev/ingot/test/metal3rack"
	"github.com/ingot-dev/ingot/test/rack"
	"github.com/ingot-dev/ingot/test/require"
)

//go:embed testdata
var testdata embed.FS

// What testdata calls things.
const (
	systemNamespace, hostNamespace, teamNamespace = "ingot-system", "metal", "research"
	lived, rolled, tenantName                     = "lived", "rolled", "research"
	gateKey                                       = "ingot.dev/unvalidated"
)

// servers are how many of each story: a Machine that claimed twice would find a second one.
const servers = 2

// storyLabel is a host's story.
const storyLabel = "story"

// testbed is everything from the servers to the tenant's cluster. The manager reaches it through relays.
type testbed struct {
	env   *environment.Environment
	watch *invariants.Watcher
	steps *relay.Steps
	// management, tenant and bmcs are the relays.
	management, tenant *relay.Proxy
	bmcs               map[string]*relay.Proxy
	balancer           *httptest.Server
	// boot is where the manager's boot service listens, behind the balancer.
	boot string
	// kind is how the hosts are served.
	kind kind
	// site serves the hosts of a metal3 NodeProvider; nil: the manager does.
	site *metal3rack.Site
	// ironic installs the hosts of an ironic NodeProvider; nil: nobody does.
	ironic  *ironicSite
	ledger  *ledger
	manager *manager
	images  []string
	// roller is the Machine that is rolled again and again; nil: it is still to be made.
	roller *v1alpha1.Machine
}

func newTestbed(t *testing.T, k kind) *testbed {
	t.Helper()
	programs, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ingot-manager", "ingot-agent", "ingot-controlplane"} {
		if _, err := os.Stat(filepath.Join(programs, name)); err != nil {
			require.Missing(t, "bin/"+name, "make build")
		}
	}
	if testing.Short() {
		t.Skip("starts two control planes")
	}
	dir, err := os.MkdirTemp("", "ingot-crash-")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &testbed{env: &environment.Environment{Dir: dir, ProgramDir: programs}, steps: &relay.Steps{}, bmcs: map[string]*relay.Proxy{}, ledger: newLedger(), kind: k}
	t.Cleanup(func() { s.stop(t, cancel) })
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return s.env.StartClusters(ctx) },
		s.startRelays, s.startIronic, s.makeRamdisk, s.install, s.rackServers, s.startStandIn, s.applyTypes, s.applyHosts, s.startSite, s.startWatching, s.startManager,
	} {
		if err := step(ctx); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// startRelays start in front of both API servers and of the boot service.
func (s *testbed) startRelays(context.Context) error {
	front := func(name string, c *cluster.Cluster) (*relay.Proxy, error) {
		return s.steps.Listen(name, c.Endpoint(), c.CA())
	}
	var errs [3]error
	s.management, errs[0] = front("management", s.env.Management)
	s.tenant, errs[1] = front("tenant", s.env.Tenant)
	s.boot, errs[2] = loopback.FreeAddress()
	if s.env.BootAddress = s.boot; !s.kind.isMetal3 {
		s.balancer = relay.StartBalancer(s.boot)
		s.env.BootAddress = strings.TrimPrefix(s.balancer.URL, "http://")
	}
	return errors.Join(errs[:]...)
}

func (s *testbed) makeRamdisk(context.Context) error { return s.env.WriteBootFiles() }

func (s *testbed) install(ctx context.Context) error {
	if err := s.env.InstallIngot(ctx); err != nil {
		return err
	}
	if s.kind.isMetal3 {
		if err := s.env.UseMetal3(ctx); err != nil {
			return err
		}
	}
	// A relay cannot pass client certificates on: the tenant gives Ingot a token.
	return s.env.TenantClient.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "ingot"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: metav1.NamespaceSystem, Name: "ingot"}},
	})
}

// rackServers are quick, and still pass through every state.
func (s *testbed) rackServers(ctx context.Context) error {
	profile, err := rack.ProfileNamed("hgx-h100")
	if err != nil {
		return err
	}
	options := rack.Options{
		Name: "rack-1", Dir: filepath.Join(s.env.Dir, "disks"), BootURL: "http://" + s.env.BootAddress, OnStep: s.ledger.onStep,
		Timing: rack.Timing{
			PowerOn: 20 * time.Millisecond, PowerOff: 20 * time.Millisecond, POST: 50 * time.Millisecond, NetworkTimeout: time.Second,
			AgentStart: 10 * time.Millisecond, OSStart: 30 * time.Millisecond, Shutdown: 20 * time.Millisecond,
			Container: 10 * time.Millisecond, Plugin: 10 * time.Millisecond,
		},
	}
	for name := range s.kind.scenarios {
		for i := range servers {
			options.Servers = append(options.Servers, rack.ServerSpec{Name: fmt.Sprintf("%s-%d", name, i+1), Profile: profile})
		}
	}
	if s.env.Rack, err = rack.New(options); err != nil {
		return err
	}
	if err := s.env.Rack.Start(ctx); err != nil {
		return err
	}
	for _, server := range s.env.Rack.Servers() {
		_, password := server.Credentials()
		s.env.Secrets = append(s.env.Secrets, password)
		if s.bmcs[server.Name()], err = s.steps.Listen("bmc", server.BMCAddress(), s.env.Rack.CA()); err != nil {
			return err
		}
	}
	return nil
}

// applyHosts applies the rack's hosts with the addresses of their relays.
func (s *testbed) applyHosts(ctx context.Context) error {
	objects, err := s.env.RackManifests(hostNamespace)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if o.GetKind() != "BareMetalHost" {
			continue
		}
		server := s.env.Rack.Server(o.GetName())
		address := strings.Replace(s.bmcs[server.Name()].URL(), "https", "redfish", 1) + server.SystemPath()
		name, _, _ := strings.Cut(o.GetName(), "-")
		if err := errors.Join(
			unstructured.SetNestedField(o.Object, address, "spec", "bmc", "address"),
			unstructured.SetNestedField(o.Object, name, "metadata", "labels", storyLabel),
		); err != nil {
			return err
		}
	}
	ca := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hostNamespace, Name: "bmc-ca"}, Data: map[string][]byte{"ca.crt": s.management.CA()}}
	if err := s.env.ManagementClient.Create(ctx, ca); err != nil {
		return err
	}
	return environment.Apply(ctx, s.env.ManagementClient, objects)
}

// applyTypes applies what the site's people and the tenant would, with the addresses and the images of this run.
func (s *testbed) applyTypes(ctx context.Context) error {
	plugin, err := environment.ReadManifests(testdata, "testdata/tenant.yaml")
	if err != nil {
		return err
	}
	if err := environment.Apply(ctx, s.env.TenantClient, plugin); err != nil {
		return err
	}
	objects, err := environment.ReadManifests(testdata, "testdata/management.yaml")
	if err != nil {
		return err
	}
	images, err := s.packImages(ctx)
	if err != nil {
		return err
	}
	objects = append(objects, images...)
	if err := errors.Join(
		s.setProvider(objects),
		environment.SetField(objects, "TenantCluster", s.env.Tenant.Endpoint(), "spec", "join", "tlsBootstrap", "endpoint"),
		environment.SetField(objects, "NodeType", s.images[0], "spec", "osImageRef", "name"),
	); err != nil {
		return err
	}
	if err := until(ctx, 30*time.Second, "the CRDs are served", func() (bool, error) {
		err := environment.Apply(ctx, s.env.ManagementClient, objects)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return false, nil
		}
		return true, err
	}); err != nil {
		return err
	}
	kubeconfig, err := s.tenantKubeconfig(ctx)
	if err != nil {
		return err
	}
	return s.env.ManagementClient.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: teamNamespace, Name: "research-admin"}, Data: map[string][]byte{"kubeconfig": kubeconfig},
	})
}

// packImages makes two small images, one byte apart.
func (s *testbed) packImages(ctx context.Context) ([]*unstructured.Unstructured, error) {
	out, rate := filepath.Join(s.env.Dir, "images"), 64<<20
	isRaw := s.kind.isMetal3 || s.kind.isIronic
	if isRaw {
		rate = 1 << 30 // an image that is not compressed
	}
	var err error
	if s.env.Images, err = environment.ServeImages(environment.Loopback, out, rate); err != nil {
		return nil, err
	}
	s.images = []string{"image-a", "image-b"}
	var images []*unstructured.Unstructured
	for i, name := range s.images {
		tree := filepath.Join(s.env.Dir, "tree", name)
		if err := environment.WriteTree(tree, int64(64<<10+i)); err != nil {
			return nil, err
		}
		packed, err := pack.Pack(ctx, pack.Options{Dir: tree, Output: out, Name: name, URLBase: s.env.Images.URL, RootOwned: true})
		if err != nil {
			return nil, err
		}
		if isRaw {
			if packed.OSImage, err = environment.DecompressImage(packed); err != nil {
				return nil, err
			}
		}
		spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&packed.OSImage.Spec)
		if err != nil {
			return nil, err
		}
		images = append(images, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "ingot.dev/v1alpha1", "kind": "OSImage", "metadata": map[string]any{"name": name}, "spec": spec,
		}})
	}
	return images, nil
}

func (s *testbed) startWatching(ctx context.Context) error {
	var err error
	s.watch, err = invariants.Start(ctx, s.env.ManagementClient, s.env.TenantClient, gateKey)
	return err
}

// reportViolations reports broken invariants and leaked secrets.
func (s *testbed) reportViolations(ctx context.Context, t *testing.T) {
	t.Helper()
	invariants.WaitForEvents(ctx, time.Second)
	violations, err := s.watch.Violations()
	if err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(filepath.Join(s.env.Dir, "manager.log"))
	if err != nil {
		t.Error(err)
	}
	leaks, err := invariants.Leaks(ctx, s.env.ManagementClient, s.env.Secrets, map[string][]byte{"the manager's log": text})
	if err != nil {
		t.Error(err)
	}
	for _, v := range slices.Concat(violations, leaks, s.site.Violations()) {
		t.Error(v)
	}
}

// stop ends everything; the logs stay when the test has failed.
func (s *testbed) stop(t *testing.T, cancel context.CancelFunc) {
	s.steps.Begin()
	if s.manager != nil {
		s.env.Manager = s.manager.running()
	}
	cancel()
	err := s.site.Stop()
	s.ironic.stop()
	if err := errors.Join(err, s.env.Stop()); err != nil {
		t.Error(err)
	}
	for _, front := range s.bmcs {
		front.Close()
	}
	for _, front := range []*relay.Proxy{s.management, s.tenant} {
		if front != nil {
			front.Close()
		}
	}
	if s.balancer != nil {
		s.balancer.CloseClientConnections()
		s.balancer.Close()
	}
	if t.Failed() {
		if err := s.env.RemoveAllButLogs(); err != nil {
			t.Error(err)
		}
		t.Logf("logs of the manager and of the control planes: %s", s.env.Dir)
		return
	}
	if err := os.RemoveAll(s.env.Dir); err != nil {
		t.Error(err)
	}
}

// until polls: other processes do what is awaited.
func until(ctx context.Context, limit time.Duration, what string, is func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		done, err := is()
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %s", limit, what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
