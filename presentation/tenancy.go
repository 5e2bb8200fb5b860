package presentation

import (
	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/nvidia"
	"github.com/ingot-dev/ingot/presentation/spec"
)

// addTenancy changes the plan of nodes on which pods of several tenants run. The error is a *spec.Refusal.
func addTenancy(p *v1alpha1.NodePlan, r spec.Request) error {
	if r.GPU == nil || r.GPU.Tenancy != v1alpha1.TenancyShared {
		return nil
	}
	if isForVMs(r.GPU) || isVGPUHost(r.GPU) {
		return spec.Invalid(spec.GPUField("tenancy"), "tenancy/virtual-machines", "it is Shared, and virtual machines get the GPUs, each its own: no container runtime gives them away; remove it")
	}
	if r.GPU.Vendor == v1alpha1.VendorNVIDIA {
		return nvidia.SharePlan(p, r)
	}
	p.Warnings = append(p.Warnings, v1alpha1.PlanWarning{Rule: "unverified/tenancy", Message: "gpu.tenancy is Shared, and for these accelerators nothing is set on the node: the image must have no container runtime of their vendor, " +
		"or one that ignores variables such as AMD_VISIBLE_DEVICES and HABANA_VISIBLE_DEVICES in containers that are not privileged"})
	return nil
}

func isVGPUHost(gpu *v1alpha1.GPUSpec) bool {
	v := gpu.Presentation.VGPU
	return v != nil && v.Role == spec.VGPURoleHost
}
