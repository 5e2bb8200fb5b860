package nvidia

import (
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/spec"
)

// iommuArguments turn the IOMMU on, each on one vendor's CPUs; the other's ignore it.
var iommuArguments = []string{"intel_iommu=on", "amd_iommu=on"}

// IOMMU is the kernel arguments of an image whose devices are given to virtual machines: those that it has, or both where
// Ignition sets them. Arm servers have their IOMMU on.
func IOMMU(image v1alpha1.OSImageSpec) []string {
	if image.Architecture == "arm64" {
		return nil
	}
	if image.UserData == v1alpha1.UserDataIgnition {
		return iommuArguments
	}
	return slices.DeleteFunc(slices.Clone(iommuArguments), func(a string) bool { return !slices.Contains(image.KernelArguments, a) })
}

// JudgeIOMMU refuses an image that leaves the IOMMU off.
func JudgeIOMMU(image v1alpha1.OSImageSpec) error {
	if image.Architecture == "arm64" || len(IOMMU(image)) > 0 {
		return nil
	}
	return spec.Refuse(spec.ImageField("kernelArguments"), v1alpha1.ReasonKernelArgumentMissing, "image/iommu", "%v do not turn the IOMMU on, without which no virtual machine gets a device: bake in %s", image.KernelArguments, strings.Join(iommuArguments, " or "))
}
