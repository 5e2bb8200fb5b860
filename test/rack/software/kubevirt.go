package software

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/test/rack/kubelet"
	"github.com/ingot-dev/ingot/test/rack/pci"
)

// Permitted is spec.configuration.permittedHostDevices of a KubeVirt object.
type Permitted struct {
	PCI []struct {
		Selector string `json:"pciVendorSelector"`
		Resource string `json:"resourceName"`
		External bool   `json:"externalResourceProvider"`
	} `json:"pciHostDevices"`
	Mediated []struct {
		Selector string `json:"mdevNameSelector"`
		Resource string `json:"resourceName"`
		External bool   `json:"externalResourceProvider"`
	} `json:"mediatedDevices"`
}

// ReadPermitted reads the permitted devices from the content of a KubeVirt object.
func ReadPermitted(object map[string]any) (*Permitted, error) {
	var kubeVirt struct {
		Spec struct {
			Configuration struct {
				Permitted Permitted `json:"permittedHostDevices"`
			} `json:"configuration"`
		} `json:"spec"`
	}
	text, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(text, &kubeVirt)
	}
	if err != nil {
		return nil, fmt.Errorf("the KubeVirt object: %w", err)
	}
	return &kubeVirt.Spec.Configuration.Permitted, nil
}

// registerPermitted simulates virt-handler, which advertises the permitted devices that no external plugin provides. From
// KubeVirt 1.9 on it includes virtual functions with a vGPU type that NVIDIA's driver is bound to, and not their physical
// function.
func (h Host) registerPermitted(_ context.Context, pod *corev1.Pod, _ Reader) (Result, error) {
	if h.Permitted == nil {
		return Result{}, nil
	}
	_, _, tag := splitImage(pod.Spec.Containers[0].Image)
	var names []string
	for _, d := range h.Machine.Bus.Devices() {
		names = append(names, h.Permitted.resourcesOf(d, hasFunctionSupport(tag))...)
	}
	return Result{Devices: countDevices("", names)}, nil
}

// resourcesOf returns the resources for which one device counts.
func (p Permitted) resourcesOf(d *pci.Device, functions bool) []string {
	var out []string
	for _, entry := range p.PCI {
		if !entry.External && strings.EqualFold(entry.Selector, d.VendorID+":"+d.DeviceID) && isForVirtualMachines(d, functions) {
			out = append(out, entry.Resource)
		}
	}
	for _, entry := range p.Mediated {
		for _, mediated := range d.MediatedDevices {
			if !entry.External && mediated == entry.Selector {
				out = append(out, entry.Resource)
			}
		}
	}
	return out
}

// isForVirtualMachines reports whether the device can be passed to virtual machines.
func isForVirtualMachines(d *pci.Device, functions bool) bool {
	return d.Driver == pci.VFIO || d.Driver == pci.Grace || functions && d.Driver == "nvidia" && d.VGPUType != 0
}

// hasFunctionSupport reports whether the version is v1.9 or newer.
func hasFunctionSupport(tag string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(strings.TrimPrefix(tag, "v"), "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 1 || minor >= 9
}

// countDevices returns the number of devices by resource name.
func countDevices(prefix string, names []string) map[corev1.ResourceName]kubelet.Devices {
	out := map[corev1.ResourceName]kubelet.Devices{}
	for _, name := range names {
		devices := out[corev1.ResourceName(prefix+name)]
		devices.Total++
		devices.Healthy++
		out[corev1.ResourceName(prefix+name)] = devices
	}
	return out
}
