package vendor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/rack/gpu"
	"github.com/ingot-dev/ingot/test/rack/kubelet"
)

// driver is the pod of the DRA driver on node-1.
func driver(change func(*corev1.Container)) *corev1.Pod {
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{
		{Name: "compute-domains", Image: "nvcr.io/nvidia/k8s-dra-driver-gpu:v25.12.0", Args: []string{"compute-domain-kubelet-plugin -v 4"}},
		{Name: "gpus", Image: "nvcr.io/nvidia/k8s-dra-driver-gpu:v25.12.0", Command: []string{"bash", "-c"}, Args: []string{"gpu-kubelet-plugin -v 4"}, Env: []corev1.EnvVar{
			{Name: "NODE_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}},
		}},
	}}}
	if change != nil {
		change(&pod.Spec.Containers[1])
	}
	return pod
}

func TestTheDRADriverIsKnownByItsProgram(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.Container)
		want   string
	}{
		"NVIDIA's": {nil, NVIDIADRA},
		"the community's": {func(c *corev1.Container) {
			c.Image = "registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu:v0.4.1@sha256:ab"
		}, NVIDIADRA},
		"another image":    {func(c *corev1.Container) { c.Image = "registry.k8s.io/dra-example-driver:v0.1.0" }, ""},
		"domains only":     {func(c *corev1.Container) { c.Args = []string{"compute-domain-kubelet-plugin"} }, ""},
		"no device plugin": {func(c *corev1.Container) { c.Image = "nvcr.io/nvidia/k8s-device-plugin:v0.20.0" }, ""},
	} {
		if got := (Host{}).DriverName(driver(test.change)); got != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestTheDRADriverEndsWithoutWhatItNeeds(t *testing.T) {
	for name, test := range map[string]struct {
		host   Host
		change func(*corev1.Container)
		want   string
	}{
		"no node name":                      {gpus(8, nil), func(c *corev1.Container) { c.Env = nil }, "node-name"},
		"no driver":                         {Host{NVIDIAToolkit: "1.18.0"}, nil, "driver root"},
		"gates that exclude each other":     {gpus(8, nil), env("FEATURE_GATES", "DynamicMIG=true,PassthroughSupport=true"), "mutually exclusive"},
		"a gate without the one it needs":   {gpus(8, nil), env("FEATURE_GATES", "DeviceMetadata=true"), "requires PassthroughSupport"},
		"virtual machines without an IOMMU": {gpus(8, nil), env("FEATURE_GATES", "PassthroughSupport=true"), "IOMMU is off"},
		"an odd driver": {Host{NVIDIADriver: "five", GPUs: []*gpu.GPU{{Model: gpu.Model{ComputeCapability: "9.0"}}}}, nil,
			"invalid semantic version"},
	} {
		if err := test.host.RunDriver(t.Context(), kubelet.DriverPod{Pod: driver(test.change)}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	tried := errors.New("it tries to publish")
	retry := func(context.Context, string, func() error) error { return tried }
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(tried)
	if err := gpus(8, nil).RunDriver(ended, kubelet.DriverPod{Pod: driver(nil), Retry: retry}); !errors.Is(err, tried) {
		t.Errorf("with all it needs: %v", err)
	}
}

func TestAGPUInMIGModeIsItsInstances(t *testing.T) {
	found, err := gpu.Discover([]hardware.PCIDevice{
		{Address: "0000:12:00.0", VendorID: "10de", DeviceID: "2330", Class: "030200"}, {Address: "0000:15:00.0", VendorID: "10de", DeviceID: "2330", Class: "030200"},
		{Address: "0000:18:00.0", VendorID: "10de", DeviceID: "2330", Class: "030200"},
	}, "server", "boot", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(found[1].SetMIG(true), found[1].Partition(map[string]int{"3g.40gb": 1, "1g.10gb+me": 1}), found[2].SetMIG(true)); err != nil {
		t.Fatal(err)
	}
	devices, err := Host{NVIDIADriver: "580.126.09", GPUs: found}.nvidiaDevices()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, device := range devices {
		names = append(names, device.Name)
	}
	if want := []string{"gpu-0", "gpu-1-mig-1g10gb-me-20-4", "gpu-1-mig-3g40gb-9-0"}; !slices.Equal(names, want) {
		t.Fatalf("%q, want %q", names, want)
	}
	three := devices[2]
	memory := three.Capacity["memory"].Value
	if *three.Attributes["parentUUID"].StringValue != found[1].UUID || *three.Attributes["uuid"].StringValue != found[1].Instances[0].UUID ||
		*three.Attributes["cudaDriverVersion"].VersionValue != "13.0.0" || len(three.Capacity) != 11 || memory.Value() >= 81559<<19+1 {
		t.Errorf("%+v", three)
	}
}

// TestDynamicInstancesShareTheCountersOfTheirGPU has the numbers of NVIDIA's driver 0.4.1 with eight H100 on Kubernetes 1.35 and later.
func TestDynamicInstancesShareTheCountersOfTheirGPU(t *testing.T) {
	var cards []hardware.PCIDevice
	for i := range 8 {
		cards = append(cards, hardware.PCIDevice{Address: fmt.Sprintf("0000:%02x:00.0", 0x12+3*i), VendorID: "10de", DeviceID: "2330", Class: "030200"})
	}
	found, err := gpu.Discover(cards, "server", "boot", "")
	if err != nil {
		t.Fatal(err)
	}
	contents, err := Host{NVIDIADriver: "580.126.09", GPUs: found}.PublishedContents(driver(env("FEATURE_GATES", "DynamicMIG=true")))
	if err != nil {
		t.Fatal(err)
	}
	all := contents.Slices()
	if len(all) != 9 || len(all[0].SharedCounters) != 8 || len(all[0].Devices) != 0 {
		t.Fatalf("%d slices, of which the first has %d counter sets", len(all), len(all[0].SharedCounters))
	}
	whole := all[0].SharedCounters[0].Counters
	for _, slice := range all[1:] {
		if len(slice.Devices) != 26 || len(slice.SharedCounters) != 0 {
			t.Fatalf("a slice has %d devices and %d counter sets", len(slice.Devices), len(slice.SharedCounters))
		}
		for _, d := range slice.Devices {
			if _, isListed := d.Capacity["memorySlice0"]; len(d.ConsumesCounters) != 1 || isListed {
				t.Errorf("device %s consumes %v", d.Name, d.ConsumesCounters)
			}
		}
	}
	// Seven small instances fit beside each other, and none beside the whole GPU.
	consumed := func(isMeant func(name string) bool) map[string]int64 {
		out := map[string]int64{}
		for _, d := range all[1].Devices {
			if isMeant(d.Name) {
				for counter, c := range d.ConsumesCounters[0].Counters {
					out[counter] += c.Value.Value()
				}
			}
		}
		return out
	}
	isSmall := func(name string) bool { return strings.Contains(name, "-mig-1g10gb-19-") }
	small := consumed(isSmall)
	both := consumed(func(name string) bool { return isSmall(name) || !strings.Contains(name, "-mig-") })
	for counter, c := range whole {
		if small[counter] > c.Value.Value() || strings.HasPrefix(counter, "memory-slice-") && counter != "memory-slice-7" && both[counter] != 2 {
			t.Errorf("counter %s has %d: seven instances use %d, with the whole GPU %d", counter, c.Value.Value(), small[counter], both[counter])
		}
	}
	if len(whole) != 15 || small["multiprocessors"] != 7*16 || small["decoders"] != 7 || small["ofa-engines"] != 0 {
		t.Errorf("the GPU has %d counters, seven instances use %v", len(whole), small)
	}
}

// recordedDevices are what NVIDIA's DRA driver 0.4.1 publishes of eight GPUs for containers and virtual machines: its own code made them of values of ours, and
// withdrew what it withdraws when it prepares claims.
func recordedDevices(t *testing.T, name string) (devices []resourcev1.Device) {
	t.Helper()
	text, err := os.ReadFile("testdata/vfio-" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, &devices); err != nil {
		t.Fatal(err)
	}
	return devices
}

func TestAPreparedClaimLeavesOneFormOfItsGPU(t *testing.T) {
	idle := recordedDevices(t, "idle")
	for name, claimed := range map[string][]string{
		"idle": nil, "one-of-each": {"gpu-vfio-0", "gpu-1"},
		"all": {"gpu-vfio-0", "gpu-1", "gpu-vfio-2", "gpu-vfio-3", "gpu-vfio-4", "gpu-vfio-5", "gpu-vfio-6", "gpu-vfio-7"},
	} {
		if difference := cmp.Diff(recordedDevices(t, name), Prepare(idle, claimed...)); difference != "" {
			t.Errorf("%s: the driver and the simulation differ: %s", name, difference)
		}
	}
}
