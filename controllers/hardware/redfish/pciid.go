package redfish

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// knownVendors are the PCI vendors of the devices that servers have (pci-ids.ucw.cz). They tell in which form a BMC writes its ids.
var knownVendors = []uint64{
	0x1000, 0x1002, 0x1022, 0x102b, 0x103c, 0x1028, 0x1077, 0x10b5, 0x10de, 0x10df, 0x10ee, 0x11f8, 0x1344, 0x144d, 0x14e4, 0x1590, 0x15b3, 0x1924,
	0x19a2, 0x1a03, 0x1b21, 0x1b4b, 0x1c5c, 0x1d0f, 0x1d94, 0x1da3, 0x1dd8, 0x1dee, 0x1e0f, 0x1fc1, 0x8086, 0x9005,
}

// deviceClasses are the base classes of the PCI specification by their names in PCIeFunction.DeviceClass.
var deviceClasses = map[string]uint64{
	"MassStorageController": 0x01, "NetworkController": 0x02, "DisplayController": 0x03, "MultimediaController": 0x04, "MemoryController": 0x05,
	"Bridge": 0x06, "CommunicationController": 0x07, "GenericSystemPeripheral": 0x08, "InputDeviceController": 0x09, "DockingStation": 0x0a,
	"Processor": 0x0b, "SerialBusController": 0x0c, "WirelessController": 0x0d, "IntelligentController": 0x0e,
	"SatelliteCommunicationsController": 0x0f, "EncryptionController": 0x10, "SignalProcessingController": 0x11, "ProcessingAccelerators": 0x12,
	"NonEssentialInstrumentation": 0x13, "Coprocessor": 0x40,
}

// word is a text, or a number that a BMC writes as one.
type word string

// UnmarshalJSON implements json.Unmarshaler.
func (t *word) UnmarshalJSON(raw []byte) error {
	if raw[0] != '"' {
		if _, err := strconv.ParseFloat(string(raw), 64); err != nil {
			return fmt.Errorf("expected a text, seen %.40s", raw)
		}
		*t = word(raw)
		return nil
	}
	*t = word(strings.TrimSpace(strings.Trim(string(raw), `"`)))
	return nil
}

// parseNumber returns the number that the text is in the base 16, with or without 0x, or in the base 10, without.
func parseNumber(text word, base int) (n uint64, isNumber bool) {
	digits := strings.ToLower(strings.TrimSpace(string(text)))
	trimmed := strings.TrimPrefix(digits, "0x")
	if base == 10 && trimmed != digits {
		return 0, false
	}
	n, err := strconv.ParseUint(trimmed, base, 24)
	return n, err == nil
}

// normalizeIDs returns the vendor and the device id with four hexadecimal digits, and the base in which the BMC writes the numbers of this function.
// An id is "" when it is missing, malformed, 0 or ffff. An id may be hexadecimal or decimal and its bytes may be swapped: the form is the one in
// which the vendor is one that is known. 5555 is 15b3, 0xf811 is 11f8.
func normalizeIDs(vendor, device word) (vendorID, deviceID string, base int) {
	base = 16
	v, isHex := parseNumber(vendor, 16)
	if decimal, isDecimal := parseNumber(vendor, 10); isDecimal && decimal <= 0xffff {
		if !isHex || v > 0xffff || !isKnownVendor(v) && isKnownVendor(decimal) {
			v, isHex, base = decimal, true, 10
		}
	}
	d, isID := parseNumber(device, base)
	if isHex && !isKnownVendor(v) && isKnownVendor(swapBytes(v)) {
		v, d = swapBytes(v), swapBytes(d)
	}
	if isHex {
		vendorID = formatID(v)
	}
	if isID {
		deviceID = formatID(d)
	}
	return vendorID, deviceID, base
}

func isKnownVendor(id uint64) bool { return slices.Contains(knownVendors, id) }

func swapBytes(id uint64) uint64 { return id>>8&0xff | id&0xff<<8 }

func formatID(id uint64) string {
	if id == 0 || id >= 0xffff {
		return ""
	}
	return fmt.Sprintf("%04x", id)
}

// normalizeClass returns the class with six hexadecimal digits, and "" when it is not known. A code of six digits may have the base class in its
// lowest byte (0x000003), and a short one has the base class first (0x03, 0302). When code and name contradict each other the name counts,
// because firmware that writes 0x888888 for every class writes the right names.
func normalizeClass(code word, name string, base int) string {
	n, isNumber := parseNumber(code, base)
	digits := len(strings.TrimPrefix(strings.ToLower(strings.TrimSpace(string(code))), "0x"))
	switch {
	case !isNumber:
		n = 0
	case n < 0x100:
		n <<= 16
	case digits <= 4 && n < 0x10000:
		n <<= 8
	}
	named, isNamed := deviceClasses[name]
	if isNamed && n>>16 != named {
		n = named << 16
	}
	if top := n >> 16; top == 0 || top > 0x13 && top != 0x40 {
		return ""
	}
	return fmt.Sprintf("%06x", n)
}
