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

// pciDevices reads the functions of the devices that the system lists, and of those in chassis: on HGX servers the GPUs are
// in chassis of their own (HGX_GPU_SXM_1), which the host's system does not link to, and some firmware lists devices
// under the chassis only.
func (c *conn) pciDevices(s *system, inventory *hardware.Inventory) error {
	devices := s.links.PCIeDevices.ToStrings()
	fromChassis, err := c.chassisDevices(s, len(devices) == 0)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, uri := range slices.Concat(devices, fromChassis) {
		if uri = strings.TrimRight(uri, "/"); uri == "" || seen[uri] {
			continue
		}
		seen[uri] = true
		if err := c.pciFunctions(uri, inventory); err != nil {
			return err
		}
	}
	if len(seen) == 0 {
		err = eachOf(c, s.links.PCIeFunctions.ToStrings(), func(f *schemas.PCIeFunction) { addFunction(inventory, f, "") })
	}
	return err
}

func (c *conn) chassisDevices(s *system, own bool) ([]string, error) {
	var chassis []string
	if own {
		chassis = s.links.Links.Chassis.ToStrings()
	}
	all, err := c.members(cmp.Or(c.login.root.Chassis.String(), "/redfish/v1/Chassis"))
	if err := c.optional(err, "Chassis"); err != nil {
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
		if err := c.optional(fetch(c.api, uri, &links), uri); err != nil {
			return nil, err
		}
		if links.PCIeDevices == "" {
			continue
		}
		members, err := c.members(links.PCIeDevices.String())
		if err := c.optional(err, links.PCIeDevices.String()); err != nil {
			return nil, err
		}
		devices = append(devices, members...)
	}
	return devices, nil
}

func (c *conn) pciFunctions(uri string, inventory *hardware.Inventory) error {
	device, err := schemas.GetObject[schemas.PCIeDevice](c.api, uri)
	if err != nil {
		return c.optional(err, uri)
	}
	// Before PCIeDevice 1.4 the functions were an array under Links.
	var links struct {
		PCIeFunctions schemas.Link
		Links         struct{ PCIeFunctions schemas.Links }
	}
	decode(device.RawData, &links)
	add := func(f *schemas.PCIeFunction) { addFunction(inventory, f, strings.TrimSpace(device.Model)) }
	if links.PCIeFunctions != "" {
		return each(c, links.PCIeFunctions.String(), add)
	}
	return eachOf(c, links.Links.PCIeFunctions.ToStrings(), add)
}

func addFunction(inventory *hardware.Inventory, f *schemas.PCIeFunction, model string) {
	vendor, device := hexID(f.VendorID, 4), hexID(f.DeviceID, 4)
	if vendor == "" || device == "" || vendor == "ffff" {
		return // an empty slot, or a function not read yet
	}
	inventory.PCIDevices = append(inventory.PCIDevices, hardware.PCIDevice{
		Address: pciAddress(f), VendorID: vendor, DeviceID: device, Class: hexID(f.ClassCode, 6), Model: model,
	})
}

// hexID brings "0x10DE" to "10de"; empty when it is no hexadecimal number of at most so many digits.
func hexID(text string, digits int) string {
	text = strings.ToLower(strings.TrimSpace(text))
	text = strings.TrimPrefix(text, "0x")
	if n, err := strconv.ParseUint(text, 16, 32); err == nil && len(text) <= digits {
		return fmt.Sprintf("%0*x", digits, n)
	}
	return ""
}

// pciAddress is what newer firmware reports since PCIeFunction 1.6; empty where it does not.
func pciAddress(f *schemas.PCIeFunction) string {
	segment := cmp.Or(hexID(f.SegmentNumber, 4), "0000")
	bus, device, function := hexID(f.BusNumber, 2), hexID(f.DeviceNumber, 2), hexID(f.FunctionNumber, 1)
	if bus == "" || device == "" || function == "" {
		return ""
	}
	return segment + ":" + bus + ":" + device + "." + function
}

// decode reads members that gofish does not export from a resource that it has parsed; a member of another type than
// expected stays empty.
func decode(raw []byte, into any) {
	if len(raw) > 0 {
		_ = json.Unmarshal(raw, into) // members before and after the odd one are still set
	}
}
