package kubelet

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit/kubelet/fragment"
)

// The files of --config-dir. kubelet reads those that end in .conf in the order of their names, after the file of --config. A later file wins:
// objects are merged member by member, and lists and values are replaced (cmd/kubelet/app/server.go, mergeKubeletConfigurations).
const (
	settingsDirectory = "/etc/kubernetes/kubelet.conf.d"
	// pathDefaults is written on the node at each start of kubelet, by the program pathDefaultsScript.
	pathDefaults = settingsDirectory + "/10-defaults.conf"
	// pathMembers has the user's own members.
	pathMembers        = settingsDirectory + "/60-nodetype.conf"
	pathDefaultsScript = "/etc/kubernetes/ingot-kubelet-defaults"
)

// defaultsCommands run before a kubelet whose --config is that file. The directory must exist, or kubelet does not start. When the program fails, kubelet
// starts without the defaults: they are no reason for a node that does not join.
func defaultsCommands(config string) string {
	return "ExecStartPre=/bin/mkdir -p " + settingsDirectory + "\nExecStartPre=-/bin/sh " + pathDefaultsScript + " " + config + "\n"
}

// hasDropIns returns true when kubelet reads --config-dir. One that does not know the flag does not start with it.
func hasDropIns(version string) bool {
	minor, known := fragment.Minor(version)
	return !known || minor >= fragment.FirstMinor
}

// settingsFiles returns the program of the defaults and the user's members; none for a kubelet that does not read them.
func settingsFiles(in Node) ([]v1alpha1.NodeFile, error) {
	if !hasDropIns(in.Version) {
		if len(in.Members) > 0 {
			return nil, fmt.Errorf("the image's kubelet %s reads no settings from a directory: spec.kubelet needs an image with kubelet 1.%d or later", in.Version, fragment.FirstMinor)
		}
		return nil, nil
	}
	files := []v1alpha1.NodeFile{{Path: pathDefaultsScript, Mode: "0644", Content: defaultsScript}}
	if len(in.Members) == 0 {
		return files, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(in.Members, &members); err != nil {
		return nil, fmt.Errorf("spec.kubelet is no JSON object: %w", err)
	}
	whole := map[string]json.RawMessage{"apiVersion": json.RawMessage(`"kubelet.config.k8s.io/v1beta1"`), "kind": json.RawMessage(`"KubeletConfiguration"`)}
	maps.Copy(whole, members)
	text, err := json.MarshalIndent(whole, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("render a file of the node: %w", err)
	}
	return append(files, v1alpha1.NodeFile{Path: pathMembers, Mode: "0644", Content: string(text) + "\n"}), nil
}
