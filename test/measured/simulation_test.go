package measured

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/rack/gpu"
	"github.com/ingot-dev/ingot/test/rack/vendor"
)

// simulated returns a simulated server with the GPUs that were recorded: with their addresses, UUIDs and driver.
func simulated(t *testing.T, r recording) vendor.Host {
	t.Helper()
	var devices []hardware.PCIDevice
	for _, d := range r.nvml.Devices {
		devices = append(devices, hardware.PCIDevice{Address: pciAddress(d.PCI.BusID), VendorID: "10de", DeviceID: d.PCI.DeviceID[2:6], Class: "030200"})
	}
	found, err := gpu.Discover(devices, "server", "boot", "")
	if err != nil || len(found) != len(r.nvml.Devices) {
		t.Fatalf("%d GPUs: %v", len(found), err)
	}
	for i := range found {
		found[i].UUID = r.nvml.Devices[i].UUID
	}
	return vendor.Host{NVIDIADriver: r.nvml.DriverVersion, NVIDIAToolkit: "1.18.0", IsToolkitOpen: true, GPUs: found}
}

func podOf(image string, command []string, environment map[string]string) *corev1.Pod {
	c := corev1.Container{Name: "c", Image: image, Command: command}
	for name, value := range environment {
		c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value})
	}
	return &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{c}}}
}

func noConfigMap(context.Context, string) (map[string]string, error) { return nil, nil }

// unused are labels of feature discovery that nothing here uses, so that the simulated servers have none. Those of the machine and of the time are of one recording.
var unused = []string{
	"nvidia.com/cuda.driver.major", "nvidia.com/cuda.driver.minor", "nvidia.com/cuda.driver.rev", "nvidia.com/cuda.runtime-version.full", "nvidia.com/cuda.runtime-version.major",
	"nvidia.com/cuda.runtime-version.minor", "nvidia.com/cuda.runtime.major", "nvidia.com/cuda.runtime.minor", "nvidia.com/gfd.timestamp", "nvidia.com/gpu.compute.major",
	"nvidia.com/gpu.compute.minor", "nvidia.com/gpu.machine", "nvidia.com/gpu.mode",
}

func TestASimulatedServerHasTheLabelsOfARealOne(t *testing.T) {
	for name, r := range readRecordings(t) {
		host := simulated(t, r)
		for strategy, real := range r.labels {
			pod := podOf("nvcr.io/nvidia/k8s-device-plugin:v0.19.3", []string{"gpu-feature-discovery"}, map[string]string{"MIG_STRATEGY": strategy})
			labels, err := host.FeatureLabels(t.Context(), pod, noConfigMap)
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range keysOf(labels, real) {
				if labels[key] != real[key] && !slices.Contains(unused, key) {
					t.Errorf("%s, strategy %s: %s is %q, and simulated %q", name, strategy, key, real[key], labels[key])
				}
			}
		}
	}
}

func TestASimulatedServerHasTheResourcesOfARealOne(t *testing.T) {
	for name, r := range readRecordings(t) {
		resources, err := simulated(t, r).Register(t.Context(), podOf("nvcr.io/nvidia/k8s-device-plugin:v0.19.3", nil, nil), noConfigMap)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range keysOf(resources, map[corev1.ResourceName]bool{}) {
			if got, want := resources[resource].Total, len(r.registered[string(resource)]); got != int64(want) {
				t.Errorf("%s: %s is %d, and simulated %d", name, resource, want, got)
			}
		}
		if len(resources) != len(r.registered) {
			t.Errorf("%s: %d resources, and simulated %d", name, len(r.registered), len(resources))
		}
	}
}

func TestASimulatedServerPublishesTheDevicesOfARealOne(t *testing.T) {
	for name, r := range readRecordings(t) {
		for gates, published := range map[string][]resourcev1.ResourceSlice{"": r.slices, "DynamicMIG=true": r.dynamic} {
			pod := podOf("registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu:v0.4.1", []string{"gpu-kubelet-plugin"}, map[string]string{"FEATURE_GATES": gates})
			contents, err := simulated(t, r).PublishedContents(pod)
			if err != nil {
				t.Fatal(err)
			}
			var realSpecs []resourcev1.ResourceSliceSpec
			for _, s := range published {
				realSpecs = append(realSpecs, s.Spec)
			}
			real, simulated := factsOf(realSpecs), factsOf(contents.Slices())
			for _, fact := range keysOf(real, simulated) {
				if real[fact] != simulated[fact] && !isUnusedFact(fact) {
					t.Errorf("%s, gates %q: %s is %q, and simulated %q", name, gates, fact, real[fact], simulated[fact])
				}
			}
			if len(realSpecs) != len(contents.Slices()) {
				t.Errorf("%s, gates %q: %d slices, and simulated %d", name, gates, len(realSpecs), len(contents.Slices()))
			}
		}
	}
}

// isUnusedFact reports whether nothing here uses the fact of a device, so that simulated ones have none. An attribute of where a device is in the server differs
// from one to the next.
func isUnusedFact(fact string) bool {
	return slices.ContainsFunc([]string{"attribute resource.kubernetes.io/pcieRoot", "attribute numa", "attribute addressingMode"}, func(ending string) bool { return strings.HasSuffix(fact, ending) })
}

// factsOf returns everything that slices say of devices and counters, each as one text.
func factsOf(all []resourcev1.ResourceSliceSpec) map[string]string {
	out := map[string]string{}
	for _, s := range all {
		for _, set := range s.SharedCounters {
			addCounters(out, "counters "+set.Name, set.Counters)
		}
		for _, d := range s.Devices {
			out["device "+d.Name] = "is there"
			for name, a := range d.Attributes {
				out[fmt.Sprintf("device %s attribute %s", d.Name, name)] = attributeText(a)
			}
			for name, c := range d.Capacity {
				out[fmt.Sprintf("device %s capacity %s", d.Name, name)] = fmt.Sprint(c.Value.Value())
			}
			for _, c := range d.ConsumesCounters {
				addCounters(out, fmt.Sprintf("device %s consumes of %s", d.Name, c.CounterSet), c.Counters)
			}
		}
	}
	return out
}

func addCounters(into map[string]string, of string, counters map[string]resourcev1.Counter) {
	for name, c := range counters {
		into[of+" "+name] = fmt.Sprint(c.Value.Value())
	}
}

// attributeText returns the type and the value of an attribute.
func attributeText(a resourcev1.DeviceAttribute) string {
	switch {
	case a.StringValue != nil:
		return "string " + *a.StringValue
	case a.VersionValue != nil:
		return "version " + *a.VersionValue
	case a.BoolValue != nil:
		return fmt.Sprint("bool ", *a.BoolValue)
	case a.IntValue != nil:
		return fmt.Sprint("int ", *a.IntValue)
	}
	return fmt.Sprintf("%v", a)
}

// keysOf returns the keys of both maps, sorted.
func keysOf[K ~string, A, B any](a map[K]A, b map[K]B) []K {
	return slices.Compact(slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b))...))))
}
