package gpt

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"unicode/utf16"
)

const (
	// Sector is the logical sector size for which an image is made. A partition can be added to such a table only.
	Sector = 512
	// alignment is the alignment of partitions in bytes.
	alignment = 1 << 20

	signature  = "EFI PART"
	headerSize = 92
	entrySize  = 128
	maxEntries = 1024
	// maxBlock is a limit at which an offset in bytes still fits into 64 bits.
	maxBlock = 1 << 48
)

// Errors of partition tables.
var (
	// ErrNoTable means that there is no GUID partition table.
	ErrNoTable = errors.New("no GUID partition table")
	// ErrDamaged means that the GUID partition table is damaged or has an unsupported form.
	ErrDamaged = errors.New("damaged GUID partition table")
	// ErrFull means that there is no free entry, or not enough space on the disk.
	ErrFull = errors.New("no room for another partition")
)

// linuxData is the partition type "Linux filesystem data", 0FC63DAF-8483-4772-8E79-3D69D8477DE4, in the byte order of the disk.
var linuxData = [16]byte{0xAF, 0x3D, 0xC6, 0x0F, 0x83, 0x84, 0x72, 0x47, 0x8E, 0x79, 0x3D, 0x69, 0xD8, 0x47, 0x7D, 0xE4}

// Extent is a range of bytes on a disk.
type Extent struct {
	Offset, Size int64
	// Name is the name of the partition; empty for an MBR.
	Name string
}

// Table is a GUID partition table read from the start of an image.
type Table struct {
	header  []byte
	entries []byte
	// entriesAt is the offset of the entries in bytes.
	entriesAt int64
	// sector is the logical sector size of the table.
	sector int64
}

// ParseTable parses the primary table from head, the first bytes of an image or disk. head must contain the whole table.
func ParseTable(head []byte) (*Table, error) {
	if len(head) >= 4096+headerSize && string(head[4096:4096+8]) == signature && string(head[Sector:Sector+8]) != signature {
		return nil, fmt.Errorf("%w: it is made for sectors of 4096 bytes, expected 512", ErrDamaged)
	}
	return parseHeader(1, Sector, func(offset, size int64) []byte {
		if offset < 0 || offset+size > int64(len(head)) {
			return nil
		}
		return head[offset : offset+size]
	})
}

// parseHeader parses the table whose header is at the block. read returns a range of bytes, or nil where there is none.
func parseHeader(block, sector int64, read func(offset, size int64) []byte) (*Table, error) {
	header := read(block*sector, Sector)
	if len(header) < headerSize || string(header[:8]) != signature {
		return nil, ErrNoTable
	}
	header = bytes.Clone(header[:headerSize])
	if size := binary.LittleEndian.Uint32(header[12:]); size != headerSize {
		return nil, fmt.Errorf("%w: header of %d bytes, expected %d", ErrDamaged, size, headerSize)
	}
	sum := binary.LittleEndian.Uint32(header[16:])
	if sum != headerSum(header) {
		return nil, fmt.Errorf("%w: the header's checksum does not match", ErrDamaged)
	}
	if at := binary.LittleEndian.Uint64(header[24:]); at != uint64(block) {
		return nil, fmt.Errorf("%w: the header at block %d says it lies at %d", ErrDamaged, block, at)
	}
	return parseEntries(header, sector, read)
}

// parseEntries parses the entries of a valid header.
func parseEntries(header []byte, sector int64, read func(offset, size int64) []byte) (*Table, error) {
	count, size := binary.LittleEndian.Uint32(header[80:]), binary.LittleEndian.Uint32(header[84:])
	if size != entrySize || count == 0 || count > maxEntries {
		return nil, fmt.Errorf("%w: %d entries of %d bytes", ErrDamaged, count, size)
	}
	first := binary.LittleEndian.Uint64(header[72:])
	if first < 2 || first > maxBlock {
		return nil, fmt.Errorf("%w: entries at block %d", ErrDamaged, first)
	}
	entries := bytes.Clone(read(int64(first)*sector, int64(count)*entrySize))
	if len(entries) == 0 {
		return nil, fmt.Errorf("%w: the entries lie outside what was read", ErrDamaged)
	}
	if crc32.ChecksumIEEE(entries) != binary.LittleEndian.Uint32(header[88:]) {
		return nil, fmt.Errorf("%w: the entries' checksum does not match", ErrDamaged)
	}
	return &Table{header: header, entries: entries, entriesAt: int64(first) * sector, sector: sector}, nil
}

// headerSum returns the CRC-32 of the header with the checksum field set to zero.
func headerSum(header []byte) uint32 {
	blank := bytes.Clone(header)
	binary.LittleEndian.PutUint32(blank[16:], 0)
	return crc32.ChecksumIEEE(blank)
}

// entry returns the n-th entry.
func (t *Table) entry(n int) []byte { return t.entries[n*entrySize:][:entrySize] }

// isUsed reports whether the entry describes a partition, which has a type that is not zero.
func isUsed(entry []byte) bool { return !bytes.Equal(entry[:16], make([]byte, 16)) }

// Partitions returns the partitions with a valid range, in the order of their entries.
func (t *Table) Partitions() []Extent {
	var out []Extent
	for n := range len(t.entries) / entrySize {
		entry := t.entry(n)
		first, last := binary.LittleEndian.Uint64(entry[32:]), binary.LittleEndian.Uint64(entry[40:])
		if !isUsed(entry) || first > last || last >= maxBlock {
			continue
		}
		out = append(out, Extent{Offset: int64(first) * t.sector, Size: int64(last-first+1) * t.sector, Name: entryName(entry)})
	}
	return out
}

func entryName(entry []byte) string {
	var units []uint16
	for i := 56; i < entrySize; i += 2 {
		unit := binary.LittleEndian.Uint16(entry[i:])
		if unit == 0 {
			break
		}
		units = append(units, unit)
	}
	return string(utf16.Decode(units))
}

// backupBlock returns the sector of the backup header.
func (t *Table) backupBlock() int64 {
	return int64(min(binary.LittleEndian.Uint64(t.header[32:]), maxBlock))
}

// AddPartition adjusts the table to a disk of diskSize bytes and adds a partition of at least size bytes at its end. It removes
// partitions that already have the name, so that the name is unique. The GUID of the new partition is derived from that of the disk.
func (t *Table) AddPartition(diskSize, size int64, name string) (Extent, error) {
	for n := range len(t.entries) / entrySize {
		if isUsed(t.entry(n)) && entryName(t.entry(n)) == name {
			clear(t.entry(n))
		}
	}
	entriesSectors := (int64(len(t.entries)) + Sector - 1) / Sector
	lastUsable := diskSize/Sector - 1 - entriesSectors - 1
	end := (lastUsable + 1) * Sector / alignment * alignment
	extent := Extent{Offset: end - (size+alignment-1)/alignment*alignment, Name: name}
	extent.Size = end - extent.Offset
	free, limit := t.freeEntry()
	if free < 0 {
		return Extent{}, fmt.Errorf("%w: all %d entries are in use", ErrFull, len(t.entries)/entrySize)
	}
	if extent.Offset < limit {
		return Extent{}, fmt.Errorf("%w: the partitions end at byte %d of %d, and %d are needed behind them", ErrFull, limit, diskSize, extent.Size)
	}
	entry := t.entry(free)
	clear(entry) // an entry is free by its type alone, and the rest may be that of a partition that was deleted
	copy(entry, linuxData[:])
	guid := sha256.Sum256(append(bytes.Clone(t.header[56:72]), name...))
	guid[7], guid[8] = guid[7]&0x0F|0x80, guid[8]&0x3F|0x80 // RFC 9562 version 8; the third field is little-endian
	copy(entry[16:32], guid[:16])
	binary.LittleEndian.PutUint64(entry[32:], uint64(extent.Offset/Sector))
	binary.LittleEndian.PutUint64(entry[40:], uint64((extent.Offset+extent.Size)/Sector-1))
	for i, unit := range utf16.Encode([]rune(name)) {
		if i < 36 {
			binary.LittleEndian.PutUint16(entry[56+2*i:], unit)
		}
	}
	binary.LittleEndian.PutUint64(t.header[32:], uint64(diskSize/Sector-1))
	binary.LittleEndian.PutUint64(t.header[48:], uint64(lastUsable))
	return extent, nil
}

// freeEntry returns the first free entry, -1 when there is none, and the byte at which the last partition ends.
func (t *Table) freeEntry() (free int, limit int64) {
	free, limit = -1, max(alignment, int64(min(binary.LittleEndian.Uint64(t.header[40:]), maxBlock))*Sector)
	for n := range len(t.entries) / entrySize {
		if !isUsed(t.entry(n)) {
			if free < 0 {
				free = n
			}
			continue
		}
		last := min(binary.LittleEndian.Uint64(t.entry(n)[40:]), maxBlock)
		limit = max(limit, int64(last+1)*Sector)
	}
	return free, limit
}

// WritePrimary writes the table into head, the first bytes of the image, and adjusts the protective MBR to the size of the disk.
func (t *Table) WritePrimary(head []byte, diskSize int64) {
	copy(head[Sector:], t.headerFor(1, t.backupBlock(), t.entriesAt/Sector))
	copy(head[t.entriesAt:], t.entries)
	for i := 446; i < 510; i += 16 {
		if head[i+4] == 0xEE {
			first := int64(binary.LittleEndian.Uint32(head[i+8:]))
			binary.LittleEndian.PutUint32(head[i+12:], uint32(min(diskSize/Sector-first, 0xFFFFFFFF)))
			copy(head[i+5:i+8], []byte{0xFF, 0xFF, 0xFF})
		}
	}
}

// Backup returns the copy of the table and its offset: the entries, followed by the header in the last sector of the disk.
func (t *Table) Backup() ([]byte, int64) {
	sectors := (int64(len(t.entries)) + Sector - 1) / Sector
	out := make([]byte, (sectors+1)*Sector)
	copy(out, t.entries)
	last := t.backupBlock()
	copy(out[sectors*Sector:], t.headerFor(last, 1, last-sectors))
	return out, (last - sectors) * Sector
}

// headerFor returns the header for one of its two places, with checksums.
func (t *Table) headerFor(at, other, entries int64) []byte {
	header := bytes.Clone(t.header)
	binary.LittleEndian.PutUint64(header[24:], uint64(at))
	binary.LittleEndian.PutUint64(header[32:], uint64(other))
	binary.LittleEndian.PutUint64(header[72:], uint64(entries))
	binary.LittleEndian.PutUint32(header[88:], crc32.ChecksumIEEE(t.entries))
	binary.LittleEndian.PutUint32(header[16:], headerSum(header))
	return header
}
