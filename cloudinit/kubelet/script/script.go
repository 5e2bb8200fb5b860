package script

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxBytes is the size of the largest script. A node's documents share cloudinit.Limit with it, and its content is in them as it is.
const MaxBytes = 128 << 10

// Directory has what the join is told, on the node.
const Directory = "/etc/kubernetes/ingot-join"

// Paths on the node. The script and its environment are secret, and removed when it has succeeded.
const (
	// Path of the script.
	Path = Directory + "/script"
	// EnvironmentPath is that of the file with the Variables.
	EnvironmentPath = Directory + "/environment"
	// CAPath is that of the cluster's certificate authority.
	CAPath = Directory + "/ca.crt"
	// Unit is the name of the unit that runs the script, and UnitPath that of its file.
	Unit     = "ingot-join-script.service"
	UnitPath = "/etc/systemd/system/" + Unit
)

// Variable is a variable of the script's environment.
type Variable struct {
	// Name of the variable.
	Name string
	// Text says what is in it.
	Text string
}

// Variables are all variables of the script's environment, in the order of the file. README has them.
var Variables = []Variable{
	{"INGOT_NODE_NAME", "name that the Node must have"},
	{"INGOT_PROVIDER_ID", "providerID that the Node must have, such as `ingot://UID/ATTEMPT`; empty where the cluster sets it"},
	{"INGOT_NODE_LABELS", "labels that kubelet may set on its Node: `KEY=VALUE,...`"},
	{"INGOT_NODE_TAINTS", "taints that the Node must be registered with: `KEY=VALUE:EFFECT,...`; the first is the gate"},
	{"INGOT_NODE_IP", "the node's own addresses, one for each of spec.nodeNetworks, joined by a comma; empty without that field"},
	{"INGOT_KUBELET_CONFIG_DIR", "directory of KubeletConfiguration drop-ins, for `--config-dir`: providerID, taints, DNS, the defaults by the size of the server and spec.kubelet; empty where the image's kubelet reads none"},
	{"INGOT_KUBELET_ARGS", "all of the above as flags of kubelet"},
	{"INGOT_CLUSTER_DNS", "addresses of the cluster's DNS server, joined by a comma; empty: unknown"},
	{"INGOT_CLUSTER_DOMAIN", "domain of the cluster; empty: unknown"},
	{"INGOT_API_ENDPOINT", "URL of the API server: the join's endpoint, or the kubeconfig's server"},
	{"INGOT_CA_FILE", "file with the cluster's certificate authority, as it is in the kubeconfig; it stays"},
	{"INGOT_TOKEN", "bootstrap token of this node, `ID.SECRET`, which is deleted at the join"},
	{"INGOT_GPU_UNITS", "systemd units that must have run before kubelet at each boot, joined by a space: for After= of the agent's unit"},
}

// Problem returns why the script cannot run on a node; empty: nothing is known against it. It quotes nothing of it.
func Problem(text []byte) string {
	first, _, _ := bytes.Cut(text, []byte("\n"))
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return "it is empty: put the script there, beginning with #! and its interpreter"
	case len(text) > MaxBytes:
		return fmt.Sprintf("it has %d bytes, and at most %d fit beside a node's other documents: have it fetch what is large, or bake that into the image", len(text), MaxBytes)
	case bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text):
		return "it is no text: a program is fetched by the script, or baked into the image"
	case !bytes.HasPrefix(text, []byte("#!/")):
		return "its first line does not begin with #! and the path of an interpreter: begin it with #!/bin/sh"
	case bytes.HasSuffix(first, []byte("\r")):
		return "its lines end as on Windows, and no interpreter has that name: save it with Unix line ends"
	}
	return ""
}

// Environment returns the file of the variables, for systemd. Variables that are not known, or empty, are left out.
func Environment(values map[string]string) string {
	var out strings.Builder
	for _, v := range Variables {
		if value := values[v.Name]; value != "" {
			out.WriteString(v.Name + "=" + quote(value) + "\n")
		}
	}
	return out.String()
}

// quote returns the value as systemd reads it between double quotes (systemd.exec(5), EnvironmentFile=).
func quote(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(value) + `"`
}
