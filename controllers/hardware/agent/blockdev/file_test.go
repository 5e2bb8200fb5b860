package blockdev

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
)

func TestAFileStandsForADiskOfFixedSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk")
	disk, err := OpenFile(path, hardware.Disk{Name: path, SizeBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := disk.Close(); err != nil {
			t.Error(err)
		}
	})
	full := bytes.Repeat([]byte{0xFF}, 8<<20)
	if _, err := disk.WriteAt(full, 0); err != nil {
		t.Fatal(err)
	}
	for _, past := range []func() error{
		func() error { _, err := disk.WriteAt([]byte{1}, 8<<20); return err },
		func() error { return disk.ZeroRange(8<<20-1, 2) },
	} {
		if err := past(); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("past the end: %v", err)
		}
	}
	if err := disk.ZeroRange(1<<20+100, 3<<20); err != nil {
		t.Fatal(err)
	}
	clear(full[1<<20+100 : 4<<20+100])
	got := make([]byte, 8<<20)
	if _, err := disk.ReadAt(got, 0); err != nil || !bytes.Equal(got, full) {
		t.Errorf("the range is not zero alone: %v", err)
	}
	if err := writeZeros(disk, 0, 8<<20); err != nil {
		t.Fatal(err)
	}
	if _, err := disk.ReadAt(got, 0); err != nil || !bytes.Equal(got, make([]byte, 8<<20)) {
		t.Errorf("written zeros: %v", err)
	}
}
