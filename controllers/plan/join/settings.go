package join

import (
	"encoding/json"
	"fmt"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// CanApplySettings reports whether a join applies members of KubeletConfiguration: Ingot starts kubelet itself, with a directory of settings (--config-dir)
// that wins over the configuration of tlsBootstrap and over the one that kubeadm writes, or the owner of a script says that it has kubelet read that
// directory. Of any other join it is not known what starts kubelet, or with which flags.
func CanApplySettings(spec v1alpha1.JoinSpec) bool {
	method := spec.Method()
	return method == v1alpha1.JoinTLSBootstrap || method.IsKubeadm() || spec.Script != nil && spec.Script.ReadsKubeletConfigDir
}

// SettingsProblem returns why members of KubeletConfiguration, a JSON object, cannot reach a node that joins this way; empty: they can, or there are none.
// Without it: a NodeType reserves memory for the system, a script starts a kubelet that never reads it, and pods take the memory of the whole node.
func SettingsProblem(spec v1alpha1.JoinSpec, members []byte) string {
	if CanApplySettings(spec) || !hasMembers(members) {
		return ""
	}
	return fmt.Sprintf("spec.kubelet of the NodeType cannot be applied by the join %s of the TenantCluster, which starts kubelet in a way of its own: "+
		"have the script start kubelet with --config-dir=$INGOT_KUBELET_CONFIG_DIR and set readsKubeletConfigDir, remove spec.kubelet, or join by tlsBootstrap, kubeadm or vcluster", spec.Method())
}

// hasMembers reports whether a JSON object has members beside those that say what kind it is. What is no object is taken for one that has: its own check
// says what is wrong.
func hasMembers(object []byte) bool {
	var tree map[string]json.RawMessage
	if len(object) == 0 {
		return false
	}
	if err := json.Unmarshal(object, &tree); err != nil {
		return true
	}
	delete(tree, "apiVersion")
	delete(tree, "kind")
	return len(tree) > 0
}
