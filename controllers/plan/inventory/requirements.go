package inventory

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/controllers/hardware"
)

// mbpsPerGbps: network speeds are decimal.
const mbpsPerGbps = 1000

// Requirements returns what a server must have beside its GPUs: processors that the image runs on, nil: any, and what the NodeType requires.
func Requirements(required *v1alpha1.HardwareRequirements, image *v1alpha1.ExactImage) hardware.Requirements {
	architecture := ""
	if image != nil {
		architecture = cmp.Or(image.Architecture, v1alpha1.ArchitectureAMD64)
	}
	if required == nil {
		return hardware.Requirements{Architecture: architecture}
	}
	out := hardware.Requirements{
		Architecture:     architecture,
		FullGPULinkWidth: required.GPULink != "", FullGPULinkSpeed: required.GPULink == v1alpha1.GPULinkFullWidthAndSpeed, GPUVendors: gpuVendors,
	}
	if required.MinMemory != nil {
		out.MemoryBytes = required.MinMemory.Value()
	}
	if required.NICs != nil {
		out.NICCount, out.NICSpeedMbps = int(required.NICs.Count), int(required.NICs.MinGbps)*mbpsPerGbps
	}
	for _, f := range required.Firmware {
		out.Firmware = append(out.Firmware, hardware.RequiredFirmware{Component: hardware.FirmwareComponent(f.Component), Name: f.Name, MinVersion: f.MinVersion})
	}
	return out
}

// HardwareDifference says what the agent that looked last found missing, or could not read, of what is required. It is empty when nothing is.
func HardwareDifference(required *v1alpha1.HardwareRequirements, image *v1alpha1.ExactImage, kept *v1alpha1.HostInventory) string {
	if kept == nil {
		return ""
	}
	missing, unknown := Requirements(required, image).Compare(*HardwareInventory(kept))
	return strings.Join(slices.Compact(append(missing, unknown...)), "; ")
}

// MissingHardware returns what the inventory of a HostRecord shows that the server lacks. What is not known is not missing: the agent looks before an
// installation writes the first byte.
func MissingHardware(required *v1alpha1.HardwareRequirements, kept *v1alpha1.HostInventory) []string {
	if required == nil || kept == nil {
		return nil
	}
	missing, _ := Requirements(required, nil).Compare(*HardwareInventory(kept))
	return slices.Compact(missing) // GPUs of one kind are kept as one entry
}
