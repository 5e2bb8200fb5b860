package demo

import (
	"context"
	"errors"
	"fmt"
	"github.com/ingot-dev/ingot/cmd/ingot/demo/stage"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/config"
	"github.com/ingot-dev/ingot/imagebuilder/pack"
	"github.com/ingot-dev/ingot/imagebuilder/ramdisk"
	"github.com/ingot-dev/ingot/test/invariants"
)

// ballast makes the demo's image large enough for its bytes to be seen flowing.
const ballast = 24 << 20

// imageRate is how fast each server gets its image, in bytes per second, at the default speed.
const imageRate = 12 << 20

// prepare starts the control planes and makes the image and the agent's ramdisk.
func (t *story) prepare(ctx context.Context) error {
	t.s.step("starting two control planes: Ingot's own and a tenant's")
	if err := t.w.StartClusters(ctx); err != nil {
		return err
	}
	var err error
	if t.w.Boot, err = stage.FreeAddress(); err != nil {
		return err
	}
	t.s.note("both answer, each with etcd, kube-apiserver, scheduler and controller-manager")
	t.s.step("packing an OS image and the installer's ramdisk")
	return t.makeRamdisk()
}

func (t *story) makeRamdisk() error {
	agent, err := stage.Beside("ingot-agent")
	if err != nil {
		return err
	}
	boot := filepath.Join(t.w.Dir, "boot")
	if err := os.MkdirAll(boot, 0o755); err != nil {
		return fmt.Errorf("make the boot folder: %w", err)
	}
	// A simulated server has no processor for a kernel to run on; it fetches one all the same.
	if err := os.WriteFile(filepath.Join(boot, "vmlinuz"), []byte("simulated"), 0o644); err != nil {
		return fmt.Errorf("make the boot folder: %w", err)
	}
	return writeRamdisk(agent, filepath.Join(boot, "agent.cpio.zst"))
}

func writeRamdisk(agent, path string) error {
	program, err := os.Open(agent)
	if err != nil {
		return fmt.Errorf("make the ramdisk: %w", err)
	}
	defer program.Close()
	info, err := program.Stat()
	if err != nil {
		return fmt.Errorf("make the ramdisk: %w", err)
	}
	out, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("make the ramdisk: %w", err)
	}
	return errors.Join(ramdisk.Write(out, program, info.Size()), out.Close())
}

// packImage makes the image that the samples' OSImage stands for, and returns the object that `ingot image pack` prints.
func (t *story) packImage(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	tree, out := filepath.Join(t.w.Dir, "tree"), filepath.Join(t.w.Dir, "images")
	if err := stage.WriteTree(tree, ballast); err != nil {
		return nil, err
	}
	var err error
	if t.w.Images, err = stage.ServeImages(out, int(imageRate*t.o.Speed/defaultSpeed)); err != nil {
		return nil, err
	}
	result, err := pack.Pack(ctx, pack.Options{Dir: tree, Output: out, Name: name, URLBase: t.w.Images.URL, RootOwned: true})
	if err != nil {
		return nil, err
	}
	t.s.note("packed %s: %.1f MB, %s", filepath.Base(result.Path), float64(result.SizeBytes)/1e6, result.Checksum[:19])
	return toUnstructured(&result.OSImage)
}

// populate applies CRDs and samples to both clusters, with the addresses of this run.
func (t *story) populate(ctx context.Context) error {
	t.s.step("applying CRDs and config/samples")
	if err := t.install(ctx); err != nil {
		return err
	}
	samples, err := t.readSamples()
	if err != nil {
		return err
	}
	if err := t.adapt(ctx, samples); err != nil {
		return err
	}
	if err := t.applyEstablished(ctx, samples); err != nil {
		return err
	}
	if err := t.tenantKubeconfig(ctx, samples); err != nil {
		return err
	}
	return t.applyTenant(ctx)
}

// install applies what an installation of Ingot is, but for the Deployment: here the manager is a process.
func (t *story) install(ctx context.Context) error {
	err := t.w.Fleet.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ingot-system"}})
	if err != nil {
		return fmt.Errorf("make namespace ingot-system: %w", err)
	}
	for _, dir := range []string{"crd", "rbac"} {
		objects, err := stage.ReadManifests(config.Files, dir)
		if err != nil {
			return err
		}
		if err := stage.Apply(ctx, t.w.Fleet, objects); err != nil {
			return err
		}
	}
	return nil
}

// applyEstablished applies objects of kinds that the API server has only just been told of.
func (t *story) applyEstablished(ctx context.Context, objects []*unstructured.Unstructured) error {
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := stage.Apply(ctx, t.w.Fleet, objects)
		if err == nil || time.Now().After(deadline) || !isNotServed(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollInterval):
		}
	}
}

func (t *story) readSamples() ([]*unstructured.Unstructured, error) {
	files, err := t.samples()
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, fmt.Errorf("read the samples: %w", err)
	}
	var out []*unstructured.Unstructured
	for _, e := range entries {
		if e.IsDir() {
			continue // tenant holds what is applied to the tenant
		}
		objects, err := stage.ReadManifests(files, e.Name())
		if err != nil {
			return nil, err
		}
		out = append(out, objects...)
	}
	return out, nil
}

func (t *story) samples() (fs.FS, error) {
	if t.o.Samples != nil {
		return t.o.Samples, nil
	}
	return fs.Sub(config.Files, "samples")
}

// adapt puts this run's addresses, image and pace into the samples.
func (t *story) adapt(ctx context.Context, samples []*unstructured.Unstructured) error {
	t.readSite(samples)
	_, imageName := stage.Named(samples, "OSImage")
	image, err := t.packImage(ctx, imageName)
	if err != nil {
		return err
	}
	for _, o := range samples {
		if o.GetKind() == "OSImage" {
			o.Object["spec"] = image.Object["spec"]
		}
	}
	for _, change := range []struct {
		kind  string
		value any
		field []string
	}{
		{"NodeProvider", t.w.Boot, []string{"spec", "redfish", "netboot", "address"}},
		{"TenantCluster", t.w.Tenant.Endpoint(), []string{"spec", "join", "tlsBootstrap", "endpoint"}},
		{"NodePool", int64(0), []string{"spec", "replicas"}},
		{"NodeType", "20s", []string{"spec", "validation", "timeout"}},
		{"NodeType", "3s", []string{"spec", "validation", "settle"}},
	} {
		if err := stage.Set(samples, change.kind, change.value, change.field...); err != nil {
			return err
		}
	}
	return nil
}

func (t *story) readSite(samples []*unstructured.Unstructured) {
	for _, o := range samples {
		switch o.GetKind() {
		case "NodeProvider":
			t.site.hostNamespace, _, _ = unstructured.NestedString(o.Object, "spec", "hostNamespace")
		case "NodeType":
			t.site.nodeType = o.GetName()
			t.site.gate, _, _ = unstructured.NestedString(o.Object, "spec", "gate", "taintKey")
		case "NodePool":
			t.site.teamNamespace, t.site.pool = o.GetNamespace(), o.GetName()
		case "TenantCluster":
			t.site.tenant = o.GetName()
		}
	}
	if t.site.gate == "" {
		t.site.gate = "ingot.dev/unvalidated"
	}
	t.site.resource = "nvidia.com/gpu"
}

// tenantKubeconfig stores the kubeconfig that the sample's TenantCluster refers to.
func (t *story) tenantKubeconfig(ctx context.Context, samples []*unstructured.Unstructured) error {
	for _, o := range samples {
		if o.GetKind() != "TenantCluster" {
			continue
		}
		name, _, err := unstructured.NestedString(o.Object, "spec", "kubeconfigSecretRef", "name")
		if err != nil {
			return fmt.Errorf("TenantCluster %s: %w", o.GetName(), err)
		}
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: name},
			Data:       map[string][]byte{"kubeconfig": t.w.Tenant.Kubeconfig()},
		}
		if err := t.w.Fleet.Create(ctx, secret); err != nil {
			return fmt.Errorf("store the tenant's kubeconfig: %w", err)
		}
	}
	return nil
}

// applyTenant applies the vendor's DaemonSet to the tenant and begins to watch the invariants.
func (t *story) applyTenant(ctx context.Context) error {
	files, err := t.samples()
	if err != nil {
		return err
	}
	objects, err := stage.ReadManifests(files, "tenant")
	if err != nil {
		return err
	}
	if err := stage.Apply(ctx, t.w.Nodes, objects); err != nil {
		return err
	}
	t.watch, err = invariants.Start(ctx, t.w.Fleet, t.w.Nodes, t.site.gate)
	return err
}

// enroll racks the servers and starts the manager.
func (t *story) enroll(ctx context.Context) error {
	t.s.step("racking %d servers with 8 x H100 each, powered off; starting ingot-manager", t.o.Servers)
	if err := t.w.StartRack(ctx, serverSpecs(t.o), t.o.Speed); err != nil {
		return err
	}
	for _, s := range t.w.Rack.Servers() {
		_, password := s.Credentials()
		t.w.Secrets = append(t.w.Secrets, password)
	}
	hosts, err := t.w.RackManifests(t.site.hostNamespace)
	if err != nil {
		return err
	}
	ca := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: t.site.hostNamespace, Name: "bmc-ca"}, Data: map[string][]byte{"ca.crt": t.w.Rack.CA()}}
	if err := t.w.Fleet.Create(ctx, ca); err != nil {
		return fmt.Errorf("store the BMCs' CA: %w", err)
	}
	if err := stage.Apply(ctx, t.w.Fleet, hosts); err != nil {
		return err
	}
	if err := t.w.StartManager(ctx, t.o.Speed); err != nil {
		return err
	}
	available := 0
	err = t.until(ctx, func(s snapshot) (bool, error) {
		available = 0
		for _, h := range s.hosts {
			available += boolInt(string(h.Status.Provisioning.State) == "available")
		}
		return available == t.o.Servers, nil
	})
	t.promise(available == t.o.Servers, t.hostErrors(), "%d of %d servers are registered by Redfish, inspected and available", available, t.o.Servers)
	return err
}

// hostErrors lists what the hosts complain of.
func (t *story) hostErrors() string {
	var all []string
	for _, h := range t.last.hosts {
		if h.Status.ErrorMessage != "" {
			all = append(all, h.Name+": "+h.Status.ErrorMessage)
		}
	}
	return lines(all)
}

func toUnstructured(o client.Object) (*unstructured.Unstructured, error) {
	fields, err := unstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("convert %T: %w", o, err)
	}
	return &unstructured.Unstructured{Object: fields}, nil
}
