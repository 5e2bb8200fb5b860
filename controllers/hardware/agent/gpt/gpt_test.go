package gpt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/ingot-dev/ingot/test/require"
)

func TestATableThatSgdiskMadeIsReadAndExtendedToItsSatisfaction(t *testing.T) {
	sgdisk := require.Tool(t, "sgdisk", "apt-get install gdisk")
	path := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(path, make([]byte, 8<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(sgdisk, "-n", "1:2048:4095", "-c", "1:esp", "-n", "2:4096:8191", "-c", "2:root", path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	image, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	table, err := ParseTable(image[:alignment])
	if err != nil {
		t.Fatal(err)
	}
	disk := append(image, make([]byte, 24<<20)...)
	extent, err := table.AddPartition(int64(len(disk)), 3<<20-5, "extra")
	if err != nil || extent.Size != 3<<20 || extent.Offset%alignment != 0 {
		t.Fatalf("%+v, %v", extent, err)
	}
	table.WritePrimary(disk, int64(len(disk)))
	backup, at := table.Backup()
	copy(disk[at:], backup)
	if err := os.WriteFile(path, disk, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(sgdisk, "-v", path).CombinedOutput(); err != nil || !bytes.Contains(out, []byte("No problems found")) {
		t.Errorf("%v: %s", err, out)
	}
	found, err := readPartitions(disk)
	if err != nil || len(found) != 3 || found[2] != extent || found[0].Name != "esp" {
		t.Errorf("%+v, %v", found, err)
	}
	clear(disk[:alignment])
	if again, err := readPartitions(disk); err != nil || len(again) != 3 {
		t.Errorf("from the backup: %+v, %v", again, err)
	}
}

// readPartitions returns the partitions of a disk with sectors of 512 bytes.
func readPartitions(disk []byte) ([]Extent, error) {
	layout, err := ReadLayout(bytes.NewReader(disk), int64(len(disk)), Sector)
	return layout.Partitions, err
}

// mbr makes a boot record with the entries {kind, start, sectors}.
func mbr(record []byte, entries ...[3]uint32) {
	for i, entry := range entries {
		at := record[446+16*i:]
		at[4] = byte(entry[0])
		binary.LittleEndian.PutUint32(at[8:], entry[1])
		binary.LittleEndian.PutUint32(at[12:], entry[2])
	}
	record[510], record[511] = 0x55, 0xAA
}

func TestPrimaryAndLogicalPartitionsOfAnMBRAreFoundAndALoopEnds(t *testing.T) {
	disk := make([]byte, 1<<20)
	mbr(disk, [3]uint32{0x83, 8, 16}, [3]uint32{0x05, 100, 1000})
	mbr(disk[100*512:], [3]uint32{0x83, 2, 10}, [3]uint32{0x05, 50, 20})
	mbr(disk[150*512:], [3]uint32{0x83, 2, 9999999})
	found, err := readPartitions(disk)
	want := []Extent{{Offset: 8 * 512, Size: 16 * 512}, {Offset: 102 * 512, Size: 10 * 512}, {Offset: 152 * 512, Size: 1<<20 - 152*512}, {Offset: 100 * 512, Size: 1000 * 512}}
	if err != nil || len(found) != len(want) {
		t.Fatalf("%+v, %v", found, err)
	}
	for i := range want {
		if found[i] != want[i] {
			t.Errorf("%+v, expected %+v", found[i], want[i])
		}
	}
	mbr(disk[150*512:], [3]uint32{0x83, 2, 1}, [3]uint32{0x05, 50, 1})
	if _, err := readPartitions(disk); !errors.Is(err, ErrDamaged) {
		t.Errorf("a chain without an end: %v, expected ErrDamaged", err)
	}
}

func TestAnEmptyDiskHasNoTable(t *testing.T) {
	if _, err := ParseTable(make([]byte, alignment)); !errors.Is(err, ErrNoTable) {
		t.Error(err)
	}
	if found, err := readPartitions(make([]byte, alignment)); err != nil || len(found) != 0 {
		t.Errorf("%v, %v", found, err)
	}
}

// newTable returns the start of an image with a GUID partition table of that many entries.
func newTable(t *testing.T, count int, partitions ...Extent) []byte {
	t.Helper()
	table := &Table{header: make([]byte, headerSize), entries: make([]byte, count*entrySize), entriesAt: 2 * Sector, sector: Sector}
	copy(table.header, signature+"\x00\x00\x01\x00\x5C")
	binary.LittleEndian.PutUint64(table.header[40:], 34)
	binary.LittleEndian.PutUint32(table.header[80:], uint32(count))
	binary.LittleEndian.PutUint32(table.header[84:], entrySize)
	for n, partition := range partitions {
		entry := table.entry(n)
		copy(entry, linuxData[:])
		binary.LittleEndian.PutUint64(entry[32:], uint64(partition.Offset/Sector))
		binary.LittleEndian.PutUint64(entry[40:], uint64((partition.Offset+partition.Size)/Sector-1))
		for i, unit := range utf16.Encode([]rune(partition.Name)) {
			binary.LittleEndian.PutUint16(entry[56+2*i:], unit)
		}
	}
	head := make([]byte, 2*Sector+count*entrySize)
	table.WritePrimary(head, 8*alignment)
	return head
}

func TestATableHasAtMost1024Entries(t *testing.T) {
	if _, err := ParseTable(newTable(t, maxEntries)); err != nil {
		t.Error(err)
	}
	if _, err := ParseTable(newTable(t, maxEntries+1)); !errors.Is(err, ErrDamaged) {
		t.Errorf("%v, expected ErrDamaged", err)
	}
}

func TestPartitionsAtTheEdgesOfTheDiskAreRead(t *testing.T) {
	name := strings.Repeat("n", 36)
	oneSector, last := Extent{Offset: alignment, Size: Sector, Name: name}, Extent{Offset: 4*alignment - Sector, Size: Sector}
	beyond, start := Extent{Offset: 4 * alignment, Size: Sector}, Extent{Size: Sector}
	disk := make([]byte, 4*alignment)
	copy(disk, newTable(t, 4, oneSector, last, beyond, start))
	found, err := readPartitions(disk)
	if err != nil || !slices.Equal(found, []Extent{oneSector, last}) {
		t.Errorf("%+v, %v, expected the two that begin on the disk after its first sector", found, err)
	}
}

func TestAnEntryThatIsUsedAgainKeepsNothing(t *testing.T) {
	head := newTable(t, 4)
	table, err := ParseTable(head)
	if err != nil {
		t.Fatal(err)
	}
	// A partition that was deleted by its type alone, with the attribute of one that is not to be mounted (UEFI 2.10, table 5.8) and a long name.
	for i := 16; i < entrySize; i++ {
		table.entry(0)[i] = 0xA5
	}
	if _, err := table.AddPartition(16*alignment, alignment, "ci"); err != nil {
		t.Fatal(err)
	}
	entry := table.entry(0)
	if name := entryName(entry); name != "ci" || binary.LittleEndian.Uint64(entry[48:]) != 0 {
		t.Errorf("name %q, attributes %x", name, entry[48:56])
	}
}

func TestAPartitionIsAddedWhereItJustFits(t *testing.T) {
	first := Extent{Offset: alignment, Size: alignment}
	for size, expected := range map[int64]error{5 * alignment: nil, 5*alignment + 1: ErrFull} {
		table, err := ParseTable(newTable(t, 2, first))
		if err != nil {
			t.Fatal(err)
		}
		extent, err := table.AddPartition(8*alignment, size, "config-2")
		if !errors.Is(err, expected) || err == nil && extent.Offset != 2*alignment {
			t.Errorf("%d bytes: %+v, %v, expected %v", size, extent, err, expected)
		}
	}
	table, err := ParseTable(newTable(t, 1, first))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.AddPartition(8*alignment, alignment, "config-2"); !errors.Is(err, ErrFull) {
		t.Errorf("no free entry: %v, expected ErrFull", err)
	}
	// A partition with the same name gives its entry, the first one, to the new partition.
	if table, err = ParseTable(newTable(t, 2, Extent{Offset: alignment, Size: alignment, Name: "config-2"}, Extent{Offset: 2 * alignment, Size: alignment})); err != nil {
		t.Fatal(err)
	}
	if extent, err := table.AddPartition(8*alignment, alignment, "config-2"); err != nil || table.Partitions()[0] != extent {
		t.Errorf("%+v, %v, expected the new partition in the first entry", table.Partitions(), err)
	}
}

func TestPartitionsAreReadFromTheBackupInTheLastSector(t *testing.T) {
	table, err := ParseTable(newTable(t, 128))
	if err != nil {
		t.Fatal(err)
	}
	extent, err := table.AddPartition(4*alignment, alignment, strings.Repeat("n", 40))
	if err != nil {
		t.Fatal(err)
	}
	disk := make([]byte, 4*alignment)
	backup, at := table.Backup()
	if copy(disk[at:], backup); at+int64(len(backup)) != int64(len(disk)) {
		t.Errorf("the backup ends at %d, expected the end of the disk", at+int64(len(backup)))
	}
	found, err := readPartitions(disk)
	if err != nil || len(found) != 1 || found[0].Offset != extent.Offset || found[0].Name != extent.Name[:36] {
		t.Errorf("%+v, %v, expected %+v with a name of 36 characters", found, err, extent)
	}
}

// FuzzATableWithAPartitionMore: what is added lies on the disk, overlaps nothing, and is in the table that is written.
func FuzzATableWithAPartitionMore(f *testing.F) {
	head := make([]byte, 40*512)
	table := &Table{header: make([]byte, headerSize), entries: make([]byte, 4*entrySize), entriesAt: 1024, sector: Sector}
	copy(table.header, signature+"\x00\x00\x01\x00\x5C")
	binary.LittleEndian.PutUint64(table.header[40:], 34)
	binary.LittleEndian.PutUint32(table.header[80:], 4)
	binary.LittleEndian.PutUint32(table.header[84:], entrySize)
	table.WritePrimary(head, 4<<20)
	mbr(head, [3]uint32{0xEE, 1, 100})
	f.Add(head, int64(4<<20), int64(100))
	f.Add([]byte{}, int64(0), int64(-1))
	f.Fuzz(func(t *testing.T, head []byte, diskSize, size int64) {
		for _, sector := range sectorSizes {
			if _, err := ReadLayout(bytes.NewReader(head), int64(len(head)), sector); err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrUnknown) {
				t.Errorf("reading memory failed: %v", err)
			}
		}
		if size < 0 || size > 64<<20 || diskSize < 0 || diskSize > 1<<50 {
			return
		}
		// Checksums are corrected, so that the fuzzer reaches the code after them.
		if len(head) >= 512+headerSize {
			fixChecksums(head)
		}
		table, err := ParseTable(head)
		if err != nil {
			return
		}
		extent, err := table.AddPartition(diskSize, size, "config-2")
		if err != nil {
			return
		}
		if extent.Offset < alignment || extent.Offset+extent.Size > diskSize {
			t.Errorf("%+v on a disk of %d", extent, diskSize)
		}
		table.WritePrimary(head, diskSize)
		table.Backup()
		written, err := ParseTable(head)
		if err != nil {
			t.Fatalf("the table that was written cannot be read: %v", err)
		}
		found := 0
		for n := range len(written.entries) / entrySize {
			first, last := binary.LittleEndian.Uint64(written.entry(n)[32:]), binary.LittleEndian.Uint64(written.entry(n)[40:])
			switch at, end := uint64(extent.Offset/written.sector), uint64((extent.Offset+extent.Size)/written.sector-1); {
			case bytes.Equal(written.entry(n)[:16], make([]byte, 16)):
			case first == at && last == end:
				found++
			case first <= end && last >= at:
				t.Errorf("partition %d from %d to %d overlaps %+v", n, first, last, extent)
			}
		}
		if found != 1 {
			t.Errorf("%+v is %d times in the table", extent, found)
		}
	})
}

func fixChecksums(head []byte) {
	header := head[512:][:headerSize]
	first, count := binary.LittleEndian.Uint64(header[72:]), binary.LittleEndian.Uint32(header[80:])
	if count <= maxEntries && first < 1<<20 && int64(first)*512+int64(count)*entrySize <= int64(len(head)) {
		table := Table{header: bytes.Clone(header), entries: head[first*512:][:count*entrySize]}
		copy(header, table.headerFor(1, 1, int64(first)))
	}
}
