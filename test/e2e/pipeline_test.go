package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
	"github.com/ingot-dev/ingot/config"
	"github.com/ingot-dev/ingot/imagebuilder/pack"
	"github.com/ingot-dev/ingot/test/cluster"
	"github.com/ingot-dev/ingot/test/environment"
	"github.com/ingot-dev/ingot/test/invariants"
	"github.com/ingot-dev/ingot/test/loopback"
	"github.com/ingot-dev/ingot/test/rack"
	"github.com/ingot-dev/ingot/test/require"
)

// What config/samples call things.
const (
	hostNamespace, teamNamespace = "metal", "research"
	nodeType, tenantName         = "h100", "research"
	gateKey                      = "ingot.dev/unvalidated"
	gpus                         = "nvidia.com/gpu"
)

// The image is written for some two seconds: long enough to be disturbed.
const (
	imageBallast = 6 << 20
	imageRate    = 4 << 20
)

// pipeline is everything from metal to the tenant's cluster, with the real manager.
type pipeline struct {
	env   *environment.Environment
	watch *invariants.Watcher
	fleet *fleet
	// edit, if set, changes the samples before they are applied.
	edit func(*pipeline, []*unstructured.Unstructured) error
}

// startPipeline starts it with these servers, and ends it with the test. wrongPassword names servers whose Secret is wrong.
func startPipeline(t *testing.T, servers []rack.ServerSpec, wrongPassword ...string) *pipeline {
	t.Helper()
	return startPipelineFrom(t, programFolder(t), servers, wrongPassword...)
}

// programFolder is bin.
func programFolder(t *testing.T) string {
	t.Helper()
	programs, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	return programs
}

// startPipelineFrom is startPipeline with the programs of that folder.
func startPipelineFrom(t *testing.T, programs string, servers []rack.ServerSpec, wrongPassword ...string) *pipeline {
	t.Helper()
	return startEditedPipeline(t, programs, nil, servers, wrongPassword...)
}

// startEditedPipeline is startPipelineFrom with an environment and samples that are changed by the function edit, if there is one.
func startEditedPipeline(t *testing.T, programs string, edit func(*pipeline, []*unstructured.Unstructured) error, servers []rack.ServerSpec, wrongPassword ...string) *pipeline {
	t.Helper()
	for _, name := range []string{"ingot-manager", "ingot-agent", "ingot-controlplane"} {
		if _, err := os.Stat(filepath.Join(programs, name)); err != nil {
			require.Missing(t, "bin/"+name, "make build")
		}
	}
	if testing.Short() {
		t.Skip("starts two control planes")
	}
	dir, err := os.MkdirTemp("", "ingot-faults-")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &pipeline{env: &environment.Environment{Dir: dir, ProgramDir: programs, Timing: serverTiming(), ChangeSettings: tune}, edit: edit}
	t.Cleanup(func() { p.stop(t, cancel) })
	for _, step := range []func(context.Context) error{
		p.startClusters, p.makeRamdisk, p.install, p.applySamples, p.startWatching,
		func(ctx context.Context) error { return p.rackServers(ctx, servers, wrongPassword) },
		func(ctx context.Context) error { return p.env.StartManager(ctx, 1) },
	} {
		if err := step(ctx); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// serverTiming is that of servers which are quick and still pass through every state.
func serverTiming() rack.Timing {
	return rack.Timing{
		PowerOn: 200 * time.Millisecond, PowerOff: 200 * time.Millisecond, POST: time.Second, NetworkTimeout: time.Second,
		AgentStart: 200 * time.Millisecond, OSStart: 500 * time.Millisecond, Shutdown: 300 * time.Millisecond,
		Container: 200 * time.Millisecond, Plugin: 200 * time.Millisecond,
	}
}

// tune scales the manager's waitTimeout to those servers.
func tune(s *settings.Settings) {
	d := func(seconds float64) metav1.Duration {
		return metav1.Duration{Duration: time.Duration(seconds * float64(time.Second))}
	}
	s.Intervals.Working, s.Boot.ProgressInterval, s.BMC.Timeout = d(0.4), d(0.4), d(2)
	s.Intervals.Steady, s.Timeouts.Provisioning = d(5), d(240)
	s.Timeouts.Hosts.Install, s.Timeouts.Hosts.EraseMetadata, s.Timeouts.Hosts.Inspect = d(90), d(60), d(30)
	s.Timeouts.Hosts.BMCGrace, s.Timeouts.Hosts.Retry = d(5), d(1.5)
	s.Timeouts.Steps = settings.StepTimeouts{GracefulOff: d(2), PowerOff: d(10), PowerOn: d(6), PowerOnRetry: d(1), Boot: d(8), Load: d(15), Silence: d(20)}
}

func (p *pipeline) startClusters(ctx context.Context) error {
	if err := p.env.StartClusters(ctx); err != nil {
		return err
	}
	var err error
	p.env.BootAddress, err = loopback.FreeAddress()
	return err
}

func (p *pipeline) makeRamdisk(context.Context) error { return p.env.WriteBootFiles() }

func (p *pipeline) install(ctx context.Context) error { return p.env.InstallIngot(ctx) }

// applySamples applies config/samples, with the addresses and the image of this run.
func (p *pipeline) applySamples(ctx context.Context) error {
	files, err := fs.Sub(config.Files, "samples")
	if err != nil {
		return err
	}
	samples, vendors, err := environment.ReadSamples(files)
	if err != nil {
		return err
	}
	if err := environment.Apply(ctx, p.env.TenantClient, vendors); err != nil {
		return err
	}
	if err := p.packImage(ctx, samples); err != nil {
		return err
	}
	for _, set := range []error{
		environment.SetField(samples, "NodeProvider", p.env.BootAddress, "spec", "redfish", "netboot", "address"),
		environment.SetField(samples, "TenantCluster", p.env.Tenant.Endpoint(), "spec", "join", "tlsBootstrap", "endpoint"),
		environment.SetField(samples, "NodePool", int64(0), "spec", "replicas"),
		environment.SetField(samples, "NodeType", "20s", "spec", "validation", "timeout"),
		environment.SetField(samples, "NodeType", "2s", "spec", "validation", "settle"),
	} {
		if set != nil {
			return set
		}
	}
	if p.edit != nil {
		if err := p.edit(p, samples); err != nil {
			return err
		}
	}
	err = within(ctx, 30*time.Second, func() error { return environment.Apply(ctx, p.env.ManagementClient, samples) }, func(err error) bool {
		return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) // the CRDs are not served yet
	})
	if err != nil {
		return err
	}
	// Both of the samples' tenants are the one cluster here.
	for _, team := range []string{teamNamespace, "inference"} {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: team + "-admin"},
			Data:       map[string][]byte{"kubeconfig": p.env.Tenant.Kubeconfig()},
		}
		if err := p.env.ManagementClient.Create(ctx, secret); err != nil {
			return err
		}
	}
	return nil
}

func (p *pipeline) packImage(ctx context.Context, samples []*unstructured.Unstructured) error {
	tree, out := filepath.Join(p.env.Dir, "tree"), filepath.Join(p.env.Dir, "images")
	if err := environment.WriteTree(tree, imageBallast); err != nil {
		return err
	}
	var err error
	if p.env.Images, err = environment.ServeImages(environment.Loopback, out, imageRate); err != nil {
		return err
	}
	_, name := environment.FirstOfKind(samples, "OSImage")
	packed, err := pack.Pack(ctx, pack.Options{Dir: tree, Output: out, Name: name, URLBase: p.env.Images.URL, RootOwned: true})
	if err != nil {
		return err
	}
	image, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&packed.OSImage)
	if err != nil {
		return err
	}
	for _, o := range samples {
		if o.GetKind() == "OSImage" {
			o.Object["spec"] = image["spec"]
		}
	}
	return nil
}

func (p *pipeline) startWatching(ctx context.Context) error {
	var err error
	if p.watch, err = invariants.Start(ctx, p.env.ManagementClient, p.env.TenantClient, gateKey); err != nil {
		return err
	}
	p.fleet = newFleet(p.env.ManagementClient, p.env.TenantClient, p.watch)
	go p.fleet.follow(ctx)
	return nil
}

func (p *pipeline) rackServers(ctx context.Context, servers []rack.ServerSpec, wrongPassword []string) error {
	if err := p.env.StartRack(ctx, servers, 1); err != nil {
		return err
	}
	for _, s := range p.env.Rack.Servers() {
		_, password := s.Credentials()
		p.env.Secrets = append(p.env.Secrets, password)
	}
	objects, err := p.env.RackManifests(hostNamespace)
	if err != nil {
		return err
	}
	for _, o := range objects {
		for _, name := range wrongPassword {
			if o.GetKind() == "Secret" && o.GetName() == name+"-bmc" {
				o.Object["stringData"].(map[string]any)["password"] = "not-the-password"
			}
		}
	}
	ca := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hostNamespace, Name: "bmc-ca"}, Data: map[string][]byte{"ca.crt": p.env.Rack.CA()}}
	if err := p.env.ManagementClient.Create(ctx, ca); err != nil {
		return err
	}
	return environment.Apply(ctx, p.env.ManagementClient, objects)
}

// order asks for a Machine on the server of that name, called like it unless another name is given.
func (p *pipeline) order(ctx context.Context, name, server string) error {
	return p.env.ManagementClient.Create(ctx, &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: teamNamespace, Name: name},
		Spec: v1alpha1.MachineSpec{
			NodeTypeRef: v1alpha1.LocalReference{Name: nodeType}, TenantClusterRef: v1alpha1.LocalReference{Name: tenantName}, HostName: server,
		},
	})
}

// restartTenant starts the tenant's control plane again where it was.
func (p *pipeline) restartTenant(ctx context.Context) error {
	endpoint, err := url.Parse(p.env.Tenant.Endpoint())
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(endpoint.Port())
	if err != nil {
		return err
	}
	again, err := cluster.Start(ctx, cluster.Options{
		Dir: filepath.Join(p.env.Dir, "tenant"), Port: port, AuditLog: filepath.Join(p.env.Dir, "tenant-audit.log"),
	})
	if err == nil {
		p.env.Tenant, p.env.Tenants[0].Cluster = again, again
	}
	return err
}

// judge reports broken invariants and leaked secrets.
func (p *pipeline) judge(ctx context.Context, t *testing.T) {
	t.Helper()
	invariants.WaitForEvents(ctx, time.Second)
	violations, err := p.watch.Violations()
	if err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(p.env.Manager.Log)
	if err != nil {
		t.Error(err)
	}
	leaks, err := invariants.Leaks(ctx, p.env.ManagementClient, p.env.Secrets, map[string][]byte{"the manager's log": text})
	if err != nil {
		t.Error(err)
	}
	repeated, err := invariants.RepeatedEvents(ctx, p.env.ManagementClient)
	if err != nil {
		t.Error(err)
	}
	for _, v := range slices.Concat(violations, leaks, repeated) {
		t.Error(v)
	}
}

// stop ends everything; the logs stay when the test has failed.
func (p *pipeline) stop(t *testing.T, cancel context.CancelFunc) {
	cancel()
	if err := p.env.Stop(); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		if err := p.env.RemoveAllButLogs(); err != nil {
			t.Error(err)
		}
		t.Logf("logs of the manager and of the control planes: %s", p.env.Dir)
		return
	}
	if err := os.RemoveAll(p.env.Dir); err != nil {
		t.Error(err)
	}
}

// within repeats f while its error is one to be waited for.
func within(ctx context.Context, limit time.Duration, f func() error, passing func(error) bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := f()
		if err == nil || !passing(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %w", limit, err)
		case <-time.After(pollInterval):
		}
	}
}

// tokensOf lists the bootstrap tokens of a Machine in the tenant.
func (p *pipeline) tokensOf(ctx context.Context, m *v1alpha1.Machine) ([]string, error) {
	var secrets corev1.SecretList
	if err := p.env.TenantClient.List(ctx, &secrets, client.InNamespace("kube-system"), client.MatchingLabels{"ingot.dev/machine": string(m.UID)}); err != nil {
		return nil, err
	}
	var out []string
	for _, s := range secrets.Items {
		out = append(out, s.Name)
	}
	return out, nil
}
