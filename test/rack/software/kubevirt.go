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

// ReadPermitted reads it from the object's content.
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

// permitted is what virt-handler advertises itself: what is permitted and nobody else's to advertise. From KubeVirt 1.9 on it
// takes virtual functions that NVIDIA's driver holds and that have a type; the physical function is none.
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

// of are the resources that one device counts for.
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

// given: the device is held for virtual machines.
func isForVirtualMachines(d *pci.Device, functions bool) bool {
	return d.Driver == pci.VFIO || d.Driver == pci.Grace || functions && d.Driver == "nvidia" && d.VGPUType != 0
}

// knowsFunctions: v1.9 and newer.
func hasFunctionSupport(tag string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(strings.TrimPrefix(tag, "v"), "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 1 || minor >= 9
}

// counted makes resources of names.
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
