package blockdev

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/controllers/hardware"
	"github.com/ingot-dev/ingot/test/require"
)

func TestAWriteProtectionOfTheKernelIsLifted(t *testing.T) {
	name, sysBlock := loopDevice(t, 1<<20), t.TempDir()
	setRO := require.Tool(t, "blockdev", "apt-get install util-linux")
	if out, err := exec.Command(setRO, "--setro", name).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	force := filepath.Join(sysBlock, filepath.Base(name), "force_ro")
	if err := os.MkdirAll(filepath.Dir(force), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(force, []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := allowWrites(name, sysBlock); err != nil {
		t.Fatal(err)
	}
	if value, err := os.ReadFile(force); err != nil || string(value) != "0" {
		t.Errorf("force_ro is %q, %v", value, err)
	}
	disk, err := OpenDevice(hardware.Disk{Name: name}, 512)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(disk.ZeroRange(0, 1<<20), disk.Sync(), disk.Close()); err != nil {
		t.Errorf("the device cannot be written: %v", err)
	}
}

func TestADeviceThatStaysReadOnlyIsReported(t *testing.T) {
	if err := AllowWrites(loopDevice(t, 1<<20, "--read-only")); !errors.Is(err, errReadOnly) {
		t.Errorf("a device that is read-only by itself: %v", err)
	}
	missing := filepath.Join(t.TempDir(), "sda")
	if err := AllowWrites(missing); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("a device that is not there: %v", err)
	}
	if err := os.WriteFile(missing, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := AllowWrites(missing); err == nil {
		t.Error("a file counts as a device that can be written")
	}
}
