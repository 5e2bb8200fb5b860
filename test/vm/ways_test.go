package vm_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/bmc"
	"github.com/ingot-dev/ingot/test/require"
	"github.com/ingot-dev/ingot/test/vm/lab"
)

func TestAVirtualServerBootsByHTTP(t *testing.T) {
	require.Alone(t)
	s := newSite(t, variant{bootsByHTTP: true})
	s.installPlain()
}

// TestAVirtualServerWithAnARM64ProcessorBootsByHTTP has firmware load the agent as one EFI program. The image is data, so that any server can be written with it.
func TestAVirtualServerWithAnARM64ProcessorBootsByHTTP(t *testing.T) {
	require.Alone(t)
	s := newSite(t, variant{isARM64: true})
	s.installPlain()
	record, err := s.record()
	if err != nil || record.Status.Inventory.Architecture != "aarch64" || record.Status.Attempt.Boots != 1 {
		t.Errorf("%v, architecture %q, %d boots", err, record.Status.Inventory.Architecture, record.Status.Attempt.Boots)
	}
}

func TestAVirtualServerBootsFromVirtualMedia(t *testing.T) {
	require.Alone(t)
	s := newSite(t, variant{ways: []v1alpha1.BootWay{v1alpha1.BootWayVirtualMedia}})
	s.installPlain()
	if left := s.bmc.Media(); left != "" {
		t.Errorf("after the installation the medium %s is inserted", left)
	}
	s.wantChannel(hardware.ChannelVirtualMedia)
}

// wantChannel compares the channel of the last agent.
func (s *site) wantChannel(want hardware.Channel) {
	s.t.Helper()
	if r, err := s.record(); err != nil || r.Status.Attempt.Channel != v1alpha1.AgentChannel(want) {
		s.t.Errorf("%v: the channel is %q, expected %s", err, r.Status.Attempt.Channel, want)
	}
}

// TestAVirtualServerBootsFromAPinnedURL has the BMC hold the URL of each boot, by HTTP and, where it takes the boot service's authority, by HTTPS.
func TestAVirtualServerBootsFromAPinnedURL(t *testing.T) {
	require.Alone(t)
	for scheme, rule := range map[string]bmc.CertificateRule{"http": "", "https": bmc.CertificatesTaken} {
		t.Run(scheme, func(t *testing.T) {
			s := newSite(t, variant{ways: []v1alpha1.BootWay{v1alpha1.BootWayPinnedHTTP}, certificates: rule})
			s.installPlain()
			console, err := os.ReadFile(s.server.Console())
			if want := `"Pinned URL" from Uri(` + scheme + `://` + lab.Address; err != nil || !bytes.Contains(console, []byte(want)) {
				t.Errorf("the console has no %q: %v", want, err)
			}
			if left := s.bmc.PinnedURI(); left != "" {
				t.Error("after the installation a URL is pinned")
			}
			s.wantChannel(map[string]hardware.Channel{"http": hardware.ChannelPinnedHTTP, "https": hardware.ChannelPinnedHTTPS}[scheme])
		})
	}
}

// pinned returns the URL that the firmware boots and the authorities that it trusts, as the BMC has them.
func (s *site) pinned() (uri, authorities string) {
	return s.bmc.BootedURI(), strings.Join(s.bmc.Certificates(), "")
}

// TestAVirtualServerBootsBesideAnotherDHCPServer has dnsmasq lease the addresses, and Ingot say what is booted.
func TestAVirtualServerBootsBesideAnotherDHCPServer(t *testing.T) {
	require.Alone(t)
	require.Tool(t, "dnsmasq", "apt-get install dnsmasq-base")
	s := newSite(t, variant{hasOwnDHCP: true})
	s.installPlain()
	log, err := os.ReadFile(s.dhcp.Log)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"vendor class: PXEClient", "user class: iPXE", "DHCPACK(site-dhcp) 10.77.0.5"} {
		if !bytes.Contains(log, []byte(want)) {
			t.Errorf("the site's DHCP server has not seen %q:\n%s", want, log)
		}
	}
}

// TestTheBootServiceMayBeAwayForTwoMinutes stops the manager, and with it the boot service, while the agent writes.
func TestTheBootServiceMayBeAwayForTwoMinutes(t *testing.T) {
	require.Alone(t)
	s := newSite(t, variant{})
	s.order("plain", "plain")
	s.await("the image is being written", isWriting)
	if err := s.env.Manager.Kill(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Minute)
	if err := s.env.StartManager(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	s.awaitInstalled()
	if r, err := s.record(); err != nil || r.Status.Wanted.Number != 2 {
		t.Errorf("expected that the first attempt to install goes on, seen %s, %v", stateOf(r), err)
	}
}

// installPlain installs the image without an operating system.
func (s *site) installPlain() {
	s.t.Helper()
	s.order("plain", "plain")
	s.awaitInstalled()
}

// awaitInstalled waits until the image is installed, and reads the disk from outside.
func (s *site) awaitInstalled() {
	s.t.Helper()
	s.await("the installation", isInstalled)
	if !isBootable(s.readDisk(4096)) {
		s.t.Error("the installed disk has no partition table")
	}
}

// isWriting reports whether the agent is in the middle of an image.
func isWriting(r *v1alpha1.HostRecord) bool {
	attempt := r.Status.Progress()
	return isOf(r, hardware.OpInstall) && attempt != nil && attempt.DoneBytes > 1<<20
}

// isInstalled reports whether the image is written and the agent is done.
func isInstalled(r *v1alpha1.HostRecord) bool {
	return isOf(r, hardware.OpInstall) && r.Status.Wanted.Outcome == v1alpha1.AttemptSucceeded
}

// medium returns the file with what is inserted in the BMC's drive, as it is when the server starts; empty: nothing is.
func (s *site) medium() string {
	url := s.bmc.Media()
	if url == "" {
		return ""
	}
	file := filepath.Join(s.env.Dir, "medium.iso")
	if err := download(url, file); err != nil {
		s.t.Errorf("the BMC cannot load the medium: %v", err)
		return ""
	}
	return file
}

func download(url, file string) (err error) {
	response, err := http.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, response.Body)
	return errors.Join(err, out.Close())
}

// TestSecureBootRefusesWhatIsNotSigned has a server with Secure Boot on: it is not powered on. Where the NodeProvider says that the provisioning network
// serves signed programs, and it serves iPXE, the firmware does what the refusal spares.
func TestSecureBootRefusesWhatIsNotSigned(t *testing.T) {
	require.Alone(t)
	s := newSite(t, variant{hasSecureBoot: true})
	s.order("plain", "plain")
	s.await("the refusal", func(r *v1alpha1.HostRecord) bool {
		return r.Status.Error != nil && r.Status.Error.Reason == string(hardware.ReasonSecureBootOn)
	})
	if s.server.Boots() > 0 {
		t.Error("the server was powered on")
	}
	provider := &v1alpha1.NodeProvider{}
	if err := s.client.Get(t.Context(), client.ObjectKey{Name: "rack"}, provider); err != nil {
		t.Fatal(err)
	}
	changed := provider.DeepCopy()
	changed.Spec.Redfish.Netboot.SecureBoot = v1alpha1.SecureBootSigned
	if err := s.client.Patch(t.Context(), changed, client.MergeFrom(provider)); err != nil {
		t.Fatal(err)
	}
	s.until("the firmware refuses iPXE", func() error {
		console, err := os.ReadFile(s.server.Console())
		if bytes.Contains(console, []byte("iPXE initialising")) {
			t.Fatal("iPXE was started")
		}
		if err == nil && !bytes.Contains(console, []byte("Access Denied")) {
			err = errors.New("the console does not say so")
		}
		return err
	})
}
