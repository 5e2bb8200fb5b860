package kubelet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"sigs.k8s.io/yaml"
)

const (
	// nodeVariable tells a process that it is the first one of a node, and has its Options.
	nodeVariable = "INGOT_TEST_NODE"
	startedFile  = "started"
	// startLimit is how long containerd may take to answer.
	startLimit    = time.Minute
	runtimeSocket = "/run/containerd/containerd.sock"
)

// Main is called first in TestMain. In the first process of a node it runs the node and exits.
func Main() {
	text := os.Getenv(nodeVariable)
	if text == "" {
		return
	}
	var options Options
	if err := json.Unmarshal([]byte(text), &options); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = os.Unsetenv(nodeVariable)
	if err := run(options); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run makes the node and waits until the parent closes standard input.
func run(o Options) error {
	signal.Ignore(os.Interrupt)
	if err := mountOwn(o); err != nil {
		return err
	}
	if err := syscall.Sethostname([]byte(o.Name)); err != nil {
		return err
	}
	if err := configureNetwork(o); err != nil {
		return fmt.Errorf("configure the network: %w", err)
	}
	if err := writeFiles(o); err != nil {
		return err
	}
	if err := o.startProgram("containerd", "--config", "/etc/containerd/config.toml"); err != nil {
		return err
	}
	if err := o.importImages(); err != nil {
		return err
	}
	arguments := []string{"--config", "/etc/kubernetes/kubelet.yaml", "--kubeconfig", "/etc/kubernetes/kubelet.conf", "--hostname-override", o.Name,
		"--node-ip", o.Address.Addr().String()}
	if o.SettingsDir != "" {
		arguments = append(arguments, "--config-dir", o.SettingsDir)
	}
	if err := o.runBefore(); err != nil {
		return err
	}
	if err := o.startProgram("kubelet", arguments...); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(o.Dir, startedFile), nil, 0o600); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// mountOwn gives the node its own process list and its own directories that are written to. Its cgroups are the machine's.
func mountOwn(o Options) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	for _, dir := range []string{"/run", "/var/log/containers", "/opt", "/etc/cni", "/etc/containerd", "/etc/kubernetes"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("mount %s: %w", dir, err)
		}
	}
	for _, dir := range []string{"/var/lib/kubelet", "/var/lib/containerd", "/var/lib/cni", "/var/log/pods"} {
		own := filepath.Join(o.Dir, filepath.Base(dir))
		if err := errors.Join(os.MkdirAll(own, 0o755), os.MkdirAll(dir, 0o755)); err != nil {
			return err
		}
		if err := syscall.Mount(own, dir, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s: %w", dir, err)
		}
	}
	return nil
}

// configureNetwork waits for the cable and gives the interface its name and address.
func configureNetwork(o Options) error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return err
	}
	var nic netlink.Link
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if nic, err = netlink.LinkByName(o.Name + "-nic"); err == nil {
			break
		}
		if time.Since(began) > startLimit {
			return err
		}
	}
	if err := netlink.LinkSetName(nic, o.Interface); err != nil {
		return err
	}
	address := &netlink.Addr{IPNet: ipNet(o.Address)}
	if err := errors.Join(netlink.AddrAdd(nic, address), netlink.LinkSetUp(nic)); err != nil {
		return err
	}
	return netlink.RouteAdd(&netlink.Route{LinkIndex: nic.Attrs().Index, Gw: net.IP(o.Gateway.AsSlice())})
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: net.IP(p.Addr().AsSlice()), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// writeFiles writes the configuration of the programs.
func writeFiles(o Options) error {
	settings, err := yaml.Marshal(map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"containerRuntimeEndpoint": "unix://" + runtimeSocket,
		// The machine's cgroups are shared with everything else on it, and may be of the first version.
		"cgroupDriver": "cgroupfs", "failCgroupV1": false, "cgroupsPerQOS": false, "enforceNodeAllocatable": []string{"none"}, "failSwapOn": false,
		"authentication": map[string]any{"anonymous": map[string]any{"enabled": false}, "webhook": map[string]any{"enabled": false},
			"x509": map[string]any{"clientCAFile": "/etc/kubernetes/ca.crt"}},
		"authorization": map[string]any{"mode": "AlwaysAllow"},
		"evictionHard":  map[string]string{"memory.available": "1Mi"}, "imageGCHighThresholdPercent": 100,
		"resolvConf": "/etc/kubernetes/resolv.conf",
	})
	if err != nil {
		return err
	}
	network, err := json.Marshal(map[string]any{"cniVersion": "1.0.0", "name": "pods", "plugins": []any{
		map[string]any{"type": "bridge", "bridge": "pods", "isGateway": true, "ipMasq": false,
			"ipam": map[string]any{"type": "host-local", "ranges": [][]any{{map[string]any{"subnet": o.Pods.String()}}}, "routes": []any{map[string]any{"dst": "0.0.0.0/0"}}}},
	}})
	if err != nil {
		return err
	}
	files := map[string]string{
		"/etc/kubernetes/kubelet.yaml": string(settings), "/etc/kubernetes/kubelet.conf": string(o.Kubeconfig), "/etc/kubernetes/ca.crt": string(o.ClientCA),
		"/etc/kubernetes/resolv.conf": "", "/etc/cni/net.d/10-pods.conflist": string(network), "/etc/containerd/config.toml": runtimeSettings(o.Programs),
	}
	for name, content := range o.Files {
		files[name] = content
	}
	for name, content := range files {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(content), 0o600)); err != nil {
			return err
		}
	}
	return nil
}

func runtimeSettings(programs string) string {
	return fmt.Sprintf(`version = 3
[plugins.'io.containerd.cri.v1.images']
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = %q
  [plugins.'io.containerd.cri.v1.images'.registry]
    config_path = '/etc/containerd/certs.d'
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = [%q]
  conf_dir = '/etc/cni/net.d'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
`, SandboxImage, programs)
}

// runBefore runs the script that the unit of kubelet runs before it.
func (o Options) runBefore() error {
	if o.Before == "" {
		return nil
	}
	if out, err := exec.Command("/bin/sh", o.Before).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", o.Before, err, out)
	}
	return nil
}

// startProgram starts a program that runs until the node ends. Its output goes to NAME.log.
func (o Options) startProgram(name string, args ...string) error {
	log, err := os.Create(filepath.Join(o.Dir, name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	command := exec.Command(filepath.Join(o.Programs, name), args...)
	command.Env = append(os.Environ(), "PATH="+o.Programs+":"+os.Getenv("PATH"))
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return err
	}
	go func() {
		fmt.Fprintf(os.Stderr, "%s ended: %v\n", name, command.Wait())
		os.Exit(1)
	}()
	return nil
}

// importImages waits for containerd and gives it the images.
func (o Options) importImages() error {
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		_, err := os.Stat(runtimeSocket)
		if err == nil {
			break
		}
		if time.Since(began) > startLimit {
			return fmt.Errorf("containerd does not answer: %w", err)
		}
	}
	for _, archive := range o.Archives {
		out, err := exec.Command(filepath.Join(o.Programs, "ctr"), "--namespace", "k8s.io", "images", "import", archive).CombinedOutput()
		if err != nil {
			return fmt.Errorf("import %s: %w: %s", archive, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}
