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

// errInUse is why a GPU that something uses changes neither mode nor layout.
var errInUse = errors.New("in use by another client")

// Instance is a GPU instance with its one compute instance.
type Instance struct {
	Profile Profile
	// Start is the first memory slot.
	Start int
	UUID  string
}

// MemoryMiB is the instance's share of the model's memory; the driver keeps a little of it.
func (i Instance) MemoryMiB(of Model) int64 {
	return of.MemoryMiB * int64(i.Profile.Slots) / memorySlots
}

// GPU is a GPU as its driver sees it from one boot to the next.
type GPU struct {
	// Address is on the PCI bus of this boot, DeviceID its device id there, Minor the number of its device file.
	Address, DeviceID string
	Minor             int
	UUID              string
	Model             Model
	// Unhealthy: the driver has reported an error that is no application's.
	Unhealthy bool
	// InUse: something holds the GPU, so that neither its mode nor its layout changes.
	InUse bool
	// Virtual: it is a part of a GPU that a hypervisor gives to this machine, and needs a licence.
	Virtual bool
	// MIG: the GPU is in MIG mode.
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

// CanMIG says whether the GPU has a MIG mode.
func (g *GPU) HasMIGMode() bool { return len(g.Model.Profiles) > 0 }

// SetMIG turns the MIG mode on or off, which ends all instances.
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

// Partition replaces the instances by so many of each profile; a GPU whose new layout is refused is left without.
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

// Layout counts the instances by profile.
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

// InfoROM is what the GPUs of a server remember without power: the file holds their MIG modes by PCI address. The empty
// path remembers nothing.
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
