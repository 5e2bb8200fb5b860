package operator

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// installAMDOperator installs the chart of AMD's operator, which does nothing without a DeviceConfig.
func (c *Cluster) installAMDOperator(r Release) {
	nfd, _ := valueAt(r.Values, "node-feature-discovery").(map[string]any)
	c.addNodeFeatureDiscovery(r.Namespace, nfd)
	c.addDeviceClass("gpu.amd.com", "device.driver == 'gpu.amd.com'")
}

// applyDeviceConfig creates what AMD's operator creates for a DeviceConfig.
func (c *Cluster) applyDeviceConfig(o *unstructured.Unstructured) error {
	spec, _ := valueAt(o.Object, "spec").(map[string]any)
	selector, _ := valueAt(spec, "selector").(map[string]any)
	add := func(name, image string, tolerated any, args ...string) {
		c.addDaemonSet(o.GetNamespace(), o.GetName()+"-"+name, corev1.PodSpec{
			NodeSelector: stringMap(selector), Tolerations: tolerations(tolerated), Containers: []corev1.Container{{Name: name, Image: image, Args: args}},
		})
	}
	if isEnabled(spec, false, "driver", "enable") {
		add("driver", "registry.example.com/amdgpu-driver:"+textAt(spec, "", "driver", "version"), valueAt(spec, "driver", "tolerations"))
	}
	if isEnabled(spec, true, "devicePlugin", "enableDevicePlugin") && !isEnabled(spec, false, "draDriver", "enable") {
		chosen, _ := valueAt(spec, "devicePlugin", "devicePluginArguments").(map[string]any)
		var args []string
		for _, name := range slices.Sorted(maps.Keys(chosen)) {
			args = append(args, "-"+name+"="+textAt(chosen, "", name))
		}
		add("device-plugin", "docker.io/rocm/k8s-device-plugin:1.31.0.2", valueAt(spec, "devicePlugin", "devicePluginTolerations"), args...)
	}
	if isEnabled(spec, true, "devicePlugin", "enableNodeLabeller") {
		add("node-labeller", "docker.io/rocm/k8s-node-labeller:1.31.0.2", valueAt(spec, "devicePlugin", "nodeLabellerTolerations"))
	}
	if isEnabled(spec, false, "draDriver", "enable") {
		add("dra-driver", "docker.io/rocm/k8s-gpu-dra-driver:v1.0.0", valueAt(spec, "draDriver", "tolerations"))
	}
	if isEnabled(spec, false, "configManager", "enable") {
		add("config-manager", "docker.io/rocm/device-config-manager:v1.5.1", valueAt(spec, "configManager", "configManagerTolerations"))
	}
	return nil
}
