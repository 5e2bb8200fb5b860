package rack_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ingot-dev/ingot/cloudinit"
	kubeletfiles "github.com/ingot-dev/ingot/cloudinit/kubelet"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/bmc"
	"github.com/ingot-dev/ingot/test/cluster"
	"github.com/ingot-dev/ingot/test/rack"
	"github.com/ingot-dev/ingot/test/rack/kubelet"
	"github.com/ingot-dev/ingot/test/require"
)

const (
	gate = "ingot.dev/unvalidated"
	gpu  = "nvidia.com/gpu"
)

// startedTenant is the one tenant of all tests; each uses names of its own.
var startedTenant *cluster.Cluster

var tenantOnce = sync.OnceValue(func() error {
	dir, err := os.MkdirTemp("", "rack-tenant")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	startedTenant, err = cluster.Start(ctx, cluster.Options{Dir: dir})
	return err
})

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		return // servers and their control plane take longer than a unit suite may
	}
	code := m.Run()
	if startedTenant != nil {
		if err := startedTenant.Stop(); err != nil {
			log.Print(err)
		}
		_ = os.RemoveAll(filepath.Dir(startedTenant.KubeconfigPath()))
	}
	os.Exit(code)
}

// tenant is a real cluster and its administrator.
type tenant struct {
	t       testing.TB
	cluster *cluster.Cluster
	admin   kubernetes.Interface
}

func newTenant(t testing.TB) *tenant {
	t.Helper()
	if _, err := cluster.Program(); err != nil {
		require.Missing(t, "ingot-controlplane", err.Error())
	}
	if err := tenantOnce(); err != nil {
		t.Fatal(err)
	}
	config, err := startedTenant.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	return &tenant{t: t, cluster: startedTenant, admin: kubernetes.NewForConfigOrDie(config)}
}

// token makes a bootstrap token.
func (c *tenant) token(id string) string {
	c.t.Helper()
	const secret = "0123456789abcdef"
	_, err := c.admin.CoreV1().Secrets(metav1.NamespaceSystem).Create(c.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id}, Type: corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{"token-id": id, "token-secret": secret, "usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true"},
	}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return id + "." + secret
}

func (c *tenant) bootstrap(token string) kubelet.Identity {
	return kubelet.Identity{Server: c.cluster.Endpoint(), CA: c.cluster.CA(), Token: token}
}

// userData is a node's, as a person would write it, with further labels of the node.
// reserve reserves a thousandth of a CPU for each CPU, and a thousandth of the memory.
const reserve = `set -eu
while read -r name number _; do [ "$name" != MemTotal: ] || memory=$number; done < /proc/meminfo
printf 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nkubeReserved: {cpu: %sm, memory: "%s"}\n' "$(grep -c '^processor' < /proc/cpuinfo)" "$((memory * 1024 / 1000))" > "$1"
`

func (c *tenant) userData(name, token string, labels ...string) string {
	file := func(path, content string) string {
		return fmt.Sprintf("- {path: %s, permissions: \"0600\", encoding: b64, content: %s}\n", path, base64.StdEncoding.EncodeToString([]byte(content)))
	}
	return "#cloud-config\nwrite_files:\n" +
		file("/etc/kubernetes/kubelet.yaml", `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
providerID: ingot://machine-uid/1
registerWithTaints: [{key: `+gate+`, effect: NoSchedule}]
`) + file("/etc/kubernetes/bootstrap-kubeconfig", fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: u, user: {token: %q}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, c.cluster.Endpoint(), base64.StdEncoding.EncodeToString(c.cluster.CA()), token)) +
		file("/etc/kubernetes/reserve", reserve) +
		file("/etc/systemd/system/kubelet.service.d/10-ingot.conf", "[Service]\nExecStartPre=/bin/sh /etc/kubernetes/reserve /etc/kubernetes/kubelet.d/1.conf\n"+
			"ExecStart=\nExecStart=/usr/bin/kubelet --config=/etc/kubernetes/kubelet.yaml --config-dir=/etc/kubernetes/kubelet.d \\\n"+
			"  --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubeconfig --kubeconfig=/var/lib/kubelet/kubeconfig --hostname-override="+name+" --node-labels="+
			strings.Join(append([]string{"team=research", "pool=training"}, labels...), ",")+"\n") +
		"runcmd:\n- touch /tmp/users-own\n- [systemctl, daemon-reload]\n- [systemctl, enable, --now, kubelet]\n"
}

func (c *tenant) node(name string) (*corev1.Node, error) {
	return c.admin.CoreV1().Nodes().Get(c.t.Context(), name, metav1.GetOptions{})
}

// awaitNode waits until the node is as the check wants it.
func (c *tenant) awaitNode(what, name string, check func(*corev1.Node) bool) *corev1.Node {
	c.t.Helper()
	var node *corev1.Node
	eventually(c.t, what, func() (err error) {
		if node, err = c.node(name); err == nil && !check(node) {
			err = fmt.Errorf("capacity %v, allocatable %v, boot %s", node.Status.Capacity, node.Status.Allocatable, node.Status.NodeInfo.BootID)
		}
		return err
	})
	return node
}

// plugin starts NVIDIA's device plugin on the node, and stops it with the test.
func (c *tenant) plugin(name, node string) {
	c.t.Helper()
	labels := map[string]string{"app": name}
	sets := c.admin.AppsV1().DaemonSets(metav1.NamespaceSystem)
	_, err := sets.Create(c.t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{
				NodeSelector: map[string]string{corev1.LabelHostname: node},
				Tolerations:  []corev1.Toleration{{Key: gate, Operator: corev1.TolerationOpExists}},
				Containers:   []corev1.Container{{Name: "plugin", Image: "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"}},
			},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		if err := sets.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			c.t.Error(err)
		}
	})
}

func gated(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == gate })
}

func ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func advertises(count int64) func(*corev1.Node) bool {
	return func(node *corev1.Node) bool {
		capacity, allocatable := node.Status.Capacity[gpu], node.Status.Allocatable[gpu]
		return capacity.Value() == count && allocatable.Value() == count
	}
}

// credential is the node's own client, with the certificate that lies on its disk.
func credential(t *testing.T, r *rig, s *rack.Server) kubernetes.Interface {
	t.Helper()
	text, err := os.ReadFile(strings.TrimSuffix(s.DiskPath(), ".disk") + ".var/kubelet-client.json")
	if err != nil {
		t.Fatal(err)
	}
	var who kubelet.Identity
	if err := json.Unmarshal(text, &who); err != nil {
		t.Fatal(err)
	}
	return kubernetes.NewForConfigOrDie(&rest.Config{Host: who.Server, TLSClientConfig: rest.TLSClientConfig{CAData: who.CA, CertData: who.Certificate, KeyData: who.Key}})
}

func TestANodeLivesByWhatIsOnItsDisk(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	r := newRig(t, 1, nil)
	s := r.rack.Servers()[0]
	const name = "life-1"
	token := c.token("aaaaaa")
	if status := r.install(s, drive("life", c.userData(name, token))); status.State != hardware.AttemptSucceeded {
		t.Fatalf("%+v", status)
	}
	node := c.awaitNode("the node is ready", name, ready)
	first := node.Status.NodeInfo
	if node.Spec.ProviderID != "ingot://machine-uid/1" || node.Labels["team"] != "research" || node.Labels["pool"] != "training" {
		t.Errorf("providerID %s, labels %v", node.Spec.ProviderID, node.Labels)
	}
	if !gated(node) {
		t.Errorf("taints %v", node.Spec.Taints)
	}
	if first.SystemUUID != s.UUID() || first.KernelVersion != "6.12.107" || first.KubeletVersion != "v1.37.0" {
		t.Errorf("%+v", first)
	}
	if memory := node.Status.Capacity.Memory().Value(); memory >= 768<<30 || memory < 768<<30*95/100 || node.Status.Capacity.Cpu().Value() != 96 {
		t.Errorf("capacity %v", node.Status.Capacity)
	}
	all, usable := node.Status.Capacity.Memory().Value(), node.Status.Allocatable.Memory().Value()
	if node.Status.Allocatable.Cpu().MilliValue() != 96000-96 || usable != all-all/1000-100<<20 {
		t.Errorf("what is reserved at boot by the size of the server: capacity %v, allocatable %v", node.Status.Capacity, node.Status.Allocatable)
	}
	if _, there := node.Status.Capacity[gpu]; there {
		t.Error("GPUs are advertised without the vendor's plugin")
	}

	t.Run("the vendor's resource comes and goes with its plugin", func(t *testing.T) {
		c := newTenant(t)
		c.plugin("life", name)
		c.awaitNode("the GPUs are there", name, advertises(8))
		if err := c.admin.AppsV1().DaemonSets(metav1.NamespaceSystem).Delete(t.Context(), "life", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		c.awaitNode("the GPUs are gone", name, advertises(0))
	})
	t.Run("a reboot without one GPU", func(t *testing.T) {
		c := newTenant(t)
		c.plugin("life-again", name)
		c.awaitNode("the GPUs are there", name, advertises(8))
		// Whoever administers the tenant took the taint off; registering again does not put it on.
		node, err := c.node(name)
		if err != nil {
			t.Fatal(err)
		}
		node.Spec.Taints, node.Labels["team"] = nil, "other"
		if _, err := c.admin.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := c.admin.CoreV1().Secrets(metav1.NamespaceSystem).Delete(t.Context(), "bootstrap-token-aaaaaa", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		s.SetFaults(rack.Faults{MissingGPUs: 1})
		s.Reset(bmc.ResetForceRestart)
		again := c.awaitNode("it has booted again, with one GPU less", name, func(node *corev1.Node) bool {
			return node.Status.NodeInfo.BootID != first.BootID && advertises(7)(node)
		})
		if again.UID != node.UID || again.Labels["team"] != "other" || len(again.Spec.Taints) != 0 {
			t.Errorf("the node that was there is not as it was: labels %v, taints %v", again.Labels, again.Spec.Taints)
		}
	})
	t.Run("an orderly shutdown", func(t *testing.T) {
		s.Reset(bmc.ResetGracefulShutdown)
		eventually(t, "the power is off", func() error {
			if s.Power() != hardware.PowerOff {
				return errors.New(string(s.Power()))
			}
			return nil
		})
	})
	t.Run("a node that is there already gets its vendor's resources zeroed", func(t *testing.T) {
		before, err := c.node(name)
		if err != nil {
			t.Fatal(err)
		}
		if !advertises(7)(before) {
			t.Fatalf("the node of a server without power: %v", before.Status.Allocatable)
		}
		s.Reset(bmc.ResetOn)
		c.awaitNode("it is back, without the plugin", name, func(node *corev1.Node) bool {
			_, there := node.Status.Capacity[gpu]
			return node.Status.NodeInfo.BootID != before.Status.NodeInfo.BootID && there && advertises(0)(node)
		})
		eventually(t, "the pod that was to end has ended", func() error {
			pods, err := c.admin.CoreV1().Pods(metav1.NamespaceSystem).List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
			if err == nil && len(pods.Items) > 0 {
				err = fmt.Errorf("%d pods", len(pods.Items))
			}
			return err
		})
	})
}

func TestTheTenantRefusesWhatANodeMayNot(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	r := newRig(t, 1, nil)
	s := r.rack.Servers()[0]
	const name = "refused-1"
	token := c.token("bbbbbb")
	// What the product renders, here read by what never saw its code.
	rendered, err := cloudinit.Render(cloudinit.Input{
		Machine: cloudinit.MachineInput{Name: name, UID: "4be1a5a0", Revision: "h100-77aa", Attempt: 2}, Gate: gate,
		Node: cloudinit.NodeInput{Labels: map[string]string{"team": "research"}},
		Join: &kubeletfiles.Join{Endpoint: c.cluster.Endpoint(), CA: c.cluster.CA(), Token: token},
	})
	if err != nil {
		t.Fatal(err)
	}
	if status := r.install(s, hardware.ConfigDrive(rendered)); status.State != hardware.AttemptSucceeded {
		t.Fatalf("%+v", status)
	}
	node := c.awaitNode("the node is ready", name, ready)
	if node.Spec.ProviderID != "ingot://4be1a5a0/2" || node.Labels["team"] != "research" || !gated(node) {
		t.Errorf("providerID %s, labels %v, taints %v", node.Spec.ProviderID, node.Labels, node.Spec.Taints)
	}
	own := credential(t, r, s)

	if err := c.admin.CoreV1().Secrets(metav1.NamespaceSystem).Delete(t.Context(), "bootstrap-token-bbbbbb", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Run("another node's name", func(t *testing.T) {
		_, err := own.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "refused-3"}}, metav1.CreateOptions{})
		if !apierrors.IsForbidden(err) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("its own taints", func(t *testing.T) {
		node, err := own.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		node.Spec.Taints = nil
		if _, err := own.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("its own deletion, and another's secrets", func(t *testing.T) {
		if err := own.CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("error %v", err)
		}
		if _, err := own.CoreV1().Secrets(metav1.NamespaceSystem).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("a used token", func(t *testing.T) {
		// The API server remembers for ten seconds that a token was good.
		eventuallyEvery(t, time.Second, "the token is refused", func() error {
			if _, err := kubelet.RequestIdentity(t.Context(), c.bootstrap(token), "refused-2"); !apierrors.IsUnauthorized(err) {
				return fmt.Errorf("seen: %v", err)
			}
			return nil
		})
	})
}
