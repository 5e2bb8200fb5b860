package vendor

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/test/rack/gpu"
	"github.com/ingot-dev/ingot/test/rack/kubelet"
)

// prefix is the prefix of NVIDIA's resources.
const prefix = "nvidia.com/"

// nvidiaResources returns the resources that the plugin registers with this configuration.
func (h Host) nvidiaResources(config pluginConfig) (map[corev1.ResourceName]kubelet.Devices, error) {
	if h.NVIDIADriver == "" || h.NVIDIAToolkit == "" || len(h.GPUs) == 0 {
		if config.failOnInitError {
			return nil, errors.New("failed to initialize NVML: ERROR_LIBRARY_NOT_FOUND: is the driver loaded, and the container toolkit configured?")
		}
		return nil, nil // it waits for ever
	}
	plain, err := h.devices(config.migStrategy)
	if err != nil {
		return nil, err
	}
	shared := map[corev1.ResourceName]kubelet.Devices{}
	for name, devices := range plain {
		full := corev1.ResourceName(prefix + name)
		if sharing, ok := config.sharing[string(full)]; ok {
			devices.Total *= sharing.replicas
			devices.Healthy *= sharing.replicas
			full = corev1.ResourceName(sharing.name)
		}
		shared[full] = devices
	}
	return shared, nil
}

// devices returns the devices by resource without prefix, before sharing.
func (h Host) devices(strategy string) (map[string]kubelet.Devices, error) {
	switch strategy {
	case "", "none":
		out := map[string]kubelet.Devices{}
		for _, g := range h.GPUs {
			addDevices(out, "gpu", g, 1)
		}
		return out, nil
	case "single":
		return h.singleStrategyDevices()
	case "mixed":
		out := map[string]kubelet.Devices{}
		for _, g := range h.GPUs {
			if !g.MIG {
				addDevices(out, "gpu", g, 1)
			}
			// A GPU in MIG mode without instances is only a warning in the plugin's log.
			for _, instance := range g.Instances {
				if g.MIG {
					addDevices(out, "mig-"+strings.ReplaceAll(instance.Profile.Name, "+", "."), g, 1)
				}
			}
		}
		return out, nil
	default:
		return nil, fmt.Errorf("unknown strategy: %s", strategy)
	}
}

// singleStrategyDevices returns the devices for the strategy single, which requires that every GPU has the same layout.
func (h Host) singleStrategyDevices() (map[string]kubelet.Devices, error) {
	out := map[string]kubelet.Devices{}
	enabled := slices.ContainsFunc(h.GPUs, func(g *gpu.GPU) bool { return g.MIG })
	profiles := map[string]bool{}
	for i, g := range h.GPUs {
		if g.MIG != enabled {
			return nil, errors.New("all devices on the node must be configured with the same migEnabled value")
		}
		if !enabled {
			addDevices(out, "gpu", g, 1)
			continue
		}
		if len(g.Instances) == 0 {
			return nil, fmt.Errorf("device %d has no MIG devices configured", i)
		}
		for _, instance := range g.Instances {
			profiles[instance.Profile.Name] = true
		}
		addDevices(out, "gpu", g, int64(len(g.Instances)))
	}
	if len(profiles) > 1 {
		return nil, errors.New("at least one device with migEnabled=true was not configured correctly: more than one MIG device type present on node")
	}
	return out, nil
}

func addDevices(into map[string]kubelet.Devices, name string, g *gpu.GPU, n int64) {
	devices := into[name]
	devices.Total += n
	if !g.Unhealthy {
		devices.Healthy += n
	}
	into[name] = devices
}
