package vendor

import (
	"fmt"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/rack/gpu"
)

// TestTheSoftwareIsAsMeasured pins where the simulated software was compared with NVIDIA's own: feature discovery 0.19.3 and the DRA driver 0.4.1, with
// an NVML that reports H100s.
func TestTheSoftwareIsAsMeasured(t *testing.T) {
	const mps, mixed = "sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 2}]}}", "flags: {migStrategy: mixed}"
	cut := func(_ int, g *gpu.GPU) { g.MIG = true }
	for text, tt := range map[string]struct {
		host Host
		want map[string]string
	}{
		"":                           {gpus(8, nil), map[string]string{"nvidia.com/mps.capable": "false", "nvidia.com/mig.strategy": "", "nvidia.com/gpu.replicas": "1"}},
		"flags: {migStrategy: none}": {gpus(8, nil), map[string]string{"nvidia.com/mig.strategy": ""}},
		mps:                          {gpus(8, nil), map[string]string{"nvidia.com/mps.capable": "true", "nvidia.com/gpu.replicas": "2"}},
		mixed:                        {gpus(8, cut), map[string]string{"nvidia.com/mig.strategy": "mixed", "nvidia.com/gpu.replicas": "0"}},
	} {
		pod, read := configured("version: v1\n" + text)
		pod.Spec.Containers[0].Command = []string{"gpu-feature-discovery"}
		labels, err := tt.host.FeatureLabels(t.Context(), pod, read)
		if err != nil {
			t.Fatal(err)
		}
		for key, want := range tt.want {
			if labels[key] != want {
				t.Errorf("%q: %s is %q, want %q", text, key, labels[key], want)
			}
		}
	}
	if id := nameUUID("0000:17:00.0"); id != "49f07119-9941-5b92-8d63-43c8586ef6bf" {
		t.Errorf("the UUID of a GPU without a driver is %s", id)
	}
	found, err := gpu.Discover([]hardware.PCIDevice{{Address: "0000:12:00.0", VendorID: "10de", DeviceID: "2330", Class: "030200"}}, "server", "boot", "")
	if err != nil {
		t.Fatal(err)
	}
	h100 := found[0].Model
	for _, p := range h100.Profiles {
		if memory := fmt.Sprint((gpu.Instance{Profile: p}).MemoryMiB(h100)); p.Slots == 1 && memory != "9984" || p.Slots == 8 && memory != "81152" {
			t.Errorf("%s has %s MiB", p.Name, memory)
		}
	}
}
