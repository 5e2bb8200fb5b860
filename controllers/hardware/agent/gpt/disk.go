package gpt

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// ErrUnknown means that the start of the disk holds something that is neither a partition table nor the start of a known file system.
var ErrUnknown = errors.New("the disk begins with unknown content")

// Layout is how a disk is divided.
type Layout struct {
	// Partitions are the partitions of all tables that were found.
	Partitions []Extent
	// Records are the places of partition tables that do not lie at the start of the disk: copies, and the records of logical partitions.
	Records []Extent
}

// sectorSizes are the logical sector sizes of disks. A disk may have been divided behind a controller that presented another one.
var sectorSizes = []int64{512, 4096}

// ReadLayout reads the partition tables of a disk: the primary GUID table, its copies, and the MBR. A disk without a table, such as an
// empty one or one with a file system on the whole disk, has no partitions. The error is ErrDamaged for a table that cannot be
// read as a whole, ErrUnknown for content that may be a table of another kind, and otherwise an error of reading the disk.
func ReadLayout(disk io.ReaderAt, size, sector int64) (Layout, error) {
	r := &layoutReader{disk: disk, size: size, sector: cmp.Or(sector, Sector)}
	r.readTables()
	mbr, err := r.readMBR()
	switch {
	case r.failed != nil:
		return Layout{}, r.failed
	case r.tables == 0 && r.damaged != nil:
		return Layout{}, r.damaged
	case r.tables == 0 && err != nil:
		return Layout{}, err
	case r.tables > 0 && r.entryError != nil:
		return Layout{}, r.entryError
	case r.tables > 0 && errors.Is(err, ErrDamaged):
		return Layout{}, err
	case err == nil:
		r.layout.Partitions, r.layout.Records = append(r.layout.Partitions, mbr.Partitions...), append(r.layout.Records, mbr.Records...)
	}
	return Layout{Partitions: clip(r.layout.Partitions, size), Records: clip(r.layout.Records, size)}, nil
}

// layoutReader reads the layout of one disk.
type layoutReader struct {
	disk         io.ReaderAt
	size, sector int64
	layout       Layout
	// tables is the number of valid GUID tables.
	tables int
	// damaged is why a GUID table is not valid, entryError why an entry of a valid one is not, failed why the disk cannot be read.
	damaged, entryError, failed error
}

// read returns a range of bytes of the disk, or nil where there is none.
func (r *layoutReader) read(offset, length int64) []byte {
	if offset < 0 || length <= 0 || offset > r.size-length {
		return nil
	}
	data := make([]byte, length)
	if _, err := r.disk.ReadAt(data, offset); err != nil {
		r.failed = err
		return nil
	}
	return data
}

// readTables reads the GUID tables at both ends of the disk, those of every sector size, and the copies at the places that they name.
func (r *layoutReader) readTables() {
	for _, sector := range slices.Compact(append([]int64{r.sector}, sectorSizes...)) {
		last := r.size/sector - 1
		blocks := []int64{1, last}
		for i := 0; i < len(blocks) && i < 4; i++ {
			if copyAt := r.readTable(blocks[i], sector); copyAt > 0 && !slices.Contains(blocks, copyAt) {
				blocks = append(blocks, copyAt)
			}
		}
	}
}

// readTable adds the table whose header is at the block, and returns the block of its copy.
func (r *layoutReader) readTable(block, sector int64) (copyAt int64) {
	if block < 1 {
		return 0
	}
	table, err := parseHeader(block, sector, r.read)
	if err != nil {
		if !errors.Is(err, ErrNoTable) {
			r.damaged = err
		}
		return 0
	}
	r.tables++
	if err := table.checkEntries(); err != nil {
		r.entryError = err
	}
	r.layout.Partitions = append(r.layout.Partitions, table.Partitions()...)
	r.layout.Records = append(r.layout.Records, Extent{Offset: block * sector, Size: sector}, Extent{Offset: table.entriesAt, Size: int64(len(table.entries))})
	return table.backupBlock()
}

// checkEntries returns an error for an entry whose range makes no sense.
func (t *Table) checkEntries() error {
	for n := range len(t.entries) / entrySize {
		entry := t.entry(n)
		if first, last := binary.LittleEndian.Uint64(entry[32:]), binary.LittleEndian.Uint64(entry[40:]); isUsed(entry) && (first > last || last >= maxBlock) {
			return fmt.Errorf("%w: partition %d from block %d to %d", ErrDamaged, n+1, first, last)
		}
	}
	return nil
}

// clip returns the extents that begin on the disk, shortened to the end of the disk.
func clip(extents []Extent, size int64) []Extent {
	var out []Extent
	for _, extent := range extents {
		if extent.Offset <= 0 || extent.Offset >= size {
			continue
		}
		extent.Size = min(extent.Size, size-extent.Offset)
		if !slices.Contains(out, extent) {
			out = append(out, extent)
		}
	}
	return out
}

const (
	// maxLogicalPartitions limits the chain of logical partitions of an MBR, which may be circular.
	maxLogicalPartitions = 128
	// kindProtective is the type of the entry that protects a GUID table from programs that know MBRs only.
	kindProtective = 0xEE
	// recordSize is the size of a boot record, whatever the sector size is.
	recordSize = 512
	// headSize is the length of the start of a disk in which a partition table of any kind lies. A BSD label, for example, lies in the second
	// sector, and the first one may be blank.
	headSize = 1 << 20
)

// readMBR returns the primary and the logical partitions of an MBR. A file system on the whole disk may begin with a boot record too, whose
// entries are code that makes no sense. Entries that make sense count even then: a mark of a file system that a tenant wrote into the boot
// record must hide no partition.
func (r *layoutReader) readMBR() (Layout, error) {
	record := r.read(0, recordSize)
	if record == nil || isBlank(r.read(0, min(headSize, r.size))) {
		return Layout{}, nil
	}
	err := ErrUnknown
	if record[510] == 0x55 && record[511] == 0xAA {
		var out Layout
		if out, err = r.readBootRecord(record); err == nil {
			return out, nil
		}
	}
	if isFileSystem(r.read) {
		return Layout{}, nil
	}
	return Layout{}, err
}

// readBootRecord returns the partitions that the entries of the record of an MBR name.
func (r *layoutReader) readBootRecord(record []byte) (Layout, error) {
	var out Layout
	for _, entry := range mbrEntries(record) {
		start := mbrStart(entry)
		switch {
		case entry[4] == kindProtective && r.tables > 0:
			continue // the others are those of a hybrid MBR
		case entry[4] == kindProtective:
			return Layout{}, fmt.Errorf("%w: an MBR protects a GUID table, and neither the table nor its copy is valid", ErrDamaged)
		case entry[0]&0x7F != 0 || start == 0 || start*r.sector >= r.size:
			return Layout{}, fmt.Errorf("%w: entry % x of the MBR", ErrDamaged, entry)
		case isExtended(entry[4]):
			if err := r.readLogical(start, &out); err != nil {
				return Layout{}, err
			}
		}
		out.Partitions = append(out.Partitions, r.mbrExtent(entry, 0))
	}
	return out, nil
}

// readLogical adds the logical partitions of the extended partition that begins at the block. Each has a record with its own place and
// that of the next record.
func (r *layoutReader) readLogical(extended int64, out *Layout) error {
	at := extended
	for range maxLogicalPartitions {
		record := r.read(at*r.sector, recordSize)
		if record == nil || record[510] != 0x55 || record[511] != 0xAA {
			return fmt.Errorf("%w: no record of a logical partition at block %d", ErrDamaged, at)
		}
		out.Records = append(out.Records, Extent{Offset: at * r.sector, Size: r.sector})
		next := int64(0)
		for _, entry := range mbrEntries(record) {
			if isExtended(entry[4]) {
				next = mbrStart(entry)
				continue
			}
			out.Partitions = append(out.Partitions, r.mbrExtent(entry, at))
		}
		if next == 0 {
			return nil
		}
		at = extended + next
	}
	return fmt.Errorf("%w: more than %d logical partitions, or a chain without an end", ErrDamaged, maxLogicalPartitions)
}

// mbrEntries returns the used entries of a boot record.
func mbrEntries(record []byte) [][]byte {
	var out [][]byte
	for i := 446; i < 510; i += 16 {
		if record[i+4] != 0 {
			out = append(out, record[i:i+16])
		}
	}
	return out
}

func isExtended(kind byte) bool { return kind == 0x05 || kind == 0x0F || kind == 0x85 }

func mbrStart(entry []byte) int64 { return int64(binary.LittleEndian.Uint32(entry[8:])) }

func (r *layoutReader) mbrExtent(entry []byte, base int64) Extent {
	return Extent{Offset: (base + mbrStart(entry)) * r.sector, Size: int64(binary.LittleEndian.Uint32(entry[12:])) * r.sector}
}

func isBlank(data []byte) bool { return len(bytes.Trim(data, "\x00")) == 0 }

// fileSystemMarks are the marks by which file systems, RAID members, encrypted volumes and volume managers on a whole disk are known, where
// the first sector is in use (util-linux, libblkid/src/superblocks).
var fileSystemMarks = []struct {
	offset int64
	mark   string
}{
	{3, "NTFS    "}, {3, "EXFAT   "}, {3, "-FVE-FS-"}, {54, "FAT12   "}, {54, "FAT16   "}, {54, "FAT     "}, {82, "FAT32   "},
	{0, "XFSB"}, {0, "LUKS\xba\xbe"}, {0, "bluestore block device"}, {0, "\xfc\x4e\x2b\xa9"}, {0, "\x4e\x58\x53\x42"}, {4096, "\xfc\x4e\x2b\xa9"},
	{0, "LABELONE"}, {512, "LABELONE"}, {1024, "LABELONE"}, {1536, "LABELONE"}, {1080, "\x53\xef"}, {4086, "SWAPSPACE2"}, {65526, "SWAPSPACE2"},
	{65600, "_BHRfS_M"}, {32769, "CD001"}, {1024, "\x10\x20\xf5\xf2"},
}

// isFileSystem reports whether the whole disk holds one file system or member of a volume, so that it has no partition table.
func isFileSystem(read func(offset, size int64) []byte) bool {
	for _, m := range fileSystemMarks {
		if string(read(m.offset, int64(len(m.mark)))) == m.mark {
			return true
		}
	}
	return false
}
