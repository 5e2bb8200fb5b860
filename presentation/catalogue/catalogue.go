package catalogue

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// Architecture is a generation of GPUs, in the words of the label nvidia.com/gpu.family.
type Architecture string

// Architectures.
const (
	Ampere Architecture = "ampere"
	Hopper Architecture = "hopper"
)

// FormFactor is how a GPU is mounted; it decides how GPUs reach each other.
type FormFactor string

// Form factors.
const (
	// SXM modules sit on a board of the vendor's, of four or eight.
	SXM FormFactor = "SXM"
	// PCIe cards, with or without NVLink bridges between pairs, have no switch between them.
	PCIe FormFactor = "PCIe"
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
	// MinimumDriver is the oldest driver that knows the model.
	MinimumDriver string
	// Geometry is how the model can be partitioned; nil: it cannot. Callers must not change it.
	Geometry *Geometry
}

// MIGModePersists says whether the MIG mode is kept in the GPU's InfoROM. If so it survives a reboot and a re-image,
// and changing it takes a GPU reset; from Hopper on it lives only while the driver is loaded.
func (m Model) MIGModePersists() bool { return m.Geometry != nil && m.Architecture == Ampere }

// HasNVSwitch says whether a server with count of these GPUs has NVSwitches, which need a fabric manager. Boards of
// eight SXM modules have, boards of four link their modules directly, and a fabric manager started there fails with
// NV_WARN_NOTHING_TO_DO.
func (m Model) HasNVSwitch(count int32) bool { return m.FormFactor == SXM && count > 4 }

// Lookup finds a model by its name. The error names the models that this version knows.
func Lookup(vendor v1alpha1.GPUVendor, name string) (Model, error) {
	var names []string
	for _, m := range models {
		if m.Vendor != vendor {
			continue
		}
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	if len(names) == 0 {
		return Model{}, fmt.Errorf("no GPU of vendor %q is in the catalogue", vendor)
	}
	return Model{}, fmt.Errorf("%q is not in the catalogue of %s GPUs: %s", name, vendor, strings.Join(names, ", "))
}

// Identify finds a model by its PCI ids, four lower-case hex digits each.
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
