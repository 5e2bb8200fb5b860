package join

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit"
	kubeletfiles "github.com/ingot-dev/ingot/cloudinit/kubelet"
	"github.com/ingot-dev/ingot/controllers/plan/verdict"
	"github.com/ingot-dev/ingot/test/management"
	"github.com/ingot-dev/ingot/test/require"
)

const gate = "ingot.dev/unvalidated"

var server *management.Server

func TestMain(m *testing.M) {
	runAsNode()
	os.Exit(management.Main(m, &server))
}

// programs returns the directory with the programs of a node.
func programs(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../bin/node-programs")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kubelet", "kubeadm", "containerd"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			require.Missing(t, "node-programs/"+name, "make node-programs")
		}
	}
	if os.Getuid() != 0 {
		require.Missing(t, "root", "run as root: mounts of a node need it")
	}
	return dir
}

// initCluster makes the cluster one that kubeadm made, with kubeadm itself: what nodes read there to join.
func initCluster(t *testing.T, programs string) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "init.yaml")
	// The address is written into a condition of the configuration alone: nothing connects to it.
	text := `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 192.0.2.1}
nodeRegistration: {name: control-plane, criSocket: "unix:///run/containerd/containerd.sock"}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.37.0
networking: {dnsDomain: tenant.example, serviceSubnet: 10.96.0.0/16}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
maxPods: 60
systemReserved: {cpu: 11m, memory: 22Mi}
`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, phase := range []string{"kubeadm", "kubelet"} {
		command := exec.CommandContext(t.Context(), filepath.Join(programs, "kubeadm"), "init", "phase", "upload-config", phase, "--config", config, "--kubeconfig", server.Cluster.KubeconfigPath())
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("kubeadm init phase upload-config %s: %v\n%s", phase, err, out)
		}
	}
}

// newToken makes a bootstrap token as the manager does.
func newToken(t *testing.T, id string, method v1alpha1.JoinMethod) string {
	t.Helper()
	const secret = "0123456789abcdef"
	data := map[string]string{
		"token-id": id, "token-secret": secret, "expiration": time.Now().Add(10 * time.Minute).UTC().Format(time.RFC3339), "usage-bootstrap-authentication": "true",
		"auth-extra-groups": "system:bootstrappers:ingot,system:bootstrappers:kubeadm:default-node-token",
	}
	if method.IsKubeadm() {
		data["usage-bootstrap-signing"] = "true"
	}
	server.Create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-" + id}, Type: corev1.SecretTypeBootstrapToken, StringData: data})
	return id + "." + secret
}

// settings are kubelet's on a machine that it does not have for itself, and what a NodeType would set.
func settings(t *testing.T, port int) []byte {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"port": port, "cgroupDriver": "cgroupfs", "failCgroupV1": false, "failSwapOn": false, "cgroupsPerQOS": false, "enforceNodeAllocatable": []string{"none"},
		"nodeStatusUpdateFrequency": "1s", "nodeStatusReportFrequency": "1s", "evictionHard": map[string]string{"memory.available": "1Mi", "nodefs.available": "1%"}, "topologyManagerPolicy": "restricted",
		"kubeReserved": map[string]string{"memory": "33Mi", "ephemeral-storage": "1Gi"}, "systemReserved": map[string]string{"ephemeral-storage": "500Mi"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// freePort returns a port that no client of another test gets before the node listens on it.
func freePort(t *testing.T) int {
	t.Helper()
	for port := 20000 + os.Getpid()%10000; port < 32768; port++ {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("no port below those of clients is free")
	return 0
}

func TestNodesJoin(t *testing.T) {
	dir := programs(t)
	initCluster(t, dir)
	for _, method := range []v1alpha1.JoinMethod{v1alpha1.JoinTLSBootstrap, v1alpha1.JoinKubeadm, v1alpha1.JoinVCluster} {
		tryJoin(t, method)
	}
	for id, method := range map[string]v1alpha1.JoinMethod{"aaaaaa": v1alpha1.JoinTLSBootstrap, "bbbbbb": v1alpha1.JoinKubeadm, "cccccc": v1alpha1.JoinVCluster, "dddddd": v1alpha1.JoinScript} {
		t.Run(string(method), func(t *testing.T) { joinNode(t, dir, id, method, v1alpha1.ProviderIDByIngot) })
	}
	for id, method := range map[string]v1alpha1.JoinMethod{"eeeeee": v1alpha1.JoinTLSBootstrap, "ffffff": v1alpha1.JoinVCluster, "abcdef": v1alpha1.JoinScript} {
		t.Run(string(method)+" with the cluster's providerID", func(t *testing.T) { joinNode(t, dir, id, method, v1alpha1.ProviderIDByCluster) })
	}
}

func joinNode(t *testing.T, programs, id string, method v1alpha1.JoinMethod, providerID v1alpha1.ProviderIDSource) {
	clients, err := kubernetes.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	name, port := "join-"+id, freePort(t)
	in := cloudinit.Input{
		Machine: cloudinit.MachineInput{Name: name, UID: "4be1a5a0", Revision: "h100-77aa", Attempt: 2}, Gate: gate,
		Kubelet: cloudinit.KubeletInput{Version: "1.37.0", Members: settings(t, port)},
		Node: cloudinit.NodeInput{
			Labels: map[string]string{"team": "research"}, Taints: []corev1.Taint{{Key: "dedicated", Value: "research", Effect: corev1.TaintEffectNoExecute}},
			ClusterDNS: []string{"10.96.0.53"}, ClusterDomain: "nodes.example", Method: method, ProviderID: providerID,
		},
		Join: &kubeletfiles.Join{Endpoint: server.Cluster.Endpoint(), CA: server.Cluster.CA(), Token: newToken(t, id, method)},
	}
	if method == v1alpha1.JoinVCluster {
		in.Node.ClusterDNS, in.Node.ClusterDomain = nil, "" // the TenantCluster says nothing, and the cluster's own stays
	}
	if method == v1alpha1.JoinScript {
		in.Join.Script = []byte(kubeletScript)
	}
	documents, err := cloudinit.Render(in)
	if err != nil {
		t.Fatal(err)
	}
	created, err := clients.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer created.Stop()
	pid := startNode(t, options{Name: name, Dir: t.TempDir(), Programs: programs, UserData: documents.UserData})
	select {
	case event := <-created.ResultChan():
		node, ok := event.Object.(*corev1.Node)
		if !ok {
			t.Fatalf("%+v", event)
		}
		checkNode(t, node, in)
	case <-ctx.Done():
		t.Fatal("no Node registers")
	}
	checkSettings(ctx, t, port, in)
	checkAllocatable(ctx, t, clients, in)
	if providerID == v1alpha1.ProviderIDByCluster {
		checkIdentity(ctx, t, clients, in)
	}
	if method == v1alpha1.JoinScript {
		checkRemoved(t, pid)
	}
}

// providerIDOf is what kubelet must register with.
func providerIDOf(in cloudinit.Input) string {
	if in.Node.ProviderID == v1alpha1.ProviderIDByCluster {
		return ""
	}
	return "ingot://4be1a5a0/2"
}

// startNode starts a node that ends with the test, which shows its logs when it fails. It returns the id of the node's first process.
func startNode(t *testing.T, o options) int {
	t.Helper()
	pid, stop, err := o.start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stop()
		if t.Failed() {
			logs, _ := filepath.Glob(filepath.Join(o.Dir, "*.log"))
			for _, l := range logs {
				text, _ := os.ReadFile(l)
				t.Logf("%s:\n%s", filepath.Base(l), text[max(0, len(text)-2000):])
			}
		}
	})
	return pid
}

// checkAllocatable judges what the kubelet leaves to pods: as the settings that it was given say, and not as others do.
func checkAllocatable(ctx context.Context, t *testing.T, clients kubernetes.Interface, in cloudinit.Input) {
	t.Helper()
	node, err := clients.CoreV1().Nodes().Get(ctx, in.Machine.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}} // there is no network for pods
	judge := func(members string) string {
		capacity := node.Status.Capacity
		expected := v1alpha1.NodeExpectation{CPU: capacity.Cpu(), Memory: capacity.Memory(), EphemeralStorage: capacity.StorageEphemeral()}
		var out []string
		for _, c := range verdict.Judge(verdict.Input{Node: node, Expectation: expected, Kubelet: []byte(members)}).Verdict.Checks {
			if strings.HasPrefix(c.Name, verdict.PrefixAllocatable) {
				out = append(out, strings.TrimPrefix(c.Name, verdict.PrefixAllocatable)+" "+string(c.Result))
			}
		}
		return strings.Join(out, ", ")
	}
	own := string(in.Kubelet.Members)
	if got := judge(own); got != "cpu Pass, memory Pass, ephemeral-storage Pass" {
		t.Errorf("%s: capacity %v, allocatable %v", got, node.Status.Capacity, node.Status.Allocatable)
	}
	if got := judge(strings.Replace(own, "500Mi", "510Mi", 1)); got != "cpu Pass, memory Pass, ephemeral-storage Fail" {
		t.Errorf("with 10Mi more: %s: capacity %v, allocatable %v", got, node.Status.Capacity, node.Status.Allocatable)
	}
}

// checkNode checks the Node as it was created: nothing has touched it since.
func checkNode(t *testing.T, node *corev1.Node, in cloudinit.Input) {
	t.Helper()
	for _, want := range append([]corev1.Taint{{Key: gate, Value: "ChecksWaiting", Effect: corev1.TaintEffectNoSchedule}}, in.Node.Taints...) {
		if !slices.ContainsFunc(node.Spec.Taints, func(have corev1.Taint) bool { return have.MatchTaint(&want) && have.Value == want.Value }) {
			t.Errorf("the Node is created without the taint %s: %v", want.ToString(), node.Spec.Taints)
		}
	}
	if node.Labels["team"] != "research" || node.Spec.ProviderID != providerIDOf(in) || node.Status.NodeInfo.KubeletVersion != "v1.37.0" {
		t.Errorf("labels %v, providerID %s, kubelet %s", node.Labels, node.Spec.ProviderID, node.Status.NodeInfo.KubeletVersion)
	}
}

// checkSettings asks the kubelet itself what it runs with.
func checkSettings(ctx context.Context, t *testing.T, port int, in cloudinit.Input) {
	t.Helper()
	config, err := rest.TLSConfigFor(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	// The kubelet's serving certificate is its own.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, GetClientCertificate: config.GetClientCertificate, Certificates: config.Certificates}}}
	var answer struct {
		Config kubeletconfig.KubeletConfiguration `json:"kubeletconfig"`
	}
	management.Eventually(t, "the kubelet answers", func() bool {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/configz", port), nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK && json.NewDecoder(response.Body).Decode(&answer) == nil
	})
	c := answer.Config
	dns, domain := in.Node.ClusterDNS, in.Node.ClusterDomain
	if in.Node.Method == v1alpha1.JoinVCluster {
		dns, domain = []string{"10.96.0.10"}, "tenant.example"
	}
	if !slices.Equal(c.ClusterDNS, dns) || c.ClusterDomain != domain || !c.RotateCertificates || c.ProviderID != providerIDOf(in) {
		t.Errorf("DNS %v, domain %s, rotation %v, providerID %s", c.ClusterDNS, c.ClusterDomain, c.RotateCertificates, c.ProviderID)
	}
	checkReservation(t, c, in.Node.Method)
}

// checkReservation checks what wins: the NodeType's settings over all, then those of a cluster that kubeadm made, then the defaults by size.
func checkReservation(t *testing.T, c kubeletconfig.KubeletConfiguration, method v1alpha1.JoinMethod) {
	t.Helper()
	if c.TopologyManagerPolicy != "restricted" || c.KubeReserved["memory"] != "33Mi" || c.EvictionHard["memory.available"] != "1Mi" {
		t.Errorf("the NodeType's settings: topologyManagerPolicy %s, kubeReserved %v, evictionHard %v", c.TopologyManagerPolicy, c.KubeReserved, c.EvictionHard)
	}
	if c.KubeReserved["cpu"] == "" {
		t.Errorf("the defaults beside them: kubeReserved %v", c.KubeReserved)
	}
	pods, fromCluster := int32(110), c.SystemReserved["cpu"] == "11m" && c.SystemReserved["memory"] == "22Mi"
	if method.IsKubeadm() {
		pods = 60
	}
	if c.MaxPods != pods || fromCluster != method.IsKubeadm() || c.SystemReserved["cpu"] == "" {
		t.Errorf("the cluster's settings: maxPods %d, systemReserved %v", c.MaxPods, c.SystemReserved)
	}
}
