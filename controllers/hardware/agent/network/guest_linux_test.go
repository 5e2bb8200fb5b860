package network

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/cmdline"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
	"github.com/ingot-dev/ingot/test/require"
)

// oneHost is a netboot.Store with one host, which is to be inspected.
type oneHost struct {
	mu      sync.Mutex
	session netboot.Session
}

func (s *oneHost) ByMAC(context.Context, string) (netboot.Session, error) { return s.get(), nil }

func (s *oneHost) ByUID(context.Context, string) (netboot.Session, error) { return s.get(), nil }

func (s *oneHost) CachedByMAC(ctx context.Context, mac string) (netboot.Session, error) {
	return s.ByMAC(ctx, mac)
}

func (s *oneHost) CachedByUID(context.Context, string) (netboot.Session, error) {
	return s.get(), nil
}

func (s *oneHost) ConfigDrive(context.Context, string, int64) (hardware.ConfigDrive, error) {
	return hardware.ConfigDrive{}, hardware.Errorf(hardware.Conflict, "read config drive", "store", "an inspection has none")
}

func (s *oneHost) Update(_ context.Context, _ string, change func(*netboot.Session) error) (netboot.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := s.session
	if err := change(&changed); err != nil {
		return s.session, err
	}
	s.session = changed
	return changed, nil
}

func (s *oneHost) get() netboot.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session
}

// bootService serves the boot service at the address in the segment, for one host with the network, and returns the host and the kernel arguments
// of its boot document.
func bootService(t *testing.T, s *segment, ip string, network cmdline.Network) (*oneHost, string) {
	t.Helper()
	now := time.Now()
	host := &oneHost{session: netboot.Session{
		HostUID: "0b0c1fd6-1f0f-4f5e-9f0c-0d6f5f2f1a11", Namespace: "metal", Name: "gpu-1", BootMAC: bootMAC, Work: netboot.Work{Operation: hardware.OpInspect},
		AttemptStatus: hardware.AttemptStatus{Number: 3, State: hardware.AttemptRunning, Step: hardware.StepBooting},
		Since:         now.Add(-time.Minute), OpenedAt: now.Add(-time.Second), Deadline: now.Add(time.Hour),
	}}
	var listener net.Listener
	s.run(func() (err error) {
		listener, err = net.Listen("tcp", ip+":0")
		return err
	})
	service, err := netboot.New(netboot.Options{
		Store: host, Key: func(context.Context) ([]byte, error) { return bytes.Repeat([]byte{7}, 32), nil }, BaseURL: "http://" + listener.Addr().String(),
		HostSettings: func(context.Context, netboot.Session) (netboot.HostSettings, error) {
			return netboot.HostSettings{Network: network}, nil
		},
		Files: fstest.MapFS{"vmlinuz": {}, "initrd": {}}, Kernel: "vmlinuz", Initrd: "initrd", KernelArguments: []string{"console=ttyS0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: service, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		if err := errors.Join(server.Close(), <-served); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	// The document is asked for without the network, because a request of this thread would leave from another namespace.
	recorder := httptest.NewRecorder()
	service.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/boot/"+bootMAC, nil))
	document := recorder.Body.String()
	_, rest, _ := strings.Cut(document, "initrd=initrd ")
	arguments, _, found := strings.Cut(rest, " ||")
	if !found {
		t.Fatalf("the boot document has no kernel arguments: %s", document)
	}
	return host, arguments
}

// startServer runs the agent's ramdisk in QEMU until it powers off. The server has one card with two ports, whose cables end at the switch. The monitor's
// commands are carried out before it starts.
func startServer(t *testing.T, w *tagSwitch, arguments, monitor string) (console string) {
	t.Helper()
	qemu := require.Tool(t, "qemu-system-x86_64", "apt-get install qemu-system-x86")
	kernel, ramdisk := filepath.Join("../../../../bin/boot", "vmlinuz"), filepath.Join("../../../../bin/boot", "agent.cpio.zst")
	for _, file := range []string{kernel, ramdisk} {
		if _, err := os.Stat(file); err != nil {
			require.Missing(t, file, "make boot")
		}
	}
	console = filepath.Join(t.TempDir(), "console.log")
	args := []string{
		"-accel", "tcg,thread=multi,tb-size=256", "-cpu", "max,-cx16", "-m", "1024", "-machine", "q35", "-nodefaults", "-display", "none", "-no-reboot", "-S", "-monitor", "stdio",
		"-serial", "file:" + console, "-kernel", kernel, "-initrd", ramdisk, "-append", arguments,
	}
	for i, mac := range []string{bootMAC, otherMAC} {
		function := []string{"0", "1"}[i]
		args = append(args,
			"-netdev", "dgram,id=cable"+function+",local.type=unix,local.path="+w.ports[i].peer+",remote.type=unix,remote.path="+w.ports[i].local,
			// LACP needs a card that knows its speed and duplex mode; virtio's does not say.
			"-device", "e1000e,netdev=cable"+function+",id=port"+function+",mac="+mac+",multifunction=on,addr=5."+function)
	}
	// A server of which nothing is heard any more ends the test, not the machine that runs it.
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, qemu, args...)
	command.Stdin = strings.NewReader(monitor + "cont\n")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n%s", err, out, endOf(console))
	}
	return console
}

// endOf returns the last part of a file.
func endOf(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-6<<10):])
}

// TestAServerReachesTheBootServiceOverABondAndAVLAN boots the agent's ramdisk with Debian's kernel, which makes the bond and the VLAN of the boot
// document: with LACP over the ports of the boot NIC's card and an address by DHCP, and with a boot NIC without link and a static address.
func TestAServerReachesTheBootServiceOverABondAndAVLAN(t *testing.T) {
	if testing.Short() {
		t.Skip("starts virtual servers")
	}
	const own, vlan = "10.77.0.1/24", 120
	for name, c := range map[string]struct {
		network cmdline.Network
		monitor string
		// address is the server's; ports are those that belong to the bond, and silent is the one without traffic, -1: none need be.
		address       string
		ports, silent int
	}{
		"LACP": {cmdline.Network{Bond: &cmdline.Bond{Mode: "802.3ad", MACs: []string{bootMAC, otherMAC}}, VLAN: vlan}, "", "10.77.0.50", 2, -1},
		"active-backup": {
			cmdline.Network{
				Bond: &cmdline.Bond{Mode: "active-backup", MACs: []string{bootMAC, otherMAC}}, VLAN: vlan,
				Addresses: []netip.Prefix{netip.MustParsePrefix("10.77.0.9/24")},
			}, "set_link port0 off\n", "10.77.0.9", 2, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSegment(t)
			w := newTagSwitch(s, vlan, c.network.Bond.Mode == "802.3ad", own)
			ownDHCP(s, "sw")
			host, arguments := bootService(t, s, address(own), c.network)
			t.Parallel() // Much of a server's time is waiting.
			console := startServer(t, w, arguments, c.monitor)
			session := host.get()
			if session.Agent.Address != c.address || session.Step != hardware.StepFinishing {
				t.Errorf("the agent is %+v at %s; the end of the console:\n%s", session.Agent, session.Step, endOf(console))
			}
			ports, received := w.joined()
			if ports != c.ports || received[0]+received[1] == 0 || c.silent >= 0 && received[c.silent] != 0 {
				t.Errorf("%d ports are in the bond and got %d frames; the end of the console:\n%s", ports, received, endOf(console))
			}
		})
	}
}
