package presentation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/amd"
	"github.com/ingot-dev/ingot/presentation/dra"
	"github.com/ingot-dev/ingot/presentation/generic"
	"github.com/ingot-dev/ingot/presentation/mig"
	"github.com/ingot-dev/ingot/presentation/passthrough"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/presentation/vgpu"
)

// Resolver is the type of Resolve.
type Resolver func(spec.Request) (v1alpha1.NodePlan, error)

// Resolve returns what the operating system of a node must be configured with, and what the node must then advertise. It is
// deterministic. When the request is impossible, or this version does not support it, the error is a *spec.Refusal.
func Resolve(r spec.Request) (v1alpha1.NodePlan, error) {
	p, err := resolveGPU(r)
	if err != nil {
		return v1alpha1.NodePlan{}, err
	}
	if err := addTenancy(&p, r); err != nil {
		return v1alpha1.NodePlan{}, err
	}
	if p.Expectation, err = WithDeclaredResources(p.Expectation, r.Resources); err != nil {
		return v1alpha1.NodePlan{}, err
	}
	p.Expectation.AbsentPrefixes = append(slices.Clone(acceleratorDomains), p.Expectation.AbsentPrefixes...)
	p.Expectation.AbsentDrivers = absentDrivers(p.Expectation)
	p.Expectation.Kernel = r.Image.OS.Kernel
	p.Expectation.Kubelet = r.Image.Software.Kubelet
	return p, nil
}

func resolveGPU(r spec.Request) (v1alpha1.NodePlan, error) {
	if r.GPU == nil {
		return v1alpha1.NodePlan{}, nil
	}
	for _, row := range resolverRows {
		if row.isFor(r.GPU) {
			return row.resolve(r)
		}
	}
	return v1alpha1.NodePlan{}, unknownMode(resolverRow{Mode: r.GPU.Presentation.Mode, Variant: "vendor " + string(r.GPU.Vendor)})
}

// resolverRow is a row of the table of modes. The first row that matches a GPU spec resolves it.
type resolverRow struct {
	// Vendor of the GPUs.
	Vendor v1alpha1.GPUVendor
	// Mode of the presentation.
	Mode v1alpha1.PresentationMode
	// Variant names the part of the mode that the row resolves.
	Variant string
	// isVariant reports whether a GPU spec of this vendor and mode is of the variant; nil: every one is.
	isVariant func(*v1alpha1.GPUSpec) bool
	// resolve plans the node.
	resolve func(spec.Request) (v1alpha1.NodePlan, error)
}

// resolverRows is the table of modes. The order matters: special variants stand before general ones.
var resolverRows = []resolverRow{
	{Vendor: v1alpha1.VendorNVIDIA, Mode: v1alpha1.ModePassthrough, Variant: "virtual machines", isVariant: isForVMs, resolve: passthrough.ResolveVM},
	{Vendor: v1alpha1.VendorNVIDIA, Mode: v1alpha1.ModePassthrough, Variant: "containers, whole or shared, DRA", isVariant: isAdvertisedByDRA, resolve: dra.Resolve},
	{Vendor: v1alpha1.VendorNVIDIA, Mode: v1alpha1.ModePassthrough, Variant: "containers, whole or shared, device plugin", resolve: passthrough.ResolveContainer},
	{Vendor: v1alpha1.VendorNVIDIA, Mode: v1alpha1.ModeVGPU, Variant: "host and guest", resolve: vgpu.Resolve},
	{Vendor: v1alpha1.VendorNVIDIA, Mode: v1alpha1.ModeMIG, Variant: "strategies none, single, mixed; device plugin, DRA", resolve: mig.Resolve},
	{Vendor: v1alpha1.VendorNVIDIA, Mode: v1alpha1.ModeDRA, Variant: "partitioned by layout", isVariant: isPartitionedByLayout, resolve: mig.ResolveDRA},
	{Vendor: v1alpha1.VendorNVIDIA, Mode: v1alpha1.ModeDRA, Variant: "whole, shared, VFIO, partitioned by claims", resolve: dra.Resolve},
	{Vendor: v1alpha1.VendorAMD, Mode: v1alpha1.ModePassthrough, Variant: "containers, whole and partitioned, device plugin and DRA", resolve: amd.Resolve},
	{Vendor: v1alpha1.VendorAMD, Mode: v1alpha1.ModeDRA, Variant: "whole and partitioned, gpu.amd.com", resolve: amd.Resolve},
	{Vendor: v1alpha1.VendorGeneric, Mode: v1alpha1.ModePassthrough, Variant: "any accelerator with a device plugin or a DRA driver", resolve: generic.Resolve},
}

func (row resolverRow) isFor(gpu *v1alpha1.GPUSpec) bool {
	return row.Vendor == gpu.Vendor && row.Mode == gpu.Presentation.Mode && (row.isVariant == nil || row.isVariant(gpu))
}

// String returns the name of the row in messages and in the package documentation.
func (row resolverRow) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s: %s", row.Vendor, row.Mode, row.Variant))
}

func unknownMode(wanted resolverRow) error {
	var known []string
	for _, row := range resolverRows {
		known = append(known, row.String())
	}
	return &spec.Refusal{
		Field: spec.GPUField(""), Reason: v1alpha1.ReasonPresentationInvalid, Rule: "presentation/unknown",
		Message: fmt.Sprintf("this version does not know the presentation %s; it knows %s", wanted, strings.Join(known, "; ")),
	}
}

func isForVMs(gpu *v1alpha1.GPUSpec) bool {
	p := gpu.Presentation.Passthrough
	return p != nil && p.Workload == v1alpha1.WorkloadVM
}

func isAdvertisedByDRA(gpu *v1alpha1.GPUSpec) bool {
	p := gpu.Presentation.Passthrough
	return p != nil && p.Advertise == v1alpha1.AdvertiseDRA
}

func isPartitionedByLayout(gpu *v1alpha1.GPUSpec) bool {
	d := gpu.Presentation.DRA
	return d != nil && len(d.Layout) > 0
}
