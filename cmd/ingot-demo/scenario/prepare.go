package scenario

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot-demo/observation"
	"github.com/ingot-dev/ingot/config"
	"github.com/ingot-dev/ingot/controllers/step"
	"github.com/ingot-dev/ingot/imagebuilder/pack"
	"github.com/ingot-dev/ingot/test/environment"
	"github.com/ingot-dev/ingot/test/invariants"
)

// ballast makes the demo's image large enough for its bytes to be seen flowing.
const ballast = 24 << 20

// imageRate is how fast each server gets its image, in bytes per second, at the default speed.
const imageRate = 12 << 20

// prepare starts the control planes and makes the agent's ramdisk.
func (t *story) prepare(ctx context.Context) error {
	files, err := t.samples()
	if err != nil {
		return err
	}
	samples, _, err := environment.ReadSamples(files)
	if err != nil {
		return err
	}
	if t.site, err = ReadSite(samples); err != nil {
		return err
	}
	t.s.step("starting %d control planes: Ingot's own and those of %d tenants", 1+len(t.site.Tenants), len(t.site.Tenants))
	if err := t.w.StartClusters(ctx, t.site.TenantNames()...); err != nil {
		return err
	}
	if t.w.Boot, err = environment.FreeAddress(); err != nil {
		return err
	}
	if t.w.Admission, err = environment.FreeAddress(); err != nil {
		return err
	}
	t.s.note("all answer, each with etcd, kube-apiserver, scheduler and controller-manager")
	t.s.step("packing three OS images and the installer's ramdisk")
	return t.w.WriteBootFiles()
}

// packImages makes the image that the samples' OSImage stands for, its successor, and one that is not what it says.
func (t *story) packImages(ctx context.Context, name string) ([]*unstructured.Unstructured, error) {
	tree, out := filepath.Join(t.w.Dir, "tree"), filepath.Join(t.w.Dir, "images")
	if err := environment.WriteTree(tree, ballast); err != nil {
		return nil, err
	}
	var err error
	if t.w.Images, err = environment.ServeImages(out, int(imageRate*t.o.Speed/DefaultSpeed)); err != nil {
		return nil, err
	}
	t.images = [3]string{name, name + "-2", name + "-3"}
	var all []*unstructured.Unstructured
	for i, change := range []func(string) error{func(string) error { return nil }, environment.Patched, environment.OlderDriver} {
		if err := change(tree); err != nil {
			return nil, err
		}
		image, err := t.packImage(ctx, tree, out, t.images[i])
		if err != nil {
			return nil, err
		}
		// What the last one says of itself was written by hand.
		if len(all) > 0 {
			software, _, err := unstructured.NestedMap(all[0].Object, "spec", "software")
			if err != nil {
				return nil, fmt.Errorf("OSImage %s: %w", name, err)
			}
			if err := unstructured.SetNestedMap(image.Object, software, "spec", "software"); err != nil {
				return nil, fmt.Errorf("OSImage %s: %w", image.GetName(), err)
			}
		}
		all = append(all, image)
	}
	return all, nil
}

// packImage makes one image, and returns the object that `ingot image pack` prints.
func (t *story) packImage(ctx context.Context, tree, out, name string) (*unstructured.Unstructured, error) {
	result, err := pack.Pack(ctx, pack.Options{Dir: tree, Output: out, Name: name, URLBase: t.w.Images.URL, RootOwned: true})
	if err != nil {
		return nil, err
	}
	result.OSImage.Name = name
	t.s.note("packed %s: %.1f MB, %s", name, float64(result.SizeBytes)/1e6, result.Checksum[:19])
	return toUnstructured(&result.OSImage)
}

// populate applies CRDs and samples to both clusters, with the addresses of this run.
func (t *story) populate(ctx context.Context) error {
	t.s.step("applying CRDs and config/samples")
	if err := t.w.Install(ctx); err != nil {
		return err
	}
	files, err := t.samples()
	if err != nil {
		return err
	}
	samples, vendors, err := environment.ReadSamples(files)
	if err != nil {
		return err
	}
	if samples, err = t.adapt(ctx, samples); err != nil {
		return err
	}
	if err := t.applyEstablished(ctx, samples); err != nil {
		return err
	}
	// From here on a NodeType is written only when a manager agrees; it gives the API server its certificate when it starts.
	if err := environment.AskManager(ctx, t.w.Fleet, t.w.Admission); err != nil {
		return err
	}
	return t.introduceTenants(ctx, vendors)
}

// applyEstablished applies objects of kinds that the API server has only just been told of.
func (t *story) applyEstablished(ctx context.Context, objects []*unstructured.Unstructured) error {
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := environment.Apply(ctx, t.w.Fleet, objects)
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

func (t *story) samples() (fs.FS, error) {
	if t.o.Samples != nil {
		return t.o.Samples, nil
	}
	return fs.Sub(config.Files, "samples")
}

// adapt puts this run's addresses, images and pace into the samples.
func (t *story) adapt(ctx context.Context, samples []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	_, imageName := environment.Named(samples, "OSImage")
	images, err := t.packImages(ctx, imageName)
	if err != nil {
		return nil, err
	}
	for _, o := range samples {
		switch o.GetKind() {
		case "OSImage":
			o.Object["spec"] = images[0].Object["spec"]
		case "TenantCluster":
			endpoint := t.tenant(o.GetName()).Cluster.Endpoint()
			if err := unstructured.SetNestedField(o.Object, endpoint, "spec", "join", "tlsBootstrap", "endpoint"); err != nil {
				return nil, fmt.Errorf("TenantCluster %s: %w", o.GetName(), err)
			}
		}
	}
	rollout := map[string]any{"maxUnavailable": "50%", "failureBudget": int64(1), "canary": map[string]any{"machines": int64(1), "bake": "3s"}}
	for _, change := range []struct {
		kind  string
		value any
		field []string
	}{
		{"NodeProvider", t.w.Boot, []string{"spec", "redfish", "netboot", "address"}},
		{"NodePool", int64(0), []string{"spec", "replicas"}},
		{"NodeType", "20s", []string{"spec", "validation", "timeout"}},
		{"NodeType", "3s", []string{"spec", "validation", "settle"}},
		{"NodeType", rollout, []string{"spec", "rollout"}},
	} {
		if err := environment.Set(samples, change.kind, change.value, change.field...); err != nil {
			return nil, err
		}
	}
	return append(samples, images[1:]...), nil
}

// tenant returns the cluster of that name.
func (t *story) tenant(name string) *environment.Tenant {
	for _, tenant := range t.w.Tenants {
		if tenant.Name == name {
			return tenant
		}
	}
	return nil
}

// introduceTenants stores their kubeconfigs, applies the vendor's DaemonSets to them, and begins to watch the invariants.
func (t *story) introduceTenants(ctx context.Context, vendors []*unstructured.Unstructured) error {
	for _, c := range t.site.Tenants {
		tenant := t.tenant(c.Name)
		if err := t.storeKubeconfig(ctx, c, tenant); err != nil {
			return err
		}
		if err := environment.Apply(ctx, tenant.Nodes, vendors); err != nil {
			return err
		}
		watcher, err := invariants.Start(ctx, t.w.Fleet, tenant.Nodes, t.site.Gate())
		if err != nil {
			return err
		}
		t.watchers = append(t.watchers, watcher)
	}
	return nil
}

// storeKubeconfig stores the kubeconfig that a TenantCluster refers to.
func (t *story) storeKubeconfig(ctx context.Context, c *v1alpha1.TenantCluster, tenant *environment.Tenant) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Spec.KubeconfigSecretRef.Name},
		Data:       map[string][]byte{"kubeconfig": tenant.Cluster.Kubeconfig()},
	}
	if err := t.w.Fleet.Create(ctx, secret); err != nil {
		return fmt.Errorf("store the kubeconfig of tenant %s: %w", c.Name, err)
	}
	return nil
}

// enroll racks the servers and starts the manager.
func (t *story) enroll(ctx context.Context) error {
	t.s.step("racking %d servers with 8 x H100 or H200 each, powered off; starting ingot-manager", t.o.Servers)
	specs, err := serverSpecs(t.o)
	if err != nil {
		return err
	}
	if err := t.w.StartRack(ctx, specs, t.o.Speed); err != nil {
		return err
	}
	for _, s := range t.w.Rack.Servers() {
		_, password := s.Credentials()
		t.w.Secrets = append(t.w.Secrets, password)
	}
	hosts, err := t.hosts()
	if err != nil {
		return err
	}
	ca := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: t.site.HostNamespace, Name: "bmc-ca"}, Data: map[string][]byte{"ca.crt": t.w.Rack.CA()}}
	if err := t.w.Fleet.Create(ctx, ca); err != nil {
		return fmt.Errorf("store the BMCs' CA: %w", err)
	}
	if err := environment.Apply(ctx, t.w.Fleet, hosts); err != nil {
		return err
	}
	if err := t.w.StartManager(ctx, t.o.Speed); err != nil {
		return err
	}
	available := 0
	err = t.until(ctx, func(s observation.Snapshot) (bool, error) {
		available = 0
		for _, h := range s.Hosts {
			if h.Status.Provisioning.State == metal3.StateAvailable {
				available++
			}
		}
		return available == t.o.Servers, nil
	})
	t.promise(available == t.o.Servers, t.hostErrors(), "%d of %d servers are registered by Redfish, inspected and available", available, t.o.Servers)
	return err
}

// hosts are the rack's BareMetalHosts and Secrets; those for MIG have the label that the samples tell them by.
func (t *story) hosts() ([]*unstructured.Unstructured, error) {
	objects, err := t.w.RackManifests(t.site.HostNamespace)
	if err != nil {
		return nil, err
	}
	for i, server := range t.w.Rack.Servers() {
		for _, o := range objects {
			if o.GetKind() == "BareMetalHost" && o.GetName() == server.Name() && t.isMIG(i) {
				labels := o.GetLabels()
				labels["use"] = useMIG
				o.SetLabels(labels)
			}
		}
	}
	return objects, nil
}

// hostErrors lists what the hosts complain of.
func (t *story) hostErrors() string {
	var all []string
	for _, h := range t.last.Hosts {
		if h.Status.ErrorMessage != "" {
			all = append(all, h.Name+": "+h.Status.ErrorMessage)
		}
	}
	return lines(all)
}

func toUnstructured(o client.Object) (*unstructured.Unstructured, error) {
	fields, err := unstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("convert %s %s: %w", step.Kind(o), o.GetName(), err)
	}
	return &unstructured.Unstructured{Object: fields}, nil
}
