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
	"github.com/ingot-dev/ingot/test/loopback"
)

// ballast is the size of the part of the image that does not compress, in bytes. It makes the progress of an installation visible.
const ballast = 24 << 20

// imageRate is the rate at which each server downloads its image at the default speed, in bytes per second.
const imageRate = 12 << 20

// rawImageFactor is how many times larger an image is that is not compressed, about.
const rawImageFactor = 12

// startClusters starts the control planes and writes the files of the boot service.
func (d *demo) startClusters(ctx context.Context) error {
	samples, _, err := d.readSamples()
	if err != nil {
		return err
	}
	if d.fleet, err = readFleetSpec(samples); err != nil {
		return err
	}
	d.screen.Step("starting %d control planes: Ingot's own and %s", 1+len(d.fleet.tenants), d.options.story().clusters)
	if err := d.env.StartClusters(ctx, d.fleet.tenantNames()...); err != nil {
		return err
	}
	if d.env.BootAddress, err = loopback.FreeAddress(); err != nil {
		return err
	}
	if d.env.WebhookAddress, err = loopback.FreeAddress(); err != nil {
		return err
	}
	d.screen.Note("all answer, each with etcd, kube-apiserver, scheduler and controller-manager")
	d.screen.Step("packing three OS images and the installer's ramdisk")
	return d.env.WriteBootFiles()
}

// packImages packs three images: that of the samples' OSImage, its successor, and one whose driver is not the one that its OSImage names.
func (d *demo) packImages(ctx context.Context, name string) ([]*unstructured.Unstructured, error) {
	tree, out := filepath.Join(d.env.Dir, "tree"), filepath.Join(d.env.Dir, "images")
	if err := environment.WriteTree(tree, ballast); err != nil {
		return nil, err
	}
	var err error
	rate := int(imageRate * d.options.Speed / DefaultSpeed)
	if d.provider().takesRawImages {
		rate *= rawImageFactor
	}
	if d.env.Images, err = environment.ServeImages(environment.Loopback, out, rate); err != nil {
		return nil, err
	}
	d.images = [3]string{name, name + "-2", name + "-3"}
	var all []*unstructured.Unstructured
	for i, change := range []func(string) error{func(string) error { return nil }, environment.RebuildTree, environment.ChangeDriver} {
		if err := change(tree); err != nil {
			return nil, err
		}
		image, err := d.packImage(ctx, tree, out, d.images[i])
		if err != nil {
			return nil, err
		}
		// Every OSImage names the software of the first image, also that of the image with another driver.
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

// packImage packs one image and returns the OSImage that `ingot image pack` prints.
func (d *demo) packImage(ctx context.Context, tree, out, name string) (*unstructured.Unstructured, error) {
	result, err := pack.Pack(ctx, pack.Options{Dir: tree, Output: out, Name: name, URLBase: d.env.Images.URL, RootOwned: true})
	if err != nil {
		return nil, err
	}
	result.OSImage.Name = name
	d.screen.Note("packed %s: %.1f MB, %s", name, float64(result.SizeBytes)/1e6, result.Checksum[:19])
	if d.provider().takesRawImages {
		if result.OSImage, err = environment.DecompressImage(result); err != nil {
			return nil, err
		}
	}
	return toUnstructured(&result.OSImage)
}

// applySamples applies the CRDs and the samples to the clusters, with the addresses of this run.
func (d *demo) applySamples(ctx context.Context) error {
	d.screen.Step("applying CRDs and %s", d.options.story().folder)
	if err := d.env.InstallIngot(ctx); err != nil {
		return err
	}
	if err := d.provider().install(ctx, d); err != nil {
		return err
	}
	samples, vendors, err := d.readSamples()
	if err != nil {
		return err
	}
	if samples, err = d.adaptSamples(ctx, samples); err != nil {
		return err
	}
	if err := d.applyWhenServed(ctx, samples); err != nil {
		return err
	}
	// From here on a NodeType can be written only while a manager runs, because the API server calls its webhook.
	if err := environment.ConfigureWebhook(ctx, d.env.ManagementClient, d.env.WebhookAddress); err != nil {
		return err
	}
	return d.connectTenants(ctx, vendors)
}

// applyWhenServed applies objects. It tries again while the API server does not serve the kinds of CRDs that were just applied.
func (d *demo) applyWhenServed(ctx context.Context, objects []*unstructured.Unstructured) error {
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := environment.Apply(ctx, d.env.ManagementClient, objects)
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

// readSamples returns the samples of the story for the management cluster, and those for each tenant.
func (d *demo) readSamples() (management, tenants []*unstructured.Unstructured, err error) {
	files := d.options.Samples
	if files == nil {
		if files, err = fs.Sub(config.Files, "samples"); err != nil {
			return nil, nil, err
		}
	}
	return d.options.story().read(files)
}

// adaptSamples sets the addresses, images and durations of this run in the samples.
func (d *demo) adaptSamples(ctx context.Context, samples []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	_, imageName := environment.FirstOfKind(samples, "OSImage")
	images, err := d.packImages(ctx, imageName)
	if err != nil {
		return nil, err
	}
	for _, o := range samples {
		switch o.GetKind() {
		case "OSImage":
			o.Object["spec"] = images[0].Object["spec"]
		case "TenantCluster":
			endpoint := d.tenant(o.GetName()).Cluster.Endpoint()
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
		{"NodePool", int64(0), []string{"spec", "replicas"}},
		{"NodeType", "20s", []string{"spec", "validation", "timeout"}},
		{"NodeType", "3s", []string{"spec", "validation", "settle"}},
		{"NodeType", rollout, []string{"spec", "rollout"}},
	} {
		if err := environment.SetField(samples, change.kind, change.value, change.field...); err != nil {
			return nil, err
		}
	}
	return append(samples, images[1:]...), d.provider().adapt(d, samples)
}

// tenant returns the tenant with the name, or nil.
func (d *demo) tenant(name string) *environment.Tenant {
	for _, tenant := range d.env.Tenants {
		if tenant.Name == name {
			return tenant
		}
	}
	return nil
}

// connectTenants stores the kubeconfigs of the tenants, applies the vendors' software to them, and starts to watch the invariants.
func (d *demo) connectTenants(ctx context.Context, vendors []*unstructured.Unstructured) error {
	for _, c := range d.fleet.tenants {
		tenant := d.tenant(c.Name)
		if err := d.storeKubeconfig(ctx, c, tenant); err != nil {
			return err
		}
		if err := environment.Apply(ctx, tenant.Client, vendors); err != nil {
			return err
		}
		watcher, err := invariants.Start(ctx, d.env.ManagementClient, tenant.Client, d.fleet.gateKey())
		if err != nil {
			return err
		}
		d.watchers = append(d.watchers, watcher)
	}
	return nil
}

// storeKubeconfig creates the Secret with the kubeconfig that a TenantCluster refers to.
func (d *demo) storeKubeconfig(ctx context.Context, c *v1alpha1.TenantCluster, tenant *environment.Tenant) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Spec.KubeconfigSecretRef.Name},
		Data:       map[string][]byte{"kubeconfig": tenant.Cluster.Kubeconfig()},
	}
	if err := d.env.ManagementClient.Create(ctx, secret); err != nil {
		return fmt.Errorf("store the kubeconfig of tenant %s: %w", c.Name, err)
	}
	return nil
}

// registerServers starts the rack and the manager, registers the servers, and asserts that all become available.
func (d *demo) registerServers(ctx context.Context) error {
	d.screen.Step("racking %d servers with %s each, powered off; starting %s", d.options.servers(), d.options.story().gpus, d.provider().programs)
	specs, err := d.options.story().specs(d.options)
	if err != nil {
		return err
	}
	if err := d.env.StartRack(ctx, specs, d.options.Speed); err != nil {
		return err
	}
	for _, s := range d.env.Rack.Servers() {
		_, password := s.Credentials()
		d.env.Secrets = append(d.env.Secrets, password)
	}
	hosts, err := d.hostManifests()
	if err != nil {
		return err
	}
	if err := d.provider().serve(ctx, d); err != nil {
		return err
	}
	if err := environment.Apply(ctx, d.env.ManagementClient, hosts); err != nil {
		return err
	}
	if err := d.env.StartManager(ctx, d.options.Speed); err != nil {
		return err
	}
	available := 0
	err = d.waitUntil(ctx, func(s observation.Observation) (bool, error) {
		available = 0
		for _, h := range s.Hosts {
			if h.Status.Provisioning.State == metal3.StateAvailable {
				available++
			}
		}
		return available == d.options.servers(), nil
	})
	d.assert(available == d.options.servers(), d.hostErrors(), "%d of %d servers are registered by %s, inspected and available", available, d.options.servers(), d.provider().registrar)
	return err
}

// hostManifests returns the BareMetalHosts and Secrets of the rack. The hosts for MIG have the label that the samples select them by.
func (d *demo) hostManifests() ([]*unstructured.Unstructured, error) {
	objects, err := d.env.RackManifests(d.fleet.hostNamespace)
	if err != nil {
		return nil, err
	}
	for i, server := range d.env.Rack.Servers() {
		for _, o := range objects {
			if o.GetKind() != "BareMetalHost" || o.GetName() != server.Name() {
				continue
			}
			labels := o.GetLabels()
			if d.options.story().isMIG(d.options, i) {
				labels["use"] = useMIG
			}
			if racks := d.options.story().racks; racks != nil {
				labels[v1alpha1.LabelRack] = racks(i)
			}
			o.SetLabels(labels)
		}
	}
	return objects, nil
}

// hostErrors returns the error messages of the hosts.
func (d *demo) hostErrors() string {
	var all []string
	for _, h := range d.observed.Hosts {
		if h.Status.ErrorMessage != "" {
			all = append(all, h.Name+": "+h.Status.ErrorMessage)
		}
	}
	return joinLines(all)
}

func toUnstructured(o client.Object) (*unstructured.Unstructured, error) {
	fields, err := unstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("convert %s %s: %w", step.Kind(o), o.GetName(), err)
	}
	return &unstructured.Unstructured{Object: fields}, nil
}
