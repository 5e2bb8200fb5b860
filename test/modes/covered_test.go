package modes

import (
	"slices"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/spec"
)

// TestEveryWayToPresentIsProved lists the modes by what their plan or NodeType has, and fails when one of them has no case
// with a change that breaks it.
func TestEveryWayToPresentIsProved(t *testing.T) {
	type of = func(*v1alpha1.GPUSpec, v1alpha1.NodePlan) bool
	mode := func(vendor v1alpha1.GPUVendor, m v1alpha1.PresentationMode, further ...of) of {
		return func(g *v1alpha1.GPUSpec, p v1alpha1.NodePlan) bool {
			return g.Vendor == vendor && g.Presentation.Mode == m && !slices.ContainsFunc(further, func(f of) bool { return !f(g, p) })
		}
	}
	source := func(s v1alpha1.DriverSource) of {
		return func(g *v1alpha1.GPUSpec, _ v1alpha1.NodePlan) bool { return g.Driver.Source == s }
	}
	strategy := func(s string) of {
		return func(_ *v1alpha1.GPUSpec, p v1alpha1.NodePlan) bool { return p.Tenant.MIGStrategy == s }
	}
	gate := func(name string) of {
		return func(_ *v1alpha1.GPUSpec, p v1alpha1.NodePlan) bool {
			return slices.Contains(p.Tenant.FeatureGates, name)
		}
	}
	shared := func(g *v1alpha1.GPUSpec, _ v1alpha1.NodePlan) bool {
		return g.Presentation.Passthrough != nil && g.Presentation.Passthrough.Sharing != nil
	}
	byClaims := func(_ *v1alpha1.GPUSpec, p v1alpha1.NodePlan) bool { return len(p.Expectation.Slices) > 0 }
	mediated := func(_ *v1alpha1.GPUSpec, p v1alpha1.NodePlan) bool {
		return len(p.Tenant.HostDevices) > 0 && p.Tenant.HostDevices[0].MdevName != ""
	}
	functions := func(_ *v1alpha1.GPUSpec, p v1alpha1.NodePlan) bool {
		return len(p.Tenant.HostDevices) > 0 && !p.Tenant.HostDevices[0].External
	}
	named := func(s string) of {
		return func(_ *v1alpha1.GPUSpec, p v1alpha1.NodePlan) bool { return p.Tenant.ResourceNaming == s }
	}
	licensed := func(_ *v1alpha1.GPUSpec, p v1alpha1.NodePlan) bool { return len(p.SecretFiles) > 0 }
	vms := func(_ *v1alpha1.GPUSpec, p v1alpha1.NodePlan) bool {
		return p.Tenant.WorkloadConfig == "vm-passthrough"
	}
	chosen := func(g *v1alpha1.GPUSpec, _ v1alpha1.NodePlan) bool {
		return g.Presentation.Passthrough != nil && len(g.Presentation.Passthrough.Addresses) > 0
	}
	const nvidia, amd, other = v1alpha1.VendorNVIDIA, v1alpha1.VendorAMD, v1alpha1.VendorGeneric
	wanted := map[string]of{
		"whole GPUs, driver in the image": mode(nvidia, v1alpha1.ModePassthrough, source("")), "whole GPUs, driver by packages": mode(nvidia, v1alpha1.ModePassthrough, source(v1alpha1.DriverFromPackages)),
		"whole GPUs, driver by the operator": mode(nvidia, v1alpha1.ModePassthrough, source(v1alpha1.DriverFromOperator)), "shared GPUs": mode(nvidia, v1alpha1.ModePassthrough, shared, source("")),
		"shared GPUs, driver by the operator": mode(nvidia, v1alpha1.ModePassthrough, shared, source(v1alpha1.DriverFromOperator)),
		"virtual machines":                    mode(nvidia, v1alpha1.ModePassthrough, vms), "virtual machines by address": mode(nvidia, v1alpha1.ModePassthrough, vms, chosen),
		"MIG single": mode(nvidia, v1alpha1.ModeMIG, strategy("single"), source("")), "MIG mixed": mode(nvidia, v1alpha1.ModeMIG, strategy("mixed"), source("")),
		"MIG by the operator": mode(nvidia, v1alpha1.ModeMIG, source(v1alpha1.DriverFromOperator)), "MIG by claims": mode(nvidia, v1alpha1.ModeMIG, byClaims),
		"DRA": mode(nvidia, v1alpha1.ModeDRA, source("")), "DRA, driver by the operator": mode(nvidia, v1alpha1.ModeDRA, source(v1alpha1.DriverFromOperator)),
		"DRA dynamic": mode(nvidia, v1alpha1.ModeDRA, gate("DynamicMIG")), "DRA for virtual machines": mode(nvidia, v1alpha1.ModeDRA, gate("PassthroughSupport")),
		"vGPU host, mediated": mode(nvidia, v1alpha1.ModeVGPU, mediated, source("")), "vGPU host, functions": mode(nvidia, v1alpha1.ModeVGPU, functions),
		"vGPU host by the operator": mode(nvidia, v1alpha1.ModeVGPU, source(v1alpha1.DriverFromOperator)), "vGPU guest": mode(nvidia, v1alpha1.ModeVGPU, licensed),
		"AMD single": mode(amd, v1alpha1.ModePassthrough, named("single"), source("")), "AMD mixed": mode(amd, v1alpha1.ModePassthrough, named("mixed"), source("")),
		"AMD by the operator": mode(amd, v1alpha1.ModePassthrough, source(v1alpha1.DriverFromOperator)), "AMD by claims": mode(amd, v1alpha1.ModeDRA),
		"anybody's device plugin": mode(other, v1alpha1.ModePassthrough), "anybody's DRA driver": mode(other, v1alpha1.ModePassthrough, byClaims),
	}
	for _, m := range readModes(t) {
		if m.NodeType.GPU == nil || len(m.Changes) == 0 {
			continue
		}
		plan, err := presentation.Resolve(spec.Request{GPU: m.NodeType.GPU, Image: m.OSImage, Resources: m.NodeType.Resources})
		if err != nil {
			t.Fatal(err)
		}
		for name, is := range wanted {
			if is(m.NodeType.GPU, plan) {
				delete(wanted, name)
			}
		}
	}
	for name := range wanted {
		t.Errorf("no case with a change that breaks it: %s", name)
	}
}
