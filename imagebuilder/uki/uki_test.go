package uki_test

import (
	"bytes"
	"debug/pe"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/imagebuilder/uki"
	"github.com/ingot-dev/ingot/test/require"
)

const stubPath = "/usr/lib/systemd/boot/efi/linuxx64.efi.stub"

const release = "ID=ingot\nPRETTY_NAME=\"Ingot agent\"\n"

// readStub returns systemd's stub. It is an EFI program of the same machine as the kernel, so it stands for the kernel too.
func readStub(t *testing.T) []byte {
	t.Helper()
	stub, err := os.ReadFile(stubPath)
	if err != nil {
		require.Missing(t, stubPath, "apt-get install systemd-boot-efi")
	}
	return stub
}

func section(data []byte) *io.SectionReader {
	return io.NewSectionReader(bytes.NewReader(data), 0, int64(len(data)))
}

func newTemplate(t *testing.T, stub, initrd []byte) *uki.Template {
	t.Helper()
	template, err := uki.New(stub, release, section(stub), section(initrd))
	if err != nil {
		t.Fatal(err)
	}
	return template
}

func readImage(t *testing.T, template *uki.Template, commandLine string) []byte {
	t.Helper()
	image, err := template.Image(commandLine)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(image.Reader())
	if err != nil || int64(len(data)) != template.Size() || image.Size() != template.Size() {
		t.Fatalf("%d bytes, the template says %d: %v", len(data), template.Size(), err)
	}
	return data
}

func TestTheImageHasTheSectionsThatTheStubReads(t *testing.T) {
	stub, initrd := readStub(t), bytes.Repeat([]byte("initrd"), 100_001)
	image := readImage(t, newTemplate(t, stub, initrd), "ingot.url=http://10.0.0.2:8090 ingot.token=a.b")
	file, err := pe.NewFile(bytes.NewReader(image))
	if err != nil {
		t.Fatal(err)
	}
	header := file.OptionalHeader.(*pe.OptionalHeader64)
	for name, want := range map[string]string{
		".osrel": release, ".cmdline": "ingot.url=http://10.0.0.2:8090 ingot.token=a.b", ".initrd": string(initrd), ".linux": string(stub),
	} {
		s := file.Section(name)
		if s == nil {
			t.Errorf("no section %s", name)
			continue
		}
		data, err := s.Data()
		if size := min(int(s.VirtualSize), len(want)); err != nil || string(data[:size]) != want || (name != ".linux" && int(s.VirtualSize) != len(want)) {
			t.Errorf("%s has %d bytes, expected %d: %v", name, s.VirtualSize, len(want), err)
		}
	}
	memory := uint32(0)
	for _, s := range file.Sections {
		if s.VirtualAddress < memory || s.Offset%header.FileAlignment != 0 {
			t.Errorf("section %s is at %#x in memory, behind %#x, and at %#x in the file", s.Name, s.VirtualAddress, memory, s.Offset)
		}
		memory = s.VirtualAddress + s.VirtualSize
	}
	if header.SizeOfImage < memory || header.SizeOfImage%header.SectionAlignment != 0 {
		t.Errorf("SizeOfImage is %#x, the sections end at %#x", header.SizeOfImage, memory)
	}
	// A kernel that starts in place takes more memory than its file, so nothing may follow it.
	last := file.Sections[len(file.Sections)-1]
	kernel, err := pe.NewFile(bytes.NewReader(stub))
	if err != nil {
		t.Fatal(err)
	}
	if want := kernel.OptionalHeader.(*pe.OptionalHeader64).SizeOfImage; last.Name != ".linux" || last.VirtualSize < want {
		t.Errorf("the last section is %s with %#x bytes of memory, the kernel takes %#x", last.Name, last.VirtualSize, want)
	}
}

func TestBinutilsReadTheImage(t *testing.T) {
	objdump := require.Tool(t, "objdump", "apt-get install binutils")
	stub := readStub(t)
	path := filepath.Join(t.TempDir(), "image.efi")
	if err := os.WriteFile(path, readImage(t, newTemplate(t, stub, []byte("initrd")), "quiet"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(objdump, "-s", "-j", ".cmdline", "-j", ".initrd", "-j", ".sbat", path).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "quiet") || !strings.Contains(string(out), "initrd") || !strings.Contains(string(out), "sbat,1,SBAT") {
		t.Errorf("%v\n%s", err, out)
	}
}

// The sizes of two hosts' images are equal, so that what encloses them is laid out once; and only header and command line differ.
func TestImagesOfATemplateDifferInHeaderAndCommandLineOnly(t *testing.T) {
	template := newTemplate(t, readStub(t), bytes.Repeat([]byte("x"), 1<<20))
	one, other := readImage(t, template, "ingot.token=one"), readImage(t, template, "ingot.token=another")
	first, last := -1, 0
	for i := range one {
		if one[i] != other[i] {
			if last = i; first < 0 && i > 4096 {
				first = i
			}
		}
	}
	if first < 0 || last-first > uki.MaxCommandLine {
		t.Errorf("bytes from %d to %d differ", first, last)
	}
	if again := readImage(t, template, "ingot.token=one"); !bytes.Equal(one, again) {
		t.Error("the same command line gives other bytes")
	}
}

func TestWhatCannotBootIsRefused(t *testing.T) {
	stub := readStub(t)
	for name, c := range map[string]struct{ stub, kernel []byte }{
		"no stub":              {[]byte("MZ"), stub},
		"a stub cut off":       {stub[:len(stub)/2], stub},
		"a kernel without EFI": {stub, []byte("not a program")},
		"empty kernel":         {stub, nil},
	} {
		if _, err := uki.New(c.stub, release, section(c.kernel), section([]byte("initrd"))); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	other := bytes.Clone(stub)
	signature := int(other[0x3c]) | int(other[0x3d])<<8
	other[signature+4], other[signature+5] = 0x64, 0xaa // arm64
	if _, err := uki.New(stub, release, section(other), section(nil)); err == nil || !strings.Contains(err.Error(), "machine") {
		t.Errorf("a kernel for another machine: %v", err)
	}
	template := newTemplate(t, stub, nil)
	for name, line := range map[string]string{"too long": strings.Repeat("x", uki.MaxCommandLine+1), "a line end": "a\nb", "a zero": "a\x00b"} {
		if _, err := template.Image(line); err == nil {
			t.Errorf("a command line with %s is accepted", name)
		}
	}
}

func FuzzNew(f *testing.F) {
	if stub, err := os.ReadFile(stubPath); err == nil {
		f.Add(stub)
	}
	f.Add([]byte("MZ"))
	f.Fuzz(func(t *testing.T, stub []byte) {
		template, err := uki.New(stub, release, section(stub), section([]byte("initrd")))
		if err != nil {
			return
		}
		if image, err := template.Image("quiet"); err != nil || image.Size() != template.Size() {
			t.Errorf("%v", err)
		}
	})
}
