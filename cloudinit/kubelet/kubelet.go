package kubelet

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Paths are the files of the node that are kubelet's; nobody else may write them.
var Paths = []string{pathConfig, pathCA, pathBootstrap, pathKubeconfig, pathDropIn}

const (
	pathConfig     = "/etc/kubernetes/kubelet.yaml"
	pathCA         = "/etc/kubernetes/pki/ca.crt"
	pathBootstrap  = "/etc/kubernetes/bootstrap-kubeconfig"
	pathKubeconfig = "/var/lib/kubelet/kubeconfig"
	pathDropIn     = "/etc/systemd/system/kubelet.service.d/90-ingot.conf"
)

// Node is what kubelet registers.
type Node struct {
	// Name of the Node and its host.
	Name string
	// ProviderID of the Node.
	ProviderID string
	// Gate is the key of the taint that keeps pods off until the verdict; empty: none.
	Gate string
	// Labels of the Node. Those that kubelet may not set on itself are left out: the controllers set them.
	Labels map[string]string
	// Taints of the Node, beside the gate.
	Taints []corev1.Taint
}

// TLSBootstrap joins with a bootstrap token.
type TLSBootstrap struct {
	// Endpoint of the API server, https://HOST:PORT.
	Endpoint string
	// CA of the API server, PEM.
	CA []byte
	// Token is a bootstrap token, ID.SECRET. Secret.
	Token string
}

// Files are those that hold no secret.
func Files(in Node) ([]v1alpha1.NodeFile, error) {
	config, err := renderConfig(in)
	if err != nil {
		return nil, err
	}
	return []v1alpha1.NodeFile{
		{Path: pathConfig, Mode: "0644", Content: config},
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

func renderConfig(in Node) (string, error) {
	c := kubeletConfiguration{
		APIVersion: "kubelet.config.k8s.io/v1beta1", Kind: "KubeletConfiguration",
		ProviderID: in.ProviderID, Taints: taints(in), Rotate: true,
		Authorization: authorization{Mode: "Webhook"}, CgroupDriver: "systemd", Runtime: "unix:///run/containerd/containerd.sock",
	}
	c.Authentication.Webhook.Enabled = true
	c.Authentication.X509.ClientCAFile = pathCA
	return encode(c)
}

// taints that kubelet registers with, the gate first. They count only when the Node object is created.
func taints(in Node) []taint {
	var out []taint
	if in.Gate != "" {
		out = append(out, taint{Key: in.Gate, Effect: string(corev1.TaintEffectNoSchedule)})
	}
	for _, t := range in.Taints {
		// With the same taint twice kubelet does not start.
		if !slices.ContainsFunc(out, func(o taint) bool { return o.Key == t.Key && o.Effect == string(t.Effect) }) {
			out = append(out, taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
		}
	}
	return out
}

func dropIn(in Node) string {
	arguments := []string{
		"/usr/bin/kubelet",
		"--config=" + pathConfig,
		"--bootstrap-kubeconfig=" + pathBootstrap,
		"--kubeconfig=" + pathKubeconfig,
		"--hostname-override=" + in.Name,
	}
	if labels := nodeLabels(in); labels != "" {
		arguments = append(arguments, "--node-labels="+labels)
	}
	return "[Unit]\nWants=network-online.target containerd.service\nAfter=network-online.target containerd.service\n\n" +
		"[Service]\nExecStart=\nExecStart=" + strings.Join(arguments, " ") + "\nRestart=always\nRestartSec=10\n"
}

func nodeLabels(in Node) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(in.Labels)) {
		if isAllowedLabel(key) {
			out = append(out, key+"="+in.Labels[key])
		}
	}
	return strings.Join(out, ",")
}

// isAllowedLabel returns true when kubelet may set the label on its own Node.
func isAllowedLabel(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	if !ok || !isInDomain(domain, "kubernetes.io") && !isInDomain(domain, "k8s.io") {
		return true
	}
	if isInDomain(domain, "kubelet.kubernetes.io") || isInDomain(domain, "node.kubernetes.io") {
		return true
	}
	switch key {
	case corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelHostname, corev1.LabelInstanceTypeStable, corev1.LabelOSStable, corev1.LabelArchStable:
		return true
	}
	return false
}

func isInDomain(name, domain string) bool {
	return name == domain || strings.HasSuffix(name, "."+domain)
}

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

// JoinFiles are what a node needs to join; the second holds the token.
func JoinFiles(join TLSBootstrap) ([]v1alpha1.NodeFile, error) {
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
	return []v1alpha1.NodeFile{
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
