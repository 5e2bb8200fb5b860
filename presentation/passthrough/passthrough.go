package passthrough

import (
	"github.com/ingot-dev/ingot/presentation/nvidia"
	"github.com/ingot-dev/ingot/presentation/plan"
)

// Resolve plans whole GPUs for containers with the driver baked into the image. The error is a *plan.Refusal.
func Resolve(r plan.Request) (plan.Plan, error) {
	model, err := nvidia.Judge(r)
	if err != nil {
		return plan.Plan{}, err
	}
	if err := nvidia.JudgeToolkit(r.Image); err != nil {
		return plan.Plan{}, err
	}
	p := nvidia.Node(r, model, nvidia.MIGOff())
	p.Expectation.Resources = []plan.Resource{nvidia.WholeGPUs(int(r.GPU.Count))}
	return p, nil
}
