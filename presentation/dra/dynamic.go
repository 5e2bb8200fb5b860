package dra

import (
	"slices"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
	"github.com/ingot-dev/ingot/presentation/nvidia"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// dynamic plans GPUs that the driver itself partitions as claims ask for it. It then publishes every place that a profile
// has, and what is taken is left to the scheduler's counters. From Hopper on the whole GPU is published too; on Ampere
// the MIG mode decides which of the two, so it is turned on before kubelet starts.
func dynamic(r spec.Request, model catalogue.Model, gates []string) (v1alpha1.NodePlan, error) {
	if !slices.Contains(gates, wellknown.GateDynamicMIG) {
		return v1alpha1.NodePlan{}, spec.Invalid(spec.PresentationField("dra.devices"), "dra/mig-layout", "it is MIG: say in dra.layout how the GPUs are partitioned, or add the feature gate %s, with which the driver partitions them as claims ask for it (alpha)", wellknown.GateDynamicMIG)
	}
	if model.Geometry == nil {
		return v1alpha1.NodePlan{}, spec.Invalid(spec.GPUField("model"), "mig/model", "%s cannot be partitioned: choose another model, or dra.devices: GPU", model.Name)
	}
	if model.MIGModePersists() && nvidia.FromOperator(r) {
		return v1alpha1.NodePlan{}, spec.Invalid(spec.GPUField("driver.source"), "mig/operator-dra", "it is Operator: nobody would turn the MIG mode of %s on before the DRA driver looks for devices; use source: Image or Packages", model.Name)
	}
	count, mode := int(r.GPU.Count), nvidia.MIGOff()
	var kinds []Kind
	if model.MIGModePersists() {
		mode = nvidia.MIGOn()
	} else {
		kinds = append(kinds, GPUs(count))
	}
	for _, p := range model.Geometry.Profiles {
		kinds = append(kinds, Instances(model.ProfileNames(p), count*len(p.Starts)))
	}
	p := node(r, model, mode)
	p.Tenant.FeatureGates = gates
	p.Warnings = append(p.Warnings, v1alpha1.PlanWarning{Rule: "experimental/dynamic-mig", Message: "dynamic MIG is alpha in the DRA driver: it needs the tenant's feature gate DRAPartitionableDevices, " +
		"it deletes partitions that it does not know, and the number of devices expected is derived from the places that profiles have"})
	if model.PlacesInferred {
		p.Warnings = append(p.Warnings, nvidia.InferredPlaces(model))
	}
	Publish(&p, r, model, kinds...)
	return p, nil
}
