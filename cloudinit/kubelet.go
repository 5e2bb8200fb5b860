package cloudinit

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation"
)

// Files of the node that are kubelet's.
const (
	pathKubeletConfig = "/etc/kubernetes/kubelet.yaml"
	pathCA            = "/etc/kubernetes/pki/ca.crt"
	pathBootstrap     = "/etc/kubernetes/bootstrap-kubeconfig"
	pathKubeconfig    = "/var/lib/kubelet/kubeconfig"
	pathDropIn        = "/etc/systemd/system/kubelet.service.d/90-ingot.conf"
)

// kubeletFiles are the files that hold no secret.
func kubeletFiles(in Input) ([]presentation.File, error) {
	config, err := kubeletConfig(in)
	if err != nil {
		return nil, err
	}
	return []presentation.File{
		{Path: pathKubeletConfig, Mode: "0644", Content: config},
		{Path: pathDropIn, Mode: "0644", Content: dropIn(in)},
	}, nil
}

type kubeletConfiguration struct {
	APIVersion     string         `yaml:"apiVersion"`
	Kind           string         `yaml:"kind"`
	ProviderID     string         `yaml:"providerID"`
	Taints         []taint        `yaml:"registerWithTaints,omitempty"`
	Rotate         bool           `yaml:"rotateCertificates"`
	ServerTLS      bool           `yaml:"serverTLSBootstrap"`
	Authentication authentication `yaml:"authentication"`
	Authorization  authorization  `yaml:"authorization"`
	CgroupDriver   string         `yaml:"cgroupDriver"`
	Runtime        string         `yaml:"containerRuntimeEndpoint"`
}

type taint struct {
	Key    string `yaml:"key"`
	Value  string `yaml:"value,omitempty"`
	Effect string `yaml:"effect"`
}

type authentication struct {
	Anonymous struct {
		Enabled bool `yaml:"enabled"`
	} `yaml:"anonymous"`
	Webhook struct {
		Enabled bool `yaml:"enabled"`
	} `yaml:"webhook"`
	X509 struct {
		ClientCAFile string `yaml:"clientCAFile"`
	} `yaml:"x509"`
}

type authorization struct {
	Mode string `yaml:"mode"`
}

func kubeletConfig(in Input) (string, error) {
	c := kubeletConfiguration{
		APIVersion: "kubelet.config.k8s.io/v1beta1", Kind: "KubeletConfiguration",
		ProviderID: v1alpha1.ProviderID(types.UID(in.Machine.UID), in.Machine.Attempt), Taints: taints(in), Rotate: true,
		Authorization: authorization{Mode: "Webhook"}, CgroupDriver: "systemd", Runtime: "unix:///run/containerd/containerd.sock",
	}
	c.Authentication.Webhook.Enabled = true
	c.Authentication.X509.ClientCAFile = pathCA
	return encode(c)
}

// taints that kubelet registers with, the gate first. They count only when the Node object is created.
func taints(in Input) []taint {
	var out []taint
	if in.Gate != "" {
		out = append(out, taint{Key: in.Gate, Effect: string(corev1.TaintEffectNoSchedule)})
	}
	for _, t := range in.Node.Taints {
		// With the same taint twice kubelet does not start.
		if !slices.ContainsFunc(out, func(o taint) bool { return o.Key == t.Key && o.Effect == string(t.Effect) }) {
			out = append(out, taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
		}
	}
	return out
}

func dropIn(in Input) string {
	arguments := []string{
		"/usr/bin/kubelet",
		"--config=" + pathKubeletConfig,
		"--bootstrap-kubeconfig=" + pathBootstrap,
		"--kubeconfig=" + pathKubeconfig,
		"--hostname-override=" + in.Machine.Name,
	}
	if labels := nodeLabels(in); labels != "" {
		arguments = append(arguments, "--node-labels="+labels)
	}
	return "[Unit]\nWants=network-online.target containerd.service\nAfter=network-online.target containerd.service\n\n" +
		"[Service]\nExecStart=\nExecStart=" + strings.Join(arguments, " ") + "\nRestart=always\nRestartSec=10\n"
}

func nodeLabels(in Input) string {
	all := maps.Clone(in.Node.Labels)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, in.Plan.NodeLabels)
	var out []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if kubeletMaySet(key) {
			out = append(out, key+"="+all[key])
		}
	}
	return strings.Join(out, ",")
}

// kubeletMaySet says whether kubelet takes a label on its command line. With any other label of Kubernetes' own domains
// it does not start.
func kubeletMaySet(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	if !ok || !inDomain(domain, "kubernetes.io") && !inDomain(domain, "k8s.io") {
		return true
	}
	if inDomain(domain, "kubelet.kubernetes.io") || inDomain(domain, "node.kubernetes.io") {
		return true
	}
	switch key {
	case corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelHostname, corev1.LabelInstanceTypeStable, corev1.LabelOSStable, corev1.LabelArchStable:
		return true
	}
	return false
}

func inDomain(name, domain string) bool { return name == domain || strings.HasSuffix(name, "."+domain) }

type kubeconfig struct {
	APIVersion string         `yaml:"apiVersion"`
	Kind       string         `yaml:"kind"`
	Clusters   []namedCluster `yaml:"clusters"`
	Users      []namedUser    `yaml:"users"`
	Contexts   []namedContext `yaml:"contexts"`
	Current    string         `yaml:"current-context"`
}

type namedCluster struct {
	Name    string `yaml:"name"`
	Cluster struct {
		Server string `yaml:"server"`
		CA     string `yaml:"certificate-authority-data"`
	} `yaml:"cluster"`
}

type namedUser struct {
	Name string `yaml:"name"`
	User struct {
		Token string `yaml:"token"`
	} `yaml:"user"`
}

type namedContext struct {
	Name    string `yaml:"name"`
	Context struct {
		Cluster string `yaml:"cluster"`
		User    string `yaml:"user"`
	} `yaml:"context"`
}

// joinFiles are what a node needs to join; the second holds the token.
func joinFiles(join TLSBootstrap) ([]presentation.File, error) {
	c := kubeconfig{APIVersion: "v1", Kind: "Config", Current: "bootstrap"}
	cluster := namedCluster{Name: "bootstrap"}
	cluster.Cluster.Server, cluster.Cluster.CA = join.Endpoint, base64.StdEncoding.EncodeToString(join.CA)
	user := namedUser{Name: "bootstrap"}
	user.User.Token = join.Token
	current := namedContext{Name: "bootstrap"}
	current.Context.Cluster, current.Context.User = "bootstrap", "bootstrap"
	c.Clusters, c.Users, c.Contexts = []namedCluster{cluster}, []namedUser{user}, []namedContext{current}
	text, err := encode(c)
	if err != nil {
		return nil, err
	}
	return []presentation.File{
		{Path: pathCA, Mode: "0644", Content: string(join.CA)},
		{Path: pathBootstrap, Mode: "0600", Content: text},
	}, nil
}

func encode(v any) (string, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(v); err != nil {
		return "", fmt.Errorf("render a file of the node: %w", err)
	}
	if err := encoder.Close(); err != nil {
		return "", fmt.Errorf("render a file of the node: %w", err)
	}
	return out.String(), nil
}
