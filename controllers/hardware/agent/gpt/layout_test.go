package gpt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ingot-dev/ingot/test/require"
)

// writeTable writes a GUID table for sectors of that size with one partition at both ends of the disk, from the UEFI specification.
func writeTable(disk []byte, sector int64, first, last uint64) {
	entries := make([]byte, 128*entrySize)
	copy(entries, linuxData[:])
	binary.LittleEndian.PutUint64(entries[32:], first)
	binary.LittleEndian.PutUint64(entries[40:], last)
	end := uint64(int64(len(disk))/sector - 1)
	length := uint64(int64(len(entries)) / sector)
	for _, at := range []struct{ self, other, entries uint64 }{{1, end, 2}, {end, 1, end - length}} {
		copy(disk[at.entries*uint64(sector):], entries)
		header := disk[at.self*uint64(sector):][:headerSize]
		copy(header, signature+"\x00\x00\x01\x00\x5C\x00\x00\x00")
		for off, value := range map[int]uint64{24: at.self, 32: at.other, 40: 6, 48: end - length - 1, 72: at.entries} {
			binary.LittleEndian.PutUint64(header[off:], value)
		}
		binary.LittleEndian.PutUint32(header[80:], 128)
		binary.LittleEndian.PutUint32(header[84:], entrySize)
		binary.LittleEndian.PutUint32(header[88:], crc32.ChecksumIEEE(entries))
		binary.LittleEndian.PutUint32(header[16:], headerSum(header))
	}
	mbr(disk, [3]uint32{kindProtective, 1, uint32(end)})
}

func TestATableIsReadWithTheSectorSizeOfTheDiskAndOfAnother(t *testing.T) {
	for _, sizes := range [][2]int64{{512, 512}, {4096, 4096}, {512, 4096}, {4096, 512}} {
		made, presented := sizes[0], sizes[1]
		disk := make([]byte, 16<<20)
		writeTable(disk, made, 2048, 3071)
		want := Extent{Offset: 2048 * made, Size: 1024 * made}
		for _, damage := range []struct {
			name string
			at   int64
		}{{"whole", -1}, {"primary lost", made}, {"copy lost", int64(len(disk)) - made}} {
			damaged := bytes.Clone(disk)
			if damage.at >= 0 {
				clear(damaged[damage.at:][:headerSize])
			}
			got, err := ReadLayout(bytes.NewReader(damaged), int64(len(damaged)), presented)
			if err != nil || !slices.Equal(got.Partitions, []Extent{want}) {
				t.Errorf("made for sectors of %d, presented with %d, %s: %+v, %v", made, presented, damage.name, got.Partitions, err)
			}
		}
	}
}

func TestACopyOfATableInTheMiddleOfTheDiskIsFound(t *testing.T) {
	disk := make([]byte, 32<<20)
	writeTable(disk[:16<<20], 512, 2048, 3071)
	got, err := ReadLayout(bytes.NewReader(disk), int64(len(disk)), 512)
	if at := int64(16<<20 - 512); err != nil || !slices.Contains(got.Records, Extent{Offset: at, Size: 512}) {
		t.Errorf("records %+v, %v, expected the copy's header at %d", got.Records, err, at)
	}
}

func TestThePartitionsOfAHybridMBRAreFoundBesideThoseOfTheTable(t *testing.T) {
	disk := make([]byte, 16<<20)
	writeTable(disk, 512, 2048, 3071)
	mbr(disk, [3]uint32{kindProtective, 1, 2047}, [3]uint32{0x83, 8192, 1024})
	got, err := ReadLayout(bytes.NewReader(disk), int64(len(disk)), 512)
	if want := (Extent{Offset: 8192 * 512, Size: 1024 * 512}); err != nil || len(got.Partitions) != 2 || !slices.Contains(got.Partitions, want) {
		t.Errorf("%+v, %v, expected %+v too", got.Partitions, err, want)
	}
}

func TestWhatCannotBeReadAsAWholeIsAnError(t *testing.T) {
	const size = 8 << 20
	for name, c := range map[string]struct {
		make func(disk []byte)
		want error
	}{
		"empty":                       {func([]byte) {}, nil},
		"boot code, no partition":     {func(disk []byte) { copy(disk, "\xEB\x63\x90"); mbr(disk) }, nil},
		"XFS on the whole disk":       {func(disk []byte) { copy(disk, "XFSB") }, nil},
		"FAT on the whole disk":       {func(disk []byte) { copy(disk[82:], "FAT32   "); mbr(disk, [3]uint32{0x6e, 7, 7}); disk[446] = 0x33 }, nil},
		"a mark beside a partition":   {func(disk []byte) { copy(disk[82:], "FAT32   "); mbr(disk, [3]uint32{0x83, 2048, 100}) }, nil},
		"content of no known kind":    {func(disk []byte) { copy(disk, "\x45\x52\x02\x00Apple") }, ErrUnknown},
		"a BSD label, no boot record": {func(disk []byte) { copy(disk[512:], "\x57\x45\x56\x82") }, ErrUnknown},
		"ext4 on the whole disk":      {func(disk []byte) { copy(disk[1080:], "\x53\xEF") }, nil},
		"data behind an empty head":   {func(disk []byte) { disk[2<<20] = 1 }, nil},
		"a GPT beside a bad MBR":      {func(disk []byte) { writeTable(disk, 512, 2048, 3071); mbr(disk, [3]uint32{0x83, 1 << 30, 100}) }, ErrDamaged},
		"an encrypted disk":           {func(disk []byte) { disk[77] = 3 }, ErrUnknown},
		"both tables damaged":         {func(disk []byte) { writeTable(disk, 512, 2048, 3071); disk[520]++; disk[size-504]++ }, ErrDamaged},
		"a protective MBR alone":      {func(disk []byte) { mbr(disk, [3]uint32{kindProtective, 1, 100}) }, ErrDamaged},
		"a partition off the disk":    {func(disk []byte) { mbr(disk, [3]uint32{0x83, 1 << 30, 100}) }, ErrDamaged},
		"a partition that ends early": {func(disk []byte) { writeTable(disk, 512, 3071, 2048) }, ErrDamaged},
		"a lost logical partition":    {func(disk []byte) { mbr(disk, [3]uint32{0x05, 100, 1000}) }, ErrDamaged},
	} {
		disk := make([]byte, size)
		c.make(disk)
		got, err := ReadLayout(bytes.NewReader(disk), size, 512)
		if !errors.Is(err, c.want) || err != nil && c.want == nil {
			t.Errorf("%s: %v, expected %v", name, err, c.want)
		}
		if name == "a mark beside a partition" && len(got.Partitions) != 1 {
			t.Errorf("%s: %+v", name, got.Partitions)
		}
	}
	broken := errors.New("medium error")
	if _, err := ReadLayout(failingDisk{broken}, size, 512); !errors.Is(err, broken) {
		t.Errorf("a disk that cannot be read: %v", err)
	}
}

// failingDisk fails every read.
type failingDisk struct{ err error }

func (d failingDisk) ReadAt([]byte, int64) (int, error) { return 0, d.err }

func TestEveryPartitionThatSfdiskMakesIsFound(t *testing.T) {
	sfdisk := require.Tool(t, "sfdisk", "apt-get install fdisk")
	script := "label: dos\nstart=2048, size=4096, type=83\nstart=8192, size=40000, type=5\n" +
		"start=10240, size=2048, type=83\nstart=16384, size=2048, type=8e\nstart=24576, size=4096, type=fd\n"
	path := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(path, make([]byte, 32<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(sfdisk, path)
	command.Stdin = bytes.NewBufferString(script)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	disk, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadLayout(bytes.NewReader(disk), int64(len(disk)), 512)
	var starts []int64
	for _, extent := range got.Partitions {
		starts = append(starts, extent.Offset/512)
	}
	slices.Sort(starts)
	if want := []int64{2048, 8192, 10240, 16384, 24576}; err != nil || !slices.Equal(starts, want) || len(got.Records) != 3 {
		t.Errorf("%v, %v, expected %v; records %v", starts, err, want, fmt.Sprint(got.Records))
	}
}
