package fleet

import (
	"context"
	"errors"
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
)

// HostNamespace is the namespace of the hosts in the samples.
const HostNamespace = "metal"

// TenantUser is the user as which the manager acts in a tenant's cluster.
const TenantUser = "system:serviceaccount:" + metav1.NamespaceSystem + ":ingot"

// imageName is the name of the OSImage in the samples.
const imageName = "debian-13-nvidia-570"

// systemBytes is the room in the image for the files of the system.
const systemBytes = 1 << 20

// serveHosts starts the baremetal-operator where that is who installs the servers.
func (f *Fleet) serveHosts(ctx context.Context) error {
	if f.Options.Provider != Metal3 {
		return nil
	}
	if err := f.Env.UseMetal3(ctx); err != nil {
		return err
	}
	return f.Rack.startMetal3(metal3Spec{Kubeconfig: f.Env.Management.KubeconfigPath(), Files: filepath.Join(f.Env.Dir, "boot"), Address: f.Env.BootAddress, Namespace: HostNamespace})
}

// applySamples applies config/samples with the addresses of this run, and with all pools empty.
func (f *Fleet) applySamples(ctx context.Context) error {
	files, err := fs.Sub(config.Files, "samples")
	if err != nil {
		return err
	}
	samples, vendors, err := environment.ReadSamples(files)
	if err != nil {
		return err
	}
	software := map[string][]*unstructured.Unstructured{}
	for _, t := range f.Options.Tenants {
		software[t.Name] = vendors
	}
	if f.Options.Sharing {
		more, shared, err := environment.ReadSharingSamples(files)
		if err != nil {
			return err
		}
		samples = append(samples, more...)
		software[SharedTenant.Name] = shared
	}
	image, err := f.PackImage(ctx, f.Rack.Ready.Images)
	if err != nil {
		return err
	}
	objects, err := f.adapt(samples, image)
	if err != nil {
		return err
	}
	for _, t := range f.Env.Tenants {
		if err := environment.Apply(ctx, t.Client, software[t.Name]); err != nil {
			return err
		}
	}
	return f.ApplyWhenServed(ctx, objects)
}

// ApplyWhenServed applies objects to the management cluster, whose API server does not serve the kinds of CRDs at once.
func (f *Fleet) ApplyWhenServed(ctx context.Context, objects []*unstructured.Unstructured) error {
	return WaitFor(ctx, time.Minute, "the API server knows the CRDs", func() (bool, error) {
		err := environment.Apply(ctx, f.Env.ManagementClient, objects)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return false, nil
		}
		return true, err
	})
}

// adapt returns the samples with the addresses and the image of this run. TenantClusters that do not run are left out.
func (f *Fleet) adapt(samples []*unstructured.Unstructured, image map[string]any) ([]*unstructured.Unstructured, error) {
	endpoints := map[string]string{}
	for _, t := range f.Env.Tenants {
		endpoints[t.Name] = t.Cluster.Endpoint()
	}
	var objects []*unstructured.Unstructured
	var errs []error
	for _, o := range samples {
		switch o.GetKind() {
		case "TenantCluster":
			if endpoints[o.GetName()] == "" {
				continue
			}
			errs = append(errs, unstructured.SetNestedField(o.Object, endpoints[o.GetName()], "spec", "join", "tlsBootstrap", "endpoint"))
		case "OSImage":
			o.Object["spec"] = image
		case "NodePool":
			if tenant, _, _ := unstructured.NestedString(o.Object, "spec", "tenantClusterRef", "name"); endpoints[tenant] == "" {
				first := f.Options.Tenants[0]
				o.SetNamespace(first.Namespace)
				errs = append(errs, unstructured.SetNestedField(o.Object, first.Name, "spec", "tenantClusterRef", "name"))
			}
		}
		objects = append(objects, o)
	}
	return objects, errors.Join(append(errs,
		f.adaptProvider(objects),
		environment.SetField(objects, "NodeType", "0s", "spec", "validation", "settle"),
		environment.SetField(objects, "NodePool", int64(0), "spec", "replicas"),
	)...)
}

// adaptProvider makes the NodeProvider one of the kind that is measured.
func (f *Fleet) adaptProvider(objects []*unstructured.Unstructured) error {
	if f.Options.Provider == Redfish {
		return environment.SetField(objects, "NodeProvider", f.Env.BootAddress, "spec", "redfish", "netboot", "address")
	}
	for _, o := range objects {
		if o.GetKind() == "NodeProvider" {
			unstructured.RemoveNestedField(o.Object, "spec", "redfish")
		}
	}
	return environment.SetField(objects, "NodeProvider", map[string]any{}, "spec", "metal3")
}

// PackImage packs the image into the directory that is served at the URL, and returns the spec of its OSImage.
func (f *Fleet) PackImage(ctx context.Context, served string) (map[string]any, error) {
	tree := filepath.Join(f.Env.Dir, "tree")
	if err := environment.WriteTree(tree, max(0, f.Options.ImageBytes/2-systemBytes)); err != nil {
		return nil, err
	}
	packed, err := pack.Pack(ctx, pack.Options{
		Dir: tree, Output: filepath.Join(f.Env.Dir, "images"), Name: imageName, URLBase: served, RootOwned: true, Size: f.Options.ImageBytes, NoESP: true,
	})
	if err != nil {
		return nil, err
	}
	f.Image = packed
	if f.Options.Provider != Redfish {
		if packed.OSImage, err = environment.DecompressImage(packed); err != nil {
			return nil, err
		}
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(&packed.OSImage.Spec)
}

func (f *Fleet) introduceTenants(ctx context.Context) error {
	for i, t := range f.Options.Tenants {
		if err := f.Introduce(ctx, t, f.Env.Tenants[i]); err != nil {
			return err
		}
	}
	return nil
}

// Introduce gives Ingot a service account in the tenant's cluster, so that the audit log distinguishes its requests, and stores its kubeconfig.
func (f *Fleet) Introduce(ctx context.Context, tenant Tenant, running *environment.Tenant) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "ingot"}}
	if err := running.Client.Create(ctx, account); err != nil {
		return err
	}
	if err := running.Client.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "ingot"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}); err != nil {
		return err
	}
	seconds := int64((24 * time.Hour).Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if err := running.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return err
	}
	access := clientcmdapi.NewConfig()
	access.Clusters[tenant.Name] = &clientcmdapi.Cluster{Server: running.Cluster.Endpoint(), CertificateAuthorityData: running.Cluster.CA()}
	access.AuthInfos[tenant.Name] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	access.Contexts[tenant.Name] = &clientcmdapi.Context{Cluster: tenant.Name, AuthInfo: tenant.Name}
	access.CurrentContext = tenant.Name
	kubeconfig, err := clientcmd.Write(*access)
	if err != nil {
		return err
	}
	return f.Env.ManagementClient.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant.Namespace, Name: tenant.Name + "-admin"}, Data: map[string][]byte{"kubeconfig": kubeconfig},
	})
}

// SharedTenant is the tenant of config/samples/sharing.
var SharedTenant = Tenant{Name: "gpus", Namespace: "shared"}

func (f *Fleet) applyHosts(ctx context.Context) error {
	ca := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: HostNamespace, Name: "bmc-ca"}, Data: map[string][]byte{"ca.crt": f.Rack.Ready.CA}}
	if err := f.Env.ManagementClient.Create(ctx, ca); err != nil {
		return err
	}
	var objects []*unstructured.Unstructured
	for _, o := range f.Rack.Ready.Hosts {
		objects = append(objects, &unstructured.Unstructured{Object: o})
	}
	f.Rack.Ready.Hosts = nil
	return environment.Apply(ctx, f.Env.ManagementClient, objects)
}

// ManagerProgram is the file name of the manager.
const ManagerProgram = "ingot-manager"

// StartManager starts the manager with its default intervals instead of the demo's short ones.
func (f *Fleet) StartManager(ctx context.Context) error {
	changeSettings := f.Env.ChangeSettings
	f.Env.ChangeSettings = func(s *settings.Settings) {
		if changeSettings != nil {
			changeSettings(s)
		}
		plain := settings.Default()
		s.Boot.ProgressInterval, s.Intervals = plain.Boot.ProgressInterval, plain.Intervals
		if f.Options.Intervals != (settings.Intervals{}) {
			s.Intervals = f.Options.Intervals
		}
		if n := f.Options.TenantQPS; n > 0 {
			s.Tenants.QPS, s.Tenants.Burst = float32(n), 2*n
		}
	}
	if f.Options.Profile {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		f.Env.ProgramDir = filepath.Join(f.Env.Dir, "programs")
		link := filepath.Join(f.Env.ProgramDir, ManagerProgram)
		if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) { // with -provider ironic the manager is started several times
			return err
		}
		if err := errors.Join(os.MkdirAll(f.Env.ProgramDir, 0o755), os.Symlink(self, link)); err != nil {
			return err
		}
	}
	return f.Env.StartManager(ctx, 1)
}
