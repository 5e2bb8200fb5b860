package redfish

import (
	"regexp"
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// Words that say what a component is where its type is missing.
var (
	gpuWord   = regexp.MustCompile(`(?i)gpu|(^|[^a-z])(oam|sxm)\d*([^a-z]|$)`)
	otherWord = regexp.MustCompile(`(?i)cpu|fpga|switch|retimer|nic|connectx|bluefield|dpu|irot|erot|bridge|epyc|xeon|ryzen|grace`)
	// boardWord is in the names of systems and chassis that are boards of GPUs: NVIDIA's HGX, the universal base board of the Open Compute Project, and others.
	boardWord = regexp.MustCompile(`(?i)^hgx([_ -]|$)|base.?board|(^|[^a-z])ubb([^a-z]|$)|gpu.?(board|tray|complex|sled)`)
)

// text is everything that names the processor.
func (p processor) text() string {
	return strings.Join([]string{p.ID, p.Name, p.Manufacturer, p.Model}, " ")
}

// isTyped reports whether the type of the processor is this one.
func (p processor) isTyped(kind string) bool {
	return strings.EqualFold(strings.TrimSpace(p.ProcessorType), kind)
}

// isUntyped reports whether the type of the processor says nothing about it.
func (p processor) isUntyped() bool {
	return isPlaceholder(p.ProcessorType) || strings.TrimSpace(p.ProcessorType) == "" || p.isTyped("OEM") || p.isTyped("Accelerator")
}

// isAbsent reports whether the processor is an empty socket.
func (p processor) isAbsent() bool { return p.Status.State == stateAbsent }

// isGPU reports whether the processor is a GPU by its type, or by its name where the type says nothing.
func (p processor) isGPU() bool {
	return !p.isAbsent() && (p.isTyped("GPU") || p.isUntyped() && gpuWord.MatchString(p.text()))
}

// canBeGPU reports whether nothing says what the processor is: an accelerator of a vendor of GPUs, or any processor of a board of GPUs.
func (p processor) canBeGPU(isBoard bool) bool {
	if p.isAbsent() || p.isGPU() || !p.isUntyped() || otherWord.MatchString(p.text()) || p.TotalThreads > 0 {
		return false
	}
	return vendorOf(p.text()) != "" || p.isOfUnknownMaker() && (isBoard || p.isTyped("Accelerator"))
}

// isOfUnknownMaker reports whether the processor does not tell who made it.
func (p processor) isOfUnknownMaker() bool {
	return isPlaceholder(p.Manufacturer) || strings.TrimSpace(p.Manufacturer) == ""
}

// addGPUProcessors adds the processors that are GPUs to a list, and those that may be, which their names tell or nobody. boardVendor is who makes the GPUs of the
// board that the processors are on; empty: nobody knows.
//
// Without the latter: firmware leaves out the names of the GPUs of a board, or their type, and the server counts as one without GPUs.
func (w *crawl) addGPUProcessors(list string, processors []processor, isBoard bool, boardVendor string) {
	for _, p := range processors {
		name := pciDevice{Name: p.Name, Manufacturer: p.Manufacturer, Model: p.Model}
		found := hardware.PCIDevice{List: list, VendorID: name.vendorID(), Model: name.name()}
		switch {
		case p.isGPU():
			found.Class = classDisplay
			if found.VendorID == "" && p.isOfUnknownMaker() {
				found.VendorID = boardVendor
			}
		case !p.canBeGPU(isBoard):
			continue
		}
		w.inventory.PCIDevices = append(w.inventory.PCIDevices, found)
	}
}

// addMissing adds what a collection counts and does not list, as devices that nobody can tell.
func (w *crawl) addMissing(list string, collections ...string) {
	for _, uri := range collections {
		for range min(w.missing[uri], maxGPUs) {
			w.addUnread(list)
		}
	}
}

// maxGPUs is far more than a server has.
const maxGPUs = 64
