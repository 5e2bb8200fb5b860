package software

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ingot-dev/ingot/test/rack/machineos"
	"github.com/ingot-dev/ingot/test/rack/pci"
)

const amdDRA = "gpu.amd.com"

// installAMDDriver installs the driver of AMD's operator.
func (h Host) installAMDDriver(_ context.Context, pod *corev1.Pod, _ Reader) (Result, error) {
	_, _, tag := splitImage(pod.Spec.Containers[0].Image)
	version, _, _ := strings.Cut(tag, "-")
	return Result{}, h.Machine.InstallDriver(machineos.GPUDriver{Vendor: "amd", Version: version})
}

// amdGPUs returns the GPUs that AMD's driver is bound to.
func (h Host) amdGPUs() []*pci.Device {
	var out []*pci.Device
	for _, d := range h.Machine.Bus.Devices() {
		if d.Driver == "amdgpu" {
			out = append(out, d)
		}
	}
	return out
}

// partitionName returns the partition modes as the plugin and the labels write them: cpx_nps4.
func partitionName(d *pci.Device) string {
	compute, memory := d.Partition()
	if compute == "" {
		return ""
	}
	return strings.ToLower(compute + "_" + memory)
}

// registerAMD simulates AMD's device plugin (cmd/k8s-device-plugin). With the strategy single it fails on a node with
// several kinds of partitions.
func (h Host) registerAMD(_ context.Context, pod *corev1.Pod, _ Reader) (Result, error) {
	strategy := option(pod, "resource_naming_strategy", "")
	if strategy == "" {
		strategy = "single"
	}
	kinds, parts := map[string]bool{}, h.amdPartitionCounts()
	var names []string
	for _, d := range h.amdGPUs() {
		name, kind := "gpu", partitionName(d)
		kinds[kind] = true
		if strategy == "mixed" && kind != "" {
			name = kind
		}
		for range parts[d.Address] {
			names = append(names, name)
		}
	}
	switch {
	case strategy != "single" && strategy != "mixed":
		return Result{}, fmt.Errorf("unknown resource_naming_strategy %s", strategy)
	case len(names) == 0:
		return Result{}, errors.New("no GPU: /sys/class/kfd is not there")
	case strategy == "single" && len(kinds) > 1:
		return Result{}, errors.New("partitions of different styles are on the node, and the strategy is single")
	}
	return Result{Devices: countDevices("amd.com/", names)}, nil
}

// amdPartitionCounts returns the number of devices of each GPU. With a display driver beside CPX one device gets no number.
func (h Host) amdPartitionCounts() map[string]int {
	out, total := map[string]int{}, 0
	for _, d := range h.amdGPUs() {
		out[d.Address] = d.PartitionCount()
		total += d.PartitionCount()
	}
	const numbers = 64 // of render nodes
	if total >= numbers && h.Machine.Bus.HasDisplayDevice() {
		out[h.amdGPUs()[0].Address]--
	}
	return out
}

// labelAMDNode simulates AMD's node labeller.
func (h Host) labelAMDNode(context.Context, *corev1.Pod, Reader) (Result, error) {
	gpus := h.amdGPUs()
	if len(gpus) == 0 {
		return Result{}, nil
	}
	out := map[string]string{"amd.com/gpu.device-id": gpus[0].DeviceID, "amd.com/gpu.mode": "container"}
	if kind := partitionName(gpus[0]); kind != "" {
		out["amd.com/gpu.compute-memory-partition"] = kind
	}
	return Result{Labels: out}, nil
}

// publishAMD simulates AMD's DRA driver as of October 2025.
func (h Host) publishAMD(context.Context, *corev1.Pod, Reader) (Result, error) {
	out := Result{Driver: amdDRA}
	parts := h.amdPartitionCounts()
	for i, d := range h.amdGPUs() {
		for n := range parts[d.Address] {
			kind, profile := "amdgpu", partitionName(d)
			if profile != "" && profile != "spx_nps1" {
				kind = "amdgpu-partition"
			}
			card, render := int64(i*8+n), int64(128+i*8+n)
			attributes := map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"type": stringAttribute(kind), "deviceID": stringAttribute(d.DeviceID), "cardIndex": {IntValue: &card}, "renderIndex": {IntValue: &render}, "pciAddr": stringAttribute(d.Address),
			}
			if profile != "" {
				attributes["partitionProfile"] = stringAttribute(profile)
			}
			out.Published.Devices = append(out.Published.Devices, resourcev1.Device{
				Name: fmt.Sprintf("gpu-%d-%d", card, render), Attributes: attributes,
				Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("24Gi")}},
			})
		}
	}
	if len(out.Published.Devices) == 0 {
		return Result{}, errors.New("no GPU that amdgpu holds")
	}
	return out, nil
}

func stringAttribute(value string) resourcev1.DeviceAttribute {
	return resourcev1.DeviceAttribute{StringValue: &value}
}

// partitionProfile is an entry in the configuration of AMD's device config manager.
type partitionProfile struct {
	Profiles []struct {
		Compute string `json:"computePartition"`
		Memory  string `json:"memoryPartition"`
	} `json:"profiles"`
}

// applyAMD simulates AMD's device config manager.
func (h Host) applyAMD(ctx context.Context, pod *corev1.Pod, read Reader) (Result, error) {
	const key = "dcm.amd.com/gpu-config-profile"
	name := h.Node.Labels[key]
	if name == "" {
		return Result{}, nil
	}
	result := func(state string, err error) (Result, error) {
		return Result{Labels: map[string]string{key + "-state": state}}, err
	}
	compute, memory, err := dcmProfile(ctx, pod, read, name)
	if err == nil && len(h.amdGPUs()) == 0 {
		err = errors.New("no GPU that amdgpu holds")
	}
	if err != nil {
		return result("failure", err)
	}
	for _, d := range h.amdGPUs() {
		if err := d.SetPartition("memory", memory); err != nil {
			return result("failure", err)
		}
	}
	// It has the driver start anew, and then sets what takes effect at once.
	h.Machine.Bus.UnloadModule("amdgpu")
	h.Machine.Bus.LoadModule("amdgpu", nil)
	for _, d := range h.amdGPUs() {
		if err := d.SetPartition("compute", compute); err != nil {
			return result("failure", err)
		}
	}
	return result("success", nil)
}

// dcmProfile returns the profile with this name from the mounted ConfigMap, or else from the default one.
func dcmProfile(ctx context.Context, pod *corev1.Pod, read Reader, name string) (compute, memory string, err error) {
	standard := map[string][2]string{
		"default": {"SPX", "NPS1"}, "cpx_nps1_all": {"CPX", "NPS1"}, "cpx_nps4_all": {"CPX", "NPS4"}, "dpx_nps2_all": {"DPX", "NPS2"}, "qpx_nps1_all": {"QPX", "NPS1"},
	}
	if config, err := mountedConfig(ctx, pod, read, "config.json"); err == nil {
		var file struct {
			Profiles map[string]partitionProfile `json:"gpu-config-profiles"`
		}
		if err := json.Unmarshal([]byte(config), &file); err != nil {
			return "", "", err
		}
		if p, ok := file.Profiles[name]; ok && len(p.Profiles) > 0 {
			return p.Profiles[0].Compute, p.Profiles[0].Memory, nil
		}
	} else if p, ok := standard[name]; ok {
		return p[0], p[1], nil
	}
	return "", "", fmt.Errorf("no profile %s", name)
}
