package operator

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	registry          = "nvcr.io/nvidia/"
	pluginImage       = registry + "k8s-device-plugin:v0.20.0"
	operatorNamespace = "gpu-operator"
)

// addOperand adds a DaemonSet of the GPU operator for the nodes with its label.
func (c *Cluster) addOperand(values map[string]any, name, label, image string, change func(*corev1.PodSpec)) {
	pod := corev1.PodSpec{
		NodeSelector: map[string]string{"nvidia.com/gpu.deploy." + label: "true"}, Tolerations: tolerations(valueAt(values, "daemonsets", "tolerations")),
		Containers: []corev1.Container{{Name: name, Image: image}},
	}
	if valueAt(values, "daemonsets", "tolerations") == nil {
		pod.Tolerations = []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
	}
	if change != nil {
		change(&pod)
	}
	c.addDaemonSet(operatorNamespace, name, pod)
}

// installGPUOperator installs NVIDIA's operator with its ClusterPolicy.
func (c *Cluster) installGPUOperator(r Release) {
	v := r.Values
	c.hasGPUOperator, c.hasSandboxWorkloads = true, isEnabled(v, false, "sandboxWorkloads", "enabled")
	if isEnabled(v, true, "nfd", "enabled") {
		nfd, _ := valueAt(v, "node-feature-discovery").(map[string]any)
		c.addNodeFeatureDiscovery(operatorNamespace, nfd)
	}
	if isEnabled(v, true, "driver", "enabled") && !isEnabled(v, false, "driver", "nvidiaDriverCRD", "enabled") {
		c.addOperand(v, "nvidia-driver-daemonset", "driver", registry+"driver:"+textAt(v, "595.91.07", "driver", "version")+"-debian13", env("KERNEL_MODULE_TYPE", textAt(v, "auto", "driver", "kernelModuleType")))
	}
	if isEnabled(v, true, "toolkit", "enabled") {
		c.addOperand(v, "nvidia-container-toolkit-daemonset", "container-toolkit", registry+"k8s/container-toolkit:v1.19.0", environment(v, "toolkit"))
	}
	plugin := c.configurePlugin(v)
	if isEnabled(v, true, "devicePlugin", "enabled") {
		c.addOperand(v, "nvidia-device-plugin-daemonset", "device-plugin", pluginImage, plugin("nvidia-device-plugin"))
		c.addOperand(v, "nvidia-device-plugin-mps-control-daemon", "device-plugin", pluginImage, func(pod *corev1.PodSpec) {
			pod.NodeSelector["nvidia.com/mps.capable"] = "true"
			pod.Containers[0].Command = []string{"mps-control-daemon"}
		})
	}
	if isEnabled(v, true, "gfd", "enabled") {
		c.addOperand(v, "gpu-feature-discovery", "gpu-feature-discovery", pluginImage, plugin("gpu-feature-discovery"))
	}
	c.addMIGManager(v)
	c.addSandboxOperands(v)
}

// addMIGManager adds the manager that partitions GPUs by node labels.
func (c *Cluster) addMIGManager(v map[string]any) {
	c.setConfigMap(operatorNamespace, "default-mig-parted-config", map[string]string{"config.yaml": "version: v1\nmig-configs:\n  all-disabled:\n  - {devices: all, mig-enabled: false}\n  all-enabled:\n  - {devices: all, mig-enabled: true, mig-devices: {}}\n"})
	if isEnabled(v, true, "migManager", "enabled") {
		c.addOperand(v, "nvidia-mig-manager", "mig-manager", registry+"k8s-mig-manager:v0.15.0", func(pod *corev1.PodSpec) {
			env("DEFAULT_CONFIG", textAt(v, "all-disabled", "migManager", "config", "default"))(pod)
			pod.Volumes = []corev1.Volume{volume("mig-parted-config", textAt(v, "default-mig-parted-config", "migManager", "config", "name"))}
		})
	}
}

// addSandboxOperands adds the DaemonSets for nodes with virtual machines.
func (c *Cluster) addSandboxOperands(v map[string]any) {
	if !c.hasSandboxWorkloads {
		return
	}
	if isEnabled(v, true, "sandboxDevicePlugin", "enabled") {
		c.addOperand(v, "nvidia-sandbox-device-plugin-daemonset", "sandbox-device-plugin", registry+"kubevirt-gpu-device-plugin:"+textAt(v, "v1.6.0", "sandboxDevicePlugin", "version"), nil)
	}
	if isEnabled(v, true, "vfioManager", "enabled") {
		c.addOperand(v, "nvidia-vfio-manager", "vfio-manager", registry+"cloud-native/k8s-driver-manager:v0.11.0", nil)
	}
	if isEnabled(v, false, "vgpuManager", "enabled") {
		c.addOperand(v, "nvidia-vgpu-manager-daemonset", "vgpu-manager", "registry.example.com/vgpu-manager:"+textAt(v, "", "vgpuManager", "version")+"-debian13", nil)
	}
	if isEnabled(v, true, "vgpuDeviceManager", "enabled") {
		c.addOperand(v, "nvidia-vgpu-device-manager", "vgpu-device-manager", registry+"cloud-native/vgpu-device-manager:v0.5.0", func(pod *corev1.PodSpec) {
			env("DEFAULT_VGPU_CONFIG", textAt(v, "default", "vgpuDeviceManager", "config", "default"))(pod)
			pod.Volumes = []corev1.Volume{volume("vgpu-config", textAt(v, "default-vgpu-devices-config", "vgpuDeviceManager", "config", "name"))}
		})
	}
}

// configurePlugin returns a function that sets the command, the MIG strategy and the configuration of a pod with the
// plugin's image.
func (c *Cluster) configurePlugin(v map[string]any) func(command string) func(*corev1.PodSpec) {
	name := textAt(v, "", "devicePlugin", "config", "name")
	if data, ok := valueAt(v, "devicePlugin", "config", "data").(map[string]any); ok && isEnabled(v, false, "devicePlugin", "config", "create") {
		c.setConfigMap(operatorNamespace, name, stringMap(data))
	}
	return func(command string) func(*corev1.PodSpec) {
		return func(pod *corev1.PodSpec) {
			pod.Containers[0].Command, pod.Containers[0].SecurityContext = []string{command}, privileged()
			env("MIG_STRATEGY", textAt(v, "single", "mig", "strategy"))(pod)
			if name == "" {
				return
			}
			env("CONFIG_FILE", "/config/config.yaml")(pod)
			addConfigManager(pod, name, textAt(v, "", "devicePlugin", "config", "default"))
		}
	}
}

// addConfigManager adds the manager of configurations as a container beside the plugin.
func addConfigManager(pod *corev1.PodSpec, configMap, fallback string) {
	pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "config", MountPath: "/config"}}
	pod.Containers = append(pod.Containers, corev1.Container{
		Name: "config-manager", Image: pluginImage, Command: []string{"config-manager"},
		Env: []corev1.EnvVar{{Name: "NODE_LABEL", Value: "nvidia.com/device-plugin.config"}, {Name: "DEFAULT_CONFIG", Value: fallback}},
	})
	pod.Volumes = append(pod.Volumes, volume("available-configs", configMap), corev1.Volume{Name: "config", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
}

// installDevicePlugin installs the chart of the device plugin, with feature discovery if it is enabled.
func (c *Cluster) installDevicePlugin(r Release) {
	v := r.Values
	nfd, _ := valueAt(v, "nfd").(map[string]any)
	gfd := isEnabled(v, false, "gfd", "enabled")
	if gfd {
		c.addNodeFeatureDiscovery(r.Namespace, nfd)
	}
	data, _ := valueAt(v, "config", "map").(map[string]any)
	if len(data) > 0 {
		c.setConfigMap(r.Namespace, r.Name+"-configs", stringMap(data))
	}
	for command, wanted := range map[string]bool{"nvidia-device-plugin": true, "gpu-feature-discovery": gfd} {
		if !wanted {
			continue
		}
		pod := corev1.PodSpec{
			Tolerations: tolerations(valueAt(v, "tolerations")), Affinity: affinity(valueAt(v, "affinity")),
			Containers: []corev1.Container{{Name: command, Image: pluginImage, Command: []string{command}, SecurityContext: pluginSecurity(v, command)}},
		}
		for variable, path := range map[string]string{"MIG_STRATEGY": "migStrategy", "DEVICE_LIST_STRATEGY": "deviceListStrategy"} {
			if value := textAt(v, "", path); value != "" {
				env(variable, value)(&pod)
			}
		}
		if len(data) > 0 {
			env("CONFIG_FILE", "/config/config.yaml")(&pod)
			addConfigManager(&pod, r.Name+"-configs", textAt(v, "", "config", "default"))
		}
		c.addDaemonSet(r.Namespace, r.Name+"-"+command, pod)
	}
	if gfd && strings.Contains(strings.Join(slices.Collect(maps.Values(stringMap(data))), "\n"), "mps:") {
		c.addDaemonSet(r.Namespace, r.Name+"-mps-control-daemon", corev1.PodSpec{
			Tolerations: tolerations(valueAt(v, "tolerations")), Affinity: affinity(valueAt(v, "affinity")), NodeSelector: map[string]string{"nvidia.com/mps.capable": "true"},
			Containers: []corev1.Container{{Name: "mps-control-daemon", Image: pluginImage, Command: []string{"mps-control-daemon"}}},
		})
	}
}

// installDRADriver installs the chart of the DRA driver.
func (c *Cluster) installDRADriver(r Release) {
	v := r.Values
	if !isEnabled(v, true, "resources", "gpus", "enabled") || !isEnabled(v, false, "gpuResourcesEnabledOverride") {
		return
	}
	var gates []string
	chosen, _ := valueAt(v, "featureGates").(map[string]any)
	for _, gate := range slices.Sorted(maps.Keys(chosen)) {
		gates = append(gates, gate+"="+textAt(chosen, "", gate))
	}
	pod := corev1.PodSpec{
		Tolerations: tolerations(valueAt(v, "kubeletPlugin", "tolerations")), Affinity: affinity(valueAt(v, "kubeletPlugin", "affinity")),
		Containers: []corev1.Container{{
			Name: "gpus", Image: registry + "k8s-dra-driver-gpu:v25.12.0", Command: []string{"bash", "-c"}, Args: []string{"gpu-kubelet-plugin -v 4"},
			Env: []corev1.EnvVar{{Name: "NODE_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}}},
		}},
	}
	env("FEATURE_GATES", strings.Join(gates, ","))(&pod)
	c.addDaemonSet(r.Namespace, r.Name+"-kubelet-plugin", pod)
	for class, kind := range map[string]string{"gpu.nvidia.com": "gpu", "mig.nvidia.com": "mig", "vfio.gpu.nvidia.com": "vfio"} {
		c.addDeviceClass(class, "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == '"+kind+"'")
	}
}

func (c *Cluster) addDeviceClass(name, expression string) {
	c.DeviceClasses = append(c.DeviceClasses, resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}},
	})
}

// applyNVIDIADriver adds the driver for the nodes that an NVIDIADriver selects.
func (c *Cluster) applyNVIDIADriver(object map[string]any) error {
	spec, _ := valueAt(object, "spec").(map[string]any)
	selector, _ := valueAt(spec, "nodeSelector").(map[string]any)
	pod := corev1.PodSpec{
		NodeSelector: stringMap(selector), Tolerations: tolerations(valueAt(spec, "tolerations")),
		Containers: []corev1.Container{{Name: "driver", Image: registry + "driver:" + textAt(spec, "", "version") + "-debian13"}},
	}
	pod.NodeSelector["nvidia.com/gpu.deploy.driver"] = "true"
	env("KERNEL_MODULE_TYPE", textAt(spec, "auto", "kernelModuleType"))(&pod)
	c.addDaemonSet(operatorNamespace, "nvidia-driver-"+textAt(object, "", "metadata", "name"), pod)
	return nil
}

// environment returns a function that sets the environment that the values have for an operand.
func environment(values map[string]any, operand string) func(*corev1.PodSpec) {
	return func(pod *corev1.PodSpec) {
		all, _ := valueAt(values, operand, "env").([]any)
		for _, each := range all {
			variable, _ := each.(map[string]any)
			env(textAt(variable, "", "name"), textAt(variable, "", "value"))(pod)
		}
	}
}

func privileged() *corev1.SecurityContext {
	yes := true
	return &corev1.SecurityContext{Privileged: &yes}
}

// pluginSecurity returns the security context that the device plugin's chart 0.19.3 gives its containers (templates/_helpers.tpl): feature discovery is
// privileged, and the plugin has what the values say, else SYS_ADMIN unless the MIG strategy is none.
func pluginSecurity(v map[string]any, command string) *corev1.SecurityContext {
	if command == "gpu-feature-discovery" {
		return privileged()
	}
	add, _ := valueAt(v, "securityContext", "capabilities", "add").([]any)
	if valueAt(v, "securityContext") == nil && textAt(v, "none", "migStrategy") != "none" {
		add = []any{"SYS_ADMIN"}
	}
	out := &corev1.SecurityContext{Capabilities: &corev1.Capabilities{}}
	for _, capability := range add {
		out.Capabilities.Add = append(out.Capabilities.Add, corev1.Capability(fmt.Sprint(capability)))
	}
	return out
}

func env(name, value string) func(*corev1.PodSpec) {
	return func(pod *corev1.PodSpec) {
		pod.Containers[0].Env = append(pod.Containers[0].Env, corev1.EnvVar{Name: name, Value: value})
	}
}

func volume(name, configMap string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: configMap}}}}
}

func stringMap(values map[string]any) map[string]string {
	out := map[string]string{}
	for key := range values {
		out[key] = textAt(values, "", key)
	}
	return out
}
