package operator

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
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
	media := bootFiles(boot).Media
	content := readMedium(t, media, "ingot.token=one")
	for _, want := range []string{"ingot.token=one", "initrd-one", "PRETTY_NAME=\"Ingot agent\""} {
		if !bytes.Contains(content, []byte(want)) {
			t.Errorf("the medium has no %q", want)
		}
	}
	program := readMedium(t, bootFiles(boot).Program, "ingot.token=one")
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
	if bootFiles(boot).Media != nil {
		t.Error("media without a stub")
	}
	// A stub that the configuration names is missed by name.
	boot.EFIStub = filepath.Join(boot.Files, "other.stub")
	media := bootFiles(boot).Media
	if media == nil {
		t.Fatal("the configured stub is ignored")
	}
	if _, err := media(""); err == nil {
		t.Error("a medium without a stub")
	}
}

func TestFilesOfARM64AreInAFolderOfTheirOwn(t *testing.T) {
	boot := bootFolder(t)
	if files := bootFilesARM64(boot); files.Kernel != "" || files.Program != nil {
		t.Errorf("without the folder: %+v", files)
	}
	if err := os.Mkdir(filepath.Join(boot.Files, settings.FolderARM64), 0o755); err != nil {
		t.Fatal(err)
	}
	stub, err := os.ReadFile(filepath.Join(boot.Files, settings.EFIStubFile))
	if err != nil {
		t.Fatal(err)
	}
	// What makes a program asks the stub for its machine, and compares the kernel's with it.
	const offsetSignature, machineARM64 = 0x3c, 0xaa64
	binary.LittleEndian.PutUint16(stub[binary.LittleEndian.Uint32(stub[offsetSignature:])+4:], machineARM64)
	for name, content := range map[string][]byte{boot.Kernel: stub, boot.Initrd: []byte("initrd-arm64")} {
		if err := os.WriteFile(filepath.Join(boot.Files, settings.FolderARM64, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if files := bootFilesARM64(boot); files.Kernel != "arm64/"+boot.Kernel || files.Initrd != "arm64/"+boot.Initrd || files.Program != nil || files.Media != nil {
		t.Errorf("without a stub: %+v", files)
	}
	boot.EFIStub = "of-amd64" // it is no stub of arm64
	if files := bootFilesARM64(boot); files.Program != nil {
		t.Error("the stub of amd64 stands for that of arm64")
	}
	boot.EFIStub = ""
	if err := os.WriteFile(filepath.Join(boot.Files, settings.FolderARM64, settings.EFIStubFileARM64), stub, 0o600); err != nil {
		t.Fatal(err)
	}
	files := bootFilesARM64(boot)
	program, err := pe.NewFile(bytes.NewReader(readMedium(t, files.Program, "ingot.token=one")))
	if err != nil || program.Machine != machineARM64 {
		t.Fatalf("%+v, %v", program, err)
	}
	for name, want := range map[string]string{".cmdline": "ingot.token=one", ".initrd": "initrd-arm64"} {
		if content, err := program.Section(name).Data(); err != nil || !bytes.HasPrefix(content, []byte(want)) {
			t.Errorf("section %s: %v", name, err)
		}
	}
	if medium := readMedium(t, files.Media, "ingot.token=one"); !bytes.Contains(medium, []byte("initrd-arm64")) || !bytes.Contains(medium, []byte("BOOTAA64EFI")) {
		t.Error("the medium has not the program of arm64 by its name")
	}
}
