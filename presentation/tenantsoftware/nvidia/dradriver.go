package nvidia

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware/manifest"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware/software"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// NVIDIA's DRA driver: its image without the tag, which is the release, and its name.
const (
	draDriverRepository  = "registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu"
	draDriverName        = "nvidia-dra-driver-gpu"
	draDriverAccountName = draDriverName + "-service-account-kubeletplugin"
	// imexSocket is where IMEX of the host listens for commands, relative to the driver root, as the chart of the driver has it by default.
	imexSocket = "/etc/nvidia-imex/imex_ctrl.sock"
	// hostDriverRoot is the root of a GPU driver that is installed on the node.
	hostDriverRoot = "/"
	// operatorDriverRoot is where the operator's driver pod mounts the driver.
	operatorDriverRoot = "/run/nvidia/driver"

	// consumableShares is how claims share a device with the feature gate ConsumableShares, which alone changes nothing: by the memory that they request.
	consumableShares = "memory"

	// draDriverOncePerCluster names the software of a Conflict.
	draDriverOncePerCluster = "the chart dra-driver-nvidia-gpu is installed once in a cluster"
)

// draDriverSettings are the settings of the DRA driver that can differ between NodeTypes.
type draDriverSettings struct {
	// featureGates are the feature gates, sorted, in the form that the driver reads.
	featureGates string
	// driverRoot is the root of the GPU driver on the node.
	driverRoot string
	// release of the driver.
	release string
}

func (s draDriverSettings) image() string { return draDriverRepository + ":v" + s.release }

func draDriverSettingsOf(n software.NodeType) draDriverSettings {
	out := draDriverSettings{driverRoot: hostDriverRoot, release: cmp.Or(n.Plan.Tenant.DRARelease, wellknown.NVIDIADRARelease)}
	if n.HasOperatorDriver() {
		out.driverRoot = operatorDriverRoot
	}
	var gates []string
	for _, g := range n.Plan.Tenant.FeatureGates {
		gates = append(gates, g+"=true")
	}
	out.featureGates = strings.Join(slices.Sorted(slices.Values(gates)), ",")
	return out
}

// suffix returns the suffix of the names of the DaemonSet and its pods. The default settings have none.
func (s draDriverSettings) suffix() string {
	out := ""
	for _, gate := range s.gateNames() {
		out += "-" + strings.ToLower(gate)
	}
	if s.driverRoot != hostDriverRoot {
		out += "-driver-pod"
	}
	if s.release != wellknown.NVIDIADRARelease {
		out += "-v" + strings.ReplaceAll(s.release, ".", "-")
	}
	return out
}

// gateNames returns the names of the feature gates.
func (s draDriverSettings) gateNames() []string {
	if s.featureGates == "" {
		return nil
	}
	return strings.Split(strings.ReplaceAll(s.featureGates, "=true", ""), ",")
}

func (s draDriverSettings) hasGate(gate string) bool { return slices.Contains(s.gateNames(), gate) }

func draDriverGroups(nodeTypes []software.NodeType) []software.Group[draDriverSettings] {
	return software.GroupBySettings(nodeTypes, draDriverSettingsOf, func(a, b draDriverSettings) int { return cmp.Compare(a.suffix(), b.suffix()) })
}

// draDriverComponent returns a DaemonSet for each set of feature gates, and the objects that they share.
func (t tenant) draDriverComponent() (software.Component, error) {
	if len(t.draDriver) == 0 {
		return software.Component{}, nil
	}
	about := "NVIDIA's DRA driver for GPUs, as the driver's own chart has it, for NodeTypes whose GPUs are given out by claims. The device plugin does\n" +
		"not run there: both would give the same GPUs away. A new node carries the gate until it publishes what was promised, so the driver\n" +
		"tolerates it. Needs Kubernetes 1.34 or newer, and CDI enabled in the image's containerd (the default since 2.0)."
	if len(t.computeDomains) > 0 {
		about += "\nCompute domains, by which IMEX runs on the racks of " + strings.Join(software.Names(t.computeDomains), ", ") + ", take the driver's chart: ingot render --output operator-values."
	}
	typed := append(draDriverAccount(slices.ContainsFunc(t.draDriver, func(n software.NodeType) bool { return n.HasFeatureGate(wellknown.GateMPS) })), manifest.ResourceSlicePolicy("resourceslices-policy-"+draDriverName, draDriverAccountName)...)
	typed = append(typed, draDriverClasses(t.draDriver)...)
	for _, g := range draDriverGroups(t.draDriver) {
		typed = append(typed, draDriverDaemonSet(g))
	}
	all, err := manifest.Objects(typed...)
	return software.Component{Name: "nvidia-dra-driver", About: about, Objects: all}, err
}

// draDriverDaemonSet returns the driver of a group.
func draDriverDaemonSet(g software.Group[draDriverSettings]) any {
	inward, both := corev1.MountPropagationHostToContainer, corev1.MountPropagationBidirectional
	directories := []corev1.EnvVar{manifest.Env("KUBELET_REGISTRAR_DIRECTORY_PATH", "/var/lib/kubelet/plugins_registry"), manifest.Env("KUBELET_PLUGINS_DIRECTORY_PATH", "/var/lib/kubelet/plugins")}
	common := append([]corev1.EnvVar{manifest.Env("NVIDIA_DRIVER_ROOT", g.Settings.driverRoot), manifest.Env("NVIDIA_VISIBLE_DEVICES", "void")}, directories...)
	parent := corev1.VolumeMount{Name: "driver-root-parent", MountPath: "/driver-root-parent", ReadOnly: true}
	if g.Settings.driverRoot != hostDriverRoot {
		// The driver's pod can mount it after this pod has started.
		parent.ReadOnly, parent.MountPropagation = false, &inward
	}
	container := corev1.Container{
		Name: "gpus", Image: g.Settings.image(), Command: []string{"bash", "-c"}, Args: []string{"gpu-kubelet-plugin -v $(LOG_VERBOSITY)"},
		Env: append([]corev1.EnvVar{
			manifest.Env("LOG_VERBOSITY", "4"), manifest.Env("CDI_ROOT", "/var/run/cdi"), manifest.Env("NVIDIA_MIG_CONFIG_DEVICES", "all"),
			manifest.EnvFromField("NODE_NAME", "spec.nodeName"), manifest.EnvFromField("NAMESPACE", "metadata.namespace"), manifest.EnvFromField("SERVICE_ACCOUNT_NAME", "spec.serviceAccountName"), manifest.Env("IMAGE_NAME", g.Settings.image()), manifest.Env("HEALTHCHECK_PORT", "51516"),
		}, common...),
		StartupProbe: manifest.GRPCProbe(51516, 600, 1, 10), LivenessProbe: manifest.GRPCProbe(51516, 3, 30, 10), SecurityContext: manifest.Privileged(),
		VolumeMounts: []corev1.VolumeMount{
			manifest.Mount("plugins-registry", "/var/lib/kubelet/plugins_registry"), {Name: "plugins", MountPath: "/var/lib/kubelet/plugins", MountPropagation: &both},
			manifest.Mount("cdi", "/var/run/cdi"), {Name: "driver-root", MountPath: "/driver-root", MountPropagation: &inward},
		},
	}
	pod := corev1.PodSpec{
		Affinity: software.NodeAffinity(g.NodeTypes), NodeSelector: map[string]string{wellknown.LabelDRAKubeletPlugin: "true"}, Tolerations: tolerations(g.NodeTypes),
		ServiceAccountName: draDriverAccountName,
		InitContainers: []corev1.Container{{
			Name: "init-container", Image: g.Settings.image(), Command: []string{"bash", "/usr/bin/kubelet-plugin-prestart.sh"}, Env: common,
			SecurityContext: manifest.Privileged(), VolumeMounts: []corev1.VolumeMount{parent},
		}},
		Volumes: []corev1.Volume{
			manifest.HostPath("plugins-registry", "/var/lib/kubelet/plugins_registry", ""), manifest.HostPath("plugins", "/var/lib/kubelet/plugins", ""), manifest.HostPath("cdi", "/var/run/cdi", ""),
			manifest.HostPath("driver-root-parent", path.Dir(g.Settings.driverRoot), corev1.HostPathDirectoryOrCreate), manifest.HostPath("driver-root", g.Settings.driverRoot, corev1.HostPathDirectoryOrCreate),
		},
	}
	g.Settings.enableFeatureGates(&container, &pod)
	pod.Containers = []corev1.Container{container}
	name := draDriverName + "-kubelet-plugin" + g.Settings.suffix()
	return manifest.DaemonSet(name, map[string]string{"nvidia-dra-driver-gpu-component": "kubelet-plugin" + g.Settings.suffix()}, pod)
}

// enableFeatureGates turns the feature gates on, and mounts for them what the driver's chart mounts.
func (s draDriverSettings) enableFeatureGates(container *corev1.Container, pod *corev1.PodSpec) {
	if s.featureGates != "" {
		container.Env = append(container.Env, manifest.Env("FEATURE_GATES", s.featureGates))
	}
	if s.hasGate(wellknown.GateConsumableShares) {
		container.Env = append(container.Env, manifest.Env("CONSUMABLE_SHARES", consumableShares))
	}
	if !s.hasGate(wellknown.GatePassthrough) {
		return
	}
	inward, both := corev1.MountPropagationHostToContainer, corev1.MountPropagationBidirectional
	if older, _ := spec.IsOlderVersion(s.release, wellknown.NVIDIADRARelease050); !older {
		container.Env = append(container.Env, manifest.Env("HOST_ROOT", "/host-root"))
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "lib-modules", MountPath: "/lib/modules/", MountPropagation: &inward, ReadOnly: true})
		pod.Volumes = append(pod.Volumes, manifest.HostPath("lib-modules", "/lib/modules/", corev1.HostPathDirectory))
	}
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "host-root", MountPath: "/host-root", MountPropagation: &inward, ReadOnly: true},
		corev1.VolumeMount{Name: "sysfs", MountPath: "/sys/", MountPropagation: &both}, corev1.VolumeMount{Name: "procfs", MountPath: "/proc/", MountPropagation: &both})
	pod.Volumes = append(pod.Volumes, manifest.HostPath("host-root", "/", corev1.HostPathDirectory), manifest.HostPath("sysfs", "/sys/", corev1.HostPathDirectory), manifest.HostPath("procfs", "/proc/", corev1.HostPathDirectory))
}

// draDriverAccount returns the driver's service account, its ClusterRole and the binding; with MPS also the Role by which it runs a Deployment of
// MPS's control daemon for each claim, in its own namespace.
func draDriverAccount(mps bool) []any {
	account, role := draDriverAccountName, draDriverName+"-clusterrole-kubeletplugin"
	out := []any{manifest.ServiceAccount(account), manifest.ClusterRole(role,
		manifest.Rule(resourcev1.GroupName, "resourceclaims", "get", "list", "watch"),
		manifest.Rule(resourcev1.GroupName, "resourceslices", "get", "list", "watch", "create", "update", "delete"),
		manifest.Rule("", "nodes", "get", "list", "watch"),
		manifest.Rule("", "pods", "get", "list", "watch"),
		manifest.Rule("", "events", "create"),
	), manifest.ClusterRoleBinding(draDriverName+"-clusterrole-binding-kubeletplugin", role, account)}
	if mps {
		local := draDriverName + "-role-kubeletplugin"
		out = append(out, manifest.Role(local, manifest.Rule("apps", "deployments", "get", "list", "watch", "create", "update", "patch", "delete")),
			manifest.RoleBinding(draDriverName+"-role-binding-kubeletplugin", local, account))
	}
	return out
}

// draDriverClasses returns the DeviceClasses that the plans expect, and those that the driver's chart always makes.
func draDriverClasses(nodeTypes []software.NodeType) []any {
	types := map[string]string{wellknown.NVIDIADeviceClassGPU: wellknown.NVIDIADeviceTypeGPU, wellknown.NVIDIADeviceClassMIG: wellknown.NVIDIADeviceTypeMIG}
	for _, n := range nodeTypes {
		if n.HasFeatureGate(wellknown.GatePassthrough) {
			types[wellknown.NVIDIADeviceClassVFIO] = wellknown.NVIDIADeviceTypeVFIO
		}
	}
	var out []any
	for _, name := range slices.Sorted(maps.Keys(types)) {
		class := manifest.DeviceClass(name, "device.driver == '"+wellknown.NVIDIADRADriver+"' && device.attributes['"+wellknown.NVIDIADRADriver+"'].type == '"+types[name]+"'")
		if name == wellknown.NVIDIADeviceClassGPU {
			// Pods that request nvidia.com/gpu can then get a GPU of these nodes too. The driver's chart does the same.
			extended := wellknown.NVIDIAGPU
			class.Spec.ExtendedResourceName = &extended
		}
		out = append(out, class)
	}
	return out
}

// draDriverCharts returns the one release of the driver that a cluster can have, because its cluster-scoped objects have fixed
// names. The error can be a *software.Conflict.
func (t tenant) draDriverCharts() ([]software.Chart, error) {
	if len(t.draDriver)+len(t.computeDomains) == 0 {
		return nil, nil
	}
	groups := draDriverGroups(t.draDriver)
	if len(groups) > 1 {
		a, b := groups[0], groups[1]
		return nil, software.NewConflict(a.NodeTypes[0].Name, b.NodeTypes[0].Name, draDriverOncePerCluster,
			"they want different feature gates, driver roots or releases of it ("+a.Settings.String()+"; "+b.Settings.String()+"): give both the same dra.featureGates, dra.driverRelease and driver.source, or a TenantCluster each, or apply --output operator-manifests, which has a DaemonSet for each")
	}
	if racks := t.devicePluginRacks(); len(t.draDriver) > 0 && len(racks) > 0 {
		return nil, software.NewConflict(t.draDriver[0].Name, racks[0].Name, draDriverOncePerCluster,
			"compute domains put it on the nodes of "+racks[0].Name+", where it would publish the GPUs that the device plugin advertises: give both the presentation mode DRA, or a TenantCluster each")
	}
	if len(t.hostIMEX) > 0 && len(t.computeDomains) > 0 {
		return nil, software.NewConflict(t.hostIMEX[0].Name, t.computeDomains[0].Name, draDriverOncePerCluster,
			"it runs IMEX in compute domains, or leaves it to the hosts: give both the same gpu.imex, or a TenantCluster each")
	}
	settings := draDriverSettings{driverRoot: hostDriverRoot, release: wellknown.NVIDIADRARelease}
	if len(groups) > 0 {
		settings = groups[0].Settings
	} else if t.computeDomains[0].HasOperatorDriver() {
		settings.driverRoot = operatorDriverRoot
	}
	return []software.Chart{t.draDriverChart(settings)}, nil
}

// String describes the settings for messages.
func (s draDriverSettings) String() string {
	return cmp.Or(s.featureGates, "no feature gates") + ", root " + s.driverRoot + ", release " + s.release
}

func (t tenant) draDriverChart(settings draDriverSettings) software.Chart {
	nodes := software.SortByName(slices.Concat(t.draDriver, t.devicePluginRacks()))
	gpus := len(t.draDriver) > 0
	gates := map[string]any{}
	for _, g := range settings.gateNames() {
		gates[g] = true
	}
	domains := map[string]any{"enabled": len(t.computeDomains)+len(t.hostIMEX) > 0}
	if len(t.hostIMEX) > 0 {
		// The feature gate alone changes nothing: it only permits the mode.
		domains["imex"] = map[string]any{"mode": "hostManaged", "hostSocketPath": imexSocket}
	}
	plugin := map[string]any{"affinity": manifest.Affinity(v1alpha1.LabelNodeType, software.Names(nodes)), "tolerations": manifest.Tolerations(tolerations(nodes))}
	if settings.driverRoot != hostDriverRoot {
		// Before it replaces a driver, the operator removes this label from the node, so that the plugin leaves it.
		plugin["nodeSelector"] = map[string]any{wellknown.LabelDRAKubeletPlugin: "true"}
	}
	c := software.Chart{
		Repositories: map[string]string{"image.repository": draDriverRepository},
		Name:         "dra-driver-nvidia-gpu", Repository: chartRepository, Version: settings.release, Release: draDriverName, Namespace: draDriverName,
		Values: map[string]any{
			"nvidiaDriverRoot": settings.driverRoot, "gpuResourcesEnabledOverride": gpus,
			"resources":     map[string]any{"gpus": map[string]any{"enabled": gpus}, "computeDomains": domains},
			"featureGates":  gates,
			"kubeletPlugin": plugin,
		},
	}
	if settings.hasGate(wellknown.GateConsumableShares) {
		c.Values["consumableShares"] = consumableShares
	}
	if len(t.hostIMEX) > 0 {
		c.Warnings = append(c.Warnings, "IMEX of the hosts of "+strings.Join(software.Names(t.hostIMEX), ", ")+" must listen where the driver asks it: in the image, /etc/nvidia-imex/config.cfg needs IMEX_CMD_ENABLED=1 and IMEX_CMD_UNIX_DOMAIN_PATH="+imexSocket)
	}
	return c
}
