// Package kmodule makes kernel modules, as small as debug/elf reads them, for tests of what reads modules.
package kmodule

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// New returns an ELF file with the entries KEY=VALUE in its section .modinfo.
func New(entries ...string) []byte {
	info := strings.Join(entries, "\x00") + "\x00"
	const names = "\x00.modinfo\x00.shstrtab\x00"
	var b bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			_ = binary.Write(&b, binary.LittleEndian, v) // A buffer takes everything.
		}
	}
	// The header, for x86-64.
	put([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9), uint16(1), uint16(62), uint32(1), uint64(0), uint64(0))
	put(uint64(64+len(info)+len(names)), uint32(0), uint16(64), uint16(0), uint16(0), uint16(64), uint16(3), uint16(2))
	b.WriteString(info + names)
	// The sections: none, .modinfo and .shstrtab.
	put(make([]byte, 64))
	put(uint32(1), uint32(1), uint64(2), uint64(0), uint64(64), uint64(len(info)), uint32(0), uint32(0), uint64(1), uint64(0))
	put(uint32(10), uint32(3), uint64(0), uint64(0), uint64(64+len(info)), uint64(len(names)), uint32(0), uint32(0), uint64(1), uint64(0))
	return b.Bytes()
}
