package presentation

import (
	"slices"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/spec"
)

// Resolver is the type of Resolve.
type Resolver func(spec.Request) (v1alpha1.NodePlan, error)

// Resolve says what the operating system of a node must be told, and what the node must then advertise. It is
// deterministic. An impossible request, and one that this version does not know, is a *Refusal.
func Resolve(r spec.Request) (v1alpha1.NodePlan, error) {
	p, err := resolveGPU(r)
	if err != nil {
		return v1alpha1.NodePlan{}, err
	}
	if p.Expectation, err = Declare(p.Expectation, r.Resources); err != nil {
		return v1alpha1.NodePlan{}, err
	}
	p.Expectation.AbsentPrefixes = append(slices.Clone(acceleratorDomains), p.Expectation.AbsentPrefixes...)
	p.Expectation.AbsentDrivers = absentDrivers(p.Expectation)
	p.Expectation.Kernel = r.Image.OS.Kernel
	p.Expectation.Kubelet = r.Image.Software.Kubelet
	return p, nil
}

// Validate says whether a request can be resolved. The error is a *Refusal.
func Validate(r spec.Request) error {
	_, err := Resolve(r)
	return err
}

func resolveGPU(r spec.Request) (v1alpha1.NodePlan, error) {
	if r.GPU == nil {
		return v1alpha1.NodePlan{}, nil
	}
	for _, row := range modes {
		if row.fits(r.GPU) {
			if row.resolve == nil {
				return v1alpha1.NodePlan{}, unknown(row)
			}
			return row.resolve(r)
		}
	}
	return v1alpha1.NodePlan{}, unknown(mode{Mode: r.GPU.Presentation.Mode, Variant: "vendor " + string(r.GPU.Vendor)})
}
