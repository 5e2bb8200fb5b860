package containerd

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Node describes what the containerd of a node must do.
type Node struct {
	// Version of the image's containerd; empty: it is unknown.
	Version string
	// Runtime is true when containers need NVIDIA's runtime, which the image has.
	Runtime bool
	// CDI is true when devices reach containers by the Container Device Interface.
	CDI bool
	// Shared is true when pods of several tenants run on the node: NVIDIA's container toolkit must give no device for the environment of a container.
	Shared bool
	// Settings of the site; nil: there are none.
	Settings *v1alpha1.ContainerdSpec
}

// NodeOf returns what containerd must do on nodes with the software and the GPUs; gpu is nil for nodes without.
//
// Where the GPU operator installs NVIDIA's container toolkit, the toolkit writes a drop-in of its own, and nothing is needed here.
func NodeOf(software v1alpha1.OSImageSoftware, gpu *v1alpha1.GPUSpec, settings *v1alpha1.ContainerdSpec) Node {
	out := Node{Version: software.Containerd, Settings: settings}
	if gpu == nil || isForVMs(gpu.Presentation) {
		return out
	}
	out.CDI = isAdvertisedByDRA(gpu.Presentation)
	if gpu.Vendor == v1alpha1.VendorNVIDIA && hasToolkit(software, gpu.Driver) && !out.CDI {
		out.Runtime = true
		out.CDI = hasDropIns(out.Version) || gpu.Tenancy == v1alpha1.TenancyShared
	}
	out.Shared = gpu.Vendor == v1alpha1.VendorNVIDIA && gpu.Tenancy == v1alpha1.TenancyShared && (out.Runtime || out.CDI)
	return out
}

// isForVMs returns true when virtual machines use the GPUs, and no container does.
func isForVMs(p v1alpha1.Presentation) bool {
	return p.Passthrough != nil && p.Passthrough.Workload == v1alpha1.WorkloadVM || p.VGPU != nil && p.VGPU.Role != "Guest"
}

func isAdvertisedByDRA(p v1alpha1.Presentation) bool {
	return p.Mode == v1alpha1.ModeDRA || p.Passthrough != nil && p.Passthrough.Advertise == v1alpha1.AdvertiseDRA || p.MIG != nil && p.MIG.Advertise == v1alpha1.AdvertiseDRA
}

// hasToolkit returns true when NVIDIA's container toolkit is on the node before kubelet starts.
func hasToolkit(software v1alpha1.OSImageSoftware, driver v1alpha1.GPUDriver) bool {
	isToolkit := func(p string) bool { return strings.HasPrefix(p, "nvidia-container-toolkit") }
	return software.ContainerToolkit != "" || driver.Source == v1alpha1.DriverFromPackages && slices.ContainsFunc(driver.Packages, isToolkit)
}

// hasDropIns returns true for a containerd that merges a drop-in into the image's configuration, and knows configurations of version 3. A containerd whose
// version is unknown gets none: containerd 1 does not start with a drop-in of version 3.
func hasDropIns(version string) bool {
	major, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	n, err := strconv.Atoi(major)
	return err == nil && n >= 2
}

// Warning returns what an operator must know of the image; empty: nothing.
func (n Node) Warning() string {
	if !n.hasNeeds() || hasDropIns(n.Version) {
		return ""
	}
	var parts []string
	for _, need := range n.needs() {
		parts = append(parts, need.what)
	}
	which := "containerd " + n.Version + " replaces its whole section of the CRI plugin by that of a drop-in"
	if n.Version == "" {
		which = "software.containerd does not say which containerd the image has"
	}
	return which + ", so that Ingot writes none: the image's own configuration must have " + strings.Join(parts, ", ") + "; each node reports what is missing; or take an image with containerd 2 and name it"
}

// hasNeeds returns true when there is something to configure or to check.
func (n Node) hasNeeds() bool {
	return n.Runtime || n.CDI || len(n.mirrors()) > 0 || n.sandboxImage() != ""
}

func (n Node) mirrors() []v1alpha1.RegistryMirror {
	if n.Settings == nil {
		return nil
	}
	return n.Settings.RegistryMirrors
}

func (n Node) sandboxImage() string {
	if n.Settings == nil {
		return ""
	}
	return n.Settings.SandboxImage
}
