package definitions_test

import (
	"context"
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/cluster"
	"github.com/ingot-dev/ingot/test/require"
)

func server(t *testing.T) *rest.Config {
	t.Helper()
	if _, err := cluster.Program(); err != nil {
		require.Missing(t, "ingot-controlplane", err.Error())
	}
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	c, err := cluster.Start(ctx, cluster.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	config, err := c.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func image() *v1alpha1.OSImage {
	return &v1alpha1.OSImage{
		ObjectMeta: metav1.ObjectMeta{Name: "debian-13"},
		Spec: v1alpha1.OSImageSpec{
			URL: "https://images.example.com/x.raw.zst", Checksum: "sha256:" + strings.Repeat("0", 64), Format: v1alpha1.FormatRawZstd,
			OS: v1alpha1.OSImageOS{ID: "debian", Version: "13"}, Software: v1alpha1.OSImageSoftware{Kubelet: "1.37.0"},
		},
	}
}

func TestARealAPIServerTakesTheDefinitionsAndEnforcesThem(t *testing.T) {
	config := server(t)
	// It waits until every definition is Established and served.
	installed, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{
		Paths: []string{"../../config/crd/bases", "../../config/crd/metal3/metal3.io_baremetalhosts.yaml"}, ErrorIfPathMissing: true,
		MaxTime: time.Minute,
	})
	if err != nil || len(installed) != 13 {
		t.Fatalf("%d definitions, %v; want 13", len(installed), err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, metal3.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	good := image()
	if err := c.Create(ctx, good); err != nil {
		t.Fatal(err)
	}
	if good.Spec.Architecture != "amd64" || good.Spec.UserData != v1alpha1.UserDataCloudInit {
		t.Errorf("defaults are missing: %+v", good.Spec)
	}
	good.Spec.URL += "?other"
	if err := c.Update(ctx, good); err == nil || !strings.Contains(err.Error(), "spec is immutable") {
		t.Errorf("a changed image: got %v", err)
	}
	bad := image()
	bad.Name, bad.Spec.Software.Kubelet = "bad", "v1.37.0"
	if err := c.Create(ctx, bad); err == nil || !strings.Contains(err.Error(), "without a leading v") {
		t.Errorf("a bad image: got %v", err)
	}
	provider := &v1alpha1.NodeProvider{ObjectMeta: metav1.ObjectMeta{Name: "hall-1"}, Spec: v1alpha1.NodeProviderSpec{
		HostNamespace: "metal", Redfish: &v1alpha1.RedfishProvider{Netboot: v1alpha1.NetbootSpec{Address: "10.20.0.2"}},
	}}
	if err := c.Create(ctx, provider); err != nil {
		t.Fatal(err)
	}
	if provider.Spec.Erase == nil || provider.Spec.Erase.OnRelease != v1alpha1.EraseMetadata {
		t.Errorf("the erase policy is not filled in: %+v", provider.Spec.Erase)
	}
	t.Run("who may use a NodeType", func(t *testing.T) { testUse(t, config, c, scheme) })
	t.Run("what a tenant's roles allow", func(t *testing.T) { testTenantRoles(t, config, c, scheme) })
	t.Run("what is in use is not deleted", func(t *testing.T) { testInUse(t, config, c, scheme) })
	t.Run("a namespace of hosts is not deleted", func(t *testing.T) { testHostNamespace(t, c) })
	t.Run("who may change a HostRecord", func(t *testing.T) { testHostRecord(t, config, c, scheme) })
	t.Run("who may change a claim", func(t *testing.T) { testClaims(t, config, c, scheme) })
	t.Run("a tenant's namespace is deleted", func(t *testing.T) { testDeletedTenantNamespace(t, c, as(t, config, scheme, managerUser)) })
	t.Run("a definition is deleted", func(t *testing.T) { testDeletedDefinition(t, c, as(t, config, scheme, managerUser)) })
}
