package vendor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

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
		*three.Attributes["cudaDriverVersion"].VersionValue != "13.0.0" || len(three.Capacity) != 6 || memory.Value() >= 81559<<19+1 {
		t.Errorf("%+v", three)
	}
}
