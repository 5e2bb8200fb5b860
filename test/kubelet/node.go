package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
)

// Options describe a node.
type Options struct {
	// Name is the node's name and host name.
	Name string
	// Dir gets its files and logs.
	Dir string
	// Programs is the directory with the programs that `make node-programs` builds.
	Programs string
	// Bridge is the network that the node's interface Interface is connected to. It has the address and reaches everything else by the gateway.
	Bridge, Interface string
	Address           netip.Prefix
	Gateway           netip.Addr
	// Pods is the network of the node's pods.
	Pods netip.Prefix
	// Kubeconfig is what the kubelet registers with. It must lead to the API server from the node.
	Kubeconfig []byte
	// ClientCA signs those who may ask the kubelet.
	ClientCA []byte
	// Archives are container images that the node has; the sandbox image SandboxImage is among them.
	Archives []string
	// Files are files of the node by their absolute path, below /etc/kubernetes or /run.
	Files map[string]string
	// SettingsDir is kubelet's --config-dir; empty: it is not given the flag.
	SettingsDir string
	// Before is a script among Files that runs before kubelet; empty: none.
	Before string
}

// SandboxImage is the image of the process that holds a pod's namespaces.
const SandboxImage = "sandbox.invalid/pause:1"

// Node is a node that runs.
type Node struct {
	options Options
	command *exec.Cmd
	stdin   io.Closer
	ended   chan error
}

// Start starts a node. It needs root.
func Start(ctx context.Context, options Options) (*Node, error) {
	n := &Node{options: options, ended: make(chan error, 1)}
	if err := n.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start the node %s: %w", options.Name, err), n.Stop())
	}
	return n, nil
}

func (n *Node) start(ctx context.Context) error {
	if err := os.MkdirAll(n.options.Dir, 0o755); err != nil {
		return err
	}
	described, err := json.Marshal(n.options)
	if err != nil {
		return err
	}
	log, err := os.Create(n.LogPath())
	if err != nil {
		return err
	}
	defer log.Close()
	n.command = exec.Command("/proc/self/exe")
	n.command.Env = append(os.Environ(), nodeVariable+"="+string(described))
	n.command.Stdout, n.command.Stderr = log, log
	n.command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC, Pdeathsig: syscall.SIGKILL,
	}
	if n.stdin, err = n.command.StdinPipe(); err != nil {
		return err
	}
	if err := n.command.Start(); err != nil {
		n.command = nil
		return err
	}
	go func() { n.ended <- n.command.Wait() }()
	if err := n.connect(); err != nil {
		return err
	}
	return n.waitForKubelet(ctx)
}

// connect lays a cable from the bridge to the node.
func (n *Node) connect() error {
	bridge, err := netlink.LinkByName(n.options.Bridge)
	if err != nil {
		return err
	}
	port := n.options.Name + "-port"
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: port}, PeerName: n.options.Name + "-nic"}); err != nil {
		return err
	}
	own, err := netlink.LinkByName(port)
	if err != nil {
		return err
	}
	peer, err := netlink.LinkByName(n.options.Name + "-nic")
	if err != nil {
		return err
	}
	return errors.Join(netlink.LinkSetMaster(own, bridge), netlink.LinkSetUp(own), netlink.LinkSetNsPid(peer, n.command.Process.Pid))
}

// waitForKubelet waits until the node's kubelet has registered it.
func (n *Node) waitForKubelet(ctx context.Context) error {
	for {
		select {
		case err := <-n.ended:
			n.ended <- err
			return fmt.Errorf("it ended: %w; its log is %s", err, n.LogPath())
		case <-ctx.Done():
			return fmt.Errorf("%w; its logs are in %s", context.Cause(ctx), n.options.Dir)
		case <-time.After(100 * time.Millisecond):
		}
		if _, err := os.Stat(filepath.Join(n.options.Dir, startedFile)); err == nil {
			return nil
		}
	}
}

// Name is the node's name.
func (n *Node) Name() string { return n.options.Name }

// LogPath is the file that the node's first process writes; those of kubelet and containerd are beside it.
func (n *Node) LogPath() string { return filepath.Join(n.options.Dir, "node.log") }

// Stop ends everything on the node, as a power cut does.
func (n *Node) Stop() error {
	if n.command == nil {
		return nil
	}
	_ = n.stdin.Close()
	select {
	case <-n.ended:
	case <-time.After(20 * time.Second):
		_ = n.command.Process.Kill()
		<-n.ended
	}
	n.command = nil
	return n.options.removeCgroups()
}

// removeCgroups removes the cgroups of the node's containers, whose processes have ended. They are the machine's: below every hierarchy of the first
// version, or once.
func (o Options) removeCgroups() error {
	var err error
	for _, kind := range []string{"containers", "sandboxes"} {
		known, globErr := filepath.Glob(filepath.Join(o.Dir, "containerd", "io.containerd.grpc.v1.cri", kind, "*"))
		err = errors.Join(err, globErr)
		for _, c := range known {
			for _, pattern := range []string{"/sys/fs/cgroup/k8s.io/", "/sys/fs/cgroup/*/k8s.io/"} {
				dirs, globErr := filepath.Glob(pattern + filepath.Base(c))
				err = errors.Join(err, globErr)
				for _, dir := range dirs {
					err = errors.Join(err, removeCgroup(dir))
				}
			}
		}
	}
	// Their parent goes when it has no others; else the kernel refuses.
	parents, globErr := filepath.Glob("/sys/fs/cgroup/*/k8s.io")
	for _, dir := range append(parents, "/sys/fs/cgroup/k8s.io") {
		_ = os.Remove(dir)
	}
	return errors.Join(err, globErr)
}

// removeCgroup removes a cgroup. The kernel refuses for a moment after its last process has ended.
func removeCgroup(dir string) error {
	var err error
	for range 50 {
		if err = os.Remove(dir); !errors.Is(err, syscall.EBUSY) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}
