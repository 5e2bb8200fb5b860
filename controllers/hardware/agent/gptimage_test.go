package agent_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"
	"unicode/utf16"
)

// partition is one partition of a test image, in sectors.
type partition struct {
	first, last uint64
	name        string
}

// gptImage is an image with a GUID partition table as partitioning tools write it, and data in its partitions. It is
// written from the UEFI specification's tables, apart from the package under test.
func gptImage(size int, partitions ...partition) []byte {
	image := make([]byte, size)
	copy(image[440:], "DISK")
	copy(image[446:], []byte{0, 0, 2, 0, 0xEE, 0xFF, 0xFF, 0xFF, 1, 0, 0, 0})
	binary.LittleEndian.PutUint32(image[458:], uint32(size/512-1))
	image[510], image[511] = 0x55, 0xAA
	entries := make([]byte, 128*128)
	for i, p := range partitions {
		entry := entries[i*128:]
		copy(entry, bytes.Repeat([]byte{0xAF, 0x3D, byte(i)}, 6)[:16])
		copy(entry[16:], bytes.Repeat([]byte{byte(i + 1), 0x42}, 8))
		binary.LittleEndian.PutUint64(entry[32:], p.first)
		binary.LittleEndian.PutUint64(entry[40:], p.last)
		for j, unit := range utf16.Encode([]rune(p.name)) {
			binary.LittleEndian.PutUint16(entry[56+2*j:], unit)
		}
		data := image[p.first*512 : (p.last+1)*512]
		copy(data, plainImage(len(data)))
	}
	last := uint64(size/512 - 1)
	copy(image[1024:], entries)
	copy(image[(last-32)*512:], entries)
	for _, at := range []struct{ self, other, entries uint64 }{{1, last, 2}, {last, 1, last - 32}} {
		header := image[at.self*512:][:92]
		copy(header, "EFI PART\x00\x00\x01\x00\x5C\x00\x00\x00")
		for off, value := range map[int]uint64{24: at.self, 32: at.other, 40: 34, 48: last - 33, 72: at.entries} {
			binary.LittleEndian.PutUint64(header[off:], value)
		}
		copy(header[56:], bytes.Repeat([]byte{0x5A}, 16))
		binary.LittleEndian.PutUint32(header[80:], 128)
		binary.LittleEndian.PutUint32(header[84:], 128)
		binary.LittleEndian.PutUint32(header[88:], crc32.ChecksumIEEE(entries))
		binary.LittleEndian.PutUint32(header[16:], crc32.ChecksumIEEE(header))
	}
	return image
}

// twoPartitions is the usual image: a boot partition and a root.
func twoPartitions(size int) []byte {
	return gptImage(size, partition{2048, 6143, "esp"}, partition{6144, uint64(size/512 - 2048), "root"})
}

// checkTables verifies both copies of a disk's table against the specification and returns the partitions.
func checkTables(t *testing.T, disk []byte) []partition {
	t.Helper()
	last := uint64(len(disk)/512 - 1)
	var tables [2][]byte
	for i, self := range []uint64{1, last} {
		header := bytes.Clone(disk[self*512:][:92])
		if string(header[:8]) != "EFI PART" {
			t.Fatalf("no header in sector %d", self)
		}
		sum := binary.LittleEndian.Uint32(header[16:])
		clear(header[16:20])
		at := binary.LittleEndian.Uint64(header[72:])
		tables[i] = disk[at*512:][:128*128]
		other := []uint64{last, 1}[i]
		if crc32.ChecksumIEEE(header) != sum || crc32.ChecksumIEEE(tables[i]) != binary.LittleEndian.Uint32(header[88:]) {
			t.Errorf("header in sector %d: checksums do not match", self)
		}
		if binary.LittleEndian.Uint64(header[24:]) != self || binary.LittleEndian.Uint64(header[32:]) != other ||
			binary.LittleEndian.Uint64(header[48:]) != last-33 {
			t.Errorf("header in sector %d: % x", self, header)
		}
	}
	if !bytes.Equal(tables[0], tables[1]) {
		t.Error("the two copies of the table differ")
	}
	if size := binary.LittleEndian.Uint32(disk[458:]); uint64(size) != last {
		t.Errorf("the protective MBR covers %d sectors of %d", size, last)
	}
	var out []partition
	for i := 0; i < 128; i++ {
		entry := tables[0][i*128:][:128]
		if bytes.Equal(entry[:16], make([]byte, 16)) {
			continue
		}
		var units []uint16
		for j := 56; j < 128 && (entry[j] != 0 || entry[j+1] != 0); j += 2 {
			units = append(units, binary.LittleEndian.Uint16(entry[j:]))
		}
		out = append(out, partition{binary.LittleEndian.Uint64(entry[32:]), binary.LittleEndian.Uint64(entry[40:]), string(utf16.Decode(units))})
	}
	return out
}
