package nvtool

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/test/rack/gpu"
	"github.com/ingot-dev/ingot/test/rack/pci"
)

// vgpuFile is nvidia-vgpu-dm's configuration file, version v1.
type vgpuFile struct {
	Version string                  `json:"version"`
	Configs map[string][]vgpuConfig `json:"vgpu-configs"`
}

// vgpuConfig is the vGPU configuration of some of the GPUs.
type vgpuConfig struct {
	DeviceFilter any            `json:"device-filter"`
	Devices      any            `json:"devices"`
	Types        map[string]int `json:"vgpu-devices"`
}

// VGPUDM simulates nvidia-vgpu-dm 0.5: it creates mediated devices only, and partitions GPUs for types that are backed by a
// MIG instance.
type VGPUDM struct {
	Bus  *pci.Bus
	GPUs []*gpu.GPU
}

// Run runs the program. arguments are the words after its name; readFile reads a file of the machine.
func (v VGPUDM) Run(arguments []string, readFile func(string) ([]byte, error)) error {
	for len(arguments) > 0 && strings.HasPrefix(arguments[0], "-") {
		arguments = arguments[1:]
	}
	if len(arguments) == 0 || arguments[0] != "apply" && arguments[0] != "assert" {
		return nil // prints something, changes nothing
	}
	file, _ := option(arguments, "-f", "--config-file")
	name, _ := option(arguments, "-c", "--selected-config")
	text, err := readFile(file)
	if err != nil {
		return fmt.Errorf("error parsing config file: read error: %w", err)
	}
	return v.RunConfig(arguments[0], text, name)
}

// RunConfig applies or asserts the configuration with this name.
func (v VGPUDM) RunConfig(verb string, text []byte, name string) error {
	var file vgpuFile
	if err := decodeStrict(text, &file); err != nil {
		return fmt.Errorf("error parsing config file: unmarshal error: %w", err)
	}
	if file.Version != "v1" {
		return fmt.Errorf("unknown version: %s", file.Version)
	}
	config, ok := file.Configs[name]
	if !ok {
		return fmt.Errorf("error selecting vGPU config: selected vgpu-config not present: %s", name)
	}
	if len(v.GPUs) == 0 {
		return errors.New("no GPU is there that the vGPU manager drives")
	}
	for i, g := range v.GPUs {
		for _, entry := range config {
			if !entry.isFor(i, g) {
				continue
			}
			if err := v.applyGPU(verb, g, entry.Types); err != nil {
				return fmt.Errorf("GPU %d: %w", i, err)
			}
		}
	}
	return nil
}

func (c vgpuConfig) isFor(i int, g *gpu.GPU) bool {
	filters, _ := c.DeviceFilter.([]any)
	if one, ok := c.DeviceFilter.(string); ok {
		filters = []any{one}
	}
	matches := len(filters) == 0
	for _, filter := range filters {
		matches = matches || strings.EqualFold(fmt.Sprint(filter), "0x"+g.DeviceID+"10de")
	}
	if c.Devices == "all" {
		return matches
	}
	list, _ := c.Devices.([]any)
	return matches && slices.ContainsFunc(list, func(n any) bool { return fmt.Sprint(n) == fmt.Sprint(i) })
}

// migBackedType matches types that are backed by a MIG instance, such as A100-1-5CME.
var migBackedType = regexp.MustCompile(`^[A-Z0-9]+-(\d+)-(\d+)[A-Z](ME)?$`)

func (v VGPUDM) applyGPU(verb string, g *gpu.GPU, types map[string]int) error {
	device := v.Bus.Find(g.Address)
	if device == nil {
		return errors.New("no such device")
	}
	instances := map[string]int{}
	for name, count := range types {
		if parts := migBackedType.FindStringSubmatch(name); parts != nil {
			instances[fmt.Sprintf("%sg.%sgb%s", parts[1], parts[2], cmp.Or(map[string]string{"ME": "+me"}[parts[3]], ""))] += count
		}
	}
	if verb == "assert" {
		made := map[string]int{}
		for _, name := range device.MediatedDevices {
			_, short, _ := strings.Cut(name, " ")
			made[short]++
		}
		if !maps.Equal(made, types) {
			return fmt.Errorf("assertion failure: it has %v, not %v", made, types)
		}
		return nil
	}
	if len(instances) > 0 {
		if err := errors.Join(g.SetMIG(true), g.Partition(instances)); err != nil {
			return fmt.Errorf("error setting MIG config: %w", err)
		}
	} else if g.MIG {
		return errors.New("the GPU is in MIG mode, and its vGPU types share it in time")
	}
	return v.Bus.CreateMediatedDevices(device, types)
}
