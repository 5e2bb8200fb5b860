package nvidia

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/spec"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware/manifest"
	"github.com/ingot-dev/ingot/presentation/tenantsoftware/software"
	"github.com/ingot-dev/ingot/presentation/wellknown"
)

// NVIDIA's device plugin, release 0.20.0: its chart and its image.
const (
	devicePluginVersion         = "0.20.0"
	devicePluginRepository      = "nvcr.io/nvidia/k8s-device-plugin"
	devicePluginImage           = devicePluginRepository + ":v" + devicePluginVersion
	devicePluginChartRepository = "https://nvidia.github.io/k8s-device-plugin"
	// devicePluginConfigMap is the name of the ConfigMap with the plugin's configurations.
	devicePluginConfigMap = "nvidia-device-plugin-configs"
	mpsRoot               = "/run/nvidia/mps"
	// cdiRoot is where the plugin writes its CDI specification, and containerd looks for it.
	cdiRoot = "/var/run/cdi"
	// cdiHookPath is where the packages of the container toolkit install the program that the CDI specification names.
	cdiHookPath = "/usr/bin/nvidia-cdi-hook"
)

// Tolerations that charts have by default: that of the device plugin, and those for the worker of node feature discovery (their values.yaml; the
// operator's chart names the control plane by its newer label).
var (
	devicePluginDefaults = []corev1.Toleration{{Key: "CriticalAddonsOnly", Operator: corev1.TolerationOpExists}, {Key: wellknown.NVIDIAGPU, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
	discoveryDefaults    = []corev1.Toleration{
		{Key: "node-role.kubernetes.io/master", Operator: corev1.TolerationOpEqual, Effect: corev1.TaintEffectNoSchedule},
		{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpEqual, Effect: corev1.TaintEffectNoSchedule},
		{Key: wellknown.NVIDIAGPU, Operator: corev1.TolerationOpEqual, Value: "present", Effect: corev1.TaintEffectNoSchedule},
	}
)

// devicePluginSettings are the settings of the device plugin that can differ between NodeTypes.
type devicePluginSettings struct {
	// config is the name of the plugin's configuration; empty: none.
	config string
	// migStrategy is the MIG strategy.
	migStrategy string
	// mps: pods share GPUs by MPS, which needs the MPS control daemon.
	mps bool
	// deviceList is the strategy by which devices are named to the container runtime; empty: the plugin's default.
	deviceList string
}

func devicePluginSettingsOf(n software.NodeType) devicePluginSettings {
	out := devicePluginSettings{migStrategy: cmp.Or(n.Plan.Tenant.MIGStrategy, wellknown.MIGStrategyNone), deviceList: n.Plan.Tenant.DeviceListStrategy}
	if c := n.Plan.Tenant.PluginConfig; c != nil {
		out.config = c.Name
		if p := n.GPU.Presentation.Passthrough; p != nil && p.Sharing != nil {
			out.mps = p.Sharing.Strategy == spec.SharingMPS
		}
	}
	return out
}

// suffix returns the suffix of the names of the DaemonSet and its pods. The default settings have none.
func (s devicePluginSettings) suffix() string {
	out := ""
	if s.migStrategy != wellknown.MIGStrategyNone {
		out += "-mig-" + s.migStrategy
	}
	if s.config != "" {
		out += "-" + s.config
	}
	if s.deviceList != "" {
		out += "-" + s.deviceList
	}
	return out
}

func devicePluginGroups(nodeTypes []software.NodeType) []software.Group[devicePluginSettings] {
	return software.GroupBySettings(nodeTypes, devicePluginSettingsOf, func(a, b devicePluginSettings) int { return cmp.Compare(a.suffix(), b.suffix()) })
}

// devicePluginConfigurations returns the plugin's configurations by name. Names follow from the content, so that two contents with
// one name were resolved by different versions of Ingot; the error is then a *software.Conflict.
func devicePluginConfigurations(nodeTypes []software.NodeType) (map[string]string, error) {
	out, first := map[string]string{}, map[string]string{}
	for _, n := range nodeTypes {
		c := n.Plan.Tenant.PluginConfig
		if c == nil {
			continue
		}
		if other, has := out[c.Name]; has && other != c.Content {
			return nil, software.NewConflict(first[c.Name], n.Name, "the NVIDIA device plugin", fmt.Sprintf("both name a configuration %s, with different contents: resolve both with one version of Ingot", c.Name))
		}
		if _, has := out[c.Name]; !has {
			out[c.Name], first[c.Name] = c.Content, n.Name
		}
	}
	return out, nil
}

// devicePluginComponent returns a DaemonSet for each configuration of the plugin.
func (t tenant) devicePluginComponent() (software.Component, error) {
	if t.hasOperatorDriver() {
		return software.Component{}, nil
	}
	out := software.Component{Name: "nvidia-device-plugin", About: "NVIDIA's device plugin, as NVIDIA's own manifest has it, one DaemonSet for all NodeTypes that want the same of it. A new node carries\n" +
		"the gate until it advertises what was promised, and it advertises nothing until this pod runs on it: so the pod tolerates the gate.\n" +
		"The image's containerd must have the nvidia runtime as its default; else add runtimeClassName: nvidia. GPU feature discovery, whose\n" +
		"labels are judged where they are, needs node feature discovery, which makes labels of what it finds."}
	if racks := t.devicePluginRacks(); len(racks) > 0 {
		out.About += "\nCompute domains, by which IMEX runs on the racks of " + strings.Join(software.Names(racks), ", ") + ", take the DRA driver's chart."
	}
	data, err := devicePluginConfigurations(t.devicePlugin)
	if err != nil {
		return software.Component{}, err
	}
	var typed []any
	if len(data) > 0 {
		typed = append(typed, manifest.ConfigMap(manifest.Namespace, devicePluginConfigMap, data))
	}
	for _, g := range devicePluginGroups(t.devicePlugin) {
		typed = append(typed, devicePluginDaemonSet(g), featureDiscoveryDaemonSet(g))
		if g.Settings.mps {
			typed = append(typed, mpsDaemonSet(g))
		}
	}
	out.Objects, err = manifest.Objects(typed...)
	return out, err
}

// devicePluginDaemonSet returns the device plugin of a group.
func devicePluginDaemonSet(g software.Group[devicePluginSettings]) any {
	container := corev1.Container{
		Name: "nvidia-device-plugin-ctr", Image: devicePluginImage,
		Env:             []corev1.EnvVar{manifest.Env("FAIL_ON_INIT_ERROR", "false"), manifest.Env("MIG_STRATEGY", g.Settings.migStrategy)},
		SecurityContext: manifest.Unprivileged(),
		VolumeMounts:    []corev1.VolumeMount{manifest.Mount("kubelet-device-plugins-dir", "/var/lib/kubelet/device-plugins")},
	}
	if g.Settings.migStrategy != wellknown.MIGStrategyNone {
		// The plugin needs this to see the instances of all GPUs. Its chart does the same.
		container.Env = append(container.Env, manifest.Env("NVIDIA_MIG_MONITOR_DEVICES", "all"))
		container.SecurityContext = administering()
	}
	pod := corev1.PodSpec{
		Affinity: withoutOptedOut(software.NodeAffinity(g.NodeTypes)), Tolerations: tolerations(g.NodeTypes),
		Volumes: []corev1.Volume{manifest.HostPath("kubelet-device-plugins-dir", "/var/lib/kubelet/device-plugins", corev1.HostPathDirectory)},
	}
	g.Settings.mountConfiguration(&container, &pod)
	g.Settings.nameDevices(&container, &pod)
	if g.Settings.mps {
		container.Env = append(container.Env, manifest.Env("MPS_ROOT", mpsRoot))
		mountMPS(&container, &pod)
	}
	pod.Containers = []corev1.Container{container}
	name := "nvidia-device-plugin-ds" + g.Settings.suffix()
	return manifest.DaemonSet("nvidia-device-plugin-daemonset"+g.Settings.suffix(), map[string]string{"name": name}, pod)
}

// featureDiscoveryDaemonSet returns GPU feature discovery of a group, which describes the GPUs as the group's device plugin advertises them.
func featureDiscoveryDaemonSet(g software.Group[devicePluginSettings]) any {
	container := corev1.Container{
		Name: gpuDiscovery, Image: devicePluginImage, Command: []string{"gpu-feature-discovery"},
		Env: []corev1.EnvVar{
			manifest.Env("FAIL_ON_INIT_ERROR", "false"), manifest.Env("MIG_STRATEGY", g.Settings.migStrategy), manifest.Env("NVIDIA_MIG_MONITOR_DEVICES", "all"),
			// Where the object is, whom it is of, and the pod that it goes with (internal/lm/output.go).
			manifest.EnvFromField("NODE_NAME", "spec.nodeName"), manifest.EnvFromField("NAMESPACE", "metadata.namespace"), manifest.EnvFromField("POD_NAME", "metadata.name"),
		},
		SecurityContext: manifest.Privileged(),
		VolumeMounts:    []corev1.VolumeMount{manifest.Mount("host-sys", "/sys")},
	}
	pod := corev1.PodSpec{
		Affinity: withoutOptedOut(software.NodeAffinity(g.NodeTypes)), Tolerations: tolerations(g.NodeTypes), ServiceAccountName: gpuDiscovery,
		Volumes: []corev1.Volume{manifest.HostPath("host-sys", "/sys", corev1.HostPathDirectory)},
	}
	g.Settings.mountConfiguration(&container, &pod)
	pod.Containers = []corev1.Container{container}
	name := gpuDiscovery + g.Settings.suffix()
	return manifest.DaemonSet(name, map[string]string{"name": name}, pod)
}

// withoutOptedOut removes the nodes whose label keeps the device plugin off from the affinity.
func withoutOptedOut(affinity *corev1.Affinity) *corev1.Affinity {
	term := &affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0]
	term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: wellknown.LabelDeployDevicePlugin, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"false"}})
	return affinity
}

// mountConfiguration mounts the configuration where the program looks for it.
func (s devicePluginSettings) mountConfiguration(container *corev1.Container, pod *corev1.PodSpec) {
	if s.config == "" {
		return
	}
	container.Env = append(container.Env, manifest.Env("CONFIG_FILE", "/config/config.yaml"))
	container.VolumeMounts = append(container.VolumeMounts, manifest.Mount("config", "/config"))
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: devicePluginConfigMap}, Items: []corev1.KeyToPath{{Key: s.config, Path: "config.yaml"}},
	}}})
}

// nameDevices has the plugin name devices by CDI, and mounts what it writes the CDI specification from and to. The plugin looks for the driver below
// /driver-root, wherever the driver is.
//
// A container toolkit that ignores NVIDIA_VISIBLE_DEVICES gives GPUs to the plugin's own container only with this capability, by which it tells privileged
// containers. Without it: the plugin finds no GPU and advertises none.
func (s devicePluginSettings) nameDevices(container *corev1.Container, pod *corev1.PodSpec) {
	if s.deviceList == "" {
		return
	}
	container.SecurityContext = administering()
	container.Env = append(container.Env, manifest.Env("DEVICE_LIST_STRATEGY", s.deviceList), manifest.Env("NVIDIA_DRIVER_ROOT", hostDriverRoot), manifest.Env("NVIDIA_CDI_HOOK_PATH", cdiHookPath))
	container.VolumeMounts = append(container.VolumeMounts, manifest.Mount("cdi-root", cdiRoot), corev1.VolumeMount{Name: "driver-root", MountPath: "/driver-root", ReadOnly: true})
	pod.Volumes = append(pod.Volumes, manifest.HostPath("cdi-root", cdiRoot, corev1.HostPathDirectoryOrCreate), manifest.HostPath("driver-root", hostDriverRoot, corev1.HostPathDirectory))
}

// administering returns the security context of containers that see all GPUs and their instances.
func administering() *corev1.SecurityContext {
	return &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}}}
}

// addDeviceListValues adds the values of the plugin's chart for the same. Feature discovery is privileged by the chart's default.
func (s devicePluginSettings) addDeviceListValues(values map[string]any) {
	if s.deviceList == "" {
		return
	}
	values["deviceListStrategy"], values["nvidiaDriverRoot"], values["cdi"] = s.deviceList, hostDriverRoot, map[string]any{"nvidiaHookPath": cdiHookPath}
	values["securityContext"] = map[string]any{"capabilities": map[string]any{"add": []any{"SYS_ADMIN"}}}
}

// mountMPS mounts the directories that the plugin shares with the MPS control daemon.
func mountMPS(container *corev1.Container, pod *corev1.PodSpec) {
	container.VolumeMounts = append(container.VolumeMounts, manifest.Mount("mps-shm", "/dev/shm"), manifest.Mount("mps-root", "/mps"))
	pod.Volumes = append(pod.Volumes, manifest.HostPath("mps-root", mpsRoot, corev1.HostPathDirectoryOrCreate), manifest.HostPath("mps-shm", mpsRoot+"/shm", ""))
}

// mpsDaemonSet returns the MPS control daemon of a group. Without it no pod can use a GPU that is shared by MPS.
func mpsDaemonSet(g software.Group[devicePluginSettings]) any {
	both := corev1.MountPropagationBidirectional
	container := corev1.Container{
		Name: "mps-control-daemon-ctr", Image: devicePluginImage, Command: []string{"mps-control-daemon"},
		Env: []corev1.EnvVar{
			manifest.EnvFromField("NODE_NAME", "spec.nodeName"), manifest.Env("MIG_STRATEGY", g.Settings.migStrategy),
			manifest.Env("NVIDIA_VISIBLE_DEVICES", "all"), manifest.Env("NVIDIA_DRIVER_CAPABILITIES", "compute,utility"),
		},
		SecurityContext: manifest.Privileged(),
	}
	pod := corev1.PodSpec{
		Affinity: software.NodeAffinity(g.NodeTypes), Tolerations: tolerations(g.NodeTypes), HostPID: true,
		InitContainers: []corev1.Container{{
			Name: "mps-control-daemon-mounts", Image: devicePluginImage, Command: []string{"mps-control-daemon", "mount-shm"}, SecurityContext: manifest.Privileged(),
			VolumeMounts: []corev1.VolumeMount{{Name: "mps-root", MountPath: "/mps", MountPropagation: &both}},
		}},
	}
	g.Settings.mountConfiguration(&container, &pod)
	mountMPS(&container, &pod)
	pod.Containers = []corev1.Container{container}
	name := "nvidia-mps-control-daemon" + g.Settings.suffix()
	return manifest.DaemonSet(name, map[string]string{"name": name}, pod)
}

// devicePluginCharts returns a Helm release for each configuration of the plugin, because a release has one configuration.
func (t tenant) devicePluginCharts() ([]software.Chart, error) {
	if t.needsOperator() {
		return nil, nil
	}
	data, err := devicePluginConfigurations(t.devicePlugin)
	if err != nil {
		return nil, err
	}
	groups := devicePluginGroups(t.devicePlugin)
	var out []software.Chart
	for _, g := range groups {
		tolerated := tolerations(g.NodeTypes)
		c := software.Chart{
			Repositories: map[string]string{"image.repository": devicePluginRepository, "nfd.image.repository": discoveryRepository},
			Name:         "nvidia-device-plugin", Repository: devicePluginChartRepository, Version: devicePluginVersion,
			Release: "nvidia-device-plugin" + g.Settings.suffix(), Namespace: "nvidia-device-plugin" + g.Settings.suffix(),
			Values: map[string]any{
				"migStrategy": g.Settings.migStrategy, "affinity": manifest.Affinity(v1alpha1.LabelNodeType, software.Names(g.NodeTypes)), "tolerations": manifest.Tolerations(software.AddTolerations(devicePluginDefaults, tolerated)),
				"gfd": map[string]any{"enabled": true},
				"nfd": map[string]any{"worker": map[string]any{"tolerations": manifest.Tolerations(software.AddTolerations(discoveryDefaults, tolerated))}},
			},
		}
		if g.Settings.config != "" {
			c.Values["config"] = map[string]any{"default": g.Settings.config, "map": map[string]any{g.Settings.config: data[g.Settings.config]}}
		}
		g.Settings.addDeviceListValues(c.Values)
		if len(groups) > 1 {
			c.Warnings = append(c.Warnings, "each release brings a node-feature-discovery of its own, so each has a namespace; that several get along is not documented. Without it set gfd.enabled: false, except where GPUs are shared by MPS")
		}
		out = append(out, c)
	}
	return out, nil
}

// withDefaultConfiguration adds an empty configuration for nodes that name none. When there is a single configuration and no default,
// the plugin's configuration manager gives that one to all nodes.
func withDefaultConfiguration(data map[string]string) map[string]any {
	out := map[string]any{"default": "version: v1\n"}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		out[name] = data[name]
	}
	return out
}
