package firstrack

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/vishvananda/netlink"

	"github.com/ingot-dev/ingot/test/environment"
	"github.com/ingot-dev/ingot/test/invariants"
	"github.com/ingot-dev/ingot/test/kubelet"
	"github.com/ingot-dev/ingot/test/rack"
	"github.com/ingot-dev/ingot/test/require"
	"github.com/ingot-dev/ingot/test/vm/lab"
)

// The addresses of the document. This process is the router of the provisioning network, and has the BMC network on its loopback interface.
const (
	router       = "10.20.0.1"
	provisioning = "10.20.0.1/23"
	bmcNetwork   = "10.10.0.0/24"
	bmcAddress   = "10.10.0.21"
	bootAddress  = "10.20.0.2:8090"
)

const (
	serverName  = "server-1"
	bmcPassword = "not-in-any-log"
	gateKey     = "ingot.dev/unvalidated"
	// patience is how long one step may take on a busy machine.
	patience = 4 * time.Minute
)

// site is the management cluster with two nodes, a tenant's cluster, the registry, the image server and one server.
type site struct {
	t        *testing.T
	env      *environment.Environment
	nodes    []*kubelet.Node
	services *kubelet.Services
	watch    *invariants.Watcher
	// ctx ends when the site is stopped.
	ctx context.Context
	web []*http.Server
	// work is the directory in which the commands run, programs that of kubectl and of what nodes run.
	work, programs string
}

// newSite starts everything that stands before the first command of the document.
func newSite(t *testing.T) *site {
	if testing.Short() {
		t.Skip("starts two control planes and two nodes")
	}
	if !lab.IsInside() {
		require.Missing(t, "root", "run the test of the first rack as root: it makes namespaces")
	}
	require.Tool(t, "runc", "apt-get install runc")
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	for name, install := range map[string]string{"ingot": "make build", "boot/agent.cpio.zst": "make boot", "node-programs/kubectl": "make node-programs"} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			require.Missing(t, "bin/"+name, install)
		}
	}
	dir, err := os.MkdirTemp("", "ingot-first-rack-")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, work: filepath.Join(dir, "work"), programs: filepath.Join(bin, "node-programs"), env: &environment.Environment{
		Dir: dir, ProgramDir: bin, BootAddress: bootAddress, ManagementAddress: router, TenantAddress: router, Timing: quick(),
	}}
	ctx, cancel := context.WithCancel(context.Background())
	s.ctx = ctx
	t.Cleanup(func() { s.stop(cancel) })
	for _, step := range []func(context.Context) error{s.makeNetwork, s.startServers, s.startClusters, s.startNodes} {
		if err := step(ctx); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// quick is the timing of a server that is quick and still passes through every state.
func quick() rack.Timing {
	return rack.Timing{
		PowerOn: 200 * time.Millisecond, PowerOff: 200 * time.Millisecond, POST: time.Second, NetworkTimeout: time.Second, AgentStart: 200 * time.Millisecond,
		OSStart: 500 * time.Millisecond, Shutdown: 300 * time.Millisecond, Container: 200 * time.Millisecond, Plugin: 200 * time.Millisecond,
	}
}

// makeNetwork makes the networks of the document, and the names of its servers.
func (s *site) makeNetwork(context.Context) error {
	if err := lab.MakeBridge(); err != nil {
		return err
	}
	for name, address := range map[string]string{lab.Bridge: provisioning, "lo": bmcNetwork} {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		parsed, err := netlink.ParseAddr(address)
		if err != nil {
			return err
		}
		if err := netlink.AddrAdd(link, parsed); err != nil {
			return err
		}
	}
	// The router leads from the pods of one node to the other node.
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600); err != nil {
		return err
	}
	hosts := filepath.Join(s.env.Dir, "hosts")
	text := "127.0.0.1 localhost\n" + router + " registry.example.com images.example.com\n"
	if err := os.WriteFile(hosts, []byte(text), 0o644); err != nil {
		return err
	}
	return syscall.Mount(hosts, "/etc/hosts", "", syscall.MS_BIND, "")
}

// startServers starts the registry and the image server of the document, and the rack.
func (s *site) startServers(ctx context.Context) error {
	images := filepath.Join(s.work, "images")
	if err := os.MkdirAll(images, 0o755); err != nil {
		return err
	}
	authority, err := newAuthority(s.env.Dir)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("registry.example.com/", registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	mux.Handle("images.example.com/", http.FileServer(http.Dir(images)))
	listener, err := net.Listen("tcp", net.JoinHostPort(router, "443"))
	if err != nil {
		return err
	}
	// The registry reads one upload at a time, which stops HTTP/2's connection for all of them.
	web := &http.Server{Handler: mux, TLSConfig: authority, ReadHeaderTimeout: time.Minute, TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}}
	s.web = append(s.web, web)
	go func() { _ = web.ServeTLS(listener, "", "") }()
	plain, err := net.Listen("tcp", net.JoinHostPort(router, "80"))
	if err != nil {
		return err
	}
	files := &http.Server{Handler: http.FileServer(http.Dir(images)), ReadHeaderTimeout: time.Minute}
	s.web = append(s.web, files)
	go func() { _ = files.Serve(plain) }()
	profile, err := rack.ProfileNamed("hgx-h100")
	if err != nil {
		return err
	}
	s.env.Secrets = append(s.env.Secrets, bmcPassword)
	return s.env.StartRack(ctx, []rack.ServerSpec{{
		Name: serverName, Profile: profile, BMCAddress: bmcAddress + ":443", Username: "root", Password: bmcPassword,
	}}, 1)
}

func (s *site) startClusters(ctx context.Context) error {
	if err := s.env.StartClusters(ctx); err != nil {
		return err
	}
	s.services = kubelet.ForwardServices(ctx, s.env.ManagementClient, strings.TrimPrefix(s.env.Management.Endpoint(), "https://"))
	return nil
}

// startNodes starts the two nodes of the management cluster.
func (s *site) startNodes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	if err := kubelet.WriteSandboxImage(ctx, filepath.Join(s.env.Dir, "sandbox.tar")); err != nil {
		return err
	}
	for i, address := range []string{"10.20.0.11/23", "10.20.0.12/23"} {
		name := fmt.Sprintf("node-%d", i+1)
		node, err := kubelet.Start(ctx, kubelet.Options{
			Name: name, Dir: filepath.Join(s.env.Dir, name), Programs: s.programs, Bridge: lab.Bridge, Interface: "eth1",
			Address: netip.MustParsePrefix(address), Gateway: netip.MustParseAddr(router), Pods: podNetwork(i),
			Kubeconfig: s.env.Management.Kubeconfig(), ClientCA: s.env.Management.CA(), Archives: []string{filepath.Join(s.env.Dir, "sandbox.tar")},
		})
		if err != nil {
			return err
		}
		s.nodes = append(s.nodes, node)
		if err := leadToPods(i, address); err != nil {
			return err
		}
	}
	return nil
}

// podNetwork is the network of the pods of that node.
func podNetwork(node int) netip.Prefix {
	return netip.MustParsePrefix(fmt.Sprintf("10.30.%d.0/24", node))
}

// leadToPods makes the way to the pods of a node, which a cluster's network plugin makes.
func leadToPods(node int, address string) error {
	network := podNetwork(node)
	return netlink.RouteAdd(&netlink.Route{
		Dst: &net.IPNet{IP: network.Addr().AsSlice(), Mask: net.CIDRMask(network.Bits(), 32)}, Gw: netip.MustParsePrefix(address).Addr().AsSlice(),
	})
}

// stop ends everything. After a failure the folder stays, with the logs.
func (s *site) stop(cancel context.CancelFunc) {
	var errs []error
	for _, n := range s.nodes {
		errs = append(errs, n.Stop())
	}
	cancel()
	if s.services != nil {
		errs = append(errs, s.services.Stop())
	}
	errs = append(errs, s.env.Stop())
	for _, w := range s.web {
		errs = append(errs, w.Close())
	}
	if err := errors.Join(errs...); err != nil {
		s.t.Error(err)
	}
	if s.t.Failed() {
		s.t.Logf("logs are in %s", s.env.Dir)
		return
	}
	if err := os.RemoveAll(s.env.Dir); err != nil {
		s.t.Error(err)
	}
}

// sh runs commands of the document in the working directory and returns what they print.
func (s *site) sh(commands string) string {
	s.t.Helper()
	command := exec.CommandContext(s.t.Context(), "bash", "-euo", "pipefail", "-c", commands)
	command.Dir = s.work
	command.Env = append(os.Environ(), "KUBECONFIG="+s.env.Management.KubeconfigPath(), "PATH="+s.programs+":"+s.env.ProgramDir+":"+os.Getenv("PATH"))
	// The nodes have one architecture, and the other takes minutes to compile.
	command.Env = append(command.Env, "MAKEFLAGS=IMAGE_ARCHITECTURES=amd64")
	var stdout, stderr strings.Builder
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		s.t.Fatalf("%s\n%v\n%s%s", commands, err, stdout.String(), stderr.String())
	}
	s.t.Logf("$ %s\n%s%s", strings.TrimSpace(commands), stdout.String(), stderr.String())
	return stdout.String()
}
