package vendor

import (
	"cmp"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ingot-dev/ingot/test/rack/dra"
	"github.com/ingot-dev/ingot/test/rack/gpu"
	"github.com/ingot-dev/ingot/test/rack/kubelet"
)

// NVIDIADRA is the name of NVIDIA's DRA driver for GPUs.
const NVIDIADRA = "gpu.nvidia.com"

var _ kubelet.Drivers = Host{}

// DriverName implements kubelet.Drivers.
func (h Host) DriverName(pod *corev1.Pod) string {
	if driverContainer(pod) == nil {
		return ""
	}
	return NVIDIADRA
}

// RunDriver implements kubelet.Drivers. It finds devices once, when the driver starts.
func (h Host) RunDriver(ctx context.Context, in kubelet.DriverPod) error {
	container := driverContainer(in.Pod)
	node := cmp.Or(arguments(container)["node-name"], environmentValue(in.Pod, container, "NODE_NAME"))
	if node == "" {
		return errors.New(`required flag "node-name" not set`)
	}
	contents, err := h.PublishedContents(in.Pod)
	if err != nil {
		return err
	}
	publisher := dra.Publisher{Client: in.Client, Driver: NVIDIADRA, Node: node, Contents: contents, Retry: in.Retry}
	if h.IncompletePool {
		publisher.MissingSlices = 1
	}
	return publisher.Run(ctx)
}

// PublishedContents returns the devices that the driver in the pod publishes, and the counters that they share.
func (h Host) PublishedContents(pod *corev1.Pod) (dra.Contents, error) {
	on := map[string]bool{}
	for gate := range strings.SplitSeq(environmentValue(pod, driverContainer(pod), "FEATURE_GATES"), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(gate), "=")
		on[name] = value == "true"
	}
	for _, pair := range exclusiveGates {
		if on[pair[0]] && on[pair[1]] {
			return dra.Contents{}, fmt.Errorf("feature gates %s and %s are mutually exclusive", pair[0], pair[1])
		}
	}
	if on[gateMetadata] && !on[gatePassthrough] {
		return dra.Contents{}, fmt.Errorf("feature gate %s requires %s", gateMetadata, gatePassthrough)
	}
	if on[gateDynamic] {
		return h.dynamicContents()
	}
	devices, err := h.nvidiaDevices()
	if err != nil || !on[gatePassthrough] {
		return dra.Contents{Devices: devices}, err
	}
	functions, err := h.vfioDevices()
	return dra.Contents{Devices: append(devices, functions...)}, err
}

// driverContainer returns the container of NVIDIA's DRA driver for GPUs. Another container of the same image is for
// ComputeDomains.
func driverContainer(pod *corev1.Pod) *corev1.Container {
	for i, container := range pod.Spec.Containers {
		if _, name := splitImage(container.Image); name != "k8s-dra-driver-gpu" && name != "dra-driver-nvidia-gpu" {
			continue
		}
		if strings.Contains(strings.Join(slices.Concat(container.Command, container.Args), " "), "gpu-kubelet-plugin") {
			return &pod.Spec.Containers[i]
		}
	}
	return nil
}

// environmentValue returns an environment variable of the container, given by value or by a field of the pod.
func environmentValue(pod *corev1.Pod, container *corev1.Container, name string) string {
	for _, env := range container.Env {
		switch {
		case env.Name != name:
		case env.ValueFrom == nil:
			return env.Value
		case env.ValueFrom.FieldRef != nil && env.ValueFrom.FieldRef.FieldPath == "spec.nodeName":
			return pod.Spec.NodeName
		}
	}
	return ""
}

// nvidiaDevices returns what the driver publishes in static mode (cmd/gpu-kubelet-plugin): each GPU, or the instances of a
// GPU in MIG mode.
func (h Host) nvidiaDevices() ([]resourcev1.Device, error) {
	if h.NVIDIADriver == "" {
		return nil, errors.New("kubelet-plugin-prestart: nvidia-smi: no such file: the driver is not found in the driver root")
	}
	var out []resourcev1.Device
	for _, g := range h.GPUs {
		common, err := h.commonAttributes(g)
		if err != nil {
			return nil, err
		}
		if !g.MIG {
			common["type"], common["uuid"] = stringAttribute("gpu"), stringAttribute(g.UUID)
			out = append(out, resourcev1.Device{
				Name: fmt.Sprint("gpu-", g.Minor), Attributes: common,
				Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": mebibytes(g.Model.MemoryMiB)},
			})
			continue
		}
		var parts []resourcev1.Device
		for _, instance := range g.Instances {
			parts = append(parts, migDevice(g, instance, common))
		}
		slices.SortFunc(parts, func(a, b resourcev1.Device) int { return strings.Compare(a.Name, b.Name) })
		out = append(out, parts...)
	}
	return out, nil
}

// commonAttributes are those that a GPU and its instances share.
func (h Host) commonAttributes(g *gpu.GPU) (map[resourcev1.QualifiedName]resourcev1.DeviceAttribute, error) {
	out := map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
		"productName": stringAttribute(g.Model.Product), "brand": stringAttribute("Nvidia"), "architecture": stringAttribute(g.Model.Architecture),
		"resource.kubernetes.io/pciBusID": stringAttribute(g.Address),
	}
	for name, number := range map[resourcev1.QualifiedName]string{
		"cudaComputeCapability": g.Model.ComputeCapability, "driverVersion": h.NVIDIADriver, "cudaDriverVersion": cudaVersion(h.NVIDIADriver),
	} {
		semantic, err := semanticVersion(number)
		if err != nil {
			return nil, fmt.Errorf("attribute %s: %w", name, err)
		}
		out[name] = resourcev1.DeviceAttribute{VersionValue: &semantic}
	}
	return out, nil
}

var notInNames = regexp.MustCompile(`[^a-z0-9-]`)

// migDevice returns a static MIG device.
func migDevice(g *gpu.GPU, instance gpu.Instance, common map[resourcev1.QualifiedName]resourcev1.DeviceAttribute) resourcev1.Device {
	profile := instance.Profile
	device := resourcev1.Device{
		Name: fmt.Sprintf("gpu-%d-mig-%s-%d-%d", g.Minor, notInNames.ReplaceAllString(strings.ReplaceAll(profile.Name, ".", ""), "-"), profile.ID, instance.Start),
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"type": stringAttribute("mig"), "uuid": stringAttribute(instance.UUID), "parentUUID": stringAttribute(g.UUID), "profile": stringAttribute(profile.Name),
		},
		Capacity: instanceCapacity(g.Model, instance),
	}
	for name, value := range common {
		device.Attributes[name] = value
	}
	for slot := instance.Start; slot < instance.Start+profile.Slots; slot++ {
		device.Capacity[resourcev1.QualifiedName(fmt.Sprint("memorySlice", slot))] = number(1)
	}
	return device
}

// instanceCapacity returns the memory and the hardware units of an instance.
func instanceCapacity(model gpu.Model, instance gpu.Instance) map[resourcev1.QualifiedName]resourcev1.DeviceCapacity {
	engines := instance.Profile.Engines
	return map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
		"memory": mebibytes(instance.MemoryMiB(model)), "multiprocessors": number(instance.Profile.Multiprocessors), "copyEngines": number(engines.Copy),
		"decoders": number(engines.Decoders), "encoders": number(engines.Encoders), "jpegEngines": number(engines.JPEG), "ofaEngines": number(engines.OpticalFlow),
	}
}

func stringAttribute(value string) resourcev1.DeviceAttribute {
	return resourcev1.DeviceAttribute{StringValue: &value}
}

func mebibytes(n int64) resourcev1.DeviceCapacity { return number(n << 20) }

func number(n int64) resourcev1.DeviceCapacity {
	return resourcev1.DeviceCapacity{Value: *resource.NewQuantity(n, resource.BinarySI)}
}

// semanticVersion writes a version as the driver's library does: three numbers without leading zeros, so that 550.163.01
// becomes 550.163.1.
func semanticVersion(version string) (string, error) {
	out := []string{"0", "0", "0"}
	parts := strings.Split(version, ".")
	if len(parts) > len(out) {
		return "", fmt.Errorf("invalid semantic version %q", version)
	}
	for i, part := range parts {
		number, err := strconv.ParseUint(part, 10, 32)
		if err != nil {
			return "", fmt.Errorf("invalid semantic version %q", version)
		}
		out[i] = strconv.FormatUint(number, 10)
	}
	return strings.Join(out, "."), nil
}

// cudaVersions are the CUDA versions that driver branches bring (CUDA compatibility guide).
var cudaVersions = []struct {
	branch int
	cuda   string
}{{595, "13.2"}, {590, "13.1"}, {580, "13.0"}, {575, "12.9"}, {570, "12.8"}, {565, "12.7"}, {560, "12.6"}, {555, "12.5"}, {550, "12.4"}, {545, "12.3"}, {535, "12.2"}}

func cudaVersion(driver string) string {
	major, _, _ := strings.Cut(driver, ".")
	branch, err := strconv.Atoi(major)
	for _, known := range cudaVersions {
		if err == nil && branch >= known.branch {
			return known.cuda
		}
	}
	return "12.0"
}

// Feature gates of the driver that change what is published, or whether it starts.
const (
	gateDynamic     = "DynamicMIG"
	gatePassthrough = "PassthroughSupport"
	gateMetadata    = "DeviceMetadata"
)

// exclusiveGates are pairs of gates with which the driver does not start (its pkg/featuregates).
var exclusiveGates = [][2]string{
	{gateDynamic, gatePassthrough}, {gateDynamic, "NVMLDeviceHealthCheck"}, {gateDynamic, "MPSSupport"},
	{gatePassthrough, "NVMLDeviceHealthCheck"},
}

// Prepare returns the devices that are left when the driver has prepared claims for those with the names: of a GPU that is published for containers and for virtual
// machines it withdraws the other device (RemoveSiblingDevices). When the claim is gone both are there again.
func Prepare(devices []resourcev1.Device, claimed ...string) []resourcev1.Device {
	held := map[string]string{}
	for _, d := range devices {
		if kind, gpu := formOf(d); kind != "" && slices.Contains(claimed, d.Name) {
			held[gpu] = kind
		}
	}
	return slices.DeleteFunc(slices.Clone(devices), func(d resourcev1.Device) bool {
		kind, gpu := formOf(d)
		return kind != "" && held[gpu] != "" && held[gpu] != kind
	})
}

// formOf returns in which of the two forms the device is which GPU; an empty kind: it is a partition.
func formOf(d resourcev1.Device) (kind, gpu string) {
	of, address := d.Attributes["type"].StringValue, d.Attributes["resource.kubernetes.io/pciBusID"].StringValue
	if of == nil || address == nil || *of != "gpu" && *of != "vfio" {
		return "", ""
	}
	return *of, *address
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
		// A GPU without NVIDIA's driver tells no UUID, so that the driver makes one of the address (cmd/gpu-kubelet-plugin/nvlib.go).
		id := nameUUID(g.Address)
		enabled := false
		out = append(out, resourcev1.Device{
			Name: fmt.Sprint("gpu-vfio-", i),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"type": stringAttribute("vfio"), "uuid": stringAttribute(id), "deviceID": stringAttribute("0x" + g.DeviceID), "vendorID": stringAttribute("0x10de"), "productName": stringAttribute(g.Model.Product),
				"iommuFDEnabled": {BoolValue: &enabled}, "resource.kubernetes.io/pciBusID": stringAttribute(g.Address),
			},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"addressableMemory": mebibytes(g.Model.MemoryMiB)},
		})
	}
	return out, nil
}

// nameUUID returns the UUID of a name in the namespace of domain names: version 5 of RFC 9562, which google/uuid calls NewSHA1.
func nameUUID(name string) string {
	sum := sha1.Sum([]byte("\x6b\xa7\xb8\x10\x9d\xad\x11\xd1\x80\xb4\x00\xc0\x4f\xd4\x30\xc8" + name))
	sum[6], sum[8] = sum[6]&0x0f|0x50, sum[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
