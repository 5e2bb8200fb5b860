package passthrough

import (
	"github.com/ingot-dev/ingot/presentation/nvidia"
	"github.com/ingot-dev/ingot/presentation/plan"
)

// Resolve plans whole GPUs for containers, each for one pod or shared by several. The error is a *plan.Refusal.
func Resolve(r plan.Request) (plan.Plan, error) {
	model, err := nvidia.Judge(r)
	if err != nil {
		return plan.Plan{}, err
	}
	if err := nvidia.JudgeToolkit(r); err != nil {
		return plan.Plan{}, err
	}
	var p plan.Plan
	if nvidia.FromOperator(r) {
		p = nvidia.ByOperator(r, model, "container")
		if model.Geometry != nil {
			nvidia.ByMIGManager(&p, nvidia.AllDisabled)
		}
	} else {
		p = nvidia.Node(r, model, nvidia.Whole(model, r.GPU.Count))
	}
	p.Expectation.Labels = append(p.Expectation.Labels, nvidia.Discovered(model, r.GPU.Count)...)
	p.Expectation.Resources = []plan.Resource{nvidia.WholeGPUs(int(r.GPU.Count))}
	if spec := r.GPU.Presentation.Passthrough; spec != nil {
		if err := nvidia.Share(&p, spec.Sharing); err != nil {
			return plan.Plan{}, err
		}
	}
	return p, nil
}
