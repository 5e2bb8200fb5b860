package image

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/test/require"
)

const systemdStub = "/usr/lib/systemd/boot/efi/linuxx64.efi.stub"

// bootableKernelDir is a directory with a kernel that is an EFI program: systemd's stub with the mark of a Linux kernel.
func bootableKernelDir(t *testing.T) (dir string, stub []byte) {
	t.Helper()
	stub, err := os.ReadFile(systemdStub)
	if err != nil {
		require.Missing(t, systemdStub, "apt-get install systemd-boot-efi")
	}
	dir = kernelDir(t, 0x202, "HdrS")
	image := bytes.Clone(stub)
	copy(image[0x202:], "HdrS")
	writeAll(t, dir, map[string]string{"boot/vmlinuz-6.1": string(image)})
	return dir, stub
}

func TestTheStubOfVirtualMediaLiesBesideTheKernel(t *testing.T) {
	amd64, _ := programs(t)
	kernel, stub := bootableKernelDir(t)
	out := filepath.Join(t.TempDir(), "boot")
	if status, _, stderr := ingot("ramdisk", "--agent", amd64, "--kernel", kernel, "--no-system-ca", "--ca", certificate(t, "a"), "--efi-stub", systemdStub, "-o", out); status != 0 {
		t.Fatal(stderr)
	}
	got, err := os.ReadFile(filepath.Join(out, "linuxx64.efi.stub"))
	if err != nil || !bytes.Equal(got, stub) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestWhatIsNoStubIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	amd64, _ := programs(t)
	kernel, _ := bootableKernelDir(t)
	dir := t.TempDir()
	writeAll(t, dir, map[string]string{"stub": "no program", "package.deb": "no package"})
	for source, want := range map[string]string{"stub": "EFI stub", "package.deb": "--efi-stub", "missing": "expected linuxx64.efi.stub"} {
		out := filepath.Join(t.TempDir(), "boot")
		status, _, stderr := ingot("ramdisk", "--agent", amd64, "--kernel", kernel, "--no-system-ca", "--ca", certificate(t, "a"), "--efi-stub", filepath.Join(dir, source), "-o", out)
		if status == 0 || !strings.Contains(stderr, want) {
			t.Errorf("%s: %d: %s", source, status, stderr)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s: something was written", source)
		}
	}
}
