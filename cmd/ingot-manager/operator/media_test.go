package operator

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
	"github.com/ingot-dev/ingot/test/require"
)

// bootFolder has an EFI program in place of the kernel, a ramdisk, and the stub.
func bootFolder(t *testing.T) settings.Boot {
	t.Helper()
	const installed = "/usr/lib/systemd/boot/efi/linuxx64.efi.stub"
	stub, err := os.ReadFile(installed)
	if err != nil {
		require.Missing(t, installed, "apt-get install systemd-boot-efi")
	}
	boot := settings.Default().Boot
	boot.Files = t.TempDir()
	for name, content := range map[string][]byte{boot.Kernel: stub, boot.Initrd: []byte("initrd-one"), settings.EFIStubFile: stub} {
		if err := os.WriteFile(filepath.Join(boot.Files, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return boot
}

// readMedium returns the medium of the command line.
func readMedium(t *testing.T, media func(string) (io.ReadSeeker, error), commandLine string) []byte {
	t.Helper()
	image, err := media(commandLine)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(image)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestMediaAreMadeOfTheFilesBesideTheKernel(t *testing.T) {
	boot := bootFolder(t)
	media := newBootImages(boot).medium
	content := readMedium(t, media, "ingot.token=one")
	for _, want := range []string{"ingot.token=one", "initrd-one", "PRETTY_NAME=\"Ingot agent\""} {
		if !bytes.Contains(content, []byte(want)) {
			t.Errorf("the medium has no %q", want)
		}
	}
	program := readMedium(t, newBootImages(boot).program, "ingot.token=one")
	if !bytes.HasPrefix(program, []byte("MZ")) || !bytes.Contains(content, program) {
		t.Error("the program is none of EFI, or not the one that is on the medium")
	}
	// A new ramdisk under the same name is in the next medium, also for a manager that runs.
	fresh := filepath.Join(boot.Files, boot.Initrd)
	if err := os.WriteFile(fresh, []byte("initrd-two"), 0o600); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(fresh, later, later); err != nil {
		t.Fatal(err)
	}
	if content = readMedium(t, media, "ingot.token=two"); !bytes.Contains(content, []byte("initrd-two")) || bytes.Contains(content, []byte("ingot.token=one")) {
		t.Error("the medium is of the earlier ramdisk, or has the token of another boot")
	}
}

func TestWithoutAStubThereAreNoMedia(t *testing.T) {
	boot := settings.Default().Boot
	boot.Files = t.TempDir()
	if newBootImages(boot).medium != nil {
		t.Error("media without a stub")
	}
	// A stub that the configuration names is missed by name.
	boot.EFIStub = filepath.Join(boot.Files, "other.stub")
	media := newBootImages(boot).medium
	if media == nil {
		t.Fatal("the configured stub is ignored")
	}
	if _, err := media(""); err == nil {
		t.Error("a medium without a stub")
	}
}
