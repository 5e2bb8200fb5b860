package operator

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	registry    = "nvcr.io/nvidia/"
	pluginImage = registry + "k8s-device-plugin:v0.20.0"
	space       = "gpu-operator"
)

// operand is a DaemonSet of the GPU operator's for nodes that its label says.
func (c *Cluster) operand(values map[string]any, name, label, image string, change func(*corev1.PodSpec)) {
	pod := corev1.PodSpec{
		NodeSelector: map[string]string{"nvidia.com/gpu.deploy." + label: "true"}, Tolerations: tolerations(at(values, "daemonsets", "tolerations")),
		Containers: []corev1.Container{{Name: name, Image: image}},
	}
	if at(values, "daemonsets", "tolerations") == nil {
		pod.Tolerations = []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
	}
	if change != nil {
		change(&pod)
	}
	c.add(space, name, pod)
}

// gpuOperator is NVIDIA's operator with its ClusterPolicy.
func (c *Cluster) gpuOperator(r Release) {
	v := r.Values
	c.operated, c.sandbox = true, on(v, false, "sandboxWorkloads", "enabled")
	if on(v, true, "nfd", "enabled") {
		nfd, _ := at(v, "node-feature-discovery").(map[string]any)
		c.nfd(space, nfd)
	}
	if on(v, true, "driver", "enabled") && !on(v, false, "driver", "nvidiaDriverCRD", "enabled") {
		c.operand(v, "nvidia-driver-daemonset", "driver", registry+"driver:"+text(v, "595.91.07", "driver", "version")+"-debian13", env("KERNEL_MODULE_TYPE", text(v, "auto", "driver", "kernelModuleType")))
	}
	if on(v, true, "toolkit", "enabled") {
		c.operand(v, "nvidia-container-toolkit-daemonset", "container-toolkit", registry+"k8s/container-toolkit:v1.19.0", nil)
	}
	plugin := c.plugin(v)
	if on(v, true, "devicePlugin", "enabled") {
		c.operand(v, "nvidia-device-plugin-daemonset", "device-plugin", pluginImage, plugin("nvidia-device-plugin"))
		c.operand(v, "nvidia-device-plugin-mps-control-daemon", "device-plugin", pluginImage, func(pod *corev1.PodSpec) {
			pod.NodeSelector["nvidia.com/mps.capable"] = "true"
			pod.Containers[0].Command = []string{"mps-control-daemon"}
		})
	}
	if on(v, true, "gfd", "enabled") {
		c.operand(v, "gpu-feature-discovery", "gpu-feature-discovery", pluginImage, plugin("gpu-feature-discovery"))
	}
	c.managers(v)
	c.sandboxed(v)
}

// managers cut GPUs by the labels of nodes.
func (c *Cluster) managers(v map[string]any) {
	c.configMap(space, "default-mig-parted-config", map[string]string{"config.yaml": "version: v1\nmig-configs:\n  all-disabled:\n  - {devices: all, mig-enabled: false}\n  all-enabled:\n  - {devices: all, mig-enabled: true, mig-devices: {}}\n"})
	if on(v, true, "migManager", "enabled") {
		c.operand(v, "nvidia-mig-manager", "mig-manager", registry+"k8s-mig-manager:v0.15.0", func(pod *corev1.PodSpec) {
			env("DEFAULT_CONFIG", text(v, "all-disabled", "migManager", "config", "default"))(pod)
			pod.Volumes = []corev1.Volume{volume("mig-parted-config", text(v, "default-mig-parted-config", "migManager", "config", "name"))}
		})
	}
}

// sandboxed is what nodes of virtual machines get.
func (c *Cluster) sandboxed(v map[string]any) {
	if !c.sandbox {
		return
	}
	if on(v, true, "sandboxDevicePlugin", "enabled") {
		c.operand(v, "nvidia-sandbox-device-plugin-daemonset", "sandbox-device-plugin", registry+"kubevirt-gpu-device-plugin:"+text(v, "v1.6.0", "sandboxDevicePlugin", "version"), nil)
	}
	if on(v, true, "vfioManager", "enabled") {
		c.operand(v, "nvidia-vfio-manager", "vfio-manager", registry+"cloud-native/k8s-driver-manager:v0.11.0", nil)
	}
	if on(v, false, "vgpuManager", "enabled") {
		c.operand(v, "nvidia-vgpu-manager-daemonset", "vgpu-manager", "registry.example.com/vgpu-manager:"+text(v, "", "vgpuManager", "version")+"-debian13", nil)
	}
	if on(v, true, "vgpuDeviceManager", "enabled") {
		c.operand(v, "nvidia-vgpu-device-manager", "vgpu-device-manager", registry+"cloud-native/vgpu-device-manager:v0.5.0", func(pod *corev1.PodSpec) {
			env("DEFAULT_VGPU_CONFIG", text(v, "default", "vgpuDeviceManager", "config", "default"))(pod)
			pod.Volumes = []corev1.Volume{volume("vgpu-config", text(v, "default-vgpu-devices-config", "vgpuDeviceManager", "config", "name"))}
		})
	}
}

// plugin changes a pod of the plugin's image: its command, the strategy, and a configuration that the node's label names.
func (c *Cluster) plugin(v map[string]any) func(command string) func(*corev1.PodSpec) {
	name := text(v, "", "devicePlugin", "config", "name")
	if data, ok := at(v, "devicePlugin", "config", "data").(map[string]any); ok && on(v, false, "devicePlugin", "config", "create") {
		c.configMap(space, name, texts(data))
	}
	return func(command string) func(*corev1.PodSpec) {
		return func(pod *corev1.PodSpec) {
			pod.Containers[0].Command = []string{command}
			env("MIG_STRATEGY", text(v, "single", "mig", "strategy"))(pod)
			if name == "" {
				return
			}
			env("CONFIG_FILE", "/config/config.yaml")(pod)
			manage(pod, name, text(v, "", "devicePlugin", "config", "default"))
		}
	}
}

// manage adds the manager of configurations beside the plugin.
func manage(pod *corev1.PodSpec, configMap, fallback string) {
	pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "config", MountPath: "/config"}}
	pod.Containers = append(pod.Containers, corev1.Container{
		Name: "config-manager", Image: pluginImage, Command: []string{"config-manager"},
		Env: []corev1.EnvVar{{Name: "NODE_LABEL", Value: "nvidia.com/device-plugin.config"}, {Name: "DEFAULT_CONFIG", Value: fallback}},
	})
	pod.Volumes = append(pod.Volumes, volume("available-configs", configMap), corev1.Volume{Name: "config", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
}

// devicePlugin is the chart of the device plugin, with feature discovery where that is wanted.
func (c *Cluster) devicePlugin(r Release) {
	v := r.Values
	nfd, _ := at(v, "nfd").(map[string]any)
	gfd := on(v, false, "gfd", "enabled")
	if gfd {
		c.nfd(r.Namespace, nfd)
	}
	data, _ := at(v, "config", "map").(map[string]any)
	if len(data) > 0 {
		c.configMap(r.Namespace, r.Name+"-configs", texts(data))
	}
	for command, wanted := range map[string]bool{"nvidia-device-plugin": true, "gpu-feature-discovery": gfd} {
		if !wanted {
			continue
		}
		pod := corev1.PodSpec{
			Tolerations: tolerations(at(v, "tolerations")), Affinity: affinity(at(v, "affinity")),
			Containers: []corev1.Container{{Name: command, Image: pluginImage, Command: []string{command}}},
		}
		if strategy := text(v, "", "migStrategy"); strategy != "" {
			env("MIG_STRATEGY", strategy)(&pod)
		}
		if len(data) > 0 {
			env("CONFIG_FILE", "/config/config.yaml")(&pod)
			manage(&pod, r.Name+"-configs", text(v, "", "config", "default"))
		}
		c.add(r.Namespace, r.Name+"-"+command, pod)
	}
	if gfd && strings.Contains(strings.Join(slices.Collect(maps.Values(texts(data))), "\n"), "mps:") {
		c.add(r.Namespace, r.Name+"-mps-control-daemon", corev1.PodSpec{
			Tolerations: tolerations(at(v, "tolerations")), Affinity: affinity(at(v, "affinity")), NodeSelector: map[string]string{"nvidia.com/mps.capable": "true"},
			Containers: []corev1.Container{{Name: "mps-control-daemon", Image: pluginImage, Command: []string{"mps-control-daemon"}}},
		})
	}
}

// draDriver is the chart of the DRA driver.
func (c *Cluster) draDriver(r Release) {
	v := r.Values
	if !on(v, true, "resources", "gpus", "enabled") || !on(v, false, "gpuResourcesEnabledOverride") {
		return
	}
	var gates []string
	chosen, _ := at(v, "featureGates").(map[string]any)
	for _, gate := range slices.Sorted(maps.Keys(chosen)) {
		gates = append(gates, gate+"="+text(chosen, "", gate))
	}
	pod := corev1.PodSpec{
		Tolerations: tolerations(at(v, "kubeletPlugin", "tolerations")), Affinity: affinity(at(v, "kubeletPlugin", "affinity")),
		Containers: []corev1.Container{{
			Name: "gpus", Image: registry + "k8s-dra-driver-gpu:v25.12.0", Command: []string{"bash", "-c"}, Args: []string{"gpu-kubelet-plugin -v 4"},
			Env: []corev1.EnvVar{{Name: "NODE_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}}},
		}},
	}
	env("FEATURE_GATES", strings.Join(gates, ","))(&pod)
	c.add(r.Namespace, r.Name+"-kubelet-plugin", pod)
	for class, kind := range map[string]string{"gpu.nvidia.com": "gpu", "mig.nvidia.com": "mig", "vfio.gpu.nvidia.com": "vfio"} {
		c.class(class, "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == '"+kind+"'")
	}
}

func (c *Cluster) class(name, expression string) {
	c.DeviceClasses = append(c.DeviceClasses, resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}},
	})
}

// nvidiaDriver is a driver of nodes that its object selects.
func (c *Cluster) nvidiaDriver(object map[string]any) error {
	spec, _ := at(object, "spec").(map[string]any)
	selector, _ := at(spec, "nodeSelector").(map[string]any)
	pod := corev1.PodSpec{
		NodeSelector: texts(selector), Tolerations: tolerations(at(spec, "tolerations")),
		Containers: []corev1.Container{{Name: "driver", Image: registry + "driver:" + text(spec, "", "version") + "-debian13"}},
	}
	pod.NodeSelector["nvidia.com/gpu.deploy.driver"] = "true"
	env("KERNEL_MODULE_TYPE", text(spec, "auto", "kernelModuleType"))(&pod)
	c.add(space, "nvidia-driver-"+text(object, "", "metadata", "name"), pod)
	return nil
}

func env(name, value string) func(*corev1.PodSpec) {
	return func(pod *corev1.PodSpec) {
		pod.Containers[0].Env = append(pod.Containers[0].Env, corev1.EnvVar{Name: name, Value: value})
	}
}

func volume(name, configMap string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: configMap}}}}
}

func texts(values map[string]any) map[string]string {
	out := map[string]string{}
	for key := range values {
		out[key] = text(values, "", key)
	}
	return out
}
