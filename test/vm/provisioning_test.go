package vm_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"
	"github.com/insomniacslk/dhcp/iana"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/pin/tftp/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot-manager/operator"
	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
	"github.com/ingot-dev/ingot/config"
	"github.com/ingot-dev/ingot/test/environment"
	"github.com/ingot-dev/ingot/test/management"
	"github.com/ingot-dev/ingot/test/require"
	"github.com/ingot-dev/ingot/test/vm/lab"
)

// needNamespaces skips a test that cannot have a network of its own.
func needNamespaces(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	if !lab.IsInside() {
		require.Missing(t, "root", "run the tests of virtual servers as root: they make network namespaces")
	}
}

// startManager runs the manager of the site with the rights of its service account, until the test ends.
func startManager(t *testing.T, site *management.Server, s settings.Settings) {
	t.Helper()
	asManager := rest.CopyConfig(site.Config)
	asManager.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:ingot-system:ingot-manager", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:ingot-system", "system:authenticated"},
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- operator.Run(ctx, s, asManager, operator.Options{Version: "test", EmbedBoot: true}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager: %v", err)
		}
	})
}

// startSite starts a management cluster with Ingot's roles.
func startSite(t *testing.T) *management.Server {
	t.Helper()
	log.SetLogger(logr.Discard())
	site, err := management.Start(t.Context(), filepath.Join(t.TempDir(), "management"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := site.Cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	create(t, site, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ingot-system"}})
	for _, dir := range []string{"rbac", "embed-boot/rbac"} {
		objects, err := environment.ReadManifests(config.Files, dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := environment.Apply(t.Context(), site.Client, objects); err != nil {
			t.Fatal(err)
		}
	}
	return site
}

func create(t *testing.T, site *management.Server, o client.Object) {
	t.Helper()
	if err := site.Client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until check returns no error.
func eventually(t *testing.T, limit time.Duration, check func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	t.Fatal(err)
}

func TestTheManagerAnswersKnownHostsOnTheProvisioningNetwork(t *testing.T) {
	needNamespaces(t)
	if err := lab.MakeBridge(); err != nil {
		t.Fatal(err)
	}
	boot, programs := t.TempDir(), t.TempDir()
	for path, content := range map[string]string{
		filepath.Join(boot, "vmlinuz"): "kernel", filepath.Join(boot, "agent.cpio.zst"): "initrd",
		filepath.Join(programs, "snponly.efi"): "iPXE", filepath.Join(programs, "secret"): "not for servers",
	} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	site := startSite(t)
	base := "http://" + lab.Address + ":8090"
	s := settings.Default()
	s.Health.Address, s.Metrics.Address, s.LeaderElection.Enabled = "127.0.0.1:0", "0", false
	// Servers reach the boot service where their NodeProvider says, and not where the configuration does.
	s.Boot.Address, s.Boot.URL, s.Boot.Files = lab.Address+":8090", "http://boot.invalid", boot
	s.Boot.Network.Interface, s.Boot.Network.DHCP, s.Boot.Network.Programs = lab.Bridge, settings.DHCPServe, programs
	s.Boot.Network.Subnets = []settings.Subnet{{Prefix: lab.Prefix, First: "10.77.0.100", Last: "10.77.0.109", DNS: []string{lab.Address}}}
	startManager(t, site, s)

	create(t, site, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "metal"}})
	create(t, site, &v1alpha1.NodeProvider{ObjectMeta: metav1.ObjectMeta{Name: "rack"}, Spec: v1alpha1.NodeProviderSpec{
		HostNamespace: "metal", Redfish: &v1alpha1.RedfishProvider{Netboot: v1alpha1.NetbootSpec{Address: lab.Address + ":8090"}},
	}})
	create(t, site, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "metal", Name: "bmc"}, StringData: map[string]string{"username": "u", "password": "p"}})
	create(t, site, &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "metal", Name: "server-1"}, Spec: metal3.BareMetalHostSpec{
		BootMACAddress: bootMAC, BMC: metal3.BMCDetails{Address: "redfish://127.0.0.1:1/redfish/v1/Systems/1", CredentialsName: "bmc"},
	}})
	// The manager's rights in the namespace of the hosts, as the samples give them.
	objects, err := environment.ReadManifests(config.Files, "samples/00-namespaces.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := environment.Apply(t.Context(), site.Client, objects); err != nil {
		t.Fatal(err)
	}
	mac, err := net.ParseMAC(bootMAC)
	if err != nil {
		t.Fatal(err)
	}
	known, stranger := dhcpClient(t, "known", mac), dhcpClient(t, "stranger", net.HardwareAddr{0x52, 0x54, 0, 0xaa, 0, 0x99})

	var address netip.Addr
	eventually(t, time.Minute, func() error {
		lease, err := known.Request(t.Context())
		if err != nil {
			return err
		}
		address, _ = netip.AddrFromSlice(lease.ACK.YourIPAddr.To4())
		return nil
	})
	if address.Less(netip.MustParseAddr("10.77.0.100")) || netip.MustParseAddr("10.77.0.109").Less(address) {
		t.Errorf("leased %s", address)
	}
	firmware := []dhcpv4.Modifier{dhcpv4.WithOption(dhcpv4.OptClassIdentifier("PXEClient:Arch:00007:UNDI:003000")), dhcpv4.WithOption(dhcpv4.OptClientArch(iana.EFI_X86_64))}
	http1 := []dhcpv4.Modifier{dhcpv4.WithOption(dhcpv4.OptClassIdentifier("HTTPClient:Arch:00016:UNDI:003001")), dhcpv4.WithOption(dhcpv4.OptClientArch(iana.EFI_X86_64_HTTP))}
	for _, c := range []struct {
		name    string
		options []dhcpv4.Modifier
		want    string
	}{
		{"firmware", firmware, "snponly.efi"},
		{"firmware that boots by HTTP", http1, base + "/programs/snponly.efi"},
		{"iPXE", append(firmware, dhcpv4.WithUserClass("iPXE", false)), base + "/boot/" + bootMAC},
	} {
		offer, err := known.DiscoverOffer(t.Context(), c.options...)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if offer.BootFileNameOption() != c.want || !offer.YourIPAddr.Equal(address.AsSlice()) {
			t.Errorf("%s boots %q with %s; expected %q with %s", c.name, offer.BootFileNameOption(), offer.YourIPAddr, c.want, address)
		}
	}
	if offer, err := stranger.DiscoverOffer(t.Context(), firmware...); err == nil {
		t.Errorf("a stranger is answered: %s", offer.Summary())
	}
	if got, err := loadByTFTP("snponly.efi"); err != nil || got != "iPXE" {
		t.Errorf("TFTP: %q, %v", got, err)
	}
	for _, name := range []string{"secret", "../secret", "/etc/passwd", "sub/../secret"} {
		if got, err := loadByTFTP(name); err == nil {
			t.Errorf("TFTP serves %s: %q", name, got)
		}
	}
	for path, want := range map[string]int{"/programs/snponly.efi": http.StatusOK, "/programs/secret": http.StatusNotFound, "/programs/..%2Fsecret": http.StatusNotFound, "/boot/" + bootMAC: http.StatusOK} {
		response, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != want || err != nil {
			t.Errorf("%s: %s %s, %v", path, response.Status, content, err)
		}
	}
}

// dhcpClient is a machine at the bridge with the MAC address.
func dhcpClient(t *testing.T, name string, mac net.HardwareAddr) *nclient4.Client {
	t.Helper()
	if err := lab.AddMachine(name, mac); err != nil {
		t.Fatal(err)
	}
	c, err := nclient4.New(name, nclient4.WithTimeout(2*time.Second), nclient4.WithRetry(2))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func loadByTFTP(name string) (string, error) {
	c, err := tftp.NewClient(lab.Address + ":69")
	if err != nil {
		return "", err
	}
	c.SetTimeout(2 * time.Second)
	c.SetRetries(1)
	transfer, err := c.Receive(name, "octet")
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	var content bytes.Buffer
	_, err = transfer.WriteTo(&content)
	return content.String(), err
}
