package gpt

import (
	"encoding/binary"
	"io"
)

// maxLogicalPartitions limits the chain of logical partitions of an MBR, which may be circular.
const maxLogicalPartitions = 128

// ReadPartitions returns the partitions of a disk: from the primary GUID table, otherwise from the backup, otherwise from the MBR. It
// returns none when there is no valid table. The error is an error of reading the disk.
func ReadPartitions(disk io.ReaderAt, size int64) ([]Extent, error) {
	var failed error
	read := func(offset, length int64) []byte {
		if offset < 0 || offset > size-length {
			return nil
		}
		data := make([]byte, length)
		if _, err := disk.ReadAt(data, offset); err != nil {
			failed = err
			return nil
		}
		return data
	}
	for _, block := range []int64{1, size/Sector - 1} {
		if table, err := parseHeader(block, read); err == nil {
			return clip(table.Partitions(), size), nil
		}
		if failed != nil {
			return nil, failed
		}
	}
	return clip(scanMBR(read), size), failed
}

// clip returns the extents that begin on the disk, shortened to the end of the disk.
func clip(extents []Extent, size int64) []Extent {
	var out []Extent
	for _, extent := range extents {
		if extent.Offset <= 0 || extent.Offset >= size {
			continue
		}
		extent.Size = min(extent.Size, size-extent.Offset)
		out = append(out, extent)
	}
	return out
}

// scanMBR returns the primary and the logical partitions of an MBR.
func scanMBR(read func(offset, size int64) []byte) []Extent {
	var out []Extent
	var extended int64
	for _, entry := range mbrEntries(read(0, Sector)) {
		if isExtended(entry[4]) {
			extended = mbrStart(entry)
		}
		out = append(out, mbrExtent(entry, 0))
	}
	next := int64(0)
	for range maxLogicalPartitions {
		if extended == 0 {
			break
		}
		at := extended + next
		next = 0
		for _, entry := range mbrEntries(read(at*Sector, Sector)) {
			if isExtended(entry[4]) {
				next = mbrStart(entry)
				continue
			}
			out = append(out, mbrExtent(entry, at))
		}
		if next == 0 {
			break
		}
	}
	return out
}

// mbrEntries returns the used entries of a boot record; none when the record is invalid.
func mbrEntries(record []byte) [][]byte {
	if len(record) < Sector || record[510] != 0x55 || record[511] != 0xAA {
		return nil
	}
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

func mbrExtent(entry []byte, base int64) Extent {
	return Extent{Offset: (base + mbrStart(entry)) * Sector, Size: int64(binary.LittleEndian.Uint32(entry[12:])) * Sector}
}
