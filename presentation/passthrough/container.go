package passthrough

import (
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/nvidia"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// ResolveContainer plans unpartitioned GPUs for containers, each for one pod or shared by several. The error is a *spec.Refusal.
func ResolveContainer(r spec.Request) (v1alpha1.NodePlan, error) {
	model, err := nvidia.CheckRequest(r, spec.DriverKindGPU)
	if err != nil {
		return v1alpha1.NodePlan{}, err
	}
	if err := nvidia.CheckContainerToolkit(r); err != nil {
		return v1alpha1.NodePlan{}, err
	}
	var p v1alpha1.NodePlan
	if nvidia.IsDriverFromOperator(r) {
		p = nvidia.OperatorPlan(r, model, wellknown.WorkloadContainer)
		if model.Geometry != nil {
			nvidia.SetMIGManagerConfig(&p, wellknown.MIGConfigAllDisabled)
		}
	} else {
		p = nvidia.NodePlan(r, model, nvidia.UnpartitionedScript(model, r.GPU.Count))
		nvidia.AddModeReport(&p, model, r.GPU.Count, nvidia.IsNeverPartitioned)
	}
	p.Expectation.Labels = append(p.Expectation.Labels, nvidia.ExpectedGPULabels(model, r.GPU.Count)...)
	p.Expectation.LabelRules = nvidia.GPULabelRules(model)
	p.Expectation.Resources = []v1alpha1.ExpectedResource{nvidia.ExpectedGPUs(int(r.GPU.Count))}
	if passthroughSpec := r.GPU.Presentation.Passthrough; passthroughSpec != nil {
		if err := nvidia.AddSharing(&p, passthroughSpec.Sharing); err != nil {
			return v1alpha1.NodePlan{}, err
		}
	}
	return p, nil
}
