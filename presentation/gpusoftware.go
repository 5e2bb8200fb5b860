package presentation

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// gpuSoftwareNames are the names, without the domain, under which GPU software advertises devices, by the domains that other plugins of the vendor and
// of administrators use too: NVIDIA's network operator, whose administrators choose each name, and AMD's for network cards and FPGAs.
var gpuSoftwareNames = map[string]*regexp.Regexp{
	// The device plugin: gpu, gpu.shared, and mig- with a profile. The plugin for KubeVirt: the name of the chip in pci.ids in upper case (GH100_H100_SXM5_80GB), the
	// PCI id of one that has no name there, its aliases pgpu and nvswitch, and the type of a virtual GPU (NVIDIA_A10-12Q, GRID_T4-1Q).
	wellknown.NVIDIADomain: regexp.MustCompile(`^([pv]?gpu([.-].*)?|nvswitch|mig-.*|(G[A-Z]|AD|TU)[0-9]{3}[A-Z]*(_.*)?|[0-3][0-9A-Fa-f]{3}|(NVIDIA|GRID)_.*)$`),
	// The device plugin: gpu, or the modes of compute and memory partitions: cpx_nps4.
	wellknown.AMDDomain: regexp.MustCompile(`^([pv]?gpu([.-].*)?|[a-z]px_nps[0-9]+)$`),
}

// IsAdvertisedByGPUSoftware reports whether GPU software advertises a resource of that name. Of a domain in which only accelerators are advertised, or that is
// not known, it is every name.
//
// Without it: NVIDIA's network operator advertises nvidia.com/hostdev, and every node with GPUs that are as promised stays closed.
func IsAdvertisedByGPUSoftware(name corev1.ResourceName) bool {
	for domain, names := range gpuSoftwareNames {
		if rest, isOf := strings.CutPrefix(string(name), domain); isOf {
			return names.MatchString(rest)
		}
	}
	return true
}
