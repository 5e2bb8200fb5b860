// Package registration says with which labels and taints a Machine's Node is registered, and which it keeps.
package registration

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Labels are those of the Node: what Ingot knows it by, its zone, and those of the NodeType, which win. kubelet may set not all
// of them on itself (cloudinit leaves the others out); the machine controller gives the rest to the Node.
func Labels(t *v1alpha1.NodeType, machineUID, revision string) map[string]string {
	all := map[string]string{v1alpha1.LabelNodeType: t.Name, v1alpha1.LabelMachineUID: machineUID, v1alpha1.LabelRevision: revision}
	if t.Spec.Zone != "" {
		all[v1alpha1.LabelZone] = t.Spec.Zone
	}
	if t.Spec.Node != nil {
		maps.Copy(all, t.Spec.Node.Labels)
	}
	return all
}

// Taints are those of the NodeType. The gate is none of them: validation gives and takes it.
func Taints(t *v1alpha1.NodeType) []corev1.Taint {
	if t.Spec.Node == nil {
		return nil
	}
	return t.Spec.Node.Taints
}
