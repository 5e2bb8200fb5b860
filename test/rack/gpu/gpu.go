package gpu

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
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

// MemoryMiB returns the instance's share of the model's memory; the driver keeps a little of it.
func (i Instance) MemoryMiB(of Model) int64 {
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
