//go:build linux

package blockdev

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/require"
)

// loopDevice makes a block device of a file full of ones.
func loopDevice(t *testing.T, size int, options ...string) string {
	t.Helper()
	losetup := require.Tool(t, "losetup", "apt-get install util-linux")
	path := filepath.Join(t.TempDir(), "backing")
	if err := os.WriteFile(path, bytes.Repeat([]byte{0xFF}, size), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(losetup, append(options, "--find", "--show", path)...).CombinedOutput()
	if err != nil {
		require.Missing(t, "losetup as root", "run the tests as root on a machine with loop devices: "+string(out))
	}
	name := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command(losetup, "--detach", name).CombinedOutput(); err != nil {
			t.Errorf("detaching %s: %v: %s", name, err, out)
		}
	})
	return name
}

func TestABlockDeviceTakesDirectAndOddWritesAndClearsRanges(t *testing.T) {
	const size = 16 << 20
	disk, err := OpenDevice(hardware.Disk{Name: loopDevice(t, size)}, 512)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := disk.Close(); err != nil {
			t.Error(err)
		}
	}()
	if disk.Info().SizeBytes != size {
		t.Errorf("size %d", disk.Info().SizeBytes)
	}
	if _, err := OpenDevice(disk.Info(), 512); err == nil {
		t.Error("a disk in use was opened a second time")
	}
	want := bytes.Repeat([]byte{0xFF}, size)
	raw := make([]byte, 1<<20+directAlignment)
	aligned := raw[-int(uintptr(unsafe.Pointer(unsafe.SliceData(raw))))&(directAlignment-1):][:1<<20]
	for i := range aligned {
		aligned[i] = byte(i % 251)
	}
	for _, write := range []struct {
		data []byte
		off  int64
	}{{aligned, 2 << 20}, {aligned[:1000], 2<<20 + 512}, {aligned[1:4097], 4096}, {aligned, 15 << 20}} {
		copy(want[write.off:], write.data)
		if n, err := disk.WriteAt(write.data, write.off); err != nil || n != len(write.data) {
			t.Fatalf("%d bytes at %d: %d, %v", len(write.data), write.off, n, err)
		}
	}
	for _, zero := range [][2]int64{{5 << 20, 4 << 20}, {12<<20 + 512, 512}, {13<<20 + 7, 1001}} {
		clear(want[zero[0] : zero[0]+zero[1]])
		if err := disk.ZeroRange(zero[0], zero[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := disk.Sync(); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, size)
	if _, err := disk.ReadAt(got, 0); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the device does not hold what was written: %v", err)
	}
}
