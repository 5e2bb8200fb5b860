package software

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/ingot-dev/ingot/test/rack/pci"
)

// Anybody's device plugin has an image whose name ends with /device-plugin, and anybody's DRA driver one with /dra-driver. They
// say by their arguments what they look for and what they advertise:
//
//	--vendor=1da3 --device=1020 --module=habanalabs    functions that this driver holds; without a module any driver, or none
//	--resource=habana.ai/gaudi --each=2                for a device plugin: so many of the resource for each function
//	--driver=gaudi.intel.com --type=accelerator        for a DRA driver: its name, and the attribute type

func (h Host) matchingDevices(pod *corev1.Pod) []*pci.Device {
	vendor, device, driver := option(pod, "vendor", ""), option(pod, "device", ""), option(pod, "module", "")
	var out []*pci.Device
	for _, d := range h.Machine.Bus.Devices() {
		if d.VendorID == vendor && (device == "" || d.DeviceID == device) && (driver == "" || d.Driver == driver) {
			out = append(out, d)
		}
	}
	return out
}

func (h Host) registerGeneric(_ context.Context, pod *corev1.Pod, _ Reader) (Result, error) {
	each := 1
	if n, err := strconv.Atoi(option(pod, "each", "")); err == nil {
		each = n
	}
	var names []string
	for range each * len(h.matchingDevices(pod)) {
		names = append(names, option(pod, "resource", ""))
	}
	return Result{Devices: countDevices("", names)}, nil
}

func (h Host) publishGeneric(_ context.Context, pod *corev1.Pod, _ Reader) (Result, error) {
	out := Result{Driver: option(pod, "driver", "")}
	if out.Driver == "" {
		return out, fmt.Errorf("required flag --driver not set")
	}
	for i, d := range h.matchingDevices(pod) {
		device := resourcev1.Device{Name: fmt.Sprint("device-", i), Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"pciAddress": stringAttribute(strings.ToLower(d.Address))}}
		if kind := option(pod, "type", ""); kind != "" {
			device.Attributes["type"] = stringAttribute(kind)
		}
		out.Published.Devices = append(out.Published.Devices, device)
	}
	return out, nil
}
