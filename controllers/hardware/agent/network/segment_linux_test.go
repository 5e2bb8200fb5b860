package network

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ingot-dev/ingot/test/require"
	"github.com/ingot-dev/ingot/test/vm/lab"
)

func TestMain(m *testing.M) { lab.Main(m) }

// segment is the provisioning network: a network namespace of servers and routers, with cables to the interfaces of the server under test.
type segment struct {
	t *testing.T
	// do runs a function in the namespace.
	do chan func()
	// file is the namespace.
	file *os.File
	// boot and other are names for interfaces of the server. Each segment has its own, because Go keeps the index of a name for a minute.
	boot, other string
}

// segments counts the segments.
var segments int

// newSegment makes a namespace, which is gone after the test with all cables. The interfaces of the test before are removed.
func newSegment(t *testing.T) *segment {
	t.Helper()
	if !lab.IsInside() {
		require.Missing(t, "root", "run the tests as root: they make network namespaces")
	}
	segments++
	s := &segment{t: t, do: make(chan func()), boot: fmt.Sprintf("boot%d", segments), other: fmt.Sprintf("other%d", segments)}
	ready := make(chan error)
	go func() {
		// The thread keeps the namespace, so it is not given back.
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			s.file, err = os.Open("/proc/thread-self/ns/net")
		}
		ready <- err
		for f := range s.do {
			f()
		}
	}()
	if err := <-ready; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, p := range s.ports() {
			if err := netlink.LinkDel(p); err != nil {
				t.Log(err)
			}
		}
		close(s.do)
		if err := s.file.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// ports returns the interfaces of the server under test.
func (s *segment) ports() []netlink.Link {
	links, err := netlink.LinkList()
	if err != nil {
		s.t.Fatal(err)
	}
	var out []netlink.Link
	for _, l := range links {
		if l.Type() == "veth" || l.Type() == "bond" {
			out = append(out, l)
		}
	}
	return out
}

// run runs a function in the namespace and waits for it.
func (s *segment) run(f func() error) {
	s.t.Helper()
	done := make(chan error)
	s.do <- func() { done <- f() }
	if err := <-done; err != nil {
		s.t.Fatal(err)
	}
}

// plug adds an interface to the server, with a cable to the interface peer of the segment, which has the addresses. The cable has a link.
func (s *segment) plug(name, mac, peer string, addresses ...string) {
	s.t.Helper()
	s.plugUnlit(name, mac, peer, addresses...)
	s.light(peer)
}

// plugUnlit is plug with a switch port that is off.
func (s *segment) plugUnlit(name, mac, peer string, addresses ...string) {
	s.t.Helper()
	hardware, err := net.ParseMAC(mac)
	if err != nil {
		s.t.Fatal(err)
	}
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name, HardwareAddr: hardware}, PeerName: peer, PeerNamespace: netlink.NsFd(int(s.file.Fd()))}
	if err := netlink.LinkAdd(pair); err != nil {
		s.t.Fatal(err)
	}
	s.run(func() error {
		link, err := netlink.LinkByName(peer)
		if err != nil {
			return err
		}
		for _, text := range addresses {
			address, err := netlink.ParseAddr(text)
			if err != nil {
				return err
			}
			address.Flags = unix.IFA_F_NODAD
			if err := netlink.AddrAdd(link, address); err != nil {
				return err
			}
		}
		return nil
	})
}

// light switches the port of the segment on.
func (s *segment) light(peer string) {
	s.t.Helper()
	s.run(func() error {
		link, err := netlink.LinkByName(peer)
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(link)
	})
}

// start runs a server in the namespace until the test ends, and fails the test with its error.
func (s *segment) start(serve func(ctx context.Context) error) {
	ctx, stop := context.WithCancel(s.t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		runtime.LockOSThread()
		if err := unix.Setns(int(s.file.Fd()), unix.CLONE_NEWNET); err != nil {
			s.t.Error(err)
			return
		}
		if err := serve(ctx); err != nil && ctx.Err() == nil {
			s.t.Error(err)
		}
	})
	s.t.Cleanup(func() { stop(); done.Wait() })
}

// dnsmasq starts the DHCP server of that name, which also sends router advertisements.
func (s *segment) dnsmasq(arguments ...string) {
	s.t.Helper()
	program := require.Tool(s.t, "dnsmasq", "apt-get install dnsmasq-base")
	log := filepath.Join(s.t.TempDir(), "log")
	arguments = append([]string{"--keep-in-foreground", "--conf-file=/dev/null", "--user=root", "--group=root", "--pid-file=", "--leasefile-ro", "--port=0", "--log-dhcp", "--log-facility=" + log}, arguments...)
	s.start(func(ctx context.Context) error {
		command := exec.CommandContext(ctx, program, arguments...)
		command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		out, err := command.CombinedOutput()
		if ctx.Err() == nil {
			return fmt.Errorf("dnsmasq: %w: %s", err, out)
		}
		return nil
	})
	s.t.Cleanup(func() {
		if text, err := os.ReadFile(log); err == nil && s.t.Failed() {
			s.t.Logf("dnsmasq: %s", text)
		}
	})
}

// server is the server under test.
type server struct {
	*testing.T
	config Config

	mu       sync.Mutex
	resolver string
	failures []Failure
	failed   chan Reason
}

// newServer returns a server whose boot service has the address.
func newServer(t *testing.T, target string, config Config) *server {
	v := &server{T: t, config: config, failed: make(chan Reason, 100)}
	v.config.Clock, v.config.Patience = clock{}, 500*time.Millisecond
	if target != "" {
		v.config.Target = netip.MustParseAddr(target)
	}
	v.config.Log = slog.New(slog.NewTextHandler(&testWriter{t: t}, nil))
	v.config.WriteResolver = func(content string) error {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.resolver = content
		return nil
	}
	v.config.OnFailure = func(f *Failure) {
		v.mu.Lock()
		v.failures = append(v.failures, *f)
		v.mu.Unlock()
		select {
		case v.failed <- f.Reason:
		default:
		}
	}
	return v
}

// begin brings the network up and returns a function that waits for its end.
func (v *server) begin() (wait func() error) {
	ctx, stop := context.WithTimeout(v.Context(), time.Minute)
	ended := make(chan error, 1)
	background, end := context.WithCancel(v.Context())
	v.Cleanup(func() { end(); stop() })
	go func() { ended <- Up(ctx, background, v.config) }()
	return func() error { return <-ended }
}

// mustUp brings the network up.
func (v *server) mustUp() {
	v.Helper()
	if err := v.begin()(); err != nil {
		v.Fatal(err)
	}
}

// awaitFailure waits until a failure of the reason is reported, and returns it.
func (v *server) awaitFailure(reason Reason) Failure {
	v.Helper()
	for {
		select {
		case got := <-v.failed:
			if got == reason {
				v.mu.Lock()
				defer v.mu.Unlock()
				return v.failures[len(v.failures)-1]
			}
		case <-v.Context().Done():
			v.Fatalf("%s is not reported", reason)
		case <-time.After(time.Minute):
			v.Fatalf("%s is not reported within a minute; seen: %+v", reason, v.failures)
		}
	}
}

// wantAddress fails unless the interface has the address.
func (v *server) wantAddress(name, address string) {
	v.Helper()
	for _, n := range ListNICs() {
		for _, a := range n.Addresses {
			if n.Name == name && a == netip.MustParsePrefix(address) {
				return
			}
		}
	}
	v.Errorf("%s has not the address %s: %s", name, address, describe(ListNICs()))
}

// wantResolver waits until the resolver's file has the line: a name server may come after the address.
func (v *server) wantResolver(line string) {
	v.Helper()
	for range 200 {
		v.mu.Lock()
		found := strings.Contains(v.resolver, line+"\n")
		v.mu.Unlock()
		if found {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	v.Errorf("the resolver has not %q but %q", line, v.resolver)
}

// wantReachable fails unless the server reaches the boot service.
func (v *server) wantReachable(s *segment) {
	v.Helper()
	listening := make(chan string, 1)
	s.start(func(ctx context.Context) error {
		listener, err := net.Listen("tcp", net.JoinHostPort(v.config.Target.String(), "0"))
		if err != nil {
			return err
		}
		context.AfterFunc(ctx, func() { _ = listener.Close() })
		listening <- listener.Addr().String()
		for {
			conn, err := listener.Accept()
			if err != nil {
				return nil
			}
			_ = conn.Close()
		}
	})
	conn, err := net.DialTimeout("tcp", <-listening, 20*time.Second)
	if err != nil {
		v.Fatalf("%v; %s", err, describe(ListNICs()))
	}
	_ = conn.Close()
}

type clock struct{}

func (clock) Now() time.Time { return time.Now() }

func (clock) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// testWriter writes the log to the test, also after the test has ended, when it writes nothing.
type testWriter struct{ t *testing.T }

func (w *testWriter) Write(line []byte) (int, error) {
	if w.t.Context().Err() == nil {
		w.t.Log(strings.TrimSpace(string(line)))
	}
	return len(line), nil
}
