package gpu

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/test/rack/pci"
)

// Architectures as NVML names them.
const (
	Turing    = "Turing"
	Ampere    = "Ampere"
	Ada       = "Ada Lovelace"
	Hopper    = "Hopper"
	Blackwell = "Blackwell"
)

// Model is a kind of GPU.
type Model struct {
	// Product is NVML's name of the board.
	Product      string
	Architecture string
	// ComputeCapability is CUDA's, "9.0".
	ComputeCapability string
	// MemoryMiB is what nvidia-smi shows as the total.
	MemoryMiB int64
	// Profiles are the GPU instance profiles; a model without any does not support MIG.
	Profiles []Profile
}

// Profile is a GPU instance profile.
type Profile struct {
	// Name is nvidia-smi's, "1g.10gb+me".
	Name string
	// ID is nvidia-smi's number of it.
	ID int
	// Compute and Slots are how many of the seven compute slices and of the eight memory slots it takes.
	Compute, Slots int
	// Starts are the memory slots that it can begin at.
	Starts []int
	// Max is how many of it fit on one GPU.
	Max int
	// Media means that the instance takes the GPU's one set of media engines.
	Media bool
	// Multiprocessors is how many SMs it has.
	Multiprocessors int64
	Engines         Engines
}

// Engines are the hardware units of an instance beside its multiprocessors: copy engines, video decoders and encoders, JPEG decoders and optical flow
// accelerators (MIG user guide, "Supported MIG Profiles").
type Engines struct {
	Copy, Decoders, Encoders, JPEG, OpticalFlow int64
}

const (
	computeSlices = 7
	memorySlots   = 8
)

// sevenSliceProfiles returns the profiles of the family of A100, H100 and H200 (`nvidia-smi mig -lgip` and `-lgipp`). names
// and multiprocessors are those of 1g, 1g with media, 1g with double memory, 2g, 3g, 4g and 7g.
func sevenSliceProfiles(names [7]string, multiprocessors [7]int64) []Profile {
	any7 := []int{0, 1, 2, 3, 4, 5, 6}
	out := []Profile{
		{ID: 19, Compute: 1, Slots: 1, Starts: any7, Max: 7},
		{ID: 20, Compute: 1, Slots: 1, Starts: any7, Max: 1, Media: true},
		{ID: 15, Compute: 1, Slots: 2, Starts: []int{0, 2, 4, 6}, Max: 4},
		{ID: 14, Compute: 2, Slots: 2, Starts: []int{0, 2, 4}, Max: 3},
		{ID: 9, Compute: 3, Slots: 4, Starts: []int{0, 4}, Max: 2},
		{ID: 5, Compute: 4, Slots: 4, Starts: []int{0}, Max: 1},
		{ID: 0, Compute: 7, Slots: 8, Starts: []int{0}, Max: 1},
	}
	engines := hopperEngines
	if multiprocessors == ampereSMs {
		engines = ampereEngines
	}
	for i := range out {
		out[i].Name, out[i].Multiprocessors, out[i].Engines = names[i], multiprocessors[i], engines[i]
	}
	return out
}

var (
	ampereSMs    = [7]int64{14, 14, 14, 28, 42, 56, 98}
	hopperSMs    = [7]int64{16, 16, 26, 32, 60, 64, 132}
	blackwellSMs = [7]int64{18, 18, 30, 36, 70, 72, 148}

	ampereEngines = [7]Engines{{Copy: 1}, {Copy: 1, Decoders: 1, JPEG: 1, OpticalFlow: 1}, {Copy: 1, Decoders: 1}, {Copy: 2, Decoders: 1}, {Copy: 3, Decoders: 2}, {Copy: 4, Decoders: 2}, {Copy: 7, Decoders: 5, JPEG: 1, OpticalFlow: 1}}
	hopperEngines = [7]Engines{
		{Copy: 1, Decoders: 1, JPEG: 1}, {Copy: 1, Decoders: 1, JPEG: 1, OpticalFlow: 1}, {Copy: 1, Decoders: 1, JPEG: 1}, {Copy: 2, Decoders: 2, JPEG: 2},
		{Copy: 3, Decoders: 3, JPEG: 3}, {Copy: 4, Decoders: 4, JPEG: 4}, {Copy: 8, Decoders: 7, JPEG: 7, OpticalFlow: 1},
	}

	names186GB = [7]string{"1g.23gb", "1g.23gb+me", "1g.47gb", "2g.47gb", "3g.93gb", "4g.93gb", "7g.186gb"}
	names269GB = [7]string{"1g.34gb", "1g.34gb+me", "1g.67gb", "2g.67gb", "3g.135gb", "4g.135gb", "7g.269gb"}
	names180GB = [7]string{"1g.23gb", "1g.23gb+me", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb"}
	names40GB  = [7]string{"1g.5gb", "1g.5gb+me", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"}
	names80GB  = [7]string{"1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"}
	names141GB = [7]string{"1g.18gb", "1g.18gb+me", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"}
)

// models are the known models by PCI device id.
var models = map[string]Model{
	"20b0": {"NVIDIA A100-SXM4-40GB", Ampere, "8.0", 40960, sevenSliceProfiles(names40GB, ampereSMs)},
	"20f1": {"NVIDIA A100-PCIE-40GB", Ampere, "8.0", 40960, sevenSliceProfiles(names40GB, ampereSMs)},
	"20b2": {"NVIDIA A100-SXM4-80GB", Ampere, "8.0", 81920, sevenSliceProfiles(names80GB, ampereSMs)},
	"20b5": {"NVIDIA A100 80GB PCIe", Ampere, "8.0", 81920, sevenSliceProfiles(names80GB, ampereSMs)},
	"2330": {"NVIDIA H100 80GB HBM3", Hopper, "9.0", 81559, sevenSliceProfiles(names80GB, hopperSMs)},
	"2331": {"NVIDIA H100 PCIe", Hopper, "9.0", 81559, sevenSliceProfiles(names80GB, hopperSMs)},
	"2335": {"NVIDIA H200", Hopper, "9.0", 143771, sevenSliceProfiles(names141GB, hopperSMs)},
	"233b": {"NVIDIA H200 NVL", Hopper, "9.0", 143771, sevenSliceProfiles(names141GB, hopperSMs)},
	"2901": {"NVIDIA B200", Blackwell, "10.0", 183359, sevenSliceProfiles(names180GB, blackwellSMs)},
	"2941": {"NVIDIA GB200", Blackwell, "10.0", 189471, sevenSliceProfiles(names186GB, blackwellSMs)},
	"3182": {"NVIDIA B300 SXM6 AC", Blackwell, "10.3", 275040, sevenSliceProfiles(names269GB, blackwellSMs)},
	"26b9": {"NVIDIA L40S", Ada, "8.9", 46068, nil},
	"2235": {"NVIDIA A40", Ampere, "8.6", 46068, nil},
	"2236": {"NVIDIA A10", Ampere, "8.6", 23028, nil},
	"1eb8": {"Tesla T4", Turing, "7.5", 15360, nil},
}

// HasPersistentMIGMode reports whether the InfoROM keeps the MIG mode (MIG user guide, "Enable MIG Mode").
func (m Model) HasPersistentMIGMode() bool { return m.Architecture == Ampere }

// Profile returns the profile with this name.
func (m Model) Profile(name string) (Profile, bool) {
	at := slices.IndexFunc(m.Profiles, func(p Profile) bool { return p.Name == name })
	if at < 0 {
		return Profile{}, false
	}
	return m.Profiles[at], true
}

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
