package amd

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware/manifest"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware/software"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// Releases of AMD's software: its device plugin and node labeller, its DRA driver, and its operator.
const (
	devicePluginImage = "docker.io/rocm/k8s-device-plugin:1.31.0.2"
	nodeLabellerImage = "docker.io/rocm/k8s-device-plugin:labeller-1.31.0.2"
	draDriverImage    = "docker.io/rocm/k8s-gpu-dra-driver:v1.0.0"
	operatorVersion   = "v1.5.1"

	nodeLabellerName  = "amdgpu-node-labeller"
	draDriverName     = "k8s-gpu-dra-driver"
	operatorNamespace = "kube-amd-gpu"
	// partitioningTaint is the key of the taint that a node has while AMD's device config manager partitions its GPUs.
	partitioningTaint = "amd-dcm"
)

// discoveryDefaults are the tolerations of node feature discovery's worker in the operator's chart.
var discoveryDefaults = []corev1.Toleration{
	{Key: partitioningTaint, Operator: corev1.TolerationOpEqual, Value: "up", Effect: corev1.TaintEffectNoExecute},
	{Key: "amd-gpu-unhealthy", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
}

// tenant has a tenant's NodeTypes with AMD GPUs by what advertises the GPUs, each list sorted by name.
type tenant struct {
	devicePlugin, draDriver []software.NodeType
}

func newTenant(nodeTypes []software.NodeType) tenant {
	var t tenant
	for _, n := range nodeTypes {
		switch {
		case n.GPU == nil || n.GPU.Vendor != v1alpha1.VendorAMD:
		case n.HasSlices(wellknown.AMDDRADriver):
			t.draDriver = append(t.draDriver, n)
		default:
			t.devicePlugin = append(t.devicePlugin, n)
		}
	}
	return t
}

// all returns all NodeTypes of the tenant, sorted by name.
func (t tenant) all() []software.NodeType {
	return software.SortByName(slices.Concat(t.devicePlugin, t.draDriver))
}

// Components returns AMD's software as plain objects; a component without objects is not needed. The NodeTypes are sorted by name.
func Components(nodeTypes []software.NodeType) ([]software.Component, error) {
	t := newTenant(nodeTypes)
	devicePlugin, err := t.devicePluginComponent()
	if err != nil {
		return nil, err
	}
	draDriver, err := t.draDriverComponent()
	return []software.Component{devicePlugin, draDriver, t.operatorComponent()}, err
}

func namingStrategy(n software.NodeType) string {
	return cmp.Or(n.Plan.Tenant.ResourceNaming, wellknown.AMDNamingSingle)
}

// tolerations returns the tolerations of AMD's software that does not advertise devices.
func tolerations(nodeTypes []software.NodeType) []corev1.Toleration {
	return software.Tolerations(wellknown.AMDGPU, nodeTypes)
}

// devicePluginTolerations returns the tolerations of the device plugin and of the node labeller. They do not tolerate the
// partitioning taint: the device plugin counts devices only when it starts, so that a pod which stayed on the node while its GPUs
// are partitioned would go on advertising the old number of devices.
func devicePluginTolerations(nodeTypes []software.NodeType) []corev1.Toleration {
	return slices.DeleteFunc(tolerations(nodeTypes), func(t corev1.Toleration) bool { return t.Key == partitioningTaint })
}

// devicePluginComponent returns a DaemonSet of AMD's device plugin for each naming strategy, and the node labeller.
func (t tenant) devicePluginComponent() (software.Component, error) {
	nodeTypes := software.Filter(t.devicePlugin, software.NodeType.HasNodeDriver)
	if len(nodeTypes) == 0 {
		return software.Component{}, nil
	}
	var typed []any
	groups := software.GroupBySettings(nodeTypes, namingStrategy, strings.Compare)
	for _, g := range groups {
		typed = append(typed, devicePluginDaemonSet(g.Settings, g.NodeTypes))
	}
	typed = append(typed, manifest.ServiceAccount(nodeLabellerName), manifest.ClusterRole(nodeLabellerName, manifest.Rule("", "nodes", "watch", "get", "list", "update")), manifest.ClusterRoleBinding(nodeLabellerName, nodeLabellerName, nodeLabellerName), nodeLabellerDaemonSet(nodeTypes))
	objects, err := manifest.Objects(typed...)
	about := "AMD's device plugin and node labeller, as AMD's own manifests have them, one plugin for each naming strategy, with a toleration of\n" +
		"the gate. GPUs are counted when the plugin starts, after they were partitioned."
	if groups[len(groups)-1].Settings != wellknown.AMDNamingSingle || len(groups) > 1 {
		about += "\nNote: the plugin's release must know -resource_naming_strategy; which was the first is not documented."
	}
	return software.Component{Name: "amd-device-plugin", About: about, Objects: objects}, err
}

func devicePluginDaemonSet(naming string, nodeTypes []software.NodeType) any {
	suffix, args := "", []string{"-logtostderr=true", "-stderrthreshold=INFO", "-v=5", "-pulse=30"}
	if naming != wellknown.AMDNamingSingle {
		suffix, args = "-"+naming, append(args, "-resource_naming_strategy="+naming)
	}
	return manifest.DaemonSet("amdgpu-device-plugin-daemonset"+suffix, map[string]string{"name": "amdgpu-dp-ds" + suffix}, corev1.PodSpec{
		Affinity: software.NodeAffinity(nodeTypes), Tolerations: devicePluginTolerations(nodeTypes),
		Containers: []corev1.Container{{
			Name: "amdgpu-dp-cntr", Image: devicePluginImage, WorkingDir: "/root", Command: []string{"./k8s-device-plugin"}, Args: args, SecurityContext: manifest.Unprivileged(),
			VolumeMounts: []corev1.VolumeMount{manifest.Mount("dp", "/var/lib/kubelet/device-plugins"), manifest.Mount("sys", "/sys"), manifest.Mount("health", "/var/lib/amd-metrics-exporter/")},
		}},
		Volumes: []corev1.Volume{
			manifest.HostPath("dp", "/var/lib/kubelet/device-plugins", ""), manifest.HostPath("sys", "/sys", ""), manifest.HostPath("health", "/var/lib/amd-metrics-exporter/", corev1.HostPathDirectoryOrCreate),
		},
	})
}

func nodeLabellerDaemonSet(nodeTypes []software.NodeType) any {
	security := manifest.Privileged()
	security.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	return manifest.DaemonSet("amdgpu-labeller-daemonset", map[string]string{"name": "amdgpu-lr-ds"}, corev1.PodSpec{
		Affinity: software.NodeAffinity(nodeTypes), Tolerations: devicePluginTolerations(nodeTypes), ServiceAccountName: nodeLabellerName,
		Containers: []corev1.Container{{
			Name: "amdgpu-lr-cntr", Image: nodeLabellerImage, WorkingDir: "/root", Command: []string{"./k8s-node-labeller"},
			Args: []string{"-vram", "-cu-count", "-simd-count", "-device-id", "-family"}, Env: []corev1.EnvVar{manifest.EnvFromField("DS_NODE_NAME", "spec.nodeName")},
			SecurityContext: security, VolumeMounts: []corev1.VolumeMount{manifest.Mount("sys", "/sys"), manifest.Mount("dev", "/dev")},
		}},
		Volumes: []corev1.Volume{manifest.HostPath("sys", "/sys", ""), manifest.HostPath("dev", "/dev", "")},
	})
}

// draDriverComponent returns AMD's DRA driver.
func (t tenant) draDriverComponent() (software.Component, error) {
	nodeTypes := software.Filter(t.draDriver, software.NodeType.HasNodeDriver)
	if len(nodeTypes) == 0 {
		return software.Component{}, nil
	}
	objects, err := manifest.Objects(
		manifest.ServiceAccount(draDriverName),
		manifest.ClusterRole(draDriverName+"-role", manifest.Rule(resourcev1.GroupName, "resourceclaims", "get"), manifest.Rule("", "nodes", "get"), manifest.Rule(resourcev1.GroupName, "resourceslices", "get", "list", "watch", "create", "update", "patch", "delete")),
		manifest.ClusterRoleBinding(draDriverName+"-role-binding", draDriverName+"-role", draDriverName),
		manifest.DeviceClass(wellknown.AMDDRADriver, "device.driver == '"+wellknown.AMDDRADriver+"'"), draDriverDaemonSet(nodeTypes),
	)
	return software.Component{Name: "amd-dra-driver", Objects: objects, About: "AMD's DRA driver, as its own chart has it, with a toleration of the gate, for NodeTypes whose GPUs are given out by claims."}, err
}

func draDriverDaemonSet(nodeTypes []software.NodeType) any {
	waitForDriver := "while [ ! -d /sys/class/kfd ] || [ ! -d /sys/module/amdgpu/drivers/ ]; do echo 'amdgpu driver is not loaded'; sleep 2; done"
	return manifest.DaemonSet(draDriverName+"-kubeletplugin", map[string]string{"app.kubernetes.io/name": draDriverName, "app.kubernetes.io/component": "kubeletplugin"}, corev1.PodSpec{
		Affinity: software.NodeAffinity(nodeTypes), Tolerations: tolerations(nodeTypes), ServiceAccountName: draDriverName,
		InitContainers: []corev1.Container{{
			Name: "driver-init", Image: "docker.io/busybox:1.36", Command: []string{"sh", "-c", waitForDriver}, SecurityContext: manifest.Privileged(), VolumeMounts: []corev1.VolumeMount{manifest.Mount("sys", "/sys")},
		}},
		Containers: []corev1.Container{{
			Name: "plugin", Image: draDriverImage, Command: []string{"gpu-kubeletplugin"}, LivenessProbe: manifest.GRPCProbe(51515, 3, 10, 0), SecurityContext: manifest.Privileged(),
			Env: []corev1.EnvVar{
				manifest.Env("CDI_ROOT", "/var/run/cdi"), manifest.Env("KUBELET_REGISTRAR_DIRECTORY_PATH", "/var/lib/kubelet/plugins_registry"), manifest.Env("KUBELET_PLUGINS_DIRECTORY_PATH", "/var/lib/kubelet/plugins"),
				manifest.EnvFromField("NODE_NAME", "spec.nodeName"), manifest.EnvFromField("NAMESPACE", "metadata.namespace"), manifest.Env("HEALTHCHECK_PORT", "51515"),
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

// operatorComponent returns the objects that AMD's operator reads for the NodeTypes whose driver it installs.
func (t tenant) operatorComponent() software.Component {
	out := software.Component{Name: "amd-gpu-operator", About: "What AMD's operator reads, one DeviceConfig for each NodeType. The operator comes with its chart: ingot render --output operator-values."}
	for _, n := range software.Filter(t.all(), software.NodeType.HasOperatorDriver) {
		out.Objects = append(out.Objects, deviceConfig(n))
	}
	return out
}

// Charts returns the chart of AMD's operator, with a DeviceConfig for each NodeType. The chart of the device plugin alone is not
// used, because it has no value for the naming strategy.
func Charts(nodeTypes []software.NodeType) []software.Chart {
	all := newTenant(nodeTypes).all()
	if len(all) == 0 {
		return nil
	}
	drivers := software.Filter(all, software.NodeType.HasOperatorDriver)
	c := software.Chart{
		Name: "gpu-operator-charts", Repository: "https://rocm.github.io/gpu-operator", Version: operatorVersion, Release: "amd-gpu-operator", Namespace: operatorNamespace,
		Values: map[string]any{
			"crds": map[string]any{"defaultCR": map[string]any{"install": false}},
			// The operator does not start when it watches objects of the module manager and nothing has installed their kinds.
			"kmm":                    map[string]any{"enabled": len(drivers) > 0, "watch": len(drivers) > 0},
			"node-feature-discovery": map[string]any{"worker": map[string]any{"tolerations": manifest.Tolerations(software.AddTolerations(discoveryDefaults, tolerations(all)))}},
		},
	}
	for _, n := range all {
		c.Objects = append(c.Objects, deviceConfig(n))
	}
	if len(drivers) > 0 {
		c.Warnings = append(c.Warnings, "driver.image of the DeviceConfigs must name a repository of yours, to which the operator pushes the driver that it builds")
	}
	if slices.ContainsFunc(all, hasConfigProfile) {
		c.Warnings = append(c.Warnings, "the device config manager partitions a node's GPUs while the node has the taint "+partitioningTaint+"=up:NoExecute, which people set and remove; its profiles are those of AMD's own ConfigMap default-dcm-config")
	}
	return []software.Chart{c}
}

// hasConfigProfile reports whether AMD's device config manager partitions the NodeType's GPUs.
func hasConfigProfile(n software.NodeType) bool {
	return n.Plan.NodeLabels[wellknown.LabelAMDConfigProfile] != ""
}

func deviceConfig(n software.NodeType) *unstructured.Unstructured {
	one, claims := []software.NodeType{n}, n.HasSlices(wellknown.AMDDRADriver)
	tolerated := manifest.Tolerations(devicePluginTolerations(one))
	driver := map[string]any{"enable": n.HasOperatorDriver()}
	if n.HasOperatorDriver() {
		// The node already blacklists the driver of the kernel.
		driver["version"], driver["blacklist"], driver["tolerations"] = n.Plan.Tenant.DriverVersion, false, manifest.Tolerations(tolerations(one))
	}
	plugin := map[string]any{"enableDevicePlugin": !claims, "enableNodeLabeller": true, "nodeLabellerTolerations": tolerated}
	if !claims {
		plugin["devicePluginArguments"], plugin["devicePluginTolerations"] = map[string]any{"resource_naming_strategy": namingStrategy(n)}, tolerated
	}
	spec := map[string]any{
		"selector": map[string]any{v1alpha1.LabelNodeType: n.Name}, "driver": driver, "devicePlugin": plugin,
		"draDriver": map[string]any{"enable": claims},
	}
	if claims {
		spec["draDriver"] = map[string]any{"enable": true, "tolerations": manifest.Tolerations(tolerations(one))}
	}
	if hasConfigProfile(n) {
		managerTolerations := append(tolerations(one), corev1.Toleration{Key: partitioningTaint, Operator: corev1.TolerationOpEqual, Value: "up", Effect: corev1.TaintEffectNoExecute})
		spec["configManager"] = map[string]any{"enable": true, "config": map[string]any{"name": "default-dcm-config"}, "configManagerTolerations": manifest.Tolerations(managerTolerations)}
	}
	return manifest.Custom("amd.com/v1alpha1", "DeviceConfig", operatorNamespace, n.Name, spec)
}
