package vendor

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/test/rack/gpu"
	"github.com/ingot-dev/ingot/test/rack/kubelet"
)

// Host is a machine as plugins observe it.
type Host struct {
	// NVIDIADriver is the version of the loaded driver, "" for none.
	NVIDIADriver string
	// NVIDIAToolkit is the version of the container toolkit, "" for none: without it a container sees no GPU.
	NVIDIAToolkit string
	// IsToolkitOpen means that the container toolkit gives the devices of NVIDIA_VISIBLE_DEVICES also to containers that are not privileged.
	IsToolkitOpen bool
	GPUs          []*gpu.GPU
	// IOMMU means that the IOMMU is on, so that devices can be passed to virtual machines.
	IOMMU bool
	// IncompletePool means that the DRA driver announces a slice that it never writes.
	IncompletePool bool
}

var _ kubelet.Plugins = Host{}

// IsPlugin implements kubelet.Plugins.
func (h Host) IsPlugin(pod *corev1.Pod) bool { return pluginContainer(pod) != nil }

// Register implements kubelet.Plugins.
func (h Host) Register(ctx context.Context, pod *corev1.Pod, configMap func(context.Context, string) (map[string]string, error)) (map[corev1.ResourceName]kubelet.Devices, error) {
	container := pluginContainer(pod)
	config, err := nvidiaConfig(ctx, pod, container, configMap)
	if err != nil {
		return nil, err
	}
	return h.seenBy(container).nvidiaResources(config)
}

// seenBy returns the machine as a container of NVIDIA's image observes it, whose environment asks for all devices. The container toolkit takes one with the
// capability SYS_ADMIN for privileged (its internal/config/image/privileged.go).
func (h Host) seenBy(container *corev1.Container) Host {
	s := container.SecurityContext
	isPrivileged := s != nil && (s.Privileged != nil && *s.Privileged || s.Capabilities != nil && slices.Contains(s.Capabilities.Add, "SYS_ADMIN"))
	if !h.IsToolkitOpen && !isPrivileged {
		h.GPUs = nil
	}
	return h
}

// pluginContainer returns the container of NVIDIA's device plugin. The same image has GPU feature discovery, the MPS daemon
// and the configuration manager, and AMD's plugin has an image of the same name.
func pluginContainer(pod *corev1.Pod) *corev1.Container {
	for i, container := range pod.Spec.Containers {
		path, name := splitImage(container.Image)
		if name != "k8s-device-plugin" || strings.Contains(path, "rocm") || strings.Contains(path, "amd") {
			continue
		}
		command := strings.Join(container.Command, " ")
		if !strings.Contains(command, "gpu-feature-discovery") && !strings.Contains(command, "mps-control-daemon") && !strings.Contains(command, "config-manager") {
			return &pod.Spec.Containers[i]
		}
	}
	return nil
}

// splitImage splits an image's name: "nvcr.io/nvidia" and "k8s-device-plugin".
func splitImage(image string) (path, name string) {
	name, _, _ = strings.Cut(image, "@")
	if at := strings.LastIndex(name, "/"); at >= 0 {
		path, name = name[:at], name[at+1:]
	}
	name, _, _ = strings.Cut(name, ":")
	return path, name
}
