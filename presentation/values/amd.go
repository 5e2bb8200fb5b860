package values

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ingot-dev/ingot/api/v1alpha1"

	"github.com/ingot-dev/ingot/presentation/values/manifest"
)

// AMD's software: its device plugin and node labeller, its DRA driver, and its operator.
const (
	amdPluginImage   = "docker.io/rocm/k8s-device-plugin:1.31.0.2"
	amdLabellerImage = "docker.io/rocm/k8s-device-plugin:labeller-1.31.0.2"
	amdDRAImage      = "docker.io/rocm/k8s-gpu-dra-driver:v1.0.0"
	amdVersion       = "v1.5.1"
	amdTaint         = "amd.com/gpu"
	amdDRAName       = "k8s-gpu-dra-driver"
	amdLabeller      = "amdgpu-node-labeller"
	single           = "single"
	// amdProfile is the node label by which AMD's device config manager partitions GPUs, amdBusy the taint while it does.
	amdProfile = "dcm.amd.com/gpu-config-profile"
	amdBusy    = "amd-dcm"
)

func amdNaming(n NodeType) string { return cmp.Or(n.Plan.Tenant.ResourceNaming, single) }

// amdTolerations are those of AMD's device plugin and labeller. While GPUs are partitioned they must go, or the old counts
// would stay.
func amdTolerations(nodes []NodeType) []corev1.Toleration {
	return slices.DeleteFunc(tolerations(amdTaint, nodes), func(t corev1.Toleration) bool { return t.Key == amdBusy })
}

// amdPart is a DaemonSet of AMD's device plugin for each naming strategy, and the node labeller.
func (t tenant) amdPart() (Part, error) {
	nodes := only(t.amdPlugin, itself)
	if len(nodes) == 0 {
		return Part{}, nil
	}
	var typed []any
	groups := grouped(nodes, amdNaming, strings.Compare)
	for _, g := range groups {
		typed = append(typed, amdPluginSet(g.want, g.nodes))
	}
	typed = append(typed, manifest.ServiceAccount(amdLabeller), manifest.ClusterRole(amdLabeller, manifest.Rule("", "nodes", "watch", "get", "list", "update")), manifest.ClusterRoleBinding(amdLabeller, amdLabeller, amdLabeller), amdLabellerSet(nodes))
	all, err := manifest.Objects(typed...)
	about := "AMD's device plugin and node labeller, as AMD's own manifests have them, one plugin for each naming strategy, with a toleration of\n" +
		"the gate. GPUs are counted when the plugin starts, after they were partitioned."
	if groups[len(groups)-1].want != single || len(groups) > 1 {
		about += "\nNote: the plugin's release must know -resource_naming_strategy; which was the first is not documented."
	}
	return Part{Name: "amd-device-plugin", About: about, Objects: all}, err
}

func amdPluginSet(naming string, nodes []NodeType) any {
	suffix, args := "", []string{"-logtostderr=true", "-stderrthreshold=INFO", "-v=5", "-pulse=30"}
	if naming != single {
		suffix, args = "-"+naming, append(args, "-resource_naming_strategy="+naming)
	}
	return manifest.DaemonSet("amdgpu-device-plugin-daemonset"+suffix, map[string]string{"name": "amdgpu-dp-ds" + suffix}, corev1.PodSpec{
		Affinity: nodesOf(nodes), Tolerations: amdTolerations(nodes),
		Containers: []corev1.Container{{
			Name: "amdgpu-dp-cntr", Image: amdPluginImage, WorkingDir: "/root", Command: []string{"./k8s-device-plugin"}, Args: args, SecurityContext: manifest.Unprivileged(),
			VolumeMounts: []corev1.VolumeMount{manifest.Mount("dp", "/var/lib/kubelet/device-plugins"), manifest.Mount("sys", "/sys"), manifest.Mount("health", "/var/lib/amd-metrics-exporter/")},
		}},
		Volumes: []corev1.Volume{
			manifest.HostPath("dp", "/var/lib/kubelet/device-plugins", ""), manifest.HostPath("sys", "/sys", ""), manifest.HostPath("health", "/var/lib/amd-metrics-exporter/", corev1.HostPathDirectoryOrCreate),
		},
	})
}

func amdLabellerSet(nodes []NodeType) any {
	security := manifest.Privileged()
	security.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	return manifest.DaemonSet("amdgpu-labeller-daemonset", map[string]string{"name": "amdgpu-lr-ds"}, corev1.PodSpec{
		Affinity: nodesOf(nodes), Tolerations: amdTolerations(nodes), ServiceAccountName: amdLabeller,
		Containers: []corev1.Container{{
			Name: "amdgpu-lr-cntr", Image: amdLabellerImage, WorkingDir: "/root", Command: []string{"./k8s-node-labeller"},
			Args: []string{"-vram", "-cu-count", "-simd-count", "-device-id", "-family"}, Env: []corev1.EnvVar{manifest.Field("DS_NODE_NAME", "spec.nodeName")},
			SecurityContext: security, VolumeMounts: []corev1.VolumeMount{manifest.Mount("sys", "/sys"), manifest.Mount("dev", "/dev")},
		}},
		Volumes: []corev1.Volume{manifest.HostPath("sys", "/sys", ""), manifest.HostPath("dev", "/dev", "")},
	})
}

// amdDRAPart is AMD's DRA driver.
func (t tenant) amdDRAPart() (Part, error) {
	nodes := only(t.amdDRA, itself)
	if len(nodes) == 0 {
		return Part{}, nil
	}
	all, err := manifest.Objects(
		manifest.ServiceAccount(amdDRAName),
		manifest.ClusterRole(amdDRAName+"-role", manifest.Rule(resourcev1.GroupName, "resourceclaims", "get"), manifest.Rule("", "nodes", "get"), manifest.Rule(resourcev1.GroupName, "resourceslices", "get", "list", "watch", "create", "update", "patch", "delete")),
		manifest.ClusterRoleBinding(amdDRAName+"-role-binding", amdDRAName+"-role", amdDRAName),
		manifest.DeviceClass(amdDRA, "device.driver == 'gpu.amd.com'"), amdDRASet(nodes),
	)
	return Part{Name: "amd-dra-driver", Objects: all, About: "AMD's DRA driver, as its own chart has it, with a toleration of the gate, for NodeTypes whose GPUs are given out by claims."}, err
}

func amdDRASet(nodes []NodeType) any {
	wait := "while [ ! -d /sys/class/kfd ] || [ ! -d /sys/module/amdgpu/drivers/ ]; do echo 'amdgpu driver is not loaded'; sleep 2; done"
	probe := alive(3, 10)
	probe.GRPC.Port, probe.TimeoutSeconds = 51515, 0
	return manifest.DaemonSet(amdDRAName+"-kubeletplugin", map[string]string{"app.kubernetes.io/name": amdDRAName, "app.kubernetes.io/component": "kubeletplugin"}, corev1.PodSpec{
		Affinity: nodesOf(nodes), Tolerations: tolerations(amdTaint, nodes), ServiceAccountName: amdDRAName,
		InitContainers: []corev1.Container{{
			Name: "driver-init", Image: "docker.io/busybox:1.36", Command: []string{"sh", "-c", wait}, SecurityContext: manifest.Privileged(), VolumeMounts: []corev1.VolumeMount{manifest.Mount("sys", "/sys")},
		}},
		Containers: []corev1.Container{{
			Name: "plugin", Image: amdDRAImage, Command: []string{"gpu-kubeletplugin"}, LivenessProbe: probe, SecurityContext: manifest.Privileged(),
			Env: []corev1.EnvVar{
				manifest.Env("CDI_ROOT", "/var/run/cdi"), manifest.Env("KUBELET_REGISTRAR_DIRECTORY_PATH", "/var/lib/kubelet/plugins_registry"), manifest.Env("KUBELET_PLUGINS_DIRECTORY_PATH", "/var/lib/kubelet/plugins"),
				manifest.Field("NODE_NAME", "spec.nodeName"), manifest.Field("NAMESPACE", "metadata.namespace"), manifest.Env("HEALTHCHECK_PORT", "51515"),
			},
			VolumeMounts: []corev1.VolumeMount{
				manifest.Mount("plugins-registry", "/var/lib/kubelet/plugins_registry"), manifest.Mount("plugins", "/var/lib/kubelet/plugins"), manifest.Mount("cdi", "/var/run/cdi"), manifest.Mount("dev", "/dev"), manifest.Mount("sys", "/sys"),
			},
		}},
		Volumes: []corev1.Volume{
			manifest.HostPath("plugins-registry", "/var/lib/kubelet/plugins_registry", ""), manifest.HostPath("plugins", "/var/lib/kubelet/plugins", ""), manifest.HostPath("cdi", "/var/run/cdi", ""),
			manifest.HostPath("dev", "/dev", ""), manifest.HostPath("sys", "/sys", ""),
		},
	})
}

// amdOperatorPart is what AMD's operator reads, of NodeTypes whose driver it installs.
func (t tenant) amdOperatorPart() (Part, error) {
	out := Part{Name: "amd-gpu-operator", About: "What AMD's operator reads, one DeviceConfig for each NodeType. The operator comes with its chart: ingot render --output operator-values."}
	for _, n := range only(sorted(slices.Concat(t.amdPlugin, t.amdDRA)), operated) {
		out.Objects = append(out.Objects, deviceConfig(n))
	}
	return out, nil
}

// amdChart is AMD's operator, with a DeviceConfig for each NodeType, for the device plugin's chart has no naming strategy.
func (t tenant) amdChart() ([]Chart, error) {
	all := sorted(slices.Concat(t.amdPlugin, t.amdDRA))
	if len(all) == 0 {
		return nil, nil
	}
	drivers := only(all, operated)
	c := Chart{
		Name: "gpu-operator-charts", Repository: "https://rocm.github.io/gpu-operator", Version: amdVersion, Release: "amd-gpu-operator", Namespace: amdOperatorSpace,
		Values: map[string]any{
			"crds":                   map[string]any{"defaultCR": map[string]any{"install": false}},
			"kmm":                    map[string]any{"enabled": len(drivers) > 0},
			"node-feature-discovery": map[string]any{"worker": map[string]any{"tolerations": manifest.Tolerations(tolerations(amdTaint, all))}},
		},
	}
	for _, n := range all {
		c.Objects = append(c.Objects, deviceConfig(n))
	}
	if len(drivers) > 0 {
		c.Warnings = append(c.Warnings, "driver.image of the DeviceConfigs must name a repository of yours, to which the operator pushes the driver that it builds")
	}
	if slices.ContainsFunc(all, profiled) {
		c.Warnings = append(c.Warnings, "the device config manager partitions a node's GPUs while the node has the taint "+amdBusy+"=up:NoExecute, which people set and remove; its profiles are those of AMD's own ConfigMap default-dcm-config")
	}
	return []Chart{c}, nil
}

// profiled says whether AMD's device config manager partitions the NodeType's GPUs.
func profiled(n NodeType) bool { return n.Plan.NodeLabels[amdProfile] != "" }

func deviceConfig(n NodeType) *unstructured.Unstructured {
	one, claims := []NodeType{n}, published(n, amdDRA)
	tolerated := manifest.Tolerations(amdTolerations(one))
	driver := map[string]any{"enable": operated(n)}
	if operated(n) {
		// The node blacklists the kernel's own already.
		driver["version"], driver["blacklist"], driver["tolerations"] = n.Plan.Tenant.DriverVersion, false, manifest.Tolerations(tolerations(amdTaint, one))
	}
	plugin := map[string]any{"enableDevicePlugin": !claims, "enableNodeLabeller": true, "nodeLabellerTolerations": tolerated}
	if !claims {
		plugin["devicePluginArguments"], plugin["devicePluginTolerations"] = map[string]any{"resource_naming_strategy": amdNaming(n)}, tolerated
	}
	spec := map[string]any{
		"selector": map[string]any{v1alpha1.LabelNodeType: n.Name}, "driver": driver, "devicePlugin": plugin,
		"draDriver": map[string]any{"enable": claims},
	}
	if claims {
		spec["draDriver"] = map[string]any{"enable": true, "tolerations": manifest.Tolerations(tolerations(amdTaint, one))}
	}
	if profiled(n) {
		busy := append(tolerations(amdTaint, one), corev1.Toleration{Key: amdBusy, Operator: corev1.TolerationOpEqual, Value: "up", Effect: corev1.TaintEffectNoExecute})
		spec["configManager"] = map[string]any{"enable": true, "config": map[string]any{"name": "default-dcm-config"}, "configManagerTolerations": manifest.Tolerations(busy)}
	}
	return manifest.Custom("amd.com/v1alpha1", "DeviceConfig", amdOperatorSpace, n.Name, spec)
}
