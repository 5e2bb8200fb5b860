package values

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/ingot-dev/ingot/presentation/values/manifest"
)

// NVIDIA's DRA driver, release 0.4.1: its chart and its image.
const (
	draVersion = "0.4.1"
	draImage   = "registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu:v" + draVersion
	draName    = "nvidia-dra-driver-gpu"
	draLabel   = "nvidia.com/dra-kubelet-plugin"
	hostRoot   = "/"
	podRoot    = "/run/nvidia/driver"

	gatePassthrough = "PassthroughSupport"
)

// draWant is what tells DRA drivers apart.
type draWant struct {
	// gates are the feature gates, sorted, as the driver reads them.
	gates string
	// root of the GPU driver on the node.
	root string
}

func wantOfDRA(n NodeType) draWant {
	out := draWant{root: hostRoot}
	if operated(n) {
		out.root = podRoot
	}
	var on []string
	for _, g := range n.Plan.Tenant.FeatureGates {
		on = append(on, g+"=true")
	}
	out.gates = strings.Join(slices.Sorted(slices.Values(on)), ",")
	return out
}

// suffix of the names of the DaemonSet and its pods; the plain one has none.
func (w draWant) suffix() string {
	out := ""
	for _, gate := range w.list() {
		out += "-" + strings.ToLower(gate)
	}
	if w.root != hostRoot {
		out += "-driver-pod"
	}
	return out
}

// list of the feature gates.
func (w draWant) list() []string {
	if w.gates == "" {
		return nil
	}
	return strings.Split(strings.ReplaceAll(w.gates, "=true", ""), ",")
}

func (w draWant) has(gate string) bool { return slices.Contains(w.list(), gate) }

func draGroups(nodeTypes []NodeType) []group[draWant] {
	return grouped(nodeTypes, wantOfDRA, func(a, b draWant) int { return cmp.Compare(a.suffix(), b.suffix()) })
}

// draPart is a DaemonSet for each set of feature gates, and what they share.
func (t tenant) draPart() (Part, error) {
	if len(t.dra) == 0 {
		return Part{}, nil
	}
	about := "NVIDIA's DRA driver for GPUs, as the driver's own chart has it, for NodeTypes whose GPUs are given out by claims. The device plugin does\n" +
		"not run there: both would give the same GPUs away. A new node carries the gate until it publishes what was promised, so the driver\n" +
		"tolerates it. Needs Kubernetes 1.34 or newer, and CDI enabled in the image's containerd (the default since 2.0)."
	if len(t.domains) > 0 {
		about += "\nCompute domains, by which IMEX runs on the racks of " + strings.Join(names(t.domains), ", ") + ", take the driver's chart: ingot render --output operator-values."
	}
	typed := append(draAccount(), manifest.OwnSlices("resourceslices-policy-"+draName, draName+"-service-account-kubeletplugin")...)
	typed = append(typed, draClasses(t.dra)...)
	for _, g := range draGroups(t.dra) {
		typed = append(typed, draSet(g))
	}
	all, err := manifest.Objects(typed...)
	return Part{Name: "nvidia-dra-driver", About: about, Objects: all}, err
}

// draSet is the driver of a group.
func draSet(g group[draWant]) any {
	inward, both := corev1.MountPropagationHostToContainer, corev1.MountPropagationBidirectional
	folders := []corev1.EnvVar{manifest.Env("KUBELET_REGISTRAR_DIRECTORY_PATH", "/var/lib/kubelet/plugins_registry"), manifest.Env("KUBELET_PLUGINS_DIRECTORY_PATH", "/var/lib/kubelet/plugins")}
	common := append([]corev1.EnvVar{manifest.Env("NVIDIA_DRIVER_ROOT", g.want.root), manifest.Env("NVIDIA_VISIBLE_DEVICES", "void")}, folders...)
	parent := corev1.VolumeMount{Name: "driver-root-parent", MountPath: "/driver-root-parent", ReadOnly: true}
	if g.want.root != hostRoot {
		// The driver's pod mounts it, at any time.
		parent.ReadOnly, parent.MountPropagation = false, &inward
	}
	container := corev1.Container{
		Name: "gpus", Image: draImage, Command: []string{"bash", "-c"}, Args: []string{"gpu-kubelet-plugin -v $(LOG_VERBOSITY)"},
		Env: append([]corev1.EnvVar{
			manifest.Env("LOG_VERBOSITY", "4"), manifest.Env("CDI_ROOT", "/var/run/cdi"), manifest.Env("NVIDIA_MIG_CONFIG_DEVICES", "all"),
			manifest.Field("NODE_NAME", "spec.nodeName"), manifest.Field("NAMESPACE", "metadata.namespace"), manifest.Env("IMAGE_NAME", draImage), manifest.Env("HEALTHCHECK_PORT", "51516"),
		}, common...),
		StartupProbe: alive(600, 1), LivenessProbe: alive(3, 30), SecurityContext: manifest.Privileged(),
		VolumeMounts: []corev1.VolumeMount{
			manifest.Mount("plugins-registry", "/var/lib/kubelet/plugins_registry"), {Name: "plugins", MountPath: "/var/lib/kubelet/plugins", MountPropagation: &both},
			manifest.Mount("cdi", "/var/run/cdi"), {Name: "driver-root", MountPath: "/driver-root", MountPropagation: &inward},
		},
	}
	pod := corev1.PodSpec{
		Affinity: nodesOf(g.nodes), NodeSelector: map[string]string{draLabel: "true"}, Tolerations: tolerations("nvidia.com/gpu", g.nodes),
		ServiceAccountName: draName + "-service-account-kubeletplugin",
		InitContainers: []corev1.Container{{
			Name: "init-container", Image: draImage, Command: []string{"bash", "/usr/bin/kubelet-plugin-prestart.sh"}, Env: common,
			SecurityContext: manifest.Privileged(), VolumeMounts: []corev1.VolumeMount{parent},
		}},
		Volumes: []corev1.Volume{
			manifest.HostPath("plugins-registry", "/var/lib/kubelet/plugins_registry", ""), manifest.HostPath("plugins", "/var/lib/kubelet/plugins", ""), manifest.HostPath("cdi", "/var/run/cdi", ""),
			manifest.HostPath("driver-root-parent", path.Dir(g.want.root), corev1.HostPathDirectoryOrCreate), manifest.HostPath("driver-root", g.want.root, corev1.HostPathDirectoryOrCreate),
		},
	}
	g.want.open(&container, &pod)
	pod.Containers = []corev1.Container{container}
	name := draName + "-kubelet-plugin" + g.want.suffix()
	return manifest.DaemonSet(name, map[string]string{"nvidia-dra-driver-gpu-component": "kubelet-plugin" + g.want.suffix()}, pod)
}

// open turns feature gates on, with what the driver's chart mounts for them.
func (w draWant) open(container *corev1.Container, pod *corev1.PodSpec) {
	if w.gates != "" {
		container.Env = append(container.Env, manifest.Env("FEATURE_GATES", w.gates))
	}
	if !w.has(gatePassthrough) {
		return
	}
	inward, both := corev1.MountPropagationHostToContainer, corev1.MountPropagationBidirectional
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "host-root", MountPath: "/host-root", MountPropagation: &inward, ReadOnly: true},
		corev1.VolumeMount{Name: "sysfs", MountPath: "/sys/", MountPropagation: &both}, corev1.VolumeMount{Name: "procfs", MountPath: "/proc/", MountPropagation: &both})
	pod.Volumes = append(pod.Volumes, manifest.HostPath("host-root", "/", corev1.HostPathDirectory), manifest.HostPath("sysfs", "/sys/", corev1.HostPathDirectory), manifest.HostPath("procfs", "/proc/", corev1.HostPathDirectory))
}

func alive(failures, period int32) *corev1.Probe {
	service := "liveness"
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 51516, Service: &service}}, FailureThreshold: failures, PeriodSeconds: period, TimeoutSeconds: 10,
	}
}

// draAccount is the driver's account and its rights.
func draAccount() []any {
	account, role := draName+"-service-account-kubeletplugin", draName+"-clusterrole-kubeletplugin"
	return []any{manifest.ServiceAccount(account), manifest.ClusterRole(role,
		manifest.Rule(resourcev1.GroupName, "resourceclaims", "get", "list", "watch"),
		manifest.Rule(resourcev1.GroupName, "resourceslices", "get", "list", "watch", "create", "update", "delete"),
		manifest.Rule("", "nodes", "get", "list", "watch"),
		manifest.Rule("", "pods", "get", "list", "watch"),
		manifest.Rule("", "events", "create"),
	), manifest.ClusterRoleBinding(draName+"-clusterrole-binding-kubeletplugin", role, account)}
}

// draClasses are the DeviceClasses that the plans expect, and those that the driver's chart always makes.
func draClasses(nodeTypes []NodeType) []any {
	types := map[string]string{"gpu.nvidia.com": "gpu", "mig.nvidia.com": "mig"}
	for _, n := range nodeTypes {
		if slices.Contains(n.Plan.Tenant.FeatureGates, gatePassthrough) {
			types["vfio.gpu.nvidia.com"] = "vfio"
		}
	}
	var out []any
	for _, name := range slices.Sorted(maps.Keys(types)) {
		class := manifest.DeviceClass(name, "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == '"+types[name]+"'")
		if name == nvidiaDRA {
			// Pods that ask for nvidia.com/gpu get a whole GPU of these nodes too, as the driver's chart has it.
			extended := "nvidia.com/gpu"
			class.Spec.ExtendedResourceName = &extended
		}
		out = append(out, class)
	}
	return out
}
