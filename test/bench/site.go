package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
	"github.com/ingot-dev/ingot/config"
	"github.com/ingot-dev/ingot/imagebuilder/pack"
	"github.com/ingot-dev/ingot/test/environment"
	"github.com/ingot-dev/ingot/test/loopback"
)

// Names in the samples.
const (
	systemNamespace, hostNamespace, tenantName = "ingot-system", "metal", "research"
	imageName                                  = "debian-13-nvidia-570"
)

// tenantUser is the user as which the manager acts in the tenant's cluster.
const tenantUser = "system:serviceaccount:" + metav1.NamespaceSystem + ":ingot"

// Sizes of the image in bytes. One half of it does not compress, the other half is zeros.
const (
	imageSize = 64 << 20
	// incompressibleSize is the size of that half without the files of the system.
	incompressibleSize = imageSize/2 - 1<<20
)

// setUp starts everything except the manager and creates all objects except the Machines.
func (f *fleet) setUp(ctx context.Context) error {
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"starting the management and the tenant's control plane", func(ctx context.Context) error { return f.env.StartClusters(ctx, tenantName) }},
		{fmt.Sprintf("racking %d servers", f.options.machines), f.startRack},
		{"making the installer's ramdisk", f.makeRamdisk},
		{"applying CRDs, roles and policies", f.installIngot},
		{"packing the image and applying the samples", f.applySamples},
		{"introducing the tenant", f.introduceTenant},
		{"applying the hosts", f.applyHosts},
		{"starting what serves the hosts", f.serveHosts},
	} {
		logProgress(f.progress, "%s", step.what)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

func (f *fleet) startRack(context.Context) error {
	var err error
	if f.env.BootAddress, err = loopback.FreeAddress(); err != nil {
		return err
	}
	spec := rackSpec{
		Servers: f.options.machines, Disks: filepath.Join(f.env.Dir, "disks"), Images: filepath.Join(f.env.Dir, "images"),
		Boot: f.env.BootAddress, Namespace: hostNamespace,
	}
	if f.options.profile {
		spec.Profile = filepath.Join(f.env.Dir, "rack.cpu")
	}
	f.rack, err = startRack(f.env.Dir, spec)
	return err
}

func (f *fleet) makeRamdisk(context.Context) error { return f.env.WriteBootFiles() }

func (f *fleet) installIngot(ctx context.Context) error { return f.env.InstallIngot(ctx) }

// serveHosts starts the baremetal-operator where that is who installs the servers.
func (f *fleet) serveHosts(ctx context.Context) error {
	if f.options.provider != providerMetal3 {
		return nil
	}
	if err := f.env.UseMetal3(ctx); err != nil {
		return err
	}
	return f.rack.startMetal3(metal3Spec{Kubeconfig: f.env.Management.KubeconfigPath(), Files: filepath.Join(f.env.Dir, "boot"), Address: f.env.BootAddress, Namespace: hostNamespace})
}

// applySamples applies config/samples with the addresses of this run, and with all pools empty and in one tenant.
func (f *fleet) applySamples(ctx context.Context) error {
	files, err := fs.Sub(config.Files, "samples")
	if err != nil {
		return err
	}
	samples, vendors, err := environment.ReadSamples(files)
	if err != nil {
		return err
	}
	image, err := f.packImage(ctx, f.rack.ready.Images)
	if err != nil {
		return err
	}
	objects, err := f.adapt(samples, image)
	if err != nil {
		return err
	}
	if err := environment.Apply(ctx, f.env.TenantClient, vendors); err != nil {
		return err
	}
	return f.applyWhenServed(ctx, objects)
}

// applyWhenServed applies objects to the management cluster, whose API server does not serve the kinds of CRDs at once.
func (f *fleet) applyWhenServed(ctx context.Context, objects []*unstructured.Unstructured) error {
	return waitFor(ctx, time.Minute, "the API server knows the CRDs", func() (bool, error) {
		err := environment.Apply(ctx, f.env.ManagementClient, objects)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return false, nil
		}
		return true, err
	})
}

// adapt returns the samples with the addresses and the image of this run, and with all pools in one tenant.
func (f *fleet) adapt(samples []*unstructured.Unstructured, image map[string]any) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, o := range samples {
		if o.GetKind() == "TenantCluster" && o.GetName() != tenantName {
			continue
		}
		switch o.GetKind() {
		case "OSImage":
			o.Object["spec"] = image
		case "NodePool":
			o.SetNamespace(tenantName)
		}
		objects = append(objects, o)
	}
	return objects, errors.Join(
		f.adaptProvider(objects),
		environment.SetField(objects, "TenantCluster", f.env.Tenant.Endpoint(), "spec", "join", "tlsBootstrap", "endpoint"),
		environment.SetField(objects, "NodeType", "0s", "spec", "validation", "settle"),
		environment.SetField(objects, "NodePool", int64(0), "spec", "replicas"),
		environment.SetField(objects, "NodePool", tenantName, "spec", "tenantClusterRef", "name"),
	)
}

// adaptProvider makes the NodeProvider one of the kind that is measured.
func (f *fleet) adaptProvider(objects []*unstructured.Unstructured) error {
	if f.options.provider == providerRedfish {
		return environment.SetField(objects, "NodeProvider", f.env.BootAddress, "spec", "redfish", "netboot", "address")
	}
	for _, o := range objects {
		if o.GetKind() == "NodeProvider" {
			unstructured.RemoveNestedField(o.Object, "spec", "redfish")
		}
	}
	return environment.SetField(objects, "NodeProvider", map[string]any{}, "spec", "metal3")
}

// packImage packs the image into the directory that is served at the URL, and returns the spec of its OSImage.
func (f *fleet) packImage(ctx context.Context, served string) (map[string]any, error) {
	tree := filepath.Join(f.env.Dir, "tree")
	if err := environment.WriteTree(tree, incompressibleSize); err != nil {
		return nil, err
	}
	packed, err := pack.Pack(ctx, pack.Options{
		Dir: tree, Output: filepath.Join(f.env.Dir, "images"), Name: imageName, URLBase: served, RootOwned: true, Size: imageSize, NoESP: true,
	})
	if err != nil {
		return nil, err
	}
	f.image = packed
	if f.options.provider != providerRedfish {
		if packed.OSImage, err = environment.DecompressImage(packed); err != nil {
			return nil, err
		}
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(&packed.OSImage.Spec)
}

func (f *fleet) introduceTenant(ctx context.Context) error {
	return f.introduce(ctx, tenantName, "research-admin")
}

// introduce gives Ingot a service account in the tenant's cluster, so that the audit log distinguishes its requests, and stores its kubeconfig.
func (f *fleet) introduce(ctx context.Context, namespace, secret string) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "ingot"}}
	if err := f.env.TenantClient.Create(ctx, account); err != nil {
		return err
	}
	if err := f.env.TenantClient.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "ingot"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}); err != nil {
		return err
	}
	seconds := int64((24 * time.Hour).Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if err := f.env.TenantClient.SubResource("token").Create(ctx, account, request); err != nil {
		return err
	}
	access := clientcmdapi.NewConfig()
	access.Clusters[tenantName] = &clientcmdapi.Cluster{Server: f.env.Tenant.Endpoint(), CertificateAuthorityData: f.env.Tenant.CA()}
	access.AuthInfos[tenantName] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	access.Contexts[tenantName] = &clientcmdapi.Context{Cluster: tenantName, AuthInfo: tenantName}
	access.CurrentContext = tenantName
	kubeconfig, err := clientcmd.Write(*access)
	if err != nil {
		return err
	}
	return f.env.ManagementClient.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secret}, Data: map[string][]byte{"kubeconfig": kubeconfig},
	})
}

func (f *fleet) applyHosts(ctx context.Context) error {
	ca := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hostNamespace, Name: "bmc-ca"}, Data: map[string][]byte{"ca.crt": f.rack.ready.CA}}
	if err := f.env.ManagementClient.Create(ctx, ca); err != nil {
		return err
	}
	var objects []*unstructured.Unstructured
	for _, o := range f.rack.ready.Hosts {
		objects = append(objects, &unstructured.Unstructured{Object: o})
	}
	f.rack.ready.Hosts = nil
	return environment.Apply(ctx, f.env.ManagementClient, objects)
}

// startManager starts the manager with its default intervals instead of the demo's short ones.
func (f *fleet) startManager(ctx context.Context) error {
	changeSettings := f.env.ChangeSettings
	f.env.ChangeSettings = func(s *settings.Settings) {
		if changeSettings != nil {
			changeSettings(s)
		}
		plain := settings.Default()
		s.Boot.ProgressInterval, s.Intervals = plain.Boot.ProgressInterval, plain.Intervals
		if n := f.options.tenantQPS; n > 0 {
			s.Tenants.QPS, s.Tenants.Burst = float32(n), 2*n
		}
	}
	if f.options.profile {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		f.env.ProgramDir = filepath.Join(f.env.Dir, "programs")
		link := filepath.Join(f.env.ProgramDir, managerProgram)
		if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) { // with -provider ironic the manager is started several times
			return err
		}
		if err := errors.Join(os.MkdirAll(f.env.ProgramDir, 0o755), os.Symlink(self, link)); err != nil {
			return err
		}
	}
	return f.env.StartManager(ctx, 1)
}
