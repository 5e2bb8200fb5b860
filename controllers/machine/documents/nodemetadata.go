package documents

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// NodeLabels are the labels of a Machine's Node: those by which Ingot recognises it, its zone, and those of the NodeType, which win
// over the others. kubelet may not set all of them on its own Node, and cloudinit leaves those out; the machine controller adds them
// after the Node has joined.
func NodeLabels(t *v1alpha1.NodeType, machineUID, revision string) map[string]string {
	all := map[string]string{v1alpha1.LabelNodeType: t.Name, v1alpha1.LabelMachineUID: machineUID, v1alpha1.LabelRevision: revision}
	if t.Spec.Zone != "" {
		all[v1alpha1.LabelZone] = t.Spec.Zone
	}
	if t.Spec.Node != nil {
		maps.Copy(all, t.Spec.Node.Labels)
	}
	return all
}

// NodeTaints are the taints that the NodeType gives its Nodes. The gate taint is not among them: the validation controller adds and
// removes it.
func NodeTaints(t *v1alpha1.NodeType) []corev1.Taint {
	if t.Spec.Node == nil {
		return nil
	}
	return t.Spec.Node.Taints
}
