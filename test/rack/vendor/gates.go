package vendor

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/ingot-dev/ingot/test/rack/gpu"
)

// Feature gates of the driver that change what is published, or whether it starts.
const (
	gateDynamic     = "DynamicMIG"
	gatePassthrough = "PassthroughSupport"
	gateMetadata    = "DeviceMetadata"
)

// exclusiveGates are pairs of gates with which the driver does not start (its pkg/featuregates).
var exclusiveGates = [][2]string{
	{gateDynamic, gatePassthrough}, {gateDynamic, "NVMLDeviceHealthCheck"}, {gateDynamic, "MPSSupport"},
	{gatePassthrough, "NVMLDeviceHealthCheck"}, {"ConsumableShares", "MPSSupport"},
}

// vfioDevices returns the GPUs as devices for virtual machines, without those in MIG mode.
func (h Host) vfioDevices() ([]resourcev1.Device, error) {
	if !h.IOMMU {
		return nil, errors.New("PassthroughSupport: /sys/kernel/iommu_groups is empty: the IOMMU is off")
	}
	var out []resourcev1.Device
	for i, g := range h.GPUs {
		if g.MIG {
			continue
		}
		enabled := false
		out = append(out, resourcev1.Device{
			Name: fmt.Sprint("gpu-vfio-", i),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"type": stringAttribute("vfio"), "uuid": stringAttribute(g.UUID), "deviceID": stringAttribute("0x" + g.DeviceID), "vendorID": stringAttribute("0x10de"), "productName": stringAttribute(g.Model.Product),
				"iommuFDEnabled": {BoolValue: &enabled}, "resource.kubernetes.io/pciBusID": stringAttribute(g.Address),
			},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"addressableMemory": mebibytes(g.Model.MemoryMiB)},
		})
	}
	return out, nil
}

// dynamicDevices returns every placement of every profile (KEP-4815) and, from Hopper on, each whole GPU. On Ampere the MIG
// mode decides which of them. The shared counters for the scheduler are left out.
func (h Host) dynamicDevices() ([]resourcev1.Device, error) {
	whole, err := h.wholeGPUs()
	if err != nil {
		return nil, err
	}
	var out []resourcev1.Device
	for i, g := range h.GPUs {
		if !g.HasMIGMode() {
			out = append(out, whole[i])
			continue
		}
		if !g.Model.HasPersistentMIGMode() || !g.MIG {
			out = append(out, whole[i])
		}
		if g.Model.HasPersistentMIGMode() && !g.MIG {
			continue
		}
		common, err := h.commonAttributes(g)
		if err != nil {
			return nil, err
		}
		for _, p := range g.Model.Profiles {
			for _, start := range p.Starts {
				device := migDevice(g, gpu.Instance{Profile: p, Start: start}, maps.Clone(common))
				delete(device.Attributes, "uuid") // there is no instance yet
				out = append(out, device)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b resourcev1.Device) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// wholeGPUs returns the GPUs as devices, whatever their MIG mode.
func (h Host) wholeGPUs() ([]resourcev1.Device, error) {
	plain := h
	plain.GPUs = nil
	for _, g := range h.GPUs {
		copied := *g
		copied.MIG = false
		plain.GPUs = append(plain.GPUs, &copied)
	}
	return plain.nvidiaDevices()
}
