package join

import (
	"encoding/json"
	"fmt"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// CanApplySettings reports whether the method of a join applies members of KubeletConfiguration: Ingot starts kubelet itself, with a directory of settings
// (--config-dir) that wins over the configuration of tlsBootstrap and over the one that kubeadm writes. Of any other method it is not known what starts
// kubelet, or with which flags.
func CanApplySettings(method v1alpha1.JoinMethod) bool {
	return method == v1alpha1.JoinTLSBootstrap || method.IsKubeadm()
}

// SettingsProblem returns why members of KubeletConfiguration, a JSON object, cannot reach a node that joins this way; empty: they can, or there are none.
// Without it: a NodeType reserves memory for the system, a script starts a kubelet that never reads it, and pods take the memory of the whole node.
func SettingsProblem(spec v1alpha1.JoinSpec, members []byte) string {
	method := spec.Method()
	if CanApplySettings(method) || !hasMembers(members) {
		return ""
	}
	return fmt.Sprintf("spec.kubelet of the NodeType cannot be applied by the join %s of the TenantCluster, which starts kubelet in a way of its own: "+
		"remove spec.kubelet and have the join set what it says, or join by tlsBootstrap, kubeadm or vcluster", method)
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
