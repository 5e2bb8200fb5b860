package rack_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/controllers/hardware/direct"
	"github.com/ingot-dev/ingot/test/bmc"
	"github.com/ingot-dev/ingot/test/rack"
)

// sample are the objects of a file of config/samples/tenant, decoded strictly.
func sample(t testing.TB, name string) []client.Object {
	t.Helper()
	text, err := os.ReadFile("../../config/samples/tenant/" + name)
	if err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(clientgoscheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var out []client.Object
	for reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, object.(client.Object))
	}
}

var draSample sync.Once

// driver applies the sample of the DRA driver, once for all tests: it runs only where a node says so.
func (c *tenant) driver() {
	c.t.Helper()
	draSample.Do(func() {
		config, err := c.cluster.RESTConfig()
		if err != nil {
			c.t.Fatal(err)
		}
		tenant, err := client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
		if err != nil {
			c.t.Fatal(err)
		}
		for _, object := range sample(c.t, "nvidia-dra-driver.yaml") {
			if set, ok := object.(*appsv1.DaemonSet); ok {
				anyNodeType(set)
			}
			if err := tenant.Create(context.Background(), object); err != nil {
				c.t.Fatal(err)
			}
		}
	})
}

// sampleDriver starts the sample's DRA driver on one node, with feature gates.
func (c *tenant) sampleDriver(node, gates string) {
	c.t.Helper()
	for _, object := range sample(c.t, "nvidia-dra-driver.yaml") {
		set, is := object.(*appsv1.DaemonSet)
		if !is {
			continue
		}
		labels := map[string]string{"name": "driver-" + node}
		set.Name, set.Spec.Selector.MatchLabels, set.Spec.Template.Labels = "driver-"+node, labels, labels
		set.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
		anyNodeType(set)
		for i := range set.Spec.Template.Spec.Containers {
			container := &set.Spec.Template.Spec.Containers[i]
			container.Env = append(container.Env, corev1.EnvVar{Name: "FEATURE_GATES", Value: gates})
		}
		if _, err := c.admin.AppsV1().DaemonSets(set.Namespace).Create(c.t.Context(), set, metav1.CreateOptions{}); err != nil {
			c.t.Fatal(err)
		}
	}
}

// partitionedPlugin returns the sample's device plugin for partitioned GPUs.
func partitionedPlugin(t testing.TB) *appsv1.DaemonSet {
	t.Helper()
	for _, object := range sample(t, "nvidia-device-plugin.yaml") {
		if set, is := object.(*appsv1.DaemonSet); is && strings.HasPrefix(set.Name, "nvidia-device-plugin-daemonset-mig") {
			return set
		}
	}
	t.Fatal("the sample has no device plugin for partitioned GPUs")
	return nil
}

// samplePlugin starts the sample's device plugin for partitioned GPUs on one node, with a MIG strategy of its own.
func (c *tenant) samplePlugin(node, strategy string) *appsv1.DaemonSet {
	c.t.Helper()
	set := partitionedPlugin(c.t)
	labels := map[string]string{"name": "plugin-" + node}
	set.Name, set.Spec.Selector.MatchLabels, set.Spec.Template.Labels = "plugin-"+node, labels, labels
	set.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	anyNodeType(set)
	for i := range set.Spec.Template.Spec.Containers[0].Env {
		if env := &set.Spec.Template.Spec.Containers[0].Env[i]; env.Name == "MIG_STRATEGY" && strategy != "" {
			env.Value = strategy
		}
	}
	created, err := c.admin.AppsV1().DaemonSets(set.Namespace).Create(c.t.Context(), set, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return created
}

// anyNodeType has the DaemonSet run on nodes of no NodeType too, as those of these tests are.
func anyNodeType(set *appsv1.DaemonSet) {
	term := &set.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0]
	term.MatchExpressions = slices.DeleteFunc(term.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool { return r.Key == v1alpha1.LabelNodeType })
	if len(term.MatchExpressions) == 0 {
		set.Spec.Template.Spec.Affinity = nil
	}
}

// modeUnit applies the GPU mode before kubelet, which requires it.
const modeUnit = `[Unit]
Before=kubelet.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/gpu-mode
[Install]
RequiredBy=kubelet.service
`

// gpuData is a node's user data with a script that sets the GPU mode before kubelet, mig-parted's configuration file beside
// it, and further node labels.
func (c *tenant) gpuData(name, token, script, config string, labels ...string) string {
	indented := func(text string) string {
		return "\n    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n"
	}
	text := strings.Replace(c.userData(name, token, labels...), "runcmd:\n", "- path: /etc/systemd/system/gpu-mode.service\n  content: |"+indented(modeUnit)+
		"- path: /etc/nvidia-mig-manager/config.yaml\n  content: |"+indented(config)+
		"- path: /etc/nvidia-mig-manager/hooks.yaml\n  content: |"+indented("version: v1\nhooks: {}")+
		"- path: /usr/local/sbin/gpu-mode\n  permissions: \"0755\"\n  content: |"+indented("#!/bin/sh\nset -eu\n"+script)+"runcmd:\n", 1)
	return strings.Replace(text, "- [systemctl, enable, --now, kubelet]", "- [systemctl, enable, --now, gpu-mode.service]\n- [systemctl, enable, --now, kubelet]", 1)
}

const applyLayout = "nvidia-mig-parted apply --config-file /etc/nvidia-mig-manager/config.yaml --hooks-file /etc/nvidia-mig-manager/hooks.yaml --selected-config ingot"

// layout is a configuration file with one layout for all GPUs.
func layout(profiles string) string {
	return "version: v1\nmig-configs:\n  ingot:\n  - {devices: all, mig-enabled: true, mig-devices: {" + profiles + "}}\n"
}

// newServer is a rig with one server of the profile.
func newServer(t testing.TB, profile string) (*rig, *rack.Server) {
	t.Helper()
	r := newRig(t, 1, func(options *rack.Options) { options.Profile = profile })
	// Nothing here is about an installer's patience.
	r.installer = direct.New(direct.Options{BMCs: r.client, Store: r.store})
	return r, r.rack.Servers()[0]
}

// installs installs the server with the user data.
func (r *rig) installs(s *rack.Server, uuid, userData string) {
	r.t.Helper()
	if status := r.install(s, drive(uuid, userData)); status.State != hardware.AttemptSucceeded {
		r.t.Fatalf("%+v", status)
	}
}

// offers says whether the node advertises exactly these of NVIDIA's resources; a count of 0 is none.
func offers(want map[string]int64) func(*corev1.Node) bool {
	return func(node *corev1.Node) bool {
		for _, list := range []corev1.ResourceList{node.Status.Capacity, node.Status.Allocatable} {
			got := map[string]int64{}
			for name, quantity := range list {
				if strings.HasPrefix(string(name), "nvidia.com/") && !quantity.IsZero() {
					got[string(name)] = quantity.Value()
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				return false
			}
		}
		return true
	}
}

// reboots restarts the server with the faults and waits until its node comes from the next boot with these resources.
func (c *tenant) reboots(s *rack.Server, name string, faults rack.Faults, want map[string]int64) {
	c.t.Helper()
	before, err := c.node(name)
	if err != nil {
		c.t.Fatal(err)
	}
	s.SetFaults(faults)
	s.Reset(bmc.ResetForceRestart)
	c.awaitNode(fmt.Sprintf("it has booted again and offers %v", want), name, func(node *corev1.Node) bool {
		return node.Status.NodeInfo.BootID != before.Status.NodeInfo.BootID && offers(want)(node)
	})
}

// pod asks for a GPU on a node, by a claim or by a resource's name.
func pod(name, node, claim, extended string) *corev1.Pod {
	out := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault}, Spec: corev1.PodSpec{
		NodeSelector: map[string]string{corev1.LabelHostname: node},
		Tolerations:  []corev1.Toleration{{Key: gate, Operator: corev1.TolerationOpExists}},
		Containers:   []corev1.Container{{Name: "c", Image: "registry.k8s.io/pause:3.10"}},
	}}
	container := &out.Spec.Containers[0]
	if claim != "" {
		out.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}}
		container.Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	}
	if extended != "" {
		container.Resources.Limits = corev1.ResourceList{corev1.ResourceName(extended): resource.MustParse("1")}
	}
	return out
}
