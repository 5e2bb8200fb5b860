package vm_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/imagebuilder/bootcheck"
	"github.com/ingot-dev/ingot/imagebuilder/pack"
	"github.com/ingot-dev/ingot/test/bmc"
	"github.com/ingot-dev/ingot/test/environment"
	"github.com/ingot-dev/ingot/test/invariants"
	"github.com/ingot-dev/ingot/test/require"
	"github.com/ingot-dev/ingot/test/vm/lab"
	"github.com/ingot-dev/ingot/test/vm/qemu"
)

func TestMain(m *testing.M) { lab.Main(m) }

// bootMAC is that of the server's network interface.
const bootMAC = "52:54:00:aa:00:01"

// Where Debian's packages have the firmware and the boot programs.
const (
	firmwareCode = "/usr/share/OVMF/OVMF_CODE_4M.fd"
	firmwareVars = "/usr/share/OVMF/OVMF_VARS_4M.fd"
	codeARM64    = "/usr/share/AAVMF/AAVMF_CODE.fd"
	varsARM64    = "/usr/share/AAVMF/AAVMF_VARS.fd"
	programs     = "/usr/lib/ipxe"
)

const (
	hosts, team, tenantName = "metal", "research", "research"
	gateKey                 = "ingot.dev/unvalidated"
	// patience is how long one step may take. On two idle cores a server without hardware virtualisation takes half a minute from its power-on to the
	// agent, and two and a half from the written disk to the commands of cloud-init.
	patience = 10 * time.Minute
	// pause is that between two looks.
	pause = 300 * time.Millisecond
	// nodeImageRate is more than any server without hardware virtualisation takes.
	nodeImageRate = 1 << 30
	// imageRate is that of a slow network, so that there is a middle of the write.
	imageRate = 4 << 20
	// imageBallast is what does not compress in the image, in bytes.
	imageBallast = 24 << 20
	// diskSize is that of the server's disk. The file is sparse.
	diskSize = 5 << 30
)

// needVirtualServers skips a test without the programs and files that virtual servers need.
func needVirtualServers(t *testing.T, v variant) (bootFiles string) {
	t.Helper()
	needNamespaces(t)
	require.Tool(t, "qemu-system-x86_64", "apt-get install qemu-system-x86")
	for path, install := range map[string]string{firmwareCode: "apt-get install ovmf", filepath.Join(programs, "snponly.efi"): "apt-get install ipxe"} {
		if _, err := os.Stat(path); err != nil {
			require.Missing(t, path, install)
		}
	}
	if v.isARM64 {
		require.Tool(t, "qemu-system-aarch64", "apt-get install qemu-system-arm")
		if _, err := os.Stat(codeARM64); err != nil {
			require.Missing(t, codeARM64, "apt-get install qemu-efi-aarch64")
		}
	}
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"boot/agent.cpio.zst": "make boot", "ingot-manager": "make build", "ingot-controlplane": "make build"}
	if v.isForNodes {
		files["node-image/guest"] = "make node-image"
	}
	if v.isARM64 {
		files["boot/arm64/agent.cpio.zst"] = "make boot-arm64"
	}
	for name, install := range files {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			require.Missing(t, "bin/"+name, install)
		}
	}
	return filepath.Join(bin, "boot")
}

// site is a management cluster, a tenant's cluster, the manager with its boot service, and one virtual server.
type site struct {
	variant
	t      *testing.T
	env    *environment.Environment
	client client.Client
	watch  *invariants.Watcher
	server *qemu.Machine
	bmc    *bmc.BMC
	// nodeImages serves the image of nodes and the container image of their pods.
	nodeImages *environment.ImageServer
	// ironic is the site's Ironic; nil: it has none.
	ironic *ironicSite
	// dhcp is the site's own DHCP server; nil: it has none.
	dhcp *lab.DHCPServer
	// tpm is the folder with the state of the TPM of the server's board.
	tpm atomic.Value
	// disk is the file with the server's disk.
	disk  string
	began time.Time

	mu sync.Mutex
	// checkedAt is when the invariants were checked last.
	checkedAt time.Time
}

// variant is what differs between sites.
type variant struct {
	// isForNodes: there is the image of nodes, and the server has the device that they advertise.
	isForNodes bool
	// bootsByHTTP: the server's firmware boots by HTTP instead of PXE.
	bootsByHTTP bool
	// isARM64: the server has an arm64 processor, and its firmware boots by HTTP.
	isARM64 bool
	// hasSecureBoot: the server's firmware starts what Microsoft or its owner has signed, as servers are delivered.
	hasSecureBoot bool
	// hasOwnDHCP: the site has a DHCP server of its own, and Ingot adds what is booted.
	hasOwnDHCP bool
	// ways to boot the agent; empty: the network.
	ways []v1alpha1.BootWay
	// hasTPM: the server's board has a TPM 2.0.
	hasTPM bool
	// certificates is what the BMC does with authorities for HTTPS boot.
	certificates bmc.CertificateRule
	// ironicBoots is the boot interface by which an Ironic boots its agent on the server; empty: Ingot installs it itself.
	ironicBoots string
}

// newSite starts everything. The server is registered and off.
func newSite(t *testing.T, v variant) *site {
	bootFiles := needVirtualServers(t, v)
	log.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "ingot-vm-")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &site{t: t, variant: v, began: time.Now(), env: &environment.Environment{
		Dir: dir, ProgramDir: filepath.Dir(bootFiles), BootFiles: bootFiles, BootAddress: lab.Address + ":8090", TenantAddress: lab.Address,
		ChangeSettings: onProvisioningNetwork,
	}}
	switch {
	case v.ironicBoots != "":
		s.env.ChangeSettings = besideIronic
	case v.hasOwnDHCP:
		s.env.ChangeSettings = besideOwnDHCP
	}
	t.Cleanup(func() { s.stop(cancel) })
	for _, step := range []func(context.Context) error{
		s.startNetwork, s.startClusters, s.startServer, s.startIronic, s.applyObjects, func(ctx context.Context) error { return s.env.StartManager(ctx, 1) },
	} {
		if err := step(ctx); err != nil {
			t.Fatal(err)
		}
	}
	go s.check(ctx)
	return s
}

// onProvisioningNetwork are the settings of the manager that answers the servers at the bridge.
func onProvisioningNetwork(c *settings.Settings) {
	c.Boot.KernelArguments = []string{"console=ttyAMA0", "console=ttyS0"}
	c.Boot.Network.Interface, c.Boot.Network.DHCP, c.Boot.Network.Programs = lab.Bridge, settings.DHCPServe, programs
	c.Boot.Network.Subnets = []settings.Subnet{{Prefix: lab.Prefix, First: "10.77.0.100", Last: "10.77.0.109"}}
	c.Timeouts.Hosts.Retry = metav1.Duration{Duration: 2 * time.Second}
	c.Timeouts.Steps.GracefulOff = metav1.Duration{Duration: 5 * time.Second} // There is no operating system that answers the button.
}

// besideOwnDHCP are the same where another server leases the addresses.
func besideOwnDHCP(c *settings.Settings) {
	onProvisioningNetwork(c)
	c.Boot.Network.DHCP, c.Boot.Network.Subnets = settings.DHCPProxy, nil
}

func (s *site) startNetwork(context.Context) error {
	if err := errors.Join(lab.MakeBridge(), lab.AddTap("tap0")); err != nil || !s.hasOwnDHCP {
		return err
	}
	var err error
	var options []string
	if s.ironicBoots != "" {
		options = lab.BootFrom(programs, "http://"+ironicFiles+"/boot.ipxe")
	}
	s.dhcp, err = lab.StartDHCPServer(s.env.Dir, "10.77.0.50", "10.77.0.60", options...)
	return err
}

func (s *site) startClusters(ctx context.Context) error {
	if err := s.env.StartClusters(ctx); err != nil {
		return err
	}
	s.client = s.env.ManagementClient
	if err := s.env.InstallIngot(ctx); err != nil {
		return err
	}
	var err error
	s.watch, err = invariants.Start(ctx, s.client, s.env.TenantClient, gateKey)
	return err
}

// startServer makes the server and starts its BMC.
func (s *site) startServer(ctx context.Context) error {
	s.disk = filepath.Join(s.env.Dir, "disk.raw")
	if err := errors.Join(os.WriteFile(s.disk, nil, 0o600), os.Truncate(s.disk, diskSize)); err != nil {
		return err
	}
	log := slog.New(slog.DiscardHandler)
	const uuid = "03020100-0504-0706-0809-0a0b0c0d0e0f"
	firmware, personality := bootcheck.Firmware{Code: firmwareCode, Vars: firmwareVars}, bmc.Personality{}
	if s.hasSecureBoot {
		firmware, personality.SecureBoot = bootcheck.SecureFirmware, map[string]any{"SecureBootEnable": true, "SecureBootCurrentBoot": "Enabled"}
	}
	// Only firmware with a pinned URL has its variables written; AAVMF's variables file is blank until its first boot.
	var pinned func() (uri, authorities string)
	if slices.Contains(s.ways, v1alpha1.BootWayPinnedHTTP) {
		pinned = s.pinned
		personality.Boot = bmc.BootRules{HTTPBootURI: bmc.URITaken, Certificates: s.certificates}
	}
	if s.isARM64 {
		firmware = bootcheck.Firmware{Code: codeARM64, Vars: varsARM64}
	}
	var board func() string
	if s.hasTPM {
		board = func() string { return s.tpm.Load().(string) }
		s.replaceBoard()
	}
	var devices []string
	if s.isForNodes {
		devices = append(devices, "edu")
	}
	var err error
	s.server, err = qemu.New(qemu.Options{
		Name: "server-1", Dir: s.env.Dir, FirmwareCode: firmware.Code, FirmwareVars: firmware.Vars, SecureBoot: firmware.SecureBoot, MemoryMiB: 2048, CPUs: 2, UUID: uuid, MAC: bootMAC, Tap: "tap0",
		Devices: devices, HTTPBoot: s.bootsByHTTP || s.isARM64, ARM64: s.isARM64, Media: s.medium, Pinned: pinned, TPM: board,
		Disks: []qemu.Disk{{Path: s.disk, Bus: "nvme", Serial: "DRIVE0"}}, NextBoot: func() hardware.BootSource { return s.bmc.TakeBoot() }, Log: log,
	})
	if err != nil {
		return err
	}
	authority, err := bmc.NewAuthority(time.Now())
	if err != nil {
		return err
	}
	s.bmc = bmc.New(bmc.Options{
		Name: "server-1", Machine: s.server, Personality: personality, Authority: authority, Username: "admin", Password: "not-in-any-log", Log: log,
		Hardware: hardware.Inventory{SystemUUID: uuid, Architecture: "amd64", CPUThreads: 2, MemoryBytes: 2 << 30, NICs: []hardware.NIC{{MAC: bootMAC}}},
	})
	s.env.Secrets = append(s.env.Secrets, "not-in-any-log")
	return s.bmc.Start(ctx)
}

// applyObjects makes what an administrator makes: the provider, images, one of them with a wrong checksum, the server, the tenant.
func (s *site) applyObjects(ctx context.Context) error {
	plain, err := s.packImage(ctx)
	if err != nil {
		return err
	}
	wrong := plain.DeepCopy()
	wrong.Name, wrong.Spec.Checksum = "wrong-digest", "sha256:"+strings.Repeat("0", 64)
	endpoint := s.bmc.Endpoint()
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: meta("", hosts)}, &corev1.Namespace{ObjectMeta: meta("", team)},
		roleBinding(hosts, "ingot-manager-hosts"), roleBinding(team, "ingot-manager-tenants"),
		&corev1.Secret{ObjectMeta: meta(hosts, "bmc-ca"), Data: map[string][]byte{"ca.crt": endpoint.CABundle}},
		&corev1.Secret{ObjectMeta: meta(hosts, "server-1-bmc"), StringData: map[string]string{"username": endpoint.Username, "password": endpoint.Password}},
		&corev1.Secret{ObjectMeta: meta(team, "admin"), Data: map[string][]byte{"kubeconfig": s.env.Tenant.Kubeconfig()}},
		&v1alpha1.NodeProvider{ObjectMeta: meta("", "rack"), Spec: s.provider()},
		&v1alpha1.TenantCluster{ObjectMeta: meta(team, tenantName), Spec: v1alpha1.TenantClusterSpec{
			KubeconfigSecretRef: v1alpha1.LocalReference{Name: "admin"},
			Join:                v1alpha1.JoinSpec{TLSBootstrap: &v1alpha1.EndpointJoin{Endpoint: s.env.Tenant.Endpoint()}},
		}},
		plain, nodeType("plain", plain.Name), wrong, nodeType("wrong-digest", wrong.Name),
		&metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: hosts, Name: "server-1", Labels: map[string]string{"rack": "1"}}, Spec: metal3.BareMetalHostSpec{
			BootMACAddress: bootMAC, BootMode: metal3.UEFI,
			BMC: metal3.BMCDetails{Address: strings.Replace(endpoint.Address, "https", "redfish", 1), CredentialsName: "server-1-bmc"},
		}},
	}
	if s.isForNodes {
		node, err := s.serveNodeImage(filepath.Join(s.env.ProgramDir, "node-image"))
		if err != nil {
			return err
		}
		objects = append(objects, node, s.nodeTypeWithDevice(node.Name))
	}
	for _, o := range objects {
		if err := s.client.Create(ctx, o); err != nil {
			return fmt.Errorf("%T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

// provider says how the server is installed.
func (s *site) provider() v1alpha1.NodeProviderSpec {
	if s.ironic != nil {
		return s.ironic.provider()
	}
	ways := s.ways
	if len(ways) == 0 {
		ways = []v1alpha1.BootWay{v1alpha1.BootWayNetwork}
	}
	return v1alpha1.NodeProviderSpec{
		HostNamespace: hosts, Erase: &v1alpha1.ErasePolicy{OnRelease: v1alpha1.EraseFull},
		Redfish: &v1alpha1.RedfishProvider{CABundleSecretRef: &v1alpha1.LocalReference{Name: "bmc-ca"}, Netboot: v1alpha1.NetbootSpec{Address: s.env.BootAddress, Ways: ways}},
	}
}

func roleBinding(namespace, role string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ingot-manager"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "ingot-system", Name: "ingot-manager"}},
	}
}

func nodeType(name, image string) *v1alpha1.NodeType {
	return &v1alpha1.NodeType{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.NodeTypeSpec{
		ProviderRef: v1alpha1.LocalReference{Name: "rack"}, OSImageRef: v1alpha1.LocalReference{Name: image},
		HostSelector: metav1.LabelSelector{MatchLabels: map[string]string{"rack": "1"}},
		Resources:    corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
	}}
}

// packImage packs an image without an operating system, and serves it on the provisioning network.
func (s *site) packImage(ctx context.Context) (*v1alpha1.OSImage, error) {
	tree, out := filepath.Join(s.env.Dir, "tree"), filepath.Join(s.env.Dir, "images")
	if err := environment.WriteTree(tree, imageBallast); err != nil {
		return nil, err
	}
	var err error
	if s.env.Images, err = environment.ServeImages(lab.Address+":0", out, imageRate); err != nil {
		return nil, err
	}
	packed, err := pack.Pack(ctx, pack.Options{Dir: tree, Output: out, Name: "plain", URLBase: s.env.Images.URL, RootOwned: true})
	if err != nil {
		return nil, err
	}
	if s.isARM64 {
		packed.OSImage.Spec.Architecture = v1alpha1.ArchitectureARM64
	}
	return &packed.OSImage, nil
}

// check checks the invariants until the context ends.
func (s *site) check(ctx context.Context) {
	for ctx.Err() == nil {
		if err := s.watch.Check(ctx); err == nil {
			s.mu.Lock()
			s.checkedAt = time.Now()
			s.mu.Unlock()
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// stop ends everything. After a failure the folder stays, with the console and the manager's log.
func (s *site) stop(cancel context.CancelFunc) {
	err := s.judge()
	cancel()
	if s.server != nil {
		s.server.Close()
	}
	if s.bmc != nil {
		err = errors.Join(err, s.bmc.Stop())
	}
	if err = errors.Join(err, s.nodeImages.Stop(), s.env.Stop(), s.dhcp.Stop(), s.ironic.stop()); err != nil {
		s.t.Error(err)
	}
	if s.t.Failed() {
		s.t.Logf("console, logs and disks are in %s", s.env.Dir)
		if s.server != nil {
			s.t.Logf("the end of the console:\n%s", endOf(s.server.Console(), 4<<10))
		}
		return
	}
	if err := os.RemoveAll(s.env.Dir); err != nil {
		s.t.Error(err)
	}
}

// judge reports the violations of invariants.
func (s *site) judge() error {
	if s.watch == nil {
		return nil // It has not begun.
	}
	violations, err := s.watch.Violations()
	for _, v := range violations {
		s.t.Error(v)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if since := time.Since(s.checkedAt); since > time.Minute {
		err = errors.Join(err, fmt.Errorf("the invariants were not checked in the last %s", since))
	}
	return err
}

// endOf returns the end of a file.
func endOf(path string, size int64) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > size {
		if _, err := f.Seek(-size, io.SeekEnd); err != nil {
			return err.Error()
		}
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
