package fat32_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/diskfs/go-diskfs/backend/file"
	readfat "github.com/diskfs/go-diskfs/filesystem/fat32"
	"github.com/ingot-dev/ingot/imagebuilder/fat32"
	"github.com/ingot-dev/ingot/test/require"
)

func regular(name string, content []byte) *fat32.Node {
	return &fat32.Node{Name: name, Size: int64(len(content)), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}}
}

func tree() *fat32.Node {
	crowd := &fat32.Node{Name: "crowd of files", Dir: true}
	for i := range 300 {
		crowd.Entries = append(crowd.Entries, regular(fmt.Sprintf("kernel-6.12.%d-amd64", i), []byte(fmt.Sprint(i))))
	}
	boot := &fat32.Node{Name: "BOOT", Dir: true, Entries: []*fat32.Node{regular("BOOTX64.EFI", bytes.Repeat([]byte("grub"), 300000)), regular("empty", nil)}}
	return &fat32.Node{Dir: true, Entries: []*fat32.Node{
		{Name: "EFI", Dir: true, Entries: []*fat32.Node{boot, {Name: "debian", Dir: true, Entries: []*fat32.Node{regular("grub.cfg", []byte("set x"))}}}},
		crowd,
		regular("größe.txt", []byte("umlaut")),
	}}
}

func write(t *testing.T, size int64, root *fat32.Node) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "esp")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	p := fat32.Params{Label: "ESP", VolumeID: 0x12345678, Time: time.Unix(1700000000, 0), HiddenSectors: 2048}
	if err := fat32.Write(f, size, root, p); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheTreeIsSoundAndReadsBack(t *testing.T) {
	var paths []string
	for _, size := range []int64{fat32.Size(tree()), 512 << 20} {
		path := write(t, size, tree())
		paths = append(paths, path)
		b, err := file.OpenFromPath(path, true)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		fs, err := readfat.Read(b, size, 0, 512)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{
			"EFI/BOOT/BOOTX64.EFI": strings.Repeat("grub", 300000), "EFI/debian/grub.cfg": "set x",
			"crowd of files/kernel-6.12.299-amd64": "299",
		} {
			got, err := fs.ReadFile(name)
			if err != nil || string(got) != want {
				t.Errorf("%s: got %d bytes, %v; want %d", name, len(got), err, len(want))
			}
		}
	}
	for _, path := range paths {
		check(t, path)
	}
}

// check runs fsck.vfat. Without it the test ends as skipped, so it comes last.
func check(t *testing.T, path string) {
	t.Helper()
	tool := require.Tool(t, "fsck.vfat", "apt-get install dosfstools")
	if out, err := exec.Command(tool, "-nv", path).CombinedOutput(); err != nil {
		t.Errorf("fsck.vfat: %v\n%s", err, out)
	}
}

func TestTheSameTreeGivesTheSameBytes(t *testing.T) {
	var sums [2][32]byte
	for i := range sums {
		b, err := os.ReadFile(write(t, fat32.MinSize, tree()))
		if err != nil {
			t.Fatal(err)
		}
		sums[i] = sha256.Sum256(b)
	}
	if sums[0] != sums[1] {
		t.Errorf("two runs gave %x and %x", sums[0], sums[1])
	}
}

func TestWhatFATCannotHoldIsNamed(t *testing.T) {
	for want, entries := range map[string][]*fat32.Node{
		"rename one":       {regular("Grub", nil), regular("grub", nil)},
		`no ':'`:           {regular("a:b", nil)},
		"dot or space":     {regular("a.", nil)},
		"larger size":      {{Name: "x", Size: 100 << 20, Open: nil}},
		"more than FAT32":  {{Name: "x", Size: 1 << 32, Open: nil}},
		"1 to 255":         {regular(strings.Repeat("x", 256), nil)},
		"expected 5 bytes": {{Name: "x", Size: 5, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("abc")), nil }}},
	} {
		f, err := os.Create(filepath.Join(t.TempDir(), "esp"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		err = fat32.Write(f, fat32.MinSize, &fat32.Node{Dir: true, Entries: entries}, fat32.Params{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
	}
}
