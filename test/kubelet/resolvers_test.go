package kubelet

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	product "github.com/ingot-dev/ingot/cloudinit/kubelet"
	"github.com/ingot-dev/ingot/test/require"
)

const (
	// ofResolved is where systemd-resolved keeps the servers that the network told it.
	ofResolved      = "/run/systemd/resolve/resolv.conf"
	serversOfTheNIC = "nameserver 10.20.0.1\nnameserver 10.20.0.2\nsearch rack.example\n"
	serversOfAUser  = "nameserver 10.30.0.1\n"
)

// staticPod returns the manifest of a pod that kubelet starts by itself, without a cluster.
func staticPod(t *testing.T, name string, policy corev1.DNSPolicy, hostNetwork bool) string {
	t.Helper()
	text, err := json.Marshal(corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "research"},
		Spec: corev1.PodSpec{DNSPolicy: policy, HostNetwork: hostNetwork, Containers: []corev1.Container{{Name: "wait", Image: SandboxImage, ImagePullPolicy: corev1.PullNever}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPodsResolveByTheTenantsCluster reads the resolv.conf that the real kubelet and containerd make for real pods.
func TestPodsResolveByTheTenantsCluster(t *testing.T) {
	require.Tool(t, "runc", "apt-get install runc")
	ofCluster := "search research.svc.tenant.example svc.tenant.example tenant.example"
	for _, c := range []struct {
		name string
		node product.Node
		// pods are the lines of the resolv.conf of a pod with that name.
		pods map[string]string
	}{
		{
			"the servers of systemd-resolved behind the cluster's", product.Node{ClusterDNS: []string{"10.96.0.10", "fd00::a"}, ClusterDomain: "tenant.example"},
			map[string]string{
				"plain": ofCluster + " rack.example\nnameserver 10.96.0.10\nnameserver fd00::a\noptions ndots:5\n",
				"host":  ofCluster + " rack.example\nnameserver 10.96.0.10\nnameserver fd00::a\noptions ndots:5\n",
				"node":  "search rack.example\nnameserver 10.20.0.1\nnameserver 10.20.0.2\n",
			},
		},
		{
			"the file of the NodeType", product.Node{ClusterDNS: []string{"10.96.0.10"}, ClusterDomain: "tenant.example", Members: []byte(`{"resolvConf": "/etc/kubernetes/servers"}`)},
			map[string]string{"plain": ofCluster + "\nnameserver 10.96.0.10\noptions ndots:5\n", "node": "nameserver 10.30.0.1\n"},
		},
		{
			"no DNS of a cluster", product.Node{}, map[string]string{"plain": "search rack.example\nnameserver 10.20.0.1\nnameserver 10.20.0.2\n"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			const manifests = "/etc/kubernetes/manifests/"
			node := startSettings(t, c.node, map[string]string{
				ofResolved: serversOfTheNIC, "/etc/kubernetes/servers": serversOfAUser,
				manifests + "plain.json": staticPod(t, "plain", corev1.DNSClusterFirst, false), manifests + "host.json": staticPod(t, "host", corev1.DNSClusterFirstWithHostNet, true),
				manifests + "node.json": staticPod(t, "node", corev1.DNSDefault, false),
			})
			for pod, want := range c.pods {
				if got := resolversOf(t, node, pod); got != want {
					t.Errorf("pod %s resolves by\n%s\nexpected\n%s", pod, got, want)
				}
			}
		})
	}
}

// resolversOf waits until the container of a static pod has written its resolv.conf to its log.
func resolversOf(t *testing.T, node *Node, pod string) string {
	t.Helper()
	dir := filepath.Dir(node.LogPath())
	for began := time.Now(); time.Since(began) < startLimit; time.Sleep(50 * time.Millisecond) {
		logs, err := filepath.Glob(filepath.Join(dir, "pods", "research_"+pod+"-settings_*", "wait", "0.log"))
		if err != nil {
			t.Fatal(err)
		}
		if len(logs) != 1 {
			continue
		}
		text, err := os.ReadFile(logs[0])
		if err != nil {
			t.Fatal(err)
		}
		if written, isWhole := strings.CutSuffix(contentOf(text), endOfResolvers); isWhole {
			return written
		}
	}
	log, _ := os.ReadFile(filepath.Join(dir, "kubelet.log"))
	t.Fatalf("pod %s does not start: %s", pod, log[max(0, len(log)-3000):])
	return ""
}

// contentOf returns what a container wrote: each line of its log has time, stream and tag before it.
func contentOf(log []byte) string {
	var out strings.Builder
	for _, line := range strings.SplitAfter(string(log), "\n") {
		if words := strings.SplitN(line, " ", 4); len(words) == 4 {
			out.WriteString(words[3])
		}
	}
	return out.String()
}
