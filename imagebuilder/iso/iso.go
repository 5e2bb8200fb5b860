package iso

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/ingot-dev/ingot/imagebuilder/extent"
)

// sector is the size of a CD's sector.
const sector = 2048

// Sectors of the image. The first 16 belong to the system.
const (
	sectorDescriptor = 16 + iota
	sectorBootRecord
	sectorTerminator
	sectorPathTableLittle
	sectorPathTableBig
	sectorRoot
	sectorCatalogue
	// sectorPartition is where the EFI system partition begins. It is the last part of the image, because a catalogue can state sizes below 32 MiB
	// only; for larger ones it says 0, and the firmware takes what follows (EDK2, PartitionDxe/ElTorito.c).
	sectorPartition
)

// Layout is an image without its program.
type Layout struct {
	descriptors []byte
	partition   partition
}

// New returns the layout for a program of the size. fileName is BOOTX64.EFI or BOOTAA64.EFI.
func New(fileName string, size int64) (*Layout, error) {
	p, err := newPartition(fileName, size)
	if err != nil {
		return nil, err
	}
	l := &Layout{partition: p, descriptors: make([]byte, sectorPartition*sector)}
	sectors := uint32(sectorPartition + (p.size()+sector-1)/sector)
	l.writeDescriptor(sectors)
	l.writeBootRecord()
	copy(l.at(sectorTerminator), "\xffCD001\x01")
	for number, order := range map[int]binary.ByteOrder{sectorPathTableLittle: binary.LittleEndian, sectorPathTableBig: binary.BigEndian} {
		table := l.at(number)
		table[0] = 1 // the length of the root's name
		order.PutUint32(table[2:], sectorRoot)
		order.PutUint16(table[6:], 1) // the root's parent is itself
	}
	root := l.at(sectorRoot)
	used := copy(root, record("\x00", sectorRoot, sector, true))
	used += copy(root[used:], record("\x01", sectorRoot, sector, true))
	used += copy(root[used:], record("BOOT.CAT;1", sectorCatalogue, sector, false))
	copy(root[used:], record("EFI.IMG;1", sectorPartition, uint32(p.size()), false))
	l.writeCatalogue()
	return l, nil
}

// Size returns the size of the image.
func (l *Layout) Size() int64 {
	return (int64(len(l.descriptors)) + l.partition.size() + sector - 1) / sector * sector
}

// Image returns the image with the program, which must have the size that the layout was made for.
func (l *Layout) Image(program io.ReaderAt, size int64) (*extent.Content, error) {
	if size != l.partition.fileSize {
		return nil, fmt.Errorf("a program of %d bytes in the layout for one of %d", size, l.partition.fileSize)
	}
	image := &extent.Content{}
	image.AppendBytes(l.descriptors)
	l.partition.appendTo(image, program)
	image.PadTo(l.Size())
	return image, nil
}

func (l *Layout) at(number int) []byte { return l.descriptors[number*sector : (number+1)*sector] }

// writeDescriptor writes the primary volume descriptor (ECMA-119, 8.4).
func (l *Layout) writeDescriptor(sectors uint32) {
	d := l.at(sectorDescriptor)
	copy(d, "\x01CD001\x01")
	for _, field := range []struct{ from, to int }{{8, 72}, {190, 813}} {
		copy(d[field.from:field.to], strings.Repeat(" ", field.to-field.from))
	}
	copy(d[40:], "INGOT")
	putBoth32(d[80:], sectors)
	putBoth16(d[120:], 1) // volumes in the set
	putBoth16(d[124:], 1) // number of this volume
	putBoth16(d[128:], sector)
	putBoth32(d[132:], 10) // size of a path table
	binary.LittleEndian.PutUint32(d[140:], sectorPathTableLittle)
	binary.BigEndian.PutUint32(d[148:], sectorPathTableBig)
	copy(d[156:], record("\x00", sectorRoot, sector, true))
	for at := 813; at < 881; at += 17 {
		copy(d[at:], strings.Repeat("0", 16)) // times: none
	}
	d[881] = 1 // version of the file structure
}

// writeBootRecord writes El Torito's boot record volume descriptor.
func (l *Layout) writeBootRecord() {
	d := l.at(sectorBootRecord)
	copy(d, "\x00CD001\x01EL TORITO SPECIFICATION")
	binary.LittleEndian.PutUint32(d[71:], sectorCatalogue)
}

// writeCatalogue writes the boot catalogue: the validation entry, whose 16-bit words add up to 0, and the initial entry.
func (l *Layout) writeCatalogue() {
	c := l.at(sectorCatalogue)
	c[0], c[1] = 1, 0xef // platform: EFI
	copy(c[4:28], "Ingot")
	c[30], c[31] = 0x55, 0xaa
	var sum uint16
	for at := 0; at < 32; at += 2 {
		sum += binary.LittleEndian.Uint16(c[at:])
	}
	binary.LittleEndian.PutUint16(c[28:], -sum)
	c[32] = 0x88 // bootable, no emulation
	binary.LittleEndian.PutUint32(c[40:], sectorPartition)
}

// record returns a directory record (ECMA-119, 9.1) without a time.
func record(name string, first, size uint32, isDirectory bool) []byte {
	r := make([]byte, (33+len(name)+1)/2*2)
	r[0] = byte(len(r))
	putBoth32(r[2:], first)
	putBoth32(r[10:], size)
	r[18], r[19], r[20] = 70, 1, 1 // 1970-01-01: a date of zeros is none that every reader accepts
	if isDirectory {
		r[25] = 2
	}
	putBoth16(r[28:], 1)
	r[32] = byte(len(name))
	copy(r[33:], name)
	return r
}

// putBoth32 writes a number in both byte orders (ECMA-119, 7.3.3).
func putBoth32(to []byte, value uint32) {
	binary.LittleEndian.PutUint32(to, value)
	binary.BigEndian.PutUint32(to[4:], value)
}

// putBoth16 writes a number in both byte orders (ECMA-119, 7.2.3).
func putBoth16(to []byte, value uint16) {
	binary.LittleEndian.PutUint16(to, value)
	binary.BigEndian.PutUint16(to[2:], value)
}
