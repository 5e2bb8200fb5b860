package vendor

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/rack/kubelet"
)

// nvidiaID is NVIDIA's PCI vendor id.
const nvidiaID = "10de"

// GPU is a GPU as its driver sees it.
type GPU struct {
	// Address is on the PCI bus of this boot.
	Address, DeviceID string
	// Unhealthy: the driver has reported an error that is no application's.
	Unhealthy bool
	// MIG: the GPU is in MIG mode, and Instances are the profiles of its GPU instances, "1g.10gb".
	MIG       bool
	Instances []string
}

// Host is what plugins see of the machine they run on.
type Host struct {
	// NVIDIADriver is the version of the loaded driver, "" for none.
	NVIDIADriver string
	// NVIDIAToolkit is the version of the container toolkit, "" for none: without it a container sees no GPU.
	NVIDIAToolkit string
	GPUs          []GPU
}

// NVIDIAGPUs are the GPUs among the devices: display controllers (base class 03), not bridges such as NVSwitches.
func NVIDIAGPUs(devices []hardware.PCIDevice) []GPU {
	var out []GPU
	for _, device := range devices {
		if device.VendorID == nvidiaID && strings.HasPrefix(device.Class, "03") {
			out = append(out, GPU{Address: device.Address, DeviceID: device.DeviceID})
		}
	}
	return out
}

var _ kubelet.Plugins = Host{}

// Serves implements kubelet.Plugins.
func (h Host) Serves(pod *corev1.Pod) bool { return nvidiaPlugin(pod) != nil }

// Register implements kubelet.Plugins.
func (h Host) Register(ctx context.Context, pod *corev1.Pod, configMap func(context.Context, string) (map[string]string, error)) (map[corev1.ResourceName]kubelet.Devices, error) {
	container := nvidiaPlugin(pod)
	config, err := nvidiaConfig(ctx, pod, container, configMap)
	if err != nil {
		return nil, err
	}
	return h.nvidiaResources(config)
}

// nvidiaPlugin finds the container of NVIDIA's device plugin by its image. The same image holds GPU feature discovery,
// the MPS daemon and the configuration manager, and AMD's plugin has an image of the same name.
func nvidiaPlugin(pod *corev1.Pod) *corev1.Container {
	for i, container := range pod.Spec.Containers {
		repository, _, _ := strings.Cut(container.Image, "@")
		path, name := "", repository
		if at := strings.LastIndex(repository, "/"); at >= 0 {
			path, name = repository[:at], repository[at+1:]
		}
		name, _, _ = strings.Cut(name, ":")
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
