package mig

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/dra"
	"github.com/ingot-dev/ingot/presentation/nvidia"
	"github.com/ingot-dev/ingot/presentation/plan"
)

// Strategies in the device plugin's own words.
const (
	none   = "none"
	single = "single"
	mixed  = "mixed"
)

// ResourceName is what the device plugin advertises a profile as with strategy mixed: nvidia.com/mig-1g.10gb.me for 1g.10gb+me.
func ResourceName(profile string) corev1.ResourceName {
	return corev1.ResourceName("nvidia.com/mig-" + strings.ReplaceAll(profile, "+", "."))
}

// Resolve plans partitioned GPUs with driver and mig-parted baked into the image. The error is a *plan.Refusal.
func Resolve(r plan.Request) (plan.Plan, error) {
	spec := r.GPU.Presentation.MIG
	if spec == nil {
		return plan.Plan{}, refuse("mig/missing", "presentation.mode is MIG, and presentation.mig is missing: say which strategy and layout")
	}
	model, err := judge(r, spec)
	if err != nil {
		return plan.Plan{}, err
	}
	c, err := cut(r, model)
	if err != nil {
		return plan.Plan{}, err
	}
	mode := []string{
		"# Partition the GPUs as ordered before kubelet starts. The instances are gone after every boot.",
		"nvidia-mig-parted apply --config-file " + configFile + " --hooks-file " + hooksFile + " --selected-config " + configName,
	}
	if spec.Strategy == none {
		mode = nvidia.MIGOff()
	}
	p := nvidia.Node(r, model, mode)
	if spec.Strategy != none {
		p.Files = append(p.Files, c.files()...)
	}
	if spec.Advertise == v1alpha1.AdvertiseDRA {
		dra.Publish(&p, r, model, c.kinds()...)
	} else {
		p.Expectation.Resources = c.resources(spec.Strategy)
		p.Expectation.Labels = append(p.Expectation.Labels, c.labels(spec.Strategy)...)
	}
	if p.NodeLabels == nil {
		p.NodeLabels = map[string]string{}
	}
	p.NodeLabels[labelMIGManager] = "false"
	return p, nil
}

// judge finds the model, and refuses a strategy and an image with which no layout can be applied.
func judge(r plan.Request, spec *v1alpha1.MIGSpec) (catalogue.Model, error) {
	judge := nvidia.Judge
	if spec.Advertise == v1alpha1.AdvertiseDRA {
		judge = dra.Judge
	}
	model, err := judge(r)
	if err != nil {
		return catalogue.Model{}, err
	}
	if spec.Advertise != v1alpha1.AdvertiseDRA {
		if err := nvidia.JudgeToolkit(r.Image); err != nil {
			return catalogue.Model{}, err
		}
	}
	switch spec.Strategy {
	case none:
		if len(spec.Layout) > 0 {
			return catalogue.Model{}, refuse("mig/strategy", "mig.strategy is none, which leaves every GPU whole, and mig.layout partitions them: remove the layout, or choose single or mixed")
		}
		return model, nil
	case single, mixed:
	default:
		return catalogue.Model{}, refuse("mig/strategy", "mig.strategy %q is not one of none, single, mixed", spec.Strategy)
	}
	if model.Geometry == nil {
		return catalogue.Model{}, refuse("mig/model", "%s cannot be partitioned: choose another model, or presentation.mode: Passthrough", model.Name)
	}
	if r.Image.Software.MIGParted == "" {
		return catalogue.Model{}, refuse("image/mig-parted", "the OSImage's software.migParted is empty: without nvidia-mig-parted the GPUs cannot be partitioned before kubelet starts; bake it in and name its version")
	}
	return model, nil
}

func refuse(rule, format string, args ...any) error {
	return plan.Refuse(v1alpha1.ReasonPresentationInvalid, rule, format, args...)
}
