package redfish

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/stmcginnis/gofish/schemas"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// readPCIDevices sets PCIDevices to the functions of the devices that the system lists, and of those in chassis. On HGX servers each GPU is
// in a chassis of its own (HGX_GPU_SXM_1) to which the system does not link, and some firmware lists devices below the chassis only.
func (c *conn) readPCIDevices(s *system, inventory *hardware.Inventory) error {
	devices := s.links.PCIeDevices.ToStrings()
	fromChassis, err := c.chassisDevices(s, len(devices) == 0)
	if err != nil {
		return err
	}
	visited := map[string]bool{}
	for _, uri := range slices.Concat(devices, fromChassis) {
		if uri = strings.TrimRight(uri, "/"); uri == "" || visited[uri] {
			continue
		}
		visited[uri] = true
		if err := c.readPCIFunctions(uri, inventory); err != nil {
			return err
		}
	}
	if len(visited) == 0 {
		err = forEachResource(c, s.links.PCIeFunctions.ToStrings(), func(f *schemas.PCIeFunction) { addPCIFunction(inventory, f, "") })
	}
	return err
}

// chassisDevices returns the PCI devices in the chassis of HGX GPUs and, with includeOwn, in the chassis of the system.
func (c *conn) chassisDevices(s *system, includeOwn bool) ([]string, error) {
	var chassis []string
	if includeOwn {
		chassis = s.links.Links.Chassis.ToStrings()
	}
	all, err := c.collectionMembers(cmp.Or(c.login.root.Chassis.String(), "/redfish/v1/Chassis"))
	if err := c.skipResourceError(err, "Chassis"); err != nil {
		return nil, err
	}
	for _, uri := range all {
		if strings.HasPrefix(path.Base(uri), "HGX_") {
			chassis = append(chassis, uri)
		}
	}
	var devices []string
	for _, uri := range chassis {
		var links struct{ PCIeDevices schemas.Link }
		if err := c.skipResourceError(getJSON(c.api, uri, &links), uri); err != nil {
			return nil, err
		}
		if links.PCIeDevices == "" {
			continue
		}
		collectionMembers, err := c.collectionMembers(links.PCIeDevices.String())
		if err := c.skipResourceError(err, links.PCIeDevices.String()); err != nil {
			return nil, err
		}
		devices = append(devices, collectionMembers...)
	}
	return devices, nil
}

// readPCIFunctions adds the functions of the device to the inventory.
func (c *conn) readPCIFunctions(uri string, inventory *hardware.Inventory) error {
	device, err := schemas.GetObject[schemas.PCIeDevice](c.api, uri)
	if err != nil {
		return c.skipResourceError(err, uri)
	}
	// Before PCIeDevice 1.4 the functions were an array under Links.
	var links struct {
		PCIeFunctions schemas.Link
		Links         struct{ PCIeFunctions schemas.Links }
	}
	decodeExtra(device.RawData, &links)
	add := func(f *schemas.PCIeFunction) { addPCIFunction(inventory, f, strings.TrimSpace(device.Model)) }
	if links.PCIeFunctions != "" {
		return forEachMember(c, links.PCIeFunctions.String(), add)
	}
	return forEachResource(c, links.Links.PCIeFunctions.ToStrings(), add)
}

func addPCIFunction(inventory *hardware.Inventory, f *schemas.PCIeFunction, model string) {
	vendor, device := normalizeHexID(f.VendorID, 4), normalizeHexID(f.DeviceID, 4)
	if vendor == "" || device == "" || vendor == "ffff" {
		return // an empty slot, or a function that the BMC has not read yet
	}
	inventory.PCIDevices = append(inventory.PCIDevices, hardware.PCIDevice{
		Address: pciAddress(f), VendorID: vendor, DeviceID: device, Class: normalizeHexID(f.ClassCode, 6), Model: model,
	})
}

// normalizeHexID returns "10de" for "0x10DE". It returns "" when the text is not a hexadecimal number of at most that many digits.
func normalizeHexID(text string, digits int) string {
	text = strings.ToLower(strings.TrimSpace(text))
	text = strings.TrimPrefix(text, "0x")
	if n, err := strconv.ParseUint(text, 16, 32); err == nil && len(text) <= digits {
		return fmt.Sprintf("%0*x", digits, n)
	}
	return ""
}

// pciAddress returns the address of the function, which firmware reports since PCIeFunction 1.6; otherwise "".
func pciAddress(f *schemas.PCIeFunction) string {
	segment := cmp.Or(normalizeHexID(f.SegmentNumber, 4), "0000")
	bus, device, function := normalizeHexID(f.BusNumber, 2), normalizeHexID(f.DeviceNumber, 2), normalizeHexID(f.FunctionNumber, 1)
	if bus == "" || device == "" || function == "" {
		return ""
	}
	return segment + ":" + bus + ":" + device + "." + function
}

// decodeExtra decodes members that gofish does not export from a resource that it has parsed. A member of an unexpected type is left empty.
func decodeExtra(raw []byte, into any) {
	if len(raw) > 0 {
		_ = json.Unmarshal(raw, into) // members before and after the invalid one are still set
	}
}
