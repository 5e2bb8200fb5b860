package e2e

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
	"github.com/ingot-dev/ingot/config"
	"github.com/ingot-dev/ingot/test/environment"
	"github.com/ingot-dev/ingot/test/loopback"
	"github.com/ingot-dev/ingot/test/rack"
	"github.com/ingot-dev/ingot/test/require"
)

// bootNamespace and bootAccount are those of config/boot.
const bootNamespace, bootAccount = "ingot-boot", "ingot-boot"

// TestTheBootServiceAloneServesItsSite installs a server through a boot service that runs alone with the rights of config/boot, beside a manager that
// serves no boots.
func TestTheBootServiceAloneServesItsSite(t *testing.T) {
	require.OneOf(t, 3)
	t.Parallel()
	profile, err := rack.ProfileNamed("hgx-h100")
	if err != nil {
		t.Fatal(err)
	}
	withoutBoot := func(p *pipeline, _ []*unstructured.Unstructured) error {
		p.env.HasNoBoot = true
		return nil
	}
	p := startEditedPipeline(t, programFolder(t), withoutBoot, []rack.ServerSpec{{Name: "alone", Profile: profile}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// The site that hosts.yaml names, and another one, which is not this service's.
	if err := p.env.ManagementClient.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}}); err != nil {
		t.Fatal(err)
	}
	s := p.startBootService(ctx, t)
	machine := &faultCase{pipeline: p, name: "alone", server: p.env.Rack.Server("alone")}
	if _, err := machine.await(ctx, "host available", func(v observation) bool { return v.host != nil && v.host.Status.Provisioning.State == "available" }); err != nil {
		t.Fatal(err)
	}
	if err := p.order(ctx, "alone", "alone"); err != nil {
		t.Fatal(err)
	}
	if _, err := machine.ready(ctx); err != nil {
		t.Fatal(err)
	}
	t.Run("what else it may do, and what not", func(t *testing.T) { p.checkBootRights(ctx, t) })
	p.judge(ctx, t)
	text, err := os.ReadFile(s.Log)
	if err != nil {
		t.Fatal(err)
	}
	for said, want := range map[string]bool{"forbidden": false, "level=ERROR": false, "boot document served": true} {
		if strings.Contains(string(text), said) != want {
			t.Errorf("whether the boot service says %q: got %v, want %v:\n%s", said, !want, want, text)
		}
	}
}

// startBootService starts the real program with --only=boot, with the rights of config/boot.
func (p *pipeline) startBootService(ctx context.Context, t *testing.T) *environment.Process {
	t.Helper()
	objects, err := environment.ReadManifests(config.Files, "boot")
	if err != nil {
		t.Fatal(err)
	}
	var file string
	applied := objects[:0]
	for _, o := range objects {
		switch o.GetKind() {
		case "ManagerConfiguration", "Deployment":
		default:
			applied = append(applied, o)
		}
	}
	if err := environment.Apply(ctx, p.env.ManagementClient, applied); err != nil {
		t.Fatal(err)
	}
	text, err := config.Files.ReadFile("boot/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := settings.Read(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	tune(&c)
	c.Log.Format, c.Boot.Address, c.Boot.URL, c.Boot.Files = "text", p.env.BootAddress, "http://"+p.env.BootAddress, filepath.Join(p.env.Dir, "boot")
	c.Boot.Network = settings.Default().Boot.Network // Ports below 1024 are not this test's.
	if c.Boot.TLS.Address, err = p.env.SecureBootAddress(); err != nil {
		t.Fatal(err)
	}
	if c.Health.Address, err = loopback.FreeAddress(); err != nil {
		t.Fatal(err)
	}
	if text, err = c.YAML(); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(p.env.Dir, "boot.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := p.env.AccountKubeconfig(ctx, bootNamespace, bootAccount)
	if err != nil {
		t.Fatal(err)
	}
	program, err := p.env.Program("ingot-manager")
	if err != nil {
		t.Fatal(err)
	}
	process, err := environment.StartProcess(p.env.Dir, "boot-service", program, "--only=boot", "--config", file, "--kubeconfig", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Stop(); err != nil {
			t.Error(err)
		}
	})
	eventually(t, takeoverLimit, "the boot service is ready", func() bool {
		status, _ := get(t, "http://"+c.Health.Address+"/readyz", "")
		return status == http.StatusOK
	})
	return process
}

// checkBootRights: whoever has taken over the boot service's process cannot do these with its account.
func (p *pipeline) checkBootRights(ctx context.Context, t *testing.T) {
	cluster, err := clientcmd.BuildConfigFromFlags("", filepath.Join(p.env.Dir, "boot.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme, metal3.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(cluster, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	named := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	read := func(o client.Object) error { return c.Get(ctx, client.ObjectKeyFromObject(o), o) }
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))
	host := &metal3.BareMetalHost{ObjectMeta: named(hostNamespace, "alone")}
	record := &v1alpha1.HostRecord{ObjectMeta: named(hostNamespace, "alone")}
	// What this rack's server has not made it do: the logs of agents, leased addresses, and the shared address.
	for what, o := range map[string]client.Object{
		"the log of an agent": &corev1.ConfigMap{ObjectMeta: named(hostNamespace, "alone-agent-log")}, "leased addresses": &corev1.ConfigMap{ObjectMeta: named(bootNamespace, "ingot-leases")},
		"the Lease of the shared address": &coordinationv1.Lease{ObjectMeta: named(bootNamespace, "ingot-boot-address")},
	} {
		if err := errors.Join(c.Create(ctx, o), read(o), c.Update(ctx, o)); err != nil {
			t.Errorf("the boot service's account cannot store %s: %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"lists Secrets of its hosts":                  c.List(ctx, &corev1.SecretList{}, client.InNamespace(hostNamespace)),
		"reads a tenant's kubeconfig":                 read(&corev1.Secret{ObjectMeta: named(teamNamespace, teamNamespace+"-admin")}),
		"reads another Secret of the manager":         read(&corev1.Secret{ObjectMeta: named(systemNamespace, "ingot-webhook-certificate")}),
		"makes a boot key":                            c.Create(ctx, &corev1.Secret{ObjectMeta: named(systemNamespace, "another")}),
		"changes the boot key":                        c.Patch(ctx, &corev1.Secret{ObjectMeta: named(systemNamespace, "ingot-boot-key")}, patch),
		"reads the manager's configuration":           c.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(systemNamespace)),
		"lists hosts of all namespaces":               c.List(ctx, &metal3.BareMetalHostList{}),
		"lists hosts of another site":                 c.List(ctx, &metal3.BareMetalHostList{}, client.InNamespace("elsewhere")),
		"changes a host":                              c.Patch(ctx, host, patch),
		"changes the status of a host":                c.Status().Patch(ctx, host, patch),
		"deletes a host":                              c.Delete(ctx, host),
		"changes the spec of a HostRecord":            c.Patch(ctx, record, patch),
		"changes what is known of the disks":          c.Status().Patch(ctx, record, client.RawPatch(types.MergePatchType, []byte(`{"status":{"disks":[]}}`))),
		"proves an erase":                             c.Status().Patch(ctx, record, client.RawPatch(types.MergePatchType, []byte(`{"status":{"erased":{"mode":"Full","attempt":1,"at":"2026-01-01T00:00:00.000000Z"}}}`))),
		"forgets the claim of a Machine":              c.Status().Patch(ctx, record, client.RawPatch(types.MergePatchType, []byte(`{"status":{"wanted":null,"installed":null}}`))),
		"makes a HostRecord":                          c.Create(ctx, &v1alpha1.HostRecord{ObjectMeta: named(hostNamespace, "another")}),
		"changes a NodeProvider":                      c.Patch(ctx, &v1alpha1.NodeProvider{ObjectMeta: named("", "metal")}, patch),
		"lists Machines":                              c.List(ctx, &v1alpha1.MachineList{}, client.InNamespace(teamNamespace)),
		"lists TenantClusters":                        c.List(ctx, &v1alpha1.TenantClusterList{}, client.InNamespace(teamNamespace)),
		"takes the manager's Lease":                   c.Patch(ctx, &coordinationv1.Lease{ObjectMeta: named(systemNamespace, "ingot-manager")}, patch),
		"writes a ConfigMap of another namespace":     c.Create(ctx, &corev1.ConfigMap{ObjectMeta: named("elsewhere", "another")}),
		"deletes the log of an agent":                 c.Delete(ctx, &corev1.ConfigMap{ObjectMeta: named(hostNamespace, "alone-agent-log")}),
		"takes another Lease of its own namespace":    read(&coordinationv1.Lease{ObjectMeta: named(bootNamespace, "another")}),
		"starts a Pod that runs with its own account": c.Create(ctx, &corev1.Pod{ObjectMeta: named(bootNamespace, "another")}),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("the boot service's account %s: %v", what, err)
		}
	}
}
