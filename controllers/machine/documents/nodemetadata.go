package documents

import (
	"maps"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// NodeLabels are the labels of a Machine's Node: those by which Ingot recognises it, its host (nil: it is not known) and the host's rack, its zone, and those of
// the NodeType, which win over the others. kubelet may not set all of them on its own Node, and cloudinit leaves those out; the machine controller adds them
// after the Node has joined.
func NodeLabels(t *v1alpha1.NodeType, host *metal3.BareMetalHost, machineUID, revision string) map[string]string {
	all := map[string]string{v1alpha1.LabelNodeType: t.Name, v1alpha1.LabelMachineUID: machineUID, v1alpha1.LabelRevision: revision}
	if host != nil {
		addValid(all, v1alpha1.LabelHost, host.Name)
		addValid(all, v1alpha1.LabelNodeRack, host.Labels[v1alpha1.LabelRack])
	}
	if t.Spec.Zone != "" {
		all[v1alpha1.LabelZone] = t.Spec.Zone
	}
	if t.Spec.Node != nil {
		maps.Copy(all, t.Spec.Node.Labels)
	}
	return all
}

// addValid adds a label, unless the name of the object that is its value is longer than that of a label may be.
func addValid(to map[string]string, key, value string) {
	if value != "" && len(validation.IsValidLabelValue(value)) == 0 {
		to[key] = value
	}
}

// NodeTaints are the taints that the NodeType gives its Nodes. The gate taint is not among them: the validation controller adds and
// removes it.
func NodeTaints(t *v1alpha1.NodeType) []corev1.Taint {
	if t.Spec.Node == nil {
		return nil
	}
	return t.Spec.Node.Taints
}
