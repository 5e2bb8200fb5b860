package gpu

import (
	"fmt"
	"strings"

	"github.com/ingot-dev/ingot/test/rack/pci"
)

// vgpuModels has for each device id the vGPU manager's name of the GPU, and its vGPU types with their maximum number, from
// the configuration that NVIDIA's operator ships.
var vgpuModels = map[string]struct{ word, name, types string }{
	"1eb8": {"GRID", "T4", "4C4 8C2 16C1 1Q16 2Q8 4Q4 8Q2 16Q1"},
	"2236": {"NVIDIA", "A10", "4C6 6C4 8C3 12C2 24C1 1Q24 2Q12 3Q8 4Q6 6Q4 8Q3 12Q2 24Q1"},
	"2235": {"NVIDIA", "A40", types48GB},
	"26b9": {"NVIDIA", "L40S", types48GB},
	"20f1": {"NVIDIA", "A100", types40GB},
	"20b0": {"NVIDIA", "A100X", types40GB},
	"2331": {"NVIDIA", "H100", types80GB},
	"2330": {"NVIDIA", "H100XM", types80GB},
}

const (
	types40GB = "4C10 5C8 8C5 10C4 20C2 40C1 1-5C7 1-5CME1 1-10C4 2-10C3 3-20C2 4-20C1 7-40C1"
	types48GB = "4C12 6C8 8C6 12C4 16C3 24C2 48C1 1Q32 2Q24 3Q16 4Q12 6Q8 8Q6 12Q4 16Q3 24Q2 48Q1"
	types80GB = "4C20 5C16 8C10 10C8 16C5 20C4 40C2 80C1 1-10C7 1-10CME1 1-20C4 2-20C3 3-40C2 4-40C1 7-80C1"
)

// VGPUTypes returns the vGPU types of a device. The ids are invented, because releases of the driver change them.
func VGPUTypes(deviceID string) []pci.VGPUType {
	v, ok := vgpuModels[strings.ToLower(deviceID)]
	if !ok {
		return nil
	}
	var out []pci.VGPUType
	for i, entry := range strings.Fields(v.types) {
		at := strings.LastIndexAny(entry, "CQE")
		count := 0
		for _, digit := range entry[at+1:] {
			count = 10*count + int(digit-'0')
		}
		out = append(out, pci.VGPUType{ID: 500 + i, Name: fmt.Sprintf("%s %s-%s", v.word, v.name, entry[:at+1]), Max: count})
	}
	return out
}
