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
	"github.com/ingot-dev/ingot/cloudinit/kubelet/script"
)

// Paths are the paths of kubelet's files on the node. User data may not write to them.
var Paths = []string{pathConfig, pathCA, pathBootstrap, pathKubeconfig, pathDropIn, pathNodeIP, pathDefaultsScript, pathDefaults, pathMembers, pathJoinConfig, pathKubeletPatch, pathJoinUnit,
	pathScriptSettings, script.Path, script.EnvironmentPath, script.CAPath, script.UnitPath}

// PolicyFiles are the files in which kubelet keeps the policies of its managers of CPUs and memory.
var PolicyFiles = []string{"/var/lib/kubelet/cpu_manager_state", "/var/lib/kubelet/memory_manager_state"}

const (
	pathConfig     = "/etc/kubernetes/kubelet.yaml"
	pathCA         = "/etc/kubernetes/pki/ca.crt"
	pathBootstrap  = "/etc/kubernetes/bootstrap-kubeconfig"
	pathKubeconfig = "/var/lib/kubelet/kubeconfig"
	pathDropIn     = "/etc/systemd/system/kubelet.service.d/90-ingot.conf"
	pathNodeIP     = "/etc/kubernetes/ingot-node-ip"
)

// Node describes the Node that kubelet registers.
type Node struct {
	// Name of the Node, which is also the host name.
	Name string
	// ProviderID of the Node; empty: the cluster's own cloud provider sets it.
	ProviderID string
	// Method of the join; empty: tlsBootstrap.
	Method v1alpha1.JoinMethod
	// Gate is the key of the taint that keeps pods off the node until its verdict passes; empty: there is no gate.
	Gate string
	// Labels of the Node. Labels that kubelet may not set on its own Node are left out. The controllers set them.
	Labels map[string]string
	// Taints of the Node, in addition to the gate.
	Taints []corev1.Taint
	// ClusterDNS and ClusterDomain are what pods resolve names with; empty: the image's own resolvers.
	ClusterDNS    []string
	ClusterDomain string
	// Networks are those in which the node's own addresses are, one for each family; empty: kubelet takes the address of the default route.
	Networks []string
	// ServerTLSBootstrap: kubelet requests its serving certificate of the cluster, and serves nothing before it has it; false: it makes its own.
	ServerTLSBootstrap bool
	// Version of kubelet, without v; empty: it is unknown, and taken for a current one.
	Version string
	// Members are the user's members of KubeletConfiguration, a JSON object; empty: there are none.
	Members []byte
	// Units are those that must have run before kubelet. Only a join by script is told them.
	Units []string
}

// Join has what a node needs to join a cluster with a bootstrap token.
type Join struct {
	// Endpoint of the API server, https://HOST:PORT.
	Endpoint string
	// CA of the API server, PEM.
	CA []byte
	// CAHashes are kubeadm's pins of the CA; empty: those of CA.
	CAHashes []string
	// Token is a bootstrap token of the form ID.SECRET. It is secret.
	Token string
	// Script of the join of that method; empty with another one. It is secret.
	Script []byte
}

// Files returns kubelet's configuration and the drop-in of its unit, or what a script starts it with. They have no secret.
func Files(in Node) ([]v1alpha1.NodeFile, error) {
	if in.Method == v1alpha1.JoinScript {
		return scriptFiles(in)
	}
	files, err := joinMethodFiles(in)
	if err != nil {
		return nil, err
	}
	settings, err := settingsFiles(in)
	if err != nil {
		return nil, err
	}
	files = append(files, v1alpha1.NodeFile{Path: pathDropIn, Mode: "0644", Content: dropIn(in)})
	if len(in.Networks) > 0 {
		files = append(files, v1alpha1.NodeFile{Path: pathNodeIP, Mode: "0644", Content: nodeIPScript(in.Networks, "--node-ip=")})
	}
	return append(files, settings...), nil
}

// joinMethodFiles returns the files of the join's method: kubelet's configuration, or what kubeadm makes it with.
func joinMethodFiles(in Node) ([]v1alpha1.NodeFile, error) {
	if in.Method.IsKubeadm() {
		return kubeadmFiles(in)
	}
	config, err := renderConfig(in)
	return []v1alpha1.NodeFile{{Path: pathConfig, Mode: "0644", Content: config}}, err
}

type kubeletConfiguration struct {
	APIVersion     string         `yaml:"apiVersion"`
	Kind           string         `yaml:"kind"`
	ProviderID     string         `yaml:"providerID,omitempty"`
	Taints         []taint        `yaml:"registerWithTaints,omitempty"`
	Rotate         bool           `yaml:"rotateCertificates"`
	ServerTLS      bool           `yaml:"serverTLSBootstrap"`
	Authentication authentication `yaml:"authentication"`
	Authorization  authorization  `yaml:"authorization"`
	CgroupDriver   string         `yaml:"cgroupDriver"`
	Runtime        string         `yaml:"containerRuntimeEndpoint"`
	ClusterDNS     []string       `yaml:"clusterDNS,omitempty"`
	ClusterDomain  string         `yaml:"clusterDomain,omitempty"`
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

// renderConfig returns the KubeletConfiguration.
func renderConfig(in Node) (string, error) {
	c := kubeletConfiguration{
		APIVersion: "kubelet.config.k8s.io/v1beta1", Kind: "KubeletConfiguration",
		ProviderID: in.ProviderID, Taints: taints(in), Rotate: true, ServerTLS: in.ServerTLSBootstrap,
		Authorization: authorization{Mode: "Webhook"}, CgroupDriver: "systemd", Runtime: runtimeEndpoint,
		ClusterDNS: in.ClusterDNS, ClusterDomain: in.ClusterDomain,
	}
	c.Authentication.Webhook.Enabled = true
	c.Authentication.X509.ClientCAFile = pathCA
	return encodeYAML(c)
}

// taints returns the taints that kubelet registers, the gate first. kubelet sets them only when it creates the Node object.
func taints(in Node) []taint {
	var out []taint
	if in.Gate != "" {
		out = append(out, taint{Key: in.Gate, Value: v1alpha1.NewGateValue, Effect: string(corev1.TaintEffectNoSchedule)})
	}
	for _, t := range in.Taints {
		// kubelet does not start when a taint is repeated.
		if !slices.ContainsFunc(out, func(o taint) bool { return o.Key == t.Key && o.Effect == string(t.Effect) }) {
			out = append(out, taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
		}
	}
	return out
}

// dropIn returns the drop-in of kubelet's unit, with its command line.
func dropIn(in Node) string {
	files := []string{pathConfig, pathBootstrap, pathKubeconfig}
	if in.Method.IsKubeadm() {
		files = []string{kubeadmConfig, kubeadmBootstrap, kubeadmKubeconfig}
	}
	arguments := []string{
		"/usr/bin/kubelet",
		"--config=" + files[0],
		"--bootstrap-kubeconfig=" + files[1],
		"--kubeconfig=" + files[2],
		"--hostname-override=" + in.Name,
	}
	before := ""
	if hasDropIns(in.Version) {
		arguments = append(arguments, "--config-dir="+settingsDirectory)
		before = defaultsCommands(files[0])
	}
	if labels := nodeLabels(in); labels != "" {
		arguments = append(arguments, "--node-labels="+labels)
	}
	if len(in.Networks) > 0 {
		arguments = append(arguments, "$"+nodeIPVariable)
		before += nodeIPCommands
	}
	condition := ""
	if in.Method.IsKubeadm() {
		// kubeadm writes the configuration and starts kubelet. Without it: kubelet is started at boot and ends for want of its configuration, again and again.
		condition = "ConditionPathExists=" + kubeadmConfig + "\n"
		arguments = append(arguments, "$KUBELET_KUBEADM_ARGS")
		before += "EnvironmentFile=-" + kubeadmFlags + "\n"
	}
	return "[Unit]\nWants=network-online.target containerd.service\nAfter=network-online.target containerd.service\n" + condition + "\n" +
		"[Service]\n" + before + "ExecStart=\nExecStart=" + strings.Join(arguments, " ") + "\nRestart=always\nRestartSec=10\n"
}

// nodeLabels returns the value of the flag --node-labels.
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

// isInDomain returns true when the name is the domain or is below it.
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

// JoinFiles returns the files with which a node joins. They have the token.
func JoinFiles(in Node, join Join) ([]v1alpha1.NodeFile, error) {
	if in.Method.IsKubeadm() {
		file, err := joinConfigFile(in, join)
		return []v1alpha1.NodeFile{file}, err
	}
	if in.Method == v1alpha1.JoinScript {
		return scriptJoinFiles(in, join)
	}
	c := kubeconfig{APIVersion: "v1", Kind: "Config", Current: "bootstrap"}
	cluster := namedCluster{Name: "bootstrap"}
	cluster.Cluster.Server, cluster.Cluster.CA = join.Endpoint, base64.StdEncoding.EncodeToString(join.CA)
	user := namedUser{Name: "bootstrap"}
	user.User.Token = join.Token
	current := namedContext{Name: "bootstrap"}
	current.Context.Cluster, current.Context.User = "bootstrap", "bootstrap"
	c.Clusters, c.Users, c.Contexts = []namedCluster{cluster}, []namedUser{user}, []namedContext{current}
	text, err := encodeYAML(c)
	if err != nil {
		return nil, err
	}
	return []v1alpha1.NodeFile{
		{Path: pathCA, Mode: "0644", Content: string(join.CA)},
		{Path: pathBootstrap, Mode: "0600", Content: text},
	}, nil
}

func encodeYAML(v any) (string, error) {
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
