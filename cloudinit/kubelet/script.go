package kubelet

import (
	"errors"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit/kubelet/script"
)

// pathScriptSettings has what Ingot sets of a kubelet that a script starts, after the defaults and before the user's own members.
const pathScriptSettings = settingsDirectory + "/50-node.conf"

type scriptSettings struct {
	APIVersion    string   `yaml:"apiVersion"`
	Kind          string   `yaml:"kind"`
	ProviderID    string   `yaml:"providerID,omitempty"`
	ServerTLS     bool     `yaml:"serverTLSBootstrap,omitempty"`
	Taints        []taint  `yaml:"registerWithTaints,omitempty"`
	ClusterDNS    []string `yaml:"clusterDNS,omitempty"`
	ClusterDomain string   `yaml:"clusterDomain,omitempty"`
}

// scriptFiles returns the files of a node that a script joins, without the script and without the token.
func scriptFiles(in Node) ([]v1alpha1.NodeFile, error) {
	before := ""
	files, err := settingsFiles(in)
	if err != nil {
		return nil, err
	}
	if hasDropIns(in.Version) {
		text, err := encodeYAML(scriptSettings{
			APIVersion: "kubelet.config.k8s.io/v1beta1", Kind: "KubeletConfiguration",
			ProviderID: in.ProviderID, ServerTLS: in.ServerTLSBootstrap, Taints: taints(in), ClusterDNS: in.ClusterDNS, ClusterDomain: in.ClusterDomain,
		})
		if err != nil {
			return nil, err
		}
		files = append(files, v1alpha1.NodeFile{Path: pathScriptSettings, Mode: "0644", Content: text})
		before = strings.TrimSuffix(defaultsCommands(""), " \n") + "\n"
	}
	if len(in.Networks) > 0 {
		files = append(files, v1alpha1.NodeFile{Path: pathNodeIP, Mode: "0644", Content: nodeIPScript(in.Networks, "")})
		before += nodeIPCommands
	}
	return append(files, v1alpha1.NodeFile{Path: script.UnitPath, Mode: "0644", Content: script.UnitContent(in.Units, before)}), nil
}

// scriptJoinFiles returns the script and its environment, which are secret, and the cluster's certificate authority.
func scriptJoinFiles(in Node, join Join) ([]v1alpha1.NodeFile, error) {
	if why := script.Problem(join.Script); why != "" {
		return nil, errors.New("the script of the TenantCluster cannot run on a node: " + why)
	}
	return []v1alpha1.NodeFile{
		{Path: script.CAPath, Mode: "0644", Content: string(join.CA)},
		{Path: script.EnvironmentPath, Mode: "0600", Content: script.Environment(scriptVariables(in, join))},
		{Path: script.Path, Mode: "0700", Content: string(join.Script)},
	}, nil
}

// scriptVariables returns the values of the script's environment. INGOT_NODE_IP is found on the node.
func scriptVariables(in Node, join Join) map[string]string {
	var registered []string
	for _, t := range taints(in) {
		registered = append(registered, t.Key+"="+t.Value+":"+t.Effect)
	}
	taintsText, labels, directory := strings.Join(registered, ","), nodeLabels(in), ""
	arguments := []string{"--hostname-override=" + in.Name}
	if in.ProviderID != "" {
		arguments = append(arguments, "--provider-id="+in.ProviderID)
	}
	if labels != "" {
		arguments = append(arguments, "--node-labels="+labels)
	}
	if taintsText != "" {
		arguments = append(arguments, "--register-with-taints="+taintsText)
	}
	if hasDropIns(in.Version) {
		directory = settingsDirectory
		arguments = append(arguments, "--config-dir="+directory)
	}
	return map[string]string{
		"INGOT_NODE_NAME": in.Name, "INGOT_PROVIDER_ID": in.ProviderID, "INGOT_NODE_LABELS": labels, "INGOT_NODE_TAINTS": taintsText,
		"INGOT_KUBELET_CONFIG_DIR": directory, "INGOT_KUBELET_ARGS": strings.Join(arguments, " "),
		"INGOT_CLUSTER_DNS": strings.Join(in.ClusterDNS, ","), "INGOT_CLUSTER_DOMAIN": in.ClusterDomain,
		"INGOT_API_ENDPOINT": join.Endpoint, "INGOT_CA_FILE": script.CAPath, "INGOT_TOKEN": join.Token, "INGOT_GPU_UNITS": strings.Join(in.Units, " "),
	}
}
