package kubelet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

// server is a machine that the program of the defaults looks at.
type server struct {
	cpus, memoryGiB, numa int
	resolved              bool
	// config is the file of --config; empty: there is none.
	config string
}

// defaultsOf runs the program on a server and returns what it wrote.
func defaultsOf(t *testing.T, s server) kubeletconfig.KubeletConfiguration {
	t.Helper()
	root := t.TempDir()
	write := func(path, content string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("proc/meminfo", fmt.Sprintf("MemTotal:       %d kB\nMemFree: 1 kB\n", s.memoryGiB<<20))
	var cpus strings.Builder
	for i := range s.cpus {
		fmt.Fprintf(&cpus, "processor\t: %d\nmodel name\t: x\n\n", i)
	}
	write("proc/cpuinfo", cpus.String())
	for i := range s.numa {
		write(fmt.Sprintf("sys/devices/system/node/node%d/cpulist", i), "0\n")
	}
	if s.resolved {
		write("run/systemd/resolve/resolv.conf", "nameserver 10.20.0.1\n")
	}
	if s.config != "" {
		write("config.yaml", s.config)
	}
	write("script", defaultsScript)
	command := exec.Command("/bin/sh", filepath.Join(root, "script"), "/config.yaml")
	command.Env = append(os.Environ(), "INGOT_ROOT="+root)
	if out, err := command.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("%v: %s", err, out)
	}
	content, err := os.ReadFile(filepath.Join(root, pathDefaults))
	if err != nil {
		t.Fatal(err)
	}
	var config kubeletconfig.KubeletConfiguration
	if err := yaml.UnmarshalStrict(content, &config); err != nil {
		t.Fatalf("%v: %s", err, content)
	}
	if config.APIVersion != "kubelet.config.k8s.io/v1beta1" || config.Kind != "KubeletConfiguration" {
		t.Errorf("kubelet refuses a file of %s %s", config.APIVersion, config.Kind)
	}
	config.TypeMeta = kubeletconfig.KubeletConfiguration{}.TypeMeta
	return config
}

func TestDefaultsFollowFromTheSizeOfTheServer(t *testing.T) {
	reserved := func(cpu, memory string) map[string]string { return map[string]string{"cpu": cpu, "memory": memory} }
	for name, test := range map[string]struct {
		server server
		want   kubeletconfig.KubeletConfiguration
	}{
		"eight GPUs, 2 TiB": {server{cpus: 224, memoryGiB: 2048, numa: 2, resolved: true}, kubeletconfig.KubeletConfiguration{
			KubeReserved: reserved("630m", "9543Mi"), SystemReserved: reserved("660m", "10585Mi"),
			TopologyManagerPolicy: "best-effort", MaxPods: 250, ResolverConfig: ptr("/run/systemd/resolve/resolv.conf")}},
		"the GPUs' memory is NUMA nodes": {server{cpus: 144, memoryGiB: 960, numa: 34}, kubeletconfig.KubeletConfiguration{
			KubeReserved: reserved("430m", "9543Mi"), SystemReserved: reserved("460m", "5015Mi"), MaxPods: 250}},
		"a small server": {server{cpus: 16, memoryGiB: 64, numa: 1}, kubeletconfig.KubeletConfiguration{
			KubeReserved: reserved("110m", "5611Mi"), SystemReserved: reserved("140m", "427Mi")}},
		"a virtual server of a test": {server{cpus: 1, memoryGiB: 1}, kubeletconfig.KubeletConfiguration{
			KubeReserved: reserved("60m", "256Mi"), SystemReserved: reserved("102m", "105Mi")}},
		"what the cluster's owner has set stays": {server{cpus: 224, memoryGiB: 2048, numa: 2, resolved: true, config: `apiVersion: kubelet.config.k8s.io/v1beta1
evictionHard:
  maxPods: 1Gi
kubeReserved:
  cpu: "1"
maxPods: 60
resolvConf: /etc/of-the-control-plane
topologyManagerPolicy: restricted
`}, kubeletconfig.KubeletConfiguration{SystemReserved: reserved("660m", "10585Mi"), ResolverConfig: ptr("/run/systemd/resolve/resolv.conf")}},
		"a member of a member is not set": {server{cpus: 64, memoryGiB: 256, numa: 2, config: "systemReserved:\n  cpu: 1\nshutdown:\n  maxPods: 1\nresolvConf: /etc/own\n"}, kubeletconfig.KubeletConfiguration{
			KubeReserved: reserved("230m", "9543Mi"), TopologyManagerPolicy: "best-effort", MaxPods: 250}},
		"the list of servers that only the control plane has": {server{cpus: 16, memoryGiB: 64, numa: 1, config: "resolvConf: /run/systemd/resolve/resolv.conf\n"}, kubeletconfig.KubeletConfiguration{
			KubeReserved: reserved("110m", "5611Mi"), SystemReserved: reserved("140m", "427Mi"), ResolverConfig: ptr("/etc/resolv.conf")}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, defaultsOf(t, test.server)); diff != "" {
				t.Errorf("defaults (-want +got):\n%s", diff)
			}
		})
	}
}

func ptr[T any](v T) *T { return &v }
