package sysfs

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"strings"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

// readMemoryModules returns the memory modules of the DMI tables, none where the firmware has no tables or does not tell the size of a module: a part
// of the modules would be less memory than there is.
func readMemoryModules(root fs.FS) []hardware.MemoryModule {
	table, err := fs.ReadFile(root, "sys/firmware/dmi/tables/DMI")
	if err != nil {
		return nil
	}
	modules, isComplete := parseMemoryModules(table)
	if !isComplete {
		return nil
	}
	return modules
}

// Structures of SMBIOS (DSP0134 3.7): each has its type, the length of its formatted area, a handle, the rest of that area, and its strings, which two
// zeros end.
const (
	structureHeader = 4
	typeMemory      = 17  // section 7.18, Memory Device
	typeEnd         = 127 // section 7.46
	maxModules      = 256
)

// parseMemoryModules returns the modules of a table, and whether it tells the size of each.
func parseMemoryModules(table []byte) (modules []hardware.MemoryModule, isComplete bool) {
	for len(table) >= structureHeader && len(modules) < maxModules {
		kind, length := table[0], int(table[1])
		if length < structureHeader || length > len(table) || kind == typeEnd {
			break
		}
		area, rest := table[:length], table[length:]
		end := bytes.Index(rest, []byte{0, 0})
		if end < 0 {
			break
		}
		if kind == typeMemory {
			module, isThere, isKnown := parseMemoryDevice(area, strings.Split(string(rest[:end]), "\x00"))
			if !isKnown {
				return nil, false
			}
			if isThere {
				modules = append(modules, module)
			}
		}
		table = rest[end+2:]
	}
	return modules, true
}

// parseMemoryDevice returns a module. isThere is false for an empty slot and for memory that keeps its content, which is none for programs. isKnown is
// false when the size of a module is not told. The offsets are those of DSP0134, section 7.18.
func parseMemoryDevice(area []byte, texts []string) (module hardware.MemoryModule, isThere, isKnown bool) {
	const logicalNonVolatile = 0x1f
	if len(area) < 0x15 {
		return module, false, false
	}
	text := func(at int) string {
		if at >= len(area) || area[at] == 0 || int(area[at]) > len(texts) {
			return ""
		}
		return strings.TrimSpace(strings.ToValidUTF8(texts[area[at]-1], ""))
	}
	if module.SizeBytes, isKnown = moduleBytes(area); module.SizeBytes == 0 || area[0x12] == logicalNonVolatile {
		return module, false, isKnown
	}
	module.Slot, module.Manufacturer, module.SerialNumber, module.PartNumber = text(0x10), text(0x17), text(0x18), text(0x1a)
	if speed := wordAt(area, 0x20); speed != 0xffff {
		module.SpeedMTs = speed
	}
	return module, true, true
}

// moduleBytes returns the size of a module, 0 for an empty slot.
func moduleBytes(area []byte) (bytes int64, isKnown bool) {
	const (
		unknownSize, extendedSize = 0xffff, 0x7fff
		inKiB                     = 0x8000
	)
	switch size := wordAt(area, 0x0c); {
	case size == unknownSize || size == extendedSize && len(area) < 0x20:
		return 0, false
	case size == extendedSize:
		return int64(binary.LittleEndian.Uint32(area[0x1c:])&0x7fffffff) << 20, true
	case size&inKiB != 0:
		return int64(size&^inKiB) << 10, true
	default:
		return int64(size) << 20, true
	}
}

// wordAt returns the 16 bits at the offset, 0 where the area ends before.
func wordAt(area []byte, at int) int {
	if at+2 > len(area) {
		return 0
	}
	return int(binary.LittleEndian.Uint16(area[at:]))
}
