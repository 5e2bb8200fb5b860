package kubelet

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	product "github.com/ingot-dev/ingot/cloudinit/kubelet"
	"github.com/ingot-dev/ingot/test/require"
	"github.com/ingot-dev/ingot/test/vm/lab"
)

func TestMain(m *testing.M) {
	Main()
	lab.Main(m)
}

// nodeAddress is the address of the node that the tests start.
const nodeAddress = "10.77.0.2"

// thisMachine is what kubelet needs on a machine that others share, and without a cluster. Its name sorts after all of the product's.
const thisMachine = `{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
"cgroupDriver": "cgroupfs", "failCgroupV1": false, "cgroupsPerQOS": false, "enforceNodeAllocatable": ["none"], "failSwapOn": false,
"authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}, "x509": {"clientCAFile": ""}}, "authorization": {"mode": "AlwaysAllow"},
"evictionHard": {"memory.available": "1Mi"}, "staticPodPath": "/etc/kubernetes/manifests"}`

// startSettings starts a node without a cluster whose kubelet has the files of the product's node, and those files beside them.
func startSettings(t *testing.T, of product.Node, beside map[string]string) *Node {
	t.Helper()
	if os.Geteuid() != 0 {
		require.Missing(t, "root", "run the test of kubelet's settings as root: it makes namespaces")
	}
	programs, err := filepath.Abs("../../bin/node-programs")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(programs, "kubelet")); err != nil {
		require.Missing(t, "bin/node-programs/kubelet", "make node-programs")
	}
	of.Name, of.ProviderID, of.Gate, of.Version = "settings", "ingot://1/1", "ingot.dev/unvalidated", "1.37.0"
	files, err := product.Files(of)
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]string{"/etc/kubernetes/kubelet.conf.d/90-machine.conf": thisMachine}
	maps.Copy(own, beside)
	for _, f := range files {
		if strings.HasPrefix(f.Path, "/etc/kubernetes/") {
			own[f.Path] = f.Content
		}
	}
	sandbox := filepath.Join(t.TempDir(), "sandbox.tar")
	if err := WriteSandboxImage(t.Context(), sandbox); err != nil {
		t.Fatal(err)
	}
	if err := lab.MakeBridge(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	node, err := Start(ctx, Options{
		Name: "settings", Dir: t.TempDir(), Programs: programs, Bridge: lab.Bridge, Interface: "eth0",
		Address: netip.MustParsePrefix(nodeAddress + "/24"), Gateway: netip.MustParseAddr(lab.Address), Pods: netip.MustParsePrefix("198.18.78.0/24"),
		Kubeconfig: []byte(noCluster), Files: own, SettingsDir: "/etc/kubernetes/kubelet.conf.d", Before: "/etc/kubernetes/ingot-kubelet-defaults", Archives: []string{sandbox},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := node.Stop(); err != nil {
			t.Error(err)
		}
	})
	return node
}

// TestKubeletHasTheUsersMembersAndTheDefaults starts the real kubelet with the files of a node, and asks it what it made of them.
func TestKubeletHasTheUsersMembersAndTheDefaults(t *testing.T) {
	node := startSettings(t, product.Node{
		Members: []byte(`{"maxPods": 77, "kubeReserved": {"memory": "123Mi"}, "topologyManagerPolicy": "restricted", "featureGates": {"DRAExtendedResource": true}}`)}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	config := configz(ctx, t, node, nodeAddress)
	if config.MaxPods != 77 || config.TopologyManagerPolicy != "restricted" || !config.FeatureGates["DRAExtendedResource"] || config.KubeReserved["memory"] != "123Mi" {
		t.Errorf("the user's members: maxPods %d, topologyManagerPolicy %s, kubeReserved %v", config.MaxPods, config.TopologyManagerPolicy, config.KubeReserved)
	}
	if config.KubeReserved["cpu"] == "" || config.SystemReserved["cpu"] == "" || config.SystemReserved["memory"] == "" {
		t.Errorf("the defaults: kubeReserved %v, systemReserved %v", config.KubeReserved, config.SystemReserved)
	}
	if len(config.RegisterWithTaints) != 1 || config.RegisterWithTaints[0].Key != "ingot.dev/unvalidated" || config.ProviderID != "ingot://1/1" {
		t.Errorf("Ingot's own members: taints %v, providerID %s", config.RegisterWithTaints, config.ProviderID)
	}
}

// noCluster is a cluster that does not answer.
const noCluster = `{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], users: [{name: a, user: {token: a}}],
clusters: [{name: a, cluster: {server: 'https://` + lab.Address + `:1', insecure-skip-tls-verify: true}}]}`

// configz asks kubelet for its configuration until it answers.
func configz(ctx context.Context, t *testing.T, node *Node, host string) kubeletconfig.KubeletConfiguration {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // its certificate is its own
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+net.JoinHostPort(host, "10250")+"/configz", nil)
		if err != nil {
			t.Fatal(err)
		}
		if response, err := client.Do(request); err == nil {
			var answer struct {
				Config kubeletconfig.KubeletConfiguration `json:"kubeletconfig"`
			}
			err := json.NewDecoder(response.Body).Decode(&answer)
			_ = response.Body.Close()
			if err == nil && response.StatusCode == http.StatusOK {
				return answer.Config
			}
		}
		select {
		case err := <-node.ended:
			node.ended <- err
			log, _ := os.ReadFile(filepath.Join(filepath.Dir(node.LogPath()), "kubelet.log"))
			t.Fatalf("kubelet ended: %s", log[max(0, len(log)-3000):])
		case <-ctx.Done():
			log, _ := os.ReadFile(filepath.Join(filepath.Dir(node.LogPath()), "kubelet.log"))
			t.Fatalf("kubelet does not answer: %s", log[max(0, len(log)-3000):])
		case <-time.After(100 * time.Millisecond):
		}
	}
}
