package redfish

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// Lists of PCI devices, beside those that have the path of a system.
const (
	listSystem    = "system"
	listChassis   = "chassis of the system"
	listAnyOther  = "other chassis"
	classDisplay  = "030200"
	classBridge   = "068000"
	vendorNVIDIA  = "10de"
	vendorAMD     = "1002"
	manyFunctions = 16
)

// pciFunction is a PCIeFunction.
type pciFunction struct {
	VendorID       word `json:"VendorId"`
	DeviceID       word `json:"DeviceId"`
	ClassCode      word
	DeviceClass    string
	SegmentNumber  word
	BusNumber      word
	DeviceNumber   word
	FunctionNumber word
	Status         status
	Links          struct{ PCIeDevice schemas.Link }
}

// pciDevice is a PCIeDevice, or a chassis that is a board of GPUs.
type pciDevice struct {
	Name          string
	Manufacturer  string
	Model         string
	PCIeFunctions linked
	// Links had the functions before PCIeDevice 1.4.
	Links  struct{ PCIeFunctions linked }
	Oem    map[string]json.RawMessage
	Status status
}

// name returns everything that the device is called. Some firmware has the product in Model, other firmware in Name.
func (d pciDevice) name() string {
	model, name := strings.TrimSpace(d.Model), strings.TrimSpace(d.Name)
	if name == "" || strings.Contains(model, name) {
		return model
	}
	return strings.TrimSpace(model + " " + name)
}

// vendorID returns the vendor of a GPU from the texts about the device; "" for any other.
func (d pciDevice) vendorID() string {
	if id := vendorOf(d.Manufacturer + " " + d.name()); id != "" {
		return id
	}
	for _, raw := range d.Oem {
		var oem struct{ GPUVendor string }
		if json.Unmarshal(raw, &oem) == nil && oem.GPUVendor != "" {
			return vendorOf(oem.GPUVendor)
		}
	}
	return ""
}

// vendorOf returns the PCI vendor id of a manufacturer of GPUs whose name the text has; "" when it has none.
func vendorOf(text string) string {
	text = strings.ToLower(text)
	switch {
	case strings.Contains(text, "nvidia"):
		return vendorNVIDIA
	case strings.Contains(text, "advanced micro devices"), slices.Contains(strings.Fields(text), "amd"):
		return vendorAMD
	}
	return ""
}

// addFunction adds a function of the device to a list.
func (w *crawl) addFunction(list string, f pciFunction, device pciDevice) {
	if f.Status.State == stateAbsent {
		return
	}
	vendor, id, base := normalizeIDs(f.VendorID, f.DeviceID)
	d := hardware.PCIDevice{
		List: list, Address: f.address(), VendorID: vendor, DeviceID: id, Class: normalizeClass(f.ClassCode, f.DeviceClass, base), Model: device.name(),
	}
	if d.Class == "" && strings.Contains(strings.ToLower(d.Model), "switch") {
		d.Class = classBridge // HGX boards report their NVSwitches without a class
	}
	if d.VendorID == "" && (d.Class == "" || d.IsAccelerator()) {
		d.VendorID = device.vendorID()
	}
	w.inventory.PCIDevices = append(w.inventory.PCIDevices, d)
}

// address returns the address of the function, which firmware reports since PCIeFunction 1.6; otherwise "".
func (f pciFunction) address() string {
	var parts []uint64
	for _, text := range []word{f.SegmentNumber, f.BusNumber, f.DeviceNumber, f.FunctionNumber} {
		n, isNumber := parseNumber(text, 16)
		if len(parts) > 0 && (!isNumber || n > 0xff) {
			return ""
		}
		parts = append(parts, n)
	}
	return fmt.Sprintf("%04x:%02x:%02x.%x", parts[0], parts[1], parts[2], parts[3])
}

// addUnread adds a device to a list that may be a GPU and could not be read.
func (w *crawl) addUnread(list string) {
	w.inventory.PCIDevices = append(w.inventory.PCIDevices, hardware.PCIDevice{List: list})
}

// hasGPU reports whether one of the lists has a device that is a GPU, or may be one.
func (w *crawl) hasGPU(lists ...string) bool {
	return slices.ContainsFunc(w.inventory.PCIDevices, func(d hardware.PCIDevice) bool {
		isAccelerator := d.IsAccelerator() && (d.VendorID == "" || d.VendorID == vendorNVIDIA || d.VendorID == vendorAMD)
		return (len(lists) == 0 || slices.Contains(lists, d.List)) && isAccelerator
	})
}

// readPCIDevices adds the PCI devices, list by list: the processors of baseboards, the functions of the system, and those in chassis. A further list
// is read only where the ones before have no GPU, because every list takes a hundred requests on a big server. That a server has no GPU is
// therefore said by all lists.
//
// A board of GPUs, in which no GPU can be found, leaves it open whether the server has any.
func (w *crawl) readPCIDevices(s *system) error {
	if err := w.readBaseboards(s); err != nil {
		return err
	}
	if err := w.readPCILists(s); err != nil {
		return err
	}
	if err := w.readElsewhere(s); err != nil {
		return err
	}
	if !w.hasGPU() {
		for _, uri := range w.boards {
			w.addUnread(uri)
		}
	}
	return nil
}

// readPCILists adds the functions of the system, and those in chassis.
func (w *crawl) readPCILists(s *system) error {
	if err := w.readSystemFunctions(s); err != nil {
		return err
	}
	if w.hasGPU(listSystem) {
		return nil
	}
	visited := map[string]bool{}
	if err := w.readChassis(listChassis, s.links.Links.Chassis.ToStrings(), visited); err != nil || w.hasGPU() || !w.isAlone {
		return err
	}
	all, err := w.members(string(w.login.root.Chassis))
	if err != nil && !isMissing(err) || w.login.root.Chassis == "" {
		return err
	}
	return w.readChassis(listAnyOther, all, visited)
}

// readSystemFunctions adds the functions that the system lists, or those of the devices that it lists.
func (w *crawl) readSystemFunctions(s *system) error {
	if s.links.PCIeFunctions.isEmpty() {
		return w.readDevices(listSystem, s.links.PCIeDevices)
	}
	functions, err := w.readFunctions(s.ODataID, s.links.PCIeFunctions)
	for _, f := range functions {
		var device *pciDevice
		if vendor, id, _ := normalizeIDs(f.VendorID, f.DeviceID); err == nil && (vendor == "" || id == "") {
			device, err = readResource[pciDevice](w, f.Links.PCIeDevice.String())
		}
		if err != nil {
			return err
		}
		if device == nil {
			device = &pciDevice{}
		}
		w.addFunction(listSystem, f, *device)
	}
	return err
}

// readFunctions reads the functions that the system links to. With many of them the system is read once more with the functions in it, where the
// BMC can do that.
func (w *crawl) readFunctions(systemURI string, links linked) ([]pciFunction, error) {
	if w.expand == "" || len(links.items) < manyFunctions {
		return readAll[pciFunction](w, links)
	}
	var expanded struct {
		Error         json.RawMessage `json:"error"`
		PCIeFunctions []json.RawMessage
	}
	err := json.Unmarshal(w.fetchExpanded(systemURI), &expanded)
	isUsable := err == nil && len(expanded.Error) == 0 && len(expanded.PCIeFunctions) > 0
	var all []pciFunction
	for _, text := range expanded.PCIeFunctions {
		f, _ := decodeWhole[pciFunction](w, text)
		if isUsable = isUsable && f != nil; isUsable {
			all = append(all, *f)
		}
	}
	if !isUsable {
		w.stopExpanding(systemURI)
		return readAll[pciFunction](w, links)
	}
	return all, nil
}

// readDevices adds the functions of the devices to a list.
func (w *crawl) readDevices(list string, at linked) error {
	devices, err := readAll[pciDevice](w, at)
	if err != nil {
		return err
	}
	w.addMissing(list, at.collection)
	return w.addDevices(list, devices)
}

// addDevices adds the functions of the devices to a list. A device without functions is added by its name.
func (w *crawl) addDevices(list string, devices []pciDevice) error {
	for _, d := range devices {
		if d.Status.State == stateAbsent {
			continue
		}
		at := d.PCIeFunctions
		if at.isEmpty() {
			at = d.Links.PCIeFunctions
		}
		functions, err := readAll[pciFunction](w, at)
		if err != nil {
			return err
		}
		for _, f := range functions {
			w.addFunction(list, f, d)
		}
		if len(functions) == 0 {
			w.addFunction(list, pciFunction{}, d)
		}
	}
	return nil
}
