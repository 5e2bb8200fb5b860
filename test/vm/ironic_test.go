package vm_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/ironic"
	"github.com/ingot-dev/ingot/test/require"
	"github.com/ingot-dev/ingot/test/vm/lab"
)

// grub is GRUB as Debian builds it for servers with UEFI. It reads its configuration in EFI/debian of the medium that it comes from.
const grub = "/usr/lib/grub/x86_64-efi/monolithic/grubx64.efi"

// ironicFiles is where the files are served that Ironic has servers and BMCs boot.
const ironicFiles = lab.Address + ":8091"

// TestIronicInstallsANodeByVirtualMedia has a real Ironic boot its agent on a server with real firmware, by a medium that it makes itself and inserts by Redfish.
// The server becomes a node, runs a tenant's pod with its device, and is undeployed.
func TestIronicInstallsANodeByVirtualMedia(t *testing.T) {
	require.Alone(t)
	installByIronic(t, variant{isForNodes: true, hasOwnDHCP: true, ironicBoots: "redfish-virtual-media"})
}

// TestIronicInstallsANodeByIPXE does it by the network, where the site's own DHCP server has iPXE load what Ironic writes for the server.
func TestIronicInstallsANodeByIPXE(t *testing.T) {
	require.Alone(t)
	installByIronic(t, variant{isForNodes: true, hasOwnDHCP: true, ironicBoots: "ipxe"})
}

func installByIronic(t *testing.T, v variant) {
	t.Helper()
	needIronic(t)
	s := newSite(t, v)
	s.apply(devicePlugin(), workload())
	s.order("node-1", nodeTypeOfNodes)
	p := s.awaitPowerOn()
	s.awaitJoined("node-1", p)
	s.checkProbe("node-1")
	s.awaitWorkload()
	p.note("pod")
	p.print()
	s.release("node-1")
	s.await("the server is back in the pool", func(r *v1alpha1.HostRecord) bool {
		return isOf(r, hardware.OpErase) && r.Status.Wanted.Outcome == v1alpha1.AttemptSucceeded && r.Spec.Machine == nil
	})
	s.mustNotBoot("after Ironic has cleaned the disk")
}

// needIronic skips a test without what an Ironic needs that boots servers.
func needIronic(t *testing.T) {
	t.Helper()
	if missing := ironic.Missing(); missing != "" {
		require.Missing(t, missing, ironic.Install)
	}
	require.Tool(t, "dnsmasq", "apt-get install dnsmasq-base")
	require.Tool(t, "mcopy", "apt-get install mtools")
	if _, err := os.Stat(grub); err != nil {
		require.Missing(t, grub, "apt-get install grub-efi-amd64-bin")
	}
	if _, err := os.Stat("../../bin/ironic-agent/agent.cpio.zst"); err != nil {
		require.Missing(t, "bin/ironic-agent/agent.cpio.zst", "make ironic-agent")
	}
}

// ironicSite is an Ironic on the provisioning network, with a server of the files that it has machines boot.
type ironicSite struct {
	boots string
	// authority is the file with the certificate that verifies the BMC.
	authority string
	process   *ironic.Process
	files     *http.Server
}

// startIronic starts the Ironic of the site, if it has one.
func (s *site) startIronic(ctx context.Context) error {
	if s.ironicBoots == "" {
		return nil
	}
	dir := filepath.Join(s.env.Dir, "ironic")
	agent, built := filepath.Join(dir, "agent"), filepath.Join(s.env.ProgramDir, "ironic-agent")
	if err := os.MkdirAll(agent, 0o755); err != nil {
		return err
	}
	err := errors.Join(writeBootloader(filepath.Join(agent, "bootloader.img")), os.Symlink(filepath.Join(built, "vmlinuz"), filepath.Join(agent, "vmlinuz")),
		os.Symlink(filepath.Join(built, "agent.cpio.zst"), filepath.Join(agent, "agent.cpio.zst")))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", ironicFiles)
	if err != nil {
		return err
	}
	i := &ironicSite{boots: s.ironicBoots, files: &http.Server{Handler: http.FileServer(http.Dir(filepath.Join(dir, ironic.FilesDir))), ReadHeaderTimeout: time.Minute}}
	i.authority = filepath.Join(dir, "bmc-ca.pem")
	if err := os.WriteFile(i.authority, s.bmc.Endpoint().CABundle, 0o600); err != nil {
		return err
	}
	s.ironic = i
	go func() { _ = i.files.Serve(listener) }()
	i.process, err = ironic.Launch(ctx, dir, ironic.Options{
		Address: lab.Address, HardwareType: "redfish", FilesURL: "http://" + ironicFiles, AgentDir: agent,
	})
	return err
}

// stop ends it.
func (i *ironicSite) stop() error {
	if i == nil {
		return nil
	}
	i.process.Stop()
	return i.files.Close()
}

// provider says that this Ironic installs the server.
func (i *ironicSite) provider() v1alpha1.NodeProviderSpec {
	return v1alpha1.NodeProviderSpec{HostNamespace: hosts, Ironic: &v1alpha1.IronicProvider{
		Endpoint: i.process.Endpoint, BootInterface: i.boots, DeployInterface: "direct", BMCCAPath: i.authority,
	}}
}

// besideIronic are the settings of the manager where Ironic boots the servers.
func besideIronic(c *settings.Settings) {
	c.Timeouts.Hosts.Retry = metav1.Duration{Duration: 2 * time.Second}
}

// writeBootloader writes the EFI system partition that Ironic puts into its media.
func writeBootloader(file string) error {
	for _, command := range [][]string{
		{"mformat", "-C", "-i", file, "-T", "16384", "-h", "16", "-s", "32", "::"},
		{"mmd", "-i", file, "::/EFI", "::/EFI/BOOT"},
		{"mcopy", "-i", file, grub, "::/EFI/BOOT/BOOTX64.EFI"},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", command[0], err, out)
		}
	}
	return nil
}

// unpackImage decompresses an image, because Ironic's agent does not, and returns the checksum of what it has written.
func unpackImage(to, from string) (checksum string, err error) {
	packed, err := os.Open(from)
	if err != nil {
		return "", err
	}
	defer packed.Close()
	reader, err := zstd.NewReader(packed)
	if err != nil {
		return "", err
	}
	defer reader.Close()
	out, err := os.Create(to)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, sum), reader)
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), errors.Join(err, out.Close())
}
