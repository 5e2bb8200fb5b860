package values

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/values/manifest"
)

// NVIDIA's device plugin, release 0.20.0: its chart and its image.
const (
	ngc           = "https://helm.ngc.nvidia.com/nvidia"
	pluginVersion = "0.20.0"
	pluginImage   = "nvcr.io/nvidia/k8s-device-plugin:v" + pluginVersion
	pluginCharts  = "https://nvidia.github.io/k8s-device-plugin"
	pluginConfigs = "nvidia-device-plugin-configs"
	mpsRoot       = "/run/nvidia/mps"
	// deployPlugin is the node label by which NVIDIA's operator keeps its device plugin off a node, and others go by.
	deployPlugin = "nvidia.com/gpu.deploy.device-plugin"
	migNone      = "none"
)

// pluginWant is what tells device plugins apart.
type pluginWant struct {
	// config is the name of the plugin's configuration; empty: none.
	config string
	// strategy is that of MIG.
	strategy string
	// mps says that GPUs are shared by MPS, which takes a daemon of its own.
	mps bool
}

func wantOfPlugin(n NodeType) pluginWant {
	out := pluginWant{strategy: cmp.Or(n.Plan.Tenant.MIGStrategy, migNone)}
	if c := n.Plan.Tenant.PluginConfig; c != nil {
		out.config = c.Name
		if p := n.GPU.Presentation.Passthrough; p != nil && p.Sharing != nil {
			out.mps = p.Sharing.Strategy == "MPS"
		}
	}
	return out
}

// suffix of the names of the DaemonSet and its pods; the plain one has none.
func (w pluginWant) suffix() string {
	out := ""
	if w.strategy != migNone {
		out += "-mig-" + w.strategy
	}
	if w.config != "" {
		out += "-" + w.config
	}
	return out
}

func pluginGroups(nodeTypes []NodeType) []group[pluginWant] {
	return grouped(nodeTypes, wantOfPlugin, func(a, b pluginWant) int { return cmp.Compare(a.suffix(), b.suffix()) })
}

// configs are the plugin's configurations by name. The error is a *Conflict: names follow from the content.
func configs(nodeTypes []NodeType) (map[string]string, error) {
	out, first := map[string]string{}, map[string]string{}
	for _, n := range nodeTypes {
		c := n.Plan.Tenant.PluginConfig
		if c == nil {
			continue
		}
		if was, has := out[c.Name]; has && was != c.Content {
			return nil, &Conflict{NodeTypes: [2]string{first[c.Name], n.Name}, Software: "the NVIDIA device plugin", Message: fmt.Sprintf("both name a configuration %s, with different contents: resolve both with one version of Ingot", c.Name)}
		}
		if _, has := out[c.Name]; !has {
			out[c.Name], first[c.Name] = c.Content, n.Name
		}
	}
	return out, nil
}

// pluginPart is a DaemonSet for each configuration of the plugin.
func (t tenant) pluginPart() (Part, error) {
	if t.byOperator() {
		return Part{}, nil
	}
	out := Part{Name: "nvidia-device-plugin", About: "NVIDIA's device plugin, as NVIDIA's own manifest has it, one DaemonSet for all NodeTypes that want the same of it. A new node carries\n" +
		"the gate until it advertises what was promised, and it advertises nothing until this pod runs on it: so the pod tolerates the gate.\n" +
		"The image's containerd must have the nvidia runtime as its default; else add runtimeClassName: nvidia. Feature discovery, whose\n" +
		"labels are judged where they are, comes with the plugin's chart: ingot render --output operator-values."}
	if racks := t.counted(); len(racks) > 0 {
		out.About += "\nCompute domains, by which IMEX runs on the racks of " + strings.Join(names(racks), ", ") + ", take the DRA driver's chart."
	}
	data, err := configs(t.plugin)
	if err != nil {
		return Part{}, err
	}
	var typed []any
	if len(data) > 0 {
		typed = append(typed, manifest.ConfigMap(manifest.Namespace, pluginConfigs, data))
	}
	for _, g := range pluginGroups(t.plugin) {
		typed = append(typed, pluginSet(g))
		if g.want.mps {
			typed = append(typed, mpsSet(g))
		}
	}
	out.Objects, err = manifest.Objects(typed...)
	return out, err
}

// pluginSet is the device plugin of a group.
func pluginSet(g group[pluginWant]) any {
	container := corev1.Container{
		Name: "nvidia-device-plugin-ctr", Image: pluginImage,
		Env:             []corev1.EnvVar{manifest.Env("FAIL_ON_INIT_ERROR", "false"), manifest.Env("MIG_STRATEGY", g.want.strategy)},
		SecurityContext: manifest.Unprivileged(),
		VolumeMounts:    []corev1.VolumeMount{manifest.Mount("kubelet-device-plugins-dir", "/var/lib/kubelet/device-plugins")},
	}
	if g.want.strategy != migNone {
		// To see the instances of all GPUs; as the plugin's chart has it.
		container.Env = append(container.Env, manifest.Env("NVIDIA_MIG_MONITOR_DEVICES", "all"))
		container.SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}}}
	}
	pod := corev1.PodSpec{
		Affinity: unlessKeptOff(nodesOf(g.nodes)), Tolerations: tolerations("nvidia.com/gpu", g.nodes),
		Volumes: []corev1.Volume{manifest.HostPath("kubelet-device-plugins-dir", "/var/lib/kubelet/device-plugins", corev1.HostPathDirectory)},
	}
	g.want.configure(&container, &pod)
	if g.want.mps {
		container.Env = append(container.Env, manifest.Env("MPS_ROOT", mpsRoot))
		mps(&container, &pod)
	}
	pod.Containers = []corev1.Container{container}
	name := "nvidia-device-plugin-ds" + g.want.suffix()
	return manifest.DaemonSet("nvidia-device-plugin-daemonset"+g.want.suffix(), map[string]string{"name": name}, pod)
}

// unlessKeptOff leaves out nodes whose label keeps the device plugin off.
func unlessKeptOff(affinity *corev1.Affinity) *corev1.Affinity {
	term := &affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0]
	term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: deployPlugin, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"false"}})
	return affinity
}

// configure mounts the configuration of the group's where the program looks for it.
func (w pluginWant) configure(container *corev1.Container, pod *corev1.PodSpec) {
	if w.config == "" {
		return
	}
	container.Env = append(container.Env, manifest.Env("CONFIG_FILE", "/config/config.yaml"))
	container.VolumeMounts = append(container.VolumeMounts, manifest.Mount("config", "/config"))
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: pluginConfigs}, Items: []corev1.KeyToPath{{Key: w.config, Path: "config.yaml"}},
	}}})
}

// mps mounts what the plugin shares with the MPS control daemon.
func mps(container *corev1.Container, pod *corev1.PodSpec) {
	container.VolumeMounts = append(container.VolumeMounts, manifest.Mount("mps-shm", "/dev/shm"), manifest.Mount("mps-root", "/mps"))
	pod.Volumes = append(pod.Volumes, manifest.HostPath("mps-root", mpsRoot, corev1.HostPathDirectoryOrCreate), manifest.HostPath("mps-shm", mpsRoot+"/shm", ""))
}

// mpsSet is the MPS control daemon of a group, without which a GPU shared by MPS takes no pod.
func mpsSet(g group[pluginWant]) any {
	both := corev1.MountPropagationBidirectional
	container := corev1.Container{
		Name: "mps-control-daemon-ctr", Image: pluginImage, Command: []string{"mps-control-daemon"},
		Env: []corev1.EnvVar{
			manifest.Field("NODE_NAME", "spec.nodeName"), manifest.Env("MIG_STRATEGY", g.want.strategy),
			manifest.Env("NVIDIA_VISIBLE_DEVICES", "all"), manifest.Env("NVIDIA_DRIVER_CAPABILITIES", "compute,utility"),
		},
		SecurityContext: manifest.Privileged(),
	}
	pod := corev1.PodSpec{
		Affinity: nodesOf(g.nodes), Tolerations: tolerations("nvidia.com/gpu", g.nodes), HostPID: true,
		InitContainers: []corev1.Container{{
			Name: "mps-control-daemon-mounts", Image: pluginImage, Command: []string{"mps-control-daemon", "mount-shm"}, SecurityContext: manifest.Privileged(),
			VolumeMounts: []corev1.VolumeMount{{Name: "mps-root", MountPath: "/mps", MountPropagation: &both}},
		}},
	}
	g.want.configure(&container, &pod)
	mps(&container, &pod)
	pod.Containers = []corev1.Container{container}
	name := "nvidia-mps-control-daemon" + g.want.suffix()
	return manifest.DaemonSet(name, map[string]string{"name": name}, pod)
}

// pluginCharts are a release for each configuration of the plugin: a release has one.
func (t tenant) pluginCharts() ([]Chart, error) {
	if t.needsOperator() {
		return nil, nil
	}
	data, err := configs(t.plugin)
	if err != nil {
		return nil, err
	}
	groups := pluginGroups(t.plugin)
	var out []Chart
	for _, g := range groups {
		tolerated := manifest.Tolerations(tolerations("nvidia.com/gpu", g.nodes))
		c := Chart{
			Name: "nvidia-device-plugin", Repository: pluginCharts, Version: pluginVersion,
			Release: "nvidia-device-plugin" + g.want.suffix(), Namespace: "nvidia-device-plugin" + g.want.suffix(),
			Values: map[string]any{
				"migStrategy": g.want.strategy, "affinity": manifest.Affinity(v1alpha1.LabelNodeType, names(g.nodes)), "tolerations": tolerated,
				"gfd": map[string]any{"enabled": true},
				"nfd": map[string]any{"worker": map[string]any{"tolerations": tolerated}},
			},
		}
		if g.want.config != "" {
			c.Values["config"] = map[string]any{"default": g.want.config, "map": map[string]any{g.want.config: data[g.want.config]}}
		}
		if len(groups) > 1 {
			c.Warnings = append(c.Warnings, "each release brings a node-feature-discovery of its own, so each has a namespace; that several get along is not documented. Without it set gfd.enabled: false, except where GPUs are shared by MPS")
		}
		out = append(out, c)
	}
	return out, nil
}

// pluginData is the configurations with a first one for nodes that name none: with a single configuration and no default
// the plugin's manager would give that to all.
func pluginData(data map[string]string) map[string]any {
	out := map[string]any{"default": "version: v1\n"}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		out[name] = data[name]
	}
	return out
}
