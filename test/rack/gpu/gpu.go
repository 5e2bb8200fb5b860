package gpu

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// nvidiaID is NVIDIA's PCI vendor id.
const nvidiaID = "10de"

// errInUse is the error of changing the mode or the layout of a GPU that is in use.
var errInUse = errors.New("in use by another client")

// Instance is a GPU instance with its one compute instance.
type Instance struct {
	Profile Profile
	// Start is the first memory slot.
	Start int
	UUID  string
}

// measuredMiB has the memory of instances by the memory of the GPU and by their slots, as NVML said it of an H100 and an H200 with driver 580.159.04. Others are
// their share of the model's memory, of which the driver keeps a little.
var measuredMiB = map[int64]map[int]int64{
	81559:  {1: 9984, 2: 20096, 4: 40448, 8: 81152},
	143771: {1: 16384, 2: 33280, 4: 71424, 8: 143360},
}

// MemoryMiB returns the memory of the instance.
func (i Instance) MemoryMiB(of Model) int64 {
	if measured, is := measuredMiB[of.MemoryMiB][i.Profile.Slots]; is {
		return measured
	}
	return of.MemoryMiB * int64(i.Profile.Slots) / memorySlots
}

// GPU is the state of a GPU during one boot.
type GPU struct {
	// Address is the PCI address in this boot, DeviceID the PCI device id, Minor the number of the device file.
	Address, DeviceID string
	Minor             int
	UUID              string
	Model             Model
	// Unhealthy means that the driver has reported an error that no application caused.
	Unhealthy bool
	// InUse means that a client uses the GPU, so that its mode and layout cannot change.
	InUse bool
	// Virtual means that a hypervisor made the GPU from a part of a physical one. It needs a licence.
	Virtual bool
	// MIG means that the GPU is in MIG mode.
	MIG       bool
	Instances []Instance

	boot string
	rom  InfoROM
}

// Discover finds NVIDIA's GPUs among the devices: display controllers (base class 03), not bridges such as NVSwitches.
// owner and boot make UUIDs: a GPU's is the same in every boot, an instance's is not.
func Discover(devices []hardware.PCIDevice, owner, boot string, rom InfoROM) ([]*GPU, error) {
	modes, err := rom.load()
	if err != nil {
		return nil, err
	}
	var out []*GPU
	for _, device := range devices {
		if device.VendorID != nvidiaID || !strings.HasPrefix(device.Class, "03") {
			continue
		}
		model, known := models[strings.ToLower(device.DeviceID)]
		if !known {
			model = Model{Product: "NVIDIA Graphics Device", ComputeCapability: "0.0"}
		}
		out = append(out, &GPU{
			Address: device.Address, DeviceID: device.DeviceID, Minor: len(out), UUID: uuid("GPU", owner, device.Address), Model: model,
			MIG: model.HasPersistentMIGMode() && modes[device.Address], boot: boot, rom: rom,
		})
	}
	return out, nil
}

// HasMIGMode reports whether the GPU supports MIG.
func (g *GPU) HasMIGMode() bool { return len(g.Model.Profiles) > 0 }

// SetMIG turns the MIG mode on or off, which deletes all instances.
func (g *GPU) SetMIG(on bool) error {
	if g.MIG == on {
		return nil
	}
	if !g.HasMIGMode() {
		return fmt.Errorf("GPU %s: not supported", g.Address)
	}
	if g.InUse {
		return fmt.Errorf("GPU %s: %w", g.Address, errInUse)
	}
	g.MIG, g.Instances = on, nil
	if g.Model.HasPersistentMIGMode() {
		return g.rom.store(g.Address, on)
	}
	return nil
}

// Partition replaces the instances by the wanted number of each profile. After an error the GPU has no instances.
func (g *GPU) Partition(wanted map[string]int) error {
	if !g.MIG {
		return fmt.Errorf("GPU %s: MIG mode is disabled", g.Address)
	}
	if g.InUse {
		return fmt.Errorf("GPU %s: %w", g.Address, errInUse)
	}
	placed, err := g.Model.Place(wanted)
	if err != nil {
		g.Instances = nil
		return fmt.Errorf("GPU %s: %w", g.Address, err)
	}
	for i := range placed {
		placed[i].UUID = uuid("MIG", g.UUID, g.boot, fmt.Sprint(placed[i].Profile.ID, placed[i].Start))
	}
	g.Instances = placed
	return nil
}

// Layout returns the number of instances by profile.
func (g *GPU) Layout() map[string]int {
	out := map[string]int{}
	for _, instance := range g.Instances {
		out[instance.Profile.Name]++
	}
	return out
}

func uuid(kind string, of ...string) string {
	raw := sha256.Sum256([]byte(strings.Join(of, "/")))
	return fmt.Sprintf("%s-%x-%x-%x-%x-%x", kind, raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:16])
}

// InfoROM is the path of the file that holds the GPUs' persistent MIG modes by PCI address. With an empty path nothing is
// kept.
type InfoROM string

func (r InfoROM) load() (map[string]bool, error) {
	modes := map[string]bool{}
	text, err := os.ReadFile(string(r))
	if r == "" || errors.Is(err, os.ErrNotExist) {
		return modes, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &modes)
	}
	if err != nil {
		return nil, fmt.Errorf("the GPUs' InfoROM: %w", err)
	}
	return modes, nil
}

func (r InfoROM) store(address string, on bool) error {
	modes, err := r.load()
	if err != nil || r == "" {
		return err
	}
	modes[address] = on
	text, err := json.Marshal(modes)
	if err == nil {
		err = os.WriteFile(string(r), text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("the GPUs' InfoROM: %w", err)
	}
	return nil
}

// errLayout is the error of a layout that the driver cannot create.
var errLayout = errors.New("insufficient resources")

// Place returns instances for the wanted number of each profile, ordered by their start. It returns an error when they do
// not fit.
func (m Model) Place(wanted map[string]int) ([]Instance, error) {
	var profiles []Profile
	compute, media := 0, 0
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		profile, ok := m.Profile(name)
		if !ok {
			return nil, fmt.Errorf("%w: %s has no profile %s: it has %s", errLayout, m.Product, name, m.profileNames())
		}
		if wanted[name] > profile.Max {
			return nil, fmt.Errorf("%w: %d instances of %s, at most %d fit", errLayout, wanted[name], name, profile.Max)
		}
		profiles = append(profiles, slices.Repeat([]Profile{profile}, wanted[name])...)
		compute += profile.Compute * wanted[name]
		if profile.Media {
			media += wanted[name]
		}
	}
	if compute > computeSlices || media > 1 {
		return nil, fmt.Errorf("%w: %d of %d compute slices, %d of 1 set of media engines", errLayout, compute, computeSlices, media)
	}
	// The large ones first: they have the fewest places.
	slices.SortStableFunc(profiles, func(a, b Profile) int { return b.Slots - a.Slots })
	placed, ok := placeInstances(profiles, 0)
	if !ok {
		return nil, fmt.Errorf("%w: no placement of %v", errLayout, wanted)
	}
	slices.SortFunc(placed, func(a, b Instance) int { return a.Start - b.Start })
	return placed, nil
}

// placeInstances places the profiles in memory slots that are free. taken has a bit for each slot.
func placeInstances(profiles []Profile, taken uint) ([]Instance, bool) {
	if len(profiles) == 0 {
		return nil, true
	}
	first := profiles[0]
	for _, start := range first.Starts {
		slots := (uint(1)<<first.Slots - 1) << start
		if taken&slots != 0 {
			continue
		}
		if rest, ok := placeInstances(profiles[1:], taken|slots); ok {
			return append(rest, Instance{Profile: first, Start: start}), true
		}
	}
	return nil, false
}

func (m Model) profileNames() string {
	var out []string
	for _, profile := range m.Profiles {
		out = append(out, profile.Name)
	}
	return strings.Join(out, ", ")
}
