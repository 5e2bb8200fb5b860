package nvidia

import (
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// ByMIGManager has the operator's MIG manager apply a configuration of that name, after the node has joined and before it
// is admitted.
func ByMIGManager(p *v1alpha1.NodePlan, name string) {
	const key = wellknown.LabelMIGConfig
	p.NodeLabels[key] = name
	p.Expectation.Labels = append(p.Expectation.Labels, v1alpha1.ExpectedLabel{
		Check: "label/" + key, Key: key, Value: name,
		Hint: "somebody gave the node another label, and the MIG manager partitions by it: GPUs in MIG mode without instances are still counted as whole; correct the label",
	}, ManagerState(wellknown.LabelMIGConfigState, "kubectl logs of the pod nvidia-mig-manager on the node: its reason for failing is told there alone"))
}

// ManagerState is the label by which one of the operator's managers tells how far it is.
func ManagerState(key, hint string) v1alpha1.ExpectedLabel {
	return v1alpha1.ExpectedLabel{Check: "label/" + key, Key: key, Value: "success", Passing: []string{"pending", "rebooting"}, Hint: hint}
}
