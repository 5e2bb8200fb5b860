package operator

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// amdOperator is the chart of AMD's operator: it does nothing before there is a DeviceConfig.
func (c *Cluster) amdOperator(r Release) {
	nfd, _ := at(r.Values, "node-feature-discovery").(map[string]any)
	c.nfd(r.Namespace, nfd)
	c.class("gpu.amd.com", "device.driver == 'gpu.amd.com'")
}

// deviceConfig is what AMD's operator makes of its object.
func (c *Cluster) deviceConfig(o *unstructured.Unstructured) error {
	spec, _ := at(o.Object, "spec").(map[string]any)
	selector, _ := at(spec, "selector").(map[string]any)
	add := func(name, image string, tolerated any, args ...string) {
		c.add(o.GetNamespace(), o.GetName()+"-"+name, corev1.PodSpec{
			NodeSelector: texts(selector), Tolerations: tolerations(tolerated), Containers: []corev1.Container{{Name: name, Image: image, Args: args}},
		})
	}
	if on(spec, false, "driver", "enable") {
		add("driver", "registry.example.com/amdgpu-driver:"+text(spec, "", "driver", "version"), at(spec, "driver", "tolerations"))
	}
	if on(spec, true, "devicePlugin", "enableDevicePlugin") && !on(spec, false, "draDriver", "enable") {
		chosen, _ := at(spec, "devicePlugin", "devicePluginArguments").(map[string]any)
		var args []string
		for _, name := range slices.Sorted(maps.Keys(chosen)) {
			args = append(args, "-"+name+"="+text(chosen, "", name))
		}
		add("device-plugin", "docker.io/rocm/k8s-device-plugin:1.31.0.2", at(spec, "devicePlugin", "devicePluginTolerations"), args...)
	}
	if on(spec, true, "devicePlugin", "enableNodeLabeller") {
		add("node-labeller", "docker.io/rocm/k8s-node-labeller:1.31.0.2", at(spec, "devicePlugin", "nodeLabellerTolerations"))
	}
	if on(spec, false, "draDriver", "enable") {
		add("dra-driver", "docker.io/rocm/k8s-gpu-dra-driver:v1.0.0", at(spec, "draDriver", "tolerations"))
	}
	if on(spec, false, "configManager", "enable") {
		add("config-manager", "docker.io/rocm/device-config-manager:v1.5.1", at(spec, "configManager", "configManagerTolerations"))
	}
	return nil
}
