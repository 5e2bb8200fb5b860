package measured

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/presentation/catalogue"
)

// machines are the servers that were recorded.
var machines = []struct {
	// name is that of the folder in testdata.
	name string
	// model and count of its GPUs.
	model string
	count int32
}{
	{name: "h100", model: "H100-SXM5-80GB", count: 1},
	{name: "h200", model: "H200-SXM-141GB", count: 1},
}

// recording is the content of one folder.
type recording struct {
	model catalogue.Model
	count int32
	// labels are those of feature discovery by MIG strategy.
	labels map[string]map[string]string
	// registered is what the device plugin registered, by resource: the health of each device by its ID.
	registered map[string]map[string]string
	// slices are what the DRA driver publishes, and dynamic what it publishes with the feature gate DynamicMIG.
	slices, dynamic []resourcev1.ResourceSlice
	// modes is what the node's own unit reports of the MIG mode.
	modes string
	nvml  nvmlFacts
}

// nvmlFacts are the values of NVML that are compared.
type nvmlFacts struct {
	DriverVersion string       `json:"driverVersion"`
	Devices       []nvmlDevice `json:"devices"`
}

// nvmlDevice is a GPU.
type nvmlDevice struct {
	Name     string `json:"name"`
	UUID     string `json:"uuid"`
	MemoryV1 struct {
		Total int64
	} `json:"memoryV1"`
	PCI struct {
		BusID    string `json:"busId"`
		DeviceID string `json:"pciDeviceId"`
	} `json:"pci"`
	Profiles []nvmlProfile `json:"gpuInstanceProfiles"`
}

// nvmlProfile is a GPU instance profile. Error is set for a number that NVML has no profile for.
type nvmlProfile struct {
	Error string `json:"error"`
	Name  string `json:"name"`
	Info  struct {
		ID                  int `json:"Id"`
		SliceCount          int
		InstanceCount       int
		MultiprocessorCount int64
		CopyEngineCount     int64
		DecoderCount        int64
		EncoderCount        int64
		JpegCount           int64
		OfaCount            int64
		MemorySizeMB        int64
	} `json:"info"`
	Placements []struct{ Start, Size int } `json:"placements"`
}

// pciAddress returns the address as the kernel writes it: NVML has eight digits of the domain.
func pciAddress(busID string) string { return strings.ToLower(strings.TrimPrefix(busID, "0000")) }

func readRecordings(t *testing.T) map[string]recording {
	t.Helper()
	out := map[string]recording{}
	for _, m := range machines {
		model, err := catalogue.Lookup(v1alpha1.VendorNVIDIA, m.model)
		if err != nil {
			t.Fatal(err)
		}
		out[m.name] = readRecording(t, m.name, model, m.count)
	}
	return out
}

func readRecording(t *testing.T, name string, model catalogue.Model, count int32) recording {
	t.Helper()
	read := func(file string) []byte {
		text, err := os.ReadFile(filepath.Join("testdata", name, file))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	r := recording{model: model, count: count, labels: map[string]map[string]string{}, registered: map[string]map[string]string{}, modes: strings.TrimSpace(string(read("modes.txt")))}
	for _, strategy := range []string{"none", "single", "mixed"} {
		r.labels[strategy] = parseLabels(string(read("labels-" + strategy + ".txt")))
	}
	for file, into := range map[string]*[]resourcev1.ResourceSlice{"slices.yaml": &r.slices, "slices-dynamic.yaml": &r.dynamic} {
		var list resourcev1.ResourceSliceList
		if err := yaml.UnmarshalStrict(read(file), &list); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		*into = list.Items
	}
	if err := json.Unmarshal(read("nvml.json"), &r.nvml); err != nil {
		t.Fatal(err)
	}
	var plugins []struct {
		Register struct {
			Resource string `json:"resource_name"`
		}
		Devices struct {
			Devices []struct {
				ID     string `json:"ID"`
				Health string `json:"health"`
			} `json:"devices"`
		}
	}
	if err := json.Unmarshal(read("deviceplugin.json"), &plugins); err != nil {
		t.Fatal(err)
	}
	for _, p := range plugins {
		health := map[string]string{}
		for _, d := range p.Devices.Devices {
			health[d.ID] = d.Health
		}
		r.registered[p.Register.Resource] = health
	}
	return r
}

// parseLabels reads a file of feature discovery, which has key=value in each line.
func parseLabels(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, found := strings.Cut(strings.TrimSpace(line), "="); found {
			out[key] = value
		}
	}
	return out
}
