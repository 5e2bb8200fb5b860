package nvidia

import (
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

const (
	// MinimumCDIContainerd is the oldest containerd that hands CDI devices to containers: 1.6 starts pods and ignores them.
	MinimumCDIContainerd = "1.7"
	// minimumCDIToolkit is the oldest container toolkit with the program nvidia-cdi-hook, which the CDI specification of the device plugin names.
	minimumCDIToolkit = "1.16"
	// toolkitPackage is the package of the container toolkit.
	toolkitPackage = "nvidia-container-toolkit"
)

// SharePlan changes the plan of nodes whose GPUs containers use, so that pods of several tenants can run on them: the device plugin names devices by CDI,
// and the node must report that its container toolkit gives none for the environment of a container. The error is a *spec.Refusal.
func SharePlan(p *v1alpha1.NodePlan, r spec.Request) error {
	const why = "gpu.tenancy is Shared, so that GPUs reach containers by CDI, which older ones ignore"
	if err := spec.RequireVersion(spec.ImageField("software.containerd"), "tenancy/containerd-version", r.Image.Software.Containerd, MinimumCDIContainerd, why); err != nil {
		return err
	}
	if err := checkSharedToolkit(r); err != nil {
		return err
	}
	isDRA := len(p.Expectation.Slices) > 0
	if !isDRA {
		p.Tenant.DeviceListStrategy = wellknown.DeviceListStrategyCDI
	}
	hasToolkit := r.Image.Software.ContainerToolkit != "" || HasDriverPackage(r, toolkitPackage)
	p.Expectation.ContainerdReport = isDRA || hasToolkit
	if IsDriverFromOperator(r) && !hasToolkit {
		p.Warnings = append(p.Warnings, v1alpha1.PlanWarning{Rule: "unverified/tenancy", Message: "gpu.tenancy is Shared, and the operator installs the container toolkit in a pod: no node reports whether it ignores NVIDIA_VISIBLE_DEVICES, " +
			"so run the operator with the values that ingot render --output operator-values prints"})
	}
	return nil
}

// checkSharedToolkit refuses a container toolkit without the program that the device plugin's CDI specification names. Without it: every container that is
// given a GPU fails to start.
func checkSharedToolkit(r spec.Request) error {
	const why = "gpu.tenancy is Shared, and older ones have no nvidia-cdi-hook, without which no container with a GPU starts"
	if version := r.Image.Software.ContainerToolkit; version != "" {
		return spec.RequireVersion(spec.ImageField("software.containerToolkit"), "tenancy/container-toolkit-version", version, minimumCDIToolkit, why)
	}
	if r.GPU.Driver.Source != v1alpha1.DriverFromPackages {
		return nil
	}
	for i, p := range r.GPU.Driver.Packages {
		if name, version, hasVersion := strings.Cut(p, "="); name == toolkitPackage && hasVersion {
			return spec.RequireVersion(packageField(i), "tenancy/container-toolkit-version", version, minimumCDIToolkit, why)
		}
	}
	return nil
}
