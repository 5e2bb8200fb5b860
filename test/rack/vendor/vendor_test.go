package vendor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/test/rack/gpu"
)

func gpus(n int, change func(i int, g *gpu.GPU)) Host {
	host := Host{NVIDIADriver: "550.163.01", NVIDIAToolkit: "1.18.0", IsToolkitOpen: true}
	for i := range n {
		g := &gpu.GPU{DeviceID: "2330", Model: gpu.Model{ComputeCapability: "9.0"}}
		if change != nil {
			change(i, g)
		}
		host.GPUs = append(host.GPUs, g)
	}
	return host
}

func cut(profiles ...string) []gpu.Instance {
	var out []gpu.Instance
	for _, name := range profiles {
		out = append(out, gpu.Instance{Profile: gpu.Profile{Name: name}})
	}
	return out
}

func plugin(change func(*corev1.Container)) *corev1.Pod {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "ctr", Image: "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"}}}}
	if change != nil {
		change(&pod.Spec.Containers[0])
	}
	return pod
}

func env(name, value string) func(*corev1.Container) {
	return func(c *corev1.Container) { c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value}) }
}

// configured mounts a configuration file.
func configured(text string) (*corev1.Pod, func(context.Context, string) (map[string]string, error)) {
	pod := plugin(func(c *corev1.Container) {
		c.Args = []string{"--config-file", "/config/config.yaml"}
		c.VolumeMounts = []corev1.VolumeMount{{Name: "config", MountPath: "/config"}}
	})
	pod.Spec.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "plugin-config"},
	}}}}
	return pod, func(_ context.Context, name string) (map[string]string, error) {
		if name != "plugin-config" {
			return nil, errors.New("not found")
		}
		return map[string]string{"config.yaml": text}, nil
	}
}

func registered(t *testing.T, host Host, pod *corev1.Pod, read func(context.Context, string) (map[string]string, error)) string {
	t.Helper()
	resources, err := host.Register(t.Context(), pod, read)
	if err != nil {
		return "error: " + err.Error()
	}
	var out []string
	for name, devices := range resources {
		out = append(out, fmt.Sprintf("%s=%d/%d", name, devices.Healthy, devices.Total))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// closed is a host whose container toolkit ignores NVIDIA_VISIBLE_DEVICES in containers that are not privileged.
func closed(count int) Host {
	out := gpus(count, nil)
	out.IsToolkitOpen = false
	return out
}

func capability(name corev1.Capability) func(*corev1.Container) {
	return func(c *corev1.Container) {
		c.SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{name}}}
	}
}

func TestThePluginRegistersWhatItsConfigurationAndTheHardwareSay(t *testing.T) {
	halfMIG := func(i int, g *gpu.GPU) {
		if g.MIG = i%2 == 0; g.MIG {
			g.Instances = cut("3g.40gb", "3g.40gb")
		}
	}
	allMIG := func(_ int, g *gpu.GPU) { g.MIG, g.Instances = true, cut("1g.10gb", "1g.10gb", "1g.10gb+me") }
	for name, test := range map[string]struct {
		host Host
		pod  *corev1.Pod
		want string
	}{
		"eight GPUs":             {gpus(8, nil), plugin(nil), "nvidia.com/gpu=8/8"},
		"seven GPUs":             {gpus(7, nil), plugin(nil), "nvidia.com/gpu=7/7"},
		"one of them ill":        {gpus(8, func(i int, g *gpu.GPU) { g.Unhealthy = i == 3 }), plugin(nil), "nvidia.com/gpu=7/8"},
		"no driver":              {Host{NVIDIAToolkit: "1", GPUs: make([]*gpu.GPU, 8)}, plugin(nil), "error: failed to initialize NVML: ERROR_LIBRARY_NOT_FOUND: is the driver loaded, and the container toolkit configured?"},
		"no driver, patient":     {Host{}, plugin(env("FAIL_ON_INIT_ERROR", "false")), ""},
		"no toolkit":             {Host{NVIDIADriver: "550", GPUs: make([]*gpu.GPU, 8)}, plugin(env("FAIL_ON_INIT_ERROR", "false")), ""},
		"a closed toolkit":       {closed(8), plugin(env("FAIL_ON_INIT_ERROR", "false")), ""},
		"and a privileged one":   {closed(8), plugin(capability("SYS_ADMIN")), "nvidia.com/gpu=8/8"},
		"and another capability": {closed(8), plugin(capability("SYS_NICE")), "error: failed to initialize NVML: ERROR_LIBRARY_NOT_FOUND: is the driver loaded, and the container toolkit configured?"},
		"strategy none on MIG":   {gpus(4, halfMIG), plugin(nil), "nvidia.com/gpu=4/4"},
		"mixed":                  {gpus(4, halfMIG), plugin(env("MIG_STRATEGY", "mixed")), "nvidia.com/gpu=2/2 nvidia.com/mig-3g.40gb=4/4"},
		"mixed, media extension": {gpus(2, allMIG), plugin(env("MIG_STRATEGY", "mixed")), "nvidia.com/mig-1g.10gb.me=2/2 nvidia.com/mig-1g.10gb=4/4"},
		"mixed, no instances":    {gpus(2, func(_ int, g *gpu.GPU) { g.MIG = true }), plugin(env("MIG_STRATEGY", "mixed")), ""},
		"single, none cut":       {gpus(8, nil), plugin(env("MIG_STRATEGY", "single")), "nvidia.com/gpu=8/8"},
		"single, half cut":       {gpus(4, halfMIG), plugin(env("MIG_STRATEGY", "single")), "error: all devices on the node must be configured with the same migEnabled value"},
		"single, alike": {gpus(2, func(_ int, g *gpu.GPU) { g.MIG, g.Instances = true, cut(slices.Repeat([]string{"1g.10gb"}, 7)...) }),
			plugin(env("MIG_STRATEGY", "single")), "nvidia.com/gpu=14/14"},
		"single, empty": {gpus(2, func(_ int, g *gpu.GPU) { g.MIG = true }), plugin(env("MIG_STRATEGY", "single")), "error: device 0 has no MIG devices configured"},
		"a flag before a variable": {gpus(4, halfMIG), plugin(func(c *corev1.Container) {
			c.Command = []string{"nvidia-device-plugin", "--mig-strategy=none"}
			env("MIG_STRATEGY", "mixed")(c)
		}), "nvidia.com/gpu=4/4"},
		"an unknown strategy": {gpus(1, nil), plugin(env("MIG_STRATEGY", "triple")), "error: unknown strategy: triple"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := registered(t, test.host, test.pod, nil); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func TestASharedGPUIsAdvertisedAsOftenAsTheConfigurationFileSays(t *testing.T) {
	for text, want := range map[string]string{
		"version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}":                        "nvidia.com/gpu=32/32",
		"version: v1\nsharing: {timeSlicing: {renameByDefault: true, resources: [{name: nvidia.com/gpu, replicas: 2}]}}": "nvidia.com/gpu.shared=16/16",
		"version: v1\nsharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 2, rename: half}]}}":                  "nvidia.com/half=16/16",
		"version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 1}]}}":                        "error: number of replicas must be >= 2, nvidia.com/gpu has 1",
		"version: v2\n": `error: unable to parse config file /config/config.yaml: unknown version: "v2"`,
		"version: v1\nflags: {migStrategy: unheard-of}": "error: unknown strategy: unheard-of",
	} {
		pod, read := configured(text)
		if got := registered(t, gpus(8, nil), pod, read); got != want {
			t.Errorf("%s:\n%s, want %s", text, got, want)
		}
	}
	pod, read := configured("")
	pod.Spec.Volumes = nil
	if got := registered(t, gpus(8, nil), pod, read); !strings.Contains(got, "no such file") {
		t.Error(got)
	}
}

func TestThePluginIsKnownByItsImage(t *testing.T) {
	for image, want := range map[string]bool{
		"nvcr.io/nvidia/k8s-device-plugin:v0.20.0": true, "registry.example.com:5000/mirror/k8s-device-plugin@sha256:abcd": true,
		"k8s-device-plugin": true, "rocm/k8s-device-plugin:1.31": false, "registry.k8s.io/pause:3.10": false, "nvcr.io/nvidia/k8s-device-plugin-not": false,
	} {
		if got := (Host{}).IsPlugin(plugin(func(c *corev1.Container) { c.Image = image })); got != want {
			t.Errorf("%s: %t", image, got)
		}
	}
	if (Host{}).IsPlugin(plugin(func(c *corev1.Container) { c.Command = []string{"gpu-feature-discovery"} })) {
		t.Error("feature discovery of the same image is no device plugin")
	}
}
