package cloudinit

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/test/require"
)

// written returns the files of a node by path.
func written(t *testing.T, in Input) map[string]string {
	t.Helper()
	docs, err := Render(in)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Files []struct {
			Path, Content string
		} `yaml:"write_files"`
	}
	if err := yaml.Unmarshal(docs.UserData, &doc); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range doc.Files {
		if _, twice := out[f.Path]; twice {
			t.Errorf("%s is written twice", f.Path)
		}
		out[f.Path] = f.Content
	}
	return out
}

func TestKubeletReadsItsConfiguration(t *testing.T) {
	in := full(t)
	in.Node.Taints = append(in.Node.Taints, corev1.Taint{Key: in.Gate, Effect: corev1.TaintEffectNoSchedule}, in.Node.Taints[0])
	var config kubeletconfig.KubeletConfiguration
	if err := sigsyaml.UnmarshalStrict([]byte(written(t, in)["/etc/kubernetes/kubelet.yaml"]), &config); err != nil {
		t.Fatal(err)
	}
	want := []corev1.Taint{{Key: in.Gate, Value: "ChecksWaiting", Effect: corev1.TaintEffectNoSchedule}, {Key: "dedicated", Value: "research", Effect: corev1.TaintEffectNoExecute}}
	if diff := cmp.Diff(want, config.RegisterWithTaints); diff != "" {
		t.Errorf("taints, each once, the gate first:\n%s", diff)
	}
	if config.ProviderID != "ingot://"+in.Machine.UID+"/1" || !config.RotateCertificates || config.ServerTLSBootstrap || config.Authorization.Mode != kubeletconfig.KubeletAuthorizationModeWebhook {
		t.Errorf("the configuration is %+v", config)
	}
}

func TestTheBootstrapKubeconfigPinsTheTenantsCA(t *testing.T) {
	in := full(t)
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(written(t, in)["/etc/kubernetes/bootstrap-kubeconfig"]))
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != in.Join.Endpoint || string(config.CAData) != string(in.Join.CA) || config.BearerToken != in.Join.Token || config.Insecure {
		t.Errorf("endpoint %s, insecure %v, or CA or token are not what was given", config.Host, config.Insecure)
	}
}

func TestKubeletIsGivenOnlyLabelsThatItTakes(t *testing.T) {
	in := plain()
	in.Node.Labels = map[string]string{
		"team": "a", "ingot.dev/nodetype": "h100", "topology.kubernetes.io/zone": "z", "node.kubernetes.io/x": "1", "a.kubelet.kubernetes.io/y": "2",
		"node-role.kubernetes.io/gpu": "", "node-restriction.kubernetes.io/z": "3", "k8s.io/w": "4", "notkubernetes.io/v": "5",
	}
	const want = "--node-labels=a.kubelet.kubernetes.io/y=2,ingot.dev/nodetype=h100,node.kubernetes.io/x=1,notkubernetes.io/v=5,team=a,topology.kubernetes.io/zone=z\n"
	if got := written(t, in)["/etc/systemd/system/kubelet.service.d/90-ingot.conf"]; !strings.Contains(got, want) {
		t.Errorf("the drop-in lacks %s:\n%s", want, got)
	}
}

// TestSystemdTakesKubeletsDropIn puts it over the unit and the drop-in of Kubernetes' own packages, whose command line must not win.
func TestSystemdTakesKubeletsDropIn(t *testing.T) {
	verify := require.Tool(t, "systemd-analyze", "apt-get install -y systemd")
	const ours = "/etc/systemd/system/kubelet.service.d/90-ingot.conf"
	text := written(t, full(t))[ours]
	directory := t.TempDir()
	for name, content := range map[string]string{
		"kubelet.service":                   "[Unit]\nDescription=kubelet: The Kubernetes Node Agent\nWants=network-online.target\nAfter=network-online.target\n\n[Service]\nExecStart=/bin/true\nRestart=always\nStartLimitInterval=0\nRestartSec=10\n\n[Install]\nWantedBy=multi-user.target\n",
		"kubelet.service.d/10-kubeadm.conf": "[Service]\nExecStart=\nExecStart=/nonexistent/kubeadms-kubelet\n",
		"kubelet.service.d/90-ingot.conf":   strings.ReplaceAll(text, "/usr/bin/kubelet", "/bin/true"),
	} {
		path := filepath.Join(directory, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(verify, "verify", filepath.Join(directory, "kubelet.service")).CombinedOutput()
	if err != nil || strings.Contains(string(out), "kubelet") || !strings.Contains(text, "/usr/bin/kubelet --config=") {
		t.Errorf("systemd-analyze verify: %v\n%s\n%s", err, out, text)
	}
}

func TestTheUsersMembersWinOverTheDefaults(t *testing.T) {
	in := full(t)
	in.Kubelet = KubeletInput{Version: "1.37.0", Members: []byte(`{"maxPods":64}`)}
	files := written(t, in)
	var config kubeletconfig.KubeletConfiguration
	if err := sigsyaml.UnmarshalStrict([]byte(files["/etc/kubernetes/kubelet.conf.d/60-nodetype.conf"]), &config); err != nil || config.MaxPods != 64 || config.Kind != "KubeletConfiguration" || config.APIVersion != "kubelet.config.k8s.io/v1beta1" {
		t.Errorf("%v: %+v", err, config)
	}
	unit := files["/etc/systemd/system/kubelet.service.d/90-ingot.conf"]
	if !strings.Contains(unit, " --config-dir=/etc/kubernetes/kubelet.conf.d") || !strings.Contains(unit, "ExecStartPre=-/bin/sh /etc/kubernetes/ingot-kubelet-defaults /etc/kubernetes/kubelet.yaml\n") {
		t.Errorf("the drop-in is\n%s", unit)
	}
}

func TestAnOlderKubeletGetsNoFlagThatItDoesNotKnow(t *testing.T) {
	in := full(t)
	in.Kubelet.Version = "1.29.3"
	files := written(t, in)
	if unit := files["/etc/systemd/system/kubelet.service.d/90-ingot.conf"]; strings.Contains(unit, "config-dir") || strings.Contains(unit, "ExecStartPre") || files["/etc/kubernetes/ingot-kubelet-defaults"] != "" {
		t.Errorf("the drop-in is\n%s", unit)
	}
	in.Kubelet.Members = []byte(`{"maxPods":64}`)
	if _, err := Render(in); err == nil || !strings.Contains(err.Error(), "spec.kubelet needs an image with kubelet 1.30 or later") {
		t.Errorf("error %v", err)
	}
}
