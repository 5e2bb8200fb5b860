package passthrough

import (
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/nvidia"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// Resolve plans whole GPUs for containers, each for one pod or shared by several. The error is a *spec.Refusal.
func ResolveContainer(r spec.Request) (v1alpha1.NodePlan, error) {
	model, err := nvidia.Judge(r)
	if err != nil {
		return v1alpha1.NodePlan{}, err
	}
	if err := nvidia.JudgeToolkit(r); err != nil {
		return v1alpha1.NodePlan{}, err
	}
	var p v1alpha1.NodePlan
	if nvidia.FromOperator(r) {
		p = nvidia.ByOperator(r, model, wellknown.WorkloadContainer)
		if model.Geometry != nil {
			nvidia.ByMIGManager(&p, wellknown.MIGConfigAllDisabled)
		}
	} else {
		p = nvidia.Node(r, model, nvidia.Whole(model, r.GPU.Count))
	}
	p.Expectation.Labels = append(p.Expectation.Labels, nvidia.Discovered(model, r.GPU.Count)...)
	p.Expectation.Resources = []v1alpha1.ExpectedResource{nvidia.WholeGPUs(int(r.GPU.Count))}
	if passthroughSpec := r.GPU.Presentation.Passthrough; passthroughSpec != nil {
		if err := nvidia.Share(&p, passthroughSpec.Sharing); err != nil {
			return v1alpha1.NodePlan{}, err
		}
	}
	return p, nil
}
