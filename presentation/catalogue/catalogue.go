package catalogue

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Architecture is a generation of GPUs, in the words of the label nvidia.com/gpu.family.
type Architecture string

// Architectures.
const (
	Turing    Architecture = "turing"
	Ampere    Architecture = "ampere"
	Ada       Architecture = "ada-lovelace"
	Hopper    Architecture = "hopper"
	Blackwell Architecture = "blackwell"
	CDNA3     Architecture = "cdna3"
	CDNA4     Architecture = "cdna4"
)

// FormFactor is how a GPU is mounted; it decides how GPUs reach each other.
type FormFactor string

// Form factors.
const (
	// SXM modules are mounted on a board of the vendor, which has four or eight of them.
	SXM FormFactor = "SXM"
	// PCIe cards, with or without NVLink bridges between pairs, have no switch between them.
	PCIe FormFactor = "PCIe"
	// Superchip modules carry an Arm CPU beside the GPU.
	Superchip FormFactor = "Superchip"
	// OAM modules are mounted on a board that links eight of them directly.
	OAM FormFactor = "OAM"
)

// Link is how the GPUs of one server or several servers reach each other. Links that need the same software have one value.
type Link string

// Links.
const (
	// LinkNone needs no software: PCIe, bridges, or links from module to module.
	LinkNone Link = "none"
	// LinkNVSwitch is NVSwitches of the first three generations on boards of eight, which the fabric manager sets up.
	LinkNVSwitch Link = "NVSwitch"
	// LinkNVLink5 is NVLink 5 on boards of eight: the fabric manager, and the NVLink subnet manager that it starts, which
	// speaks to the switches through InfiniBand devices.
	LinkNVLink5 Link = "NVLink 5"
	// LinkRack is NVLink 5 across a rack of compute trays. The fabric manager runs on the switch trays; compute trays
	// share memory through IMEX.
	LinkRack Link = "NVL72"
)

// Model is a GPU model.
type Model struct {
	// Name as NodeType.spec.gpu.model spells it.
	Name string
	// Vendor of the GPU.
	Vendor v1alpha1.GPUVendor
	// PCIVendor is the PCI vendor id, four lower-case hex digits.
	PCIVendor string
	// PCIDevices are the PCI device ids that the model is sold under, four lower-case hex digits each.
	PCIDevices []string
	// MemoryGiB are the accepted values of the total memory that the driver reports, rounded up to GiB. Profile names
	// are computed from it, and for some models it differs between drivers.
	MemoryGiB []int
	// Architecture of the GPU.
	Architecture Architecture
	// FormFactor of the GPU.
	FormFactor FormFactor
	// Link between the GPUs.
	Link Link
	// MinimumDriver is the oldest driver that supports the model; empty: it is not verified, and every driver is accepted.
	MinimumDriver string
	// DocumentedDriver is the oldest driver for which the vendor's documents name the model, when MinimumDriver is that of its
	// nearest relative; empty: MinimumDriver is the model's own.
	DocumentedDriver string
	// OpenModules: only the open kernel modules drive the model.
	OpenModules bool
	// DisplayOutputs: the card has connectors for displays, and partitions only in the display mode compute and with a recent vBIOS (MIG user guide).
	DisplayOutputs bool
	// VGPUName begins the names of the model's vGPU types: H100XM; empty: no types are known.
	VGPUName string
	// vgpuTypes are the types in the form that VGPUTypes reads.
	vgpuTypes string
	// XCC is the number of compute dies of an AMD GPU, into which it can be partitioned; 0: it cannot be partitioned.
	XCC int
	// Geometry says how the model can be partitioned; nil: it cannot be. Callers must not change it.
	Geometry *Geometry
	// PlacementsInferred: no document lists the geometry's placements for this model; they are those of related models.
	PlacementsInferred bool
}

// HasPersistentMIGMode reports whether the GPU keeps the MIG mode in its InfoROM. The mode then survives a reboot and a
// re-image, and changing it needs a reset of the GPU. From Hopper on the mode is lost when the driver is unloaded.
func (m Model) HasPersistentMIGMode() bool { return m.Geometry != nil && m.Architecture == Ampere }

// HasNVSwitch reports whether a server with count of these GPUs has NVSwitches, which need a fabric manager. Boards of eight
// SXM modules have NVSwitches. Boards of four link their modules directly, and a fabric manager started there fails with
// NV_WARN_NOTHING_TO_DO.
func (m Model) HasNVSwitch(count int32) bool {
	return (m.Link == LinkNVSwitch || m.Link == LinkNVLink5) && count > 4
}

// Identify returns the model with the PCI ids, four lower-case hex digits each.
func Identify(pciVendor, pciDevice string) (Model, bool) {
	for _, m := range models {
		if m.PCIVendor == pciVendor && slices.Contains(m.PCIDevices, pciDevice) {
			return m, true
		}
	}
	return Model{}, false
}

// Models returns every model, ordered as in the table.
func Models() []Model {
	out := make([]Model, len(models))
	copy(out, models)
	return out
}

// KubeVirtResourceNames returns the names, without a domain, under which NVIDIA's KubeVirt device plugin can advertise the
// unpartitioned GPUs of the model: one for each of its PCI ids, from the plugin's own pci.ids file. unlisted are the PCI ids that
// the file lacks; the plugin advertises them by number until a newer file names them.
func (m Model) KubeVirtResourceNames() (names, unlisted []string) {
	for _, id := range m.PCIDevices {
		name, ok := pciNames[id]
		if !ok {
			unlisted = append(unlisted, id)
			continue
		}
		if n := resourceName(name); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names, unlisted
}

// resourceName applies the plugin's rule: upper case; slashes, dots and runs of white space become underscores; all other
// characters that are neither letters nor digits are removed.
func resourceName(s string) string {
	s = strings.NewReplacer("/", "_", ".", "_").Replace(strings.ToUpper(s))
	s = strings.Join(strings.Fields(s), "_")
	return strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, s)
}

// VGPUType is a kind of virtual GPU.
type VGPUType struct {
	// Name as the vGPU manager has it: H100XM-20C, or H100XM-1-10CME of a MIG instance.
	Name string
	// Series is what the type is licensed for: C compute, Q workstation.
	Series string
	// GiB of frame buffer.
	GiB int
	// Slices of compute that the MIG instance of the virtual GPU has; 0: it has none, and shares the GPU in time.
	Slices int
	// Media says that the MIG instance has the media engines, and Graphics that it has those of graphics.
	Media, Graphics bool
	// PerInstance is how many virtual GPUs one MIG instance holds; 0: there is none.
	PerInstance int
	// Max is how many one GPU can have.
	Max int
}

// vgpuType matches a type in models.go: 20C4 is four of 20C, 1-10CME1 is one of 1-10CME, and 1-12C8/24 is eight of 1-12C on MIG instances of 24 GiB with
// the graphics engines.
var vgpuType = regexp.MustCompile(`^(([1-7])-)?([1-9][0-9]{0,2})([CQ])(ME)?([1-9][0-9]?)(/([1-9][0-9]))?$`)

// VGPUTypes returns the model's types of virtual GPU, which are those of the configuration that NVIDIA's operator ships.
func (m Model) VGPUTypes() []VGPUType {
	var out []VGPUType
	for _, word := range strings.Fields(m.vgpuTypes) {
		part := vgpuType.FindStringSubmatch(word)
		if part == nil {
			continue
		}
		number := func(s string) int { n, _ := strconv.Atoi(s); return n }
		t := VGPUType{
			Name:   m.VGPUName + "-" + part[1] + part[3] + part[4] + part[5],
			Series: part[4], GiB: number(part[3]), Slices: number(part[2]), Media: part[5] != "", Max: number(part[6]),
		}
		if t.Slices > 0 {
			t.PerInstance = 1
		}
		if part[8] != "" {
			t.Graphics, t.PerInstance = true, number(part[8])/t.GiB
		}
		out = append(out, t)
	}
	return out
}

// ConfigurationName is the name of the type in a configuration of NVIDIA's vGPU device manager, which says there what the MIG instance has.
func (v VGPUType) ConfigurationName() string {
	if v.Graphics {
		return v.Name + "GFX"
	}
	return v.Name
}

// ProfileIndex returns the index of the MIG profile behind a vGPU type among the geometry's profiles, or -1 when there is none.
func (m Model) ProfileIndex(v VGPUType) int {
	if m.Geometry == nil || v.Slices == 0 {
		return -1
	}
	name := fmt.Sprintf("%dg.%dgb", v.Slices, v.GiB*v.PerInstance)
	if v.Media {
		name += "+me"
	}
	if v.Graphics {
		name += "+gfx"
	}
	return slices.IndexFunc(m.Geometry.Profiles, func(p Profile) bool { return slices.Contains(m.ProfileNames(p), name) })
}
