package vendor

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/test/rack/gpu"
)

// IsFeatureDiscovery reports whether the pod is NVIDIA's GPU feature discovery, which is in the device plugin's image.
func IsFeatureDiscovery(pod *corev1.Pod) bool { return discoveryContainer(pod) != nil }

func discoveryContainer(pod *corev1.Pod) *corev1.Container {
	for i, container := range pod.Spec.Containers {
		words := strings.Join(append(append([]string(nil), container.Command...), container.Args...), " ")
		if _, name := splitImage(container.Image); name == "k8s-device-plugin" && strings.Contains(words, "gpu-feature-discovery") {
			return &pod.Spec.Containers[i]
		}
	}
	return nil
}

// FeatureLabels returns the labels that feature discovery sets (its internal/lm), as far as something uses them.
func (h Host) FeatureLabels(ctx context.Context, pod *corev1.Pod, configMap func(context.Context, string) (map[string]string, error)) (map[string]string, error) {
	config, err := nvidiaConfig(ctx, pod, discoveryContainer(pod), configMap)
	if err != nil {
		return nil, err
	}
	if h = h.seenBy(discoveryContainer(pod)); h.NVIDIADriver == "" || h.NVIDIAToolkit == "" || len(h.GPUs) == 0 {
		return nil, errors.New("failed to initialize NVML: ERROR_LIBRARY_NOT_FOUND")
	}
	first := h.GPUs[0]
	out := map[string]string{
		"nvidia.com/cuda.driver-version.full": h.NVIDIADriver,
		"nvidia.com/gpu.family":               strings.ReplaceAll(strings.ToLower(first.Model.Architecture), " ", "-"),
		"nvidia.com/mig.capable":              fmt.Sprint(first.HasMIGMode()),
		"nvidia.com/mps.capable":              fmt.Sprint(config.hasMPS() && !first.MIG),
		"nvidia.com/vgpu.present":             fmt.Sprint(first.Virtual),
	}
	for i, part := range strings.SplitN(h.NVIDIADriver, ".", 3) {
		out["nvidia.com/cuda.driver-version."+[]string{"major", "minor", "revision"}[i]] = part
	}
	if config.migStrategy != "" && config.migStrategy != "none" {
		out["nvidia.com/mig.strategy"] = config.migStrategy
	}
	h.addGPULabels(out, config)
	return out, nil
}

// addGPULabels adds the labels of the GPUs as the strategy counts them.
func (h Host) addGPULabels(out map[string]string, config pluginConfig) {
	set := func(prefix, product string, memory int64, n int, name string) {
		replicas, kind := int64(1), "none"
		if shared, ok := config.sharing[name]; ok {
			replicas, kind = shared.replicas, shared.kind
			if shared.name == name {
				product += "-SHARED"
			}
		}
		out[prefix+".product"], out[prefix+".count"] = labelValue(product), fmt.Sprint(n)
		out[prefix+".memory"], out[prefix+".replicas"] = fmt.Sprint(memory), fmt.Sprint(replicas)
		if prefix == "nvidia.com/gpu" {
			out["nvidia.com/gpu.sharing-strategy"] = kind
		}
	}
	first := h.GPUs[0].Model
	set("nvidia.com/gpu", first.Product, first.MemoryMiB, len(h.GPUs), prefix+"gpu")
	if config.migStrategy == "mixed" && !slices.ContainsFunc(h.GPUs, func(g *gpu.GPU) bool { return !g.MIG }) {
		out["nvidia.com/gpu.replicas"] = "0" // A GPU in MIG mode is given to nobody.
	}
	switch config.migStrategy {
	case "single":
		instances := h.migInstances()
		if len(instances) == 0 {
			return
		}
		devices, err := h.singleStrategyDevices()
		if err != nil {
			set("nvidia.com/gpu", first.Product+"-MIG-INVALID", 0, 0, "")
			return
		}
		one := instances[0]
		set("nvidia.com/gpu", first.Product+"-MIG-"+one.Profile.Name, one.MemoryMiB(first), int(devices["gpu"].Total), prefix+"gpu")
	case "mixed":
		counts := map[string]int{}
		for _, instance := range h.migInstances() {
			name := strings.ReplaceAll("mig-"+instance.Profile.Name, "+", ".")
			counts[name]++
			set(prefix+name, first.Product+"-MIG-"+instance.Profile.Name, instance.MemoryMiB(first), counts[name], prefix+name)
		}
	}
}

func (h Host) migInstances() []gpu.Instance {
	var out []gpu.Instance
	for _, g := range h.GPUs {
		if g.MIG {
			out = append(out, g.Instances...)
		}
	}
	return out
}

var notInLabels = regexp.MustCompile(`[^A-Za-z0-9-_. ]`)

func labelValue(text string) string {
	return strings.Join(strings.Fields(notInLabels.ReplaceAllString(text, "")), "-")
}
