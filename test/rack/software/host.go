package software

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/test/rack/dra"
	"github.com/ingot-dev/ingot/test/rack/kubelet"
	"github.com/ingot-dev/ingot/test/rack/machine"
	"github.com/ingot-dev/ingot/test/rack/vendor"
)

// Reader reads a ConfigMap of a pod's namespace.
type Reader = func(ctx context.Context, name string) (map[string]string, error)

// Result is the effect of a pod on its node.
type Result struct {
	// Devices that a device plugin registers.
	Devices map[corev1.ResourceName]kubelet.Devices
	// Driver is the name of the DRA driver and Published its devices; empty when the pod is none.
	Driver    string
	Published dra.Contents
	// Labels that it sets on its node.
	Labels map[string]string
}

// Host is a machine on which pods run.
type Host struct {
	Machine *machine.Machine
	// Permitted are KubeVirt's permittedHostDevices; nil: there is no KubeVirt.
	Permitted *Permitted
	// Node is the machine's node.
	Node *corev1.Node
	// IncompletePool means that a DRA driver announces a slice that it never writes.
	IncompletePool bool
}

// role is a kind of pod.
type role struct {
	name string
	is   func(*corev1.Pod) bool
	run  func(Host, context.Context, *corev1.Pod, Reader) (Result, error)
}

// Names of DRA drivers' roles.
const (
	roleNVIDIADRA = "NVIDIA's DRA driver"
	roleAMDDRA    = "AMD's DRA driver"
	roleDRA       = "a DRA driver"
)

// roles returns all known roles. The first role that fits a pod is the pod's.
func roles() []role {
	return []role{
		{"node feature discovery", hasImage("node-feature-discovery"), Host.discoverPCI},
		{"driver", hasImage("driver", "vgpu-manager"), Host.installDriver},
		{"AMD's driver", hasImage("amdgpu-driver"), Host.installAMDDriver},
		{"container toolkit", hasImage("container-toolkit"), Host.installToolkit},
		{"VFIO manager", hasImage("k8s-driver-manager"), Host.bindToVFIO},
		{"MIG manager", hasImage("k8s-mig-manager"), Host.applyMIG},
		{"vGPU device manager", hasImage("vgpu-device-manager"), Host.applyVGPU},
		{"AMD's device config manager", hasImage("device-config-manager"), Host.applyAMD},
		{"MPS control daemon", isMPSDaemon, Host.startMPS},
		{"feature discovery", vendor.IsFeatureDiscovery, Host.discoverGPUs},
		{"AMD's labeller", isAMDLabeller, Host.labelAMDNode},
		{"KubeVirt device plugin", hasImage("kubevirt-gpu-device-plugin"), Host.registerKubeVirt},
		{"virt-handler", hasImage("virt-handler"), Host.registerPermitted},
		{roleNVIDIADRA, func(p *corev1.Pod) bool { return vendor.Host{}.DriverName(p) != "" }, Host.publishNVIDIA},
		{"NVIDIA's device plugin", vendor.Host{}.IsPlugin, Host.registerNVIDIA},
		{"AMD's device plugin", hasAMDImage("k8s-device-plugin"), Host.registerAMD},
		{roleAMDDRA, hasImage("k8s-gpu-dra-driver"), Host.publishAMD},
		{"a device plugin", hasImage("device-plugin"), Host.registerGeneric},
		{roleDRA, hasImage("dra-driver"), Host.publishGeneric},
	}
}

func roleOf(pod *corev1.Pod) (role, bool) {
	all := roles()
	at := slices.IndexFunc(all, func(r role) bool { return r.is(pod) })
	if at < 0 {
		return role{}, false
	}
	return all[at], true
}

// Order returns the position of a pod in the order of a round: pods that change the machine come before pods that read its
// state. Unknown pods do nothing and come last.
func Order(pod *corev1.Pod) int {
	all := roles()
	at := slices.IndexFunc(all, func(r role) bool { return r.is(pod) })
	if at < 0 {
		return len(all)
	}
	return at
}

// Run runs the pod. An error ends its container.
func (h Host) Run(ctx context.Context, pod *corev1.Pod, read Reader) (Result, error) {
	r, ok := roleOf(pod)
	if !ok {
		return Result{}, nil
	}
	out, err := r.run(h, ctx, pod, read)
	if err != nil {
		return out, fmt.Errorf("%s: %w", r.name, err)
	}
	return out, nil
}

// commandLine returns the commands and arguments of the pod's containers.
func commandLine(pod *corev1.Pod) string {
	var out []string
	for _, c := range pod.Spec.Containers {
		out = append(out, slices.Concat(c.Command, c.Args)...)
	}
	return strings.Join(out, " ")
}

func isMPSDaemon(pod *corev1.Pod) bool {
	return hasImage("k8s-device-plugin")(pod) && strings.Contains(commandLine(pod), "mps-control-daemon")
}

func isAMDLabeller(pod *corev1.Pod) bool {
	return hasImage("k8s-node-labeller")(pod) || hasAMDImage("k8s-device-plugin")(pod) && strings.Contains(commandLine(pod), "k8s-node-labeller")
}

// hasImage returns a function that reports whether a pod has a container with an image of one of these names, in any
// repository.
func hasImage(names ...string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool {
		return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
			_, name, _ := splitImage(c.Image)
			return slices.Contains(names, name)
		})
	}
}

func hasAMDImage(want string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool {
		return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
			path, name, _ := splitImage(c.Image)
			return name == want && strings.Contains(path, "rocm")
		})
	}
}

// splitImage splits an image's name: docker.io/rocm, k8s-device-plugin, 1.31.
func splitImage(image string) (path, name, tag string) {
	name, _, _ = strings.Cut(image, "@")
	if at := strings.LastIndex(name, "/"); at >= 0 {
		path, name = name[:at], name[at+1:]
	}
	name, tag, _ = strings.Cut(name, ":")
	return path, name, tag
}

// nvidiaHost returns the machine as NVIDIA's plugins observe it.
func (h Host) nvidiaHost() vendor.Host {
	m := h.Machine
	return vendor.Host{NVIDIADriver: m.NVIDIADriver(), NVIDIAToolkit: m.Toolkit, IsToolkitOpen: m.IsToolkitOpen(), GPUs: m.GPUs(), IOMMU: m.Bus.IOMMU(), IncompletePool: h.IncompletePool}
}

// option returns a value from a container's command line, or else from its environment.
func option(pod *corev1.Pod, flag, variable string) string {
	for _, c := range pod.Spec.Containers {
		words := slices.Concat(c.Command, c.Args)
		for i, word := range words {
			name, value, joined := strings.Cut(strings.TrimLeft(word, "-"), "=")
			if name != flag || !strings.HasPrefix(word, "-") {
				continue
			}
			if joined {
				return value
			}
			if i+1 < len(words) {
				return words[i+1]
			}
		}
		for _, env := range c.Env {
			if env.Name == variable && variable != "" {
				return env.Value
			}
		}
	}
	return ""
}

var (
	_ kubelet.Plugins       = Host{}
	_ kubelet.ActingPlugins = Host{}
	_ kubelet.Drivers       = Host{}
)

// IsPlugin implements kubelet.Plugins.
func (h Host) IsPlugin(pod *corev1.Pod) bool {
	_, known := roleOf(pod)
	return known && h.DriverName(pod) == ""
}

// Register implements kubelet.Plugins, for a node without labels.
func (h Host) Register(ctx context.Context, pod *corev1.Pod, read func(context.Context, string) (map[string]string, error)) (map[corev1.ResourceName]kubelet.Devices, error) {
	_, devices, err := h.RunPod(ctx, pod, &corev1.Node{}, read)
	return devices, err
}

// RunPod implements kubelet.ActingPlugins.
func (h Host) RunPod(ctx context.Context, pod *corev1.Pod, node *corev1.Node, read func(context.Context, string) (map[string]string, error)) (map[string]string, map[corev1.ResourceName]kubelet.Devices, error) {
	h.Node = node
	result, err := h.Run(ctx, pod, read)
	return result.Labels, result.Devices, err
}

// DriverName implements kubelet.Drivers.
func (h Host) DriverName(pod *corev1.Pod) string {
	r, _ := roleOf(pod)
	switch r.name {
	case roleNVIDIADRA:
		return vendor.NVIDIADRA
	case roleAMDDRA:
		return amdDRA
	case roleDRA:
		return option(pod, "driver", "")
	}
	return ""
}

// RunDriver implements kubelet.Drivers. It finds devices once, when the driver starts.
func (h Host) RunDriver(ctx context.Context, in kubelet.DriverPod) error {
	if h.DriverName(in.Pod) == vendor.NVIDIADRA {
		return h.nvidiaHost().RunDriver(ctx, in)
	}
	h.Node = &corev1.Node{}
	result, err := h.Run(ctx, in.Pod, func(context.Context, string) (map[string]string, error) { return nil, errors.New("not read") })
	if err != nil {
		return err
	}
	publisher := dra.Publisher{Client: in.Client, Driver: result.Driver, Node: in.Node, Contents: result.Published, Retry: in.Retry}
	if h.IncompletePool {
		publisher.MissingSlices = 1
	}
	return publisher.Run(ctx)
}
