package iso_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/imagebuilder/iso"
	"github.com/ingot-dev/ingot/test/require"
)

// partitionOffset is where the partition begins in an image.
const partitionOffset = 23 * 2048

func writeImage(t *testing.T, program []byte) string {
	t.Helper()
	layout, err := iso.New("BOOTX64.EFI", int64(len(program)))
	if err != nil {
		t.Fatal(err)
	}
	image, err := layout.Image(bytes.NewReader(program), int64(len(program)))
	if err != nil {
		t.Fatal(err)
	}
	if image.Size() != layout.Size() || image.Size()%2048 != 0 {
		t.Errorf("the image has %d bytes, its layout says %d", image.Size(), layout.Size())
	}
	path := filepath.Join(t.TempDir(), "boot.iso")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if n, err := io.Copy(out, image.Reader()); err != nil || n != image.Size() {
		t.Fatalf("%d bytes: %v", n, err)
	}
	return path
}

func output(t *testing.T, program string, arguments ...string) string {
	t.Helper()
	out, err := exec.Command(program, arguments...).CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", filepath.Base(program), err, out)
	}
	return string(out)
}

func TestOtherProgramsReadTheImage(t *testing.T) {
	isoinfo := require.Tool(t, "isoinfo", "apt-get install genisoimage")
	fsck := require.Tool(t, "fsck.vfat", "apt-get install dosfstools")
	mtype := require.Tool(t, "mtype", "apt-get install mtools")
	for name, size := range map[string]int{"small": 1000, "a cluster": 2048, "larger than El Torito can say": 40<<20 + 5, "larger clusters": 150 << 20} {
		t.Run(name, func(t *testing.T) {
			program := bytes.Repeat([]byte("MZ kernel and initrd\n"), size/21+1)[:size]
			path := writeImage(t, program)
			for _, want := range []string{"Volume id: INGOT", "Bootoff 17 23"} {
				if got := output(t, isoinfo, "-d", "-i", path); !strings.Contains(got, want) {
					t.Errorf("isoinfo does not say %q:\n%s", want, got)
				}
			}
			if got := output(t, isoinfo, "-f", "-i", path); !strings.Contains(got, "/EFI.IMG;1") {
				t.Errorf("isoinfo lists %s", got)
			}
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			partition := filepath.Join(t.TempDir(), "esp")
			if err := os.WriteFile(partition, whole[partitionOffset:], 0o600); err != nil {
				t.Fatal(err)
			}
			output(t, fsck, "-n", "-v", partition)
			read, err := exec.Command(mtype, "-i", partition, "::EFI/BOOT/BOOTX64.EFI").Output()
			if err != nil || !bytes.Equal(read, program) {
				t.Errorf("mtype reads %d of %d bytes: %v", len(read), len(program), err)
			}
		})
	}
}

func TestTheSameProgramGivesTheSameBytes(t *testing.T) {
	first, _ := os.ReadFile(writeImage(t, []byte("MZ")))
	second, _ := os.ReadFile(writeImage(t, []byte("MZ")))
	if len(first) == 0 || !bytes.Equal(first, second) {
		t.Error("two images differ")
	}
}

func TestWhatDoesNotFitIsRefused(t *testing.T) {
	if _, err := iso.New("BOOTX64.EFI", 3<<30); err == nil {
		t.Error("a program of 3 GiB is accepted")
	}
	if _, err := iso.New("bootx64.efi", 1); err == nil {
		t.Error("a name in lower case is accepted")
	}
	layout, err := iso.New("BOOTX64.EFI", 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := layout.Image(strings.NewReader("MZ1"), 3); err == nil {
		t.Error("a program of another size is accepted")
	}
}
