package operator

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"

	"github.com/ingot-dev/ingot/cmd/ingot-manager/settings"
	"github.com/ingot-dev/ingot/controllers/hardware/netboot"
	"github.com/ingot-dev/ingot/imagebuilder/iso"
	"github.com/ingot-dev/ingot/imagebuilder/uki"
)

// mediaRelease describes the agent in the images of boot media, in the format of os-release(5).
const mediaRelease = "ID=ingot\nNAME=Ingot\nPRETTY_NAME=\"Ingot agent\"\n"

// mediaMaker makes boot media of the agent's kernel and initrd.
type mediaMaker struct {
	stub           string
	files          fs.FS
	kernel, initrd string
	// name is that of the program on a CD, which is firmware's default for the architecture.
	name string

	mu sync.Mutex
	// made are the files that template and layout were made of. They are made again when a file has been replaced.
	made     [3]fs.FileInfo
	template *uki.Template
	layout   *iso.Layout
}

// bootFiles returns the files and images that boot servers with an amd64 processor. There are no images without an EFI stub to make them with.
func bootFiles(boot settings.Boot) netboot.BootFiles {
	out := netboot.BootFiles{Kernel: boot.Kernel, Initrd: boot.Initrd}
	stub := boot.EFIStub
	if stub == "" {
		stub = filepath.Join(boot.Files, settings.EFIStubFile)
	}
	if boot.EFIStub != "" || isThere(stub) { // a configured stub is missed by name
		addImages(&out, boot, stub, "BOOTX64.EFI")
	}
	return out
}

// bootFilesARM64 returns those for arm64, which are in a folder of their own; the zero value: there are none.
func bootFilesARM64(boot settings.Boot) netboot.BootFiles {
	kernel := path.Join(settings.FolderARM64, boot.Kernel)
	if !isThere(filepath.Join(boot.Files, kernel)) {
		return netboot.BootFiles{}
	}
	out := netboot.BootFiles{Kernel: kernel, Initrd: path.Join(settings.FolderARM64, boot.Initrd)}
	if stub := filepath.Join(boot.Files, settings.FolderARM64, settings.EFIStubFileARM64); isThere(stub) {
		addImages(&out, boot, stub, "BOOTAA64.EFI")
	}
	return out
}

func isThere(file string) bool {
	_, err := os.Stat(file)
	return !errors.Is(err, fs.ErrNotExist)
}

// addImages adds what makes images of the files: a CD image, on which the program has the name, and the program itself.
func addImages(to *netboot.BootFiles, boot settings.Boot, stub, name string) {
	m := &mediaMaker{stub: stub, files: os.DirFS(boot.Files), kernel: to.Kernel, initrd: to.Initrd, name: name}
	to.Media = m.medium
	to.Program = func(commandLine string) (io.ReadSeeker, error) {
		program, _, err := m.program(commandLine)
		if err != nil {
			return nil, err
		}
		return program, nil
	}
}

// program returns the EFI program that boots the agent with the command line, and the layout of a CD with it. The files are read when it is read.
func (m *mediaMaker) program(commandLine string) (*io.SectionReader, *iso.Layout, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.prepare(); err != nil {
		return nil, nil, fmt.Errorf("look at boot.efiStub and boot.files of the manager's configuration: %w", err)
	}
	program, err := m.template.Image(commandLine)
	if err != nil {
		return nil, nil, err
	}
	return io.NewSectionReader(program, 0, program.Size()), m.layout, nil
}

// medium returns the CD image that boots the agent with the command line.
func (m *mediaMaker) medium(commandLine string) (io.ReadSeeker, error) {
	program, layout, err := m.program(commandLine)
	if err != nil {
		return nil, err
	}
	image, err := layout.Image(program, program.Size())
	if err != nil {
		return nil, err
	}
	return image.Reader(), nil
}

// prepare makes template and layout if the files have changed.
func (m *mediaMaker) prepare() error {
	stub, err := os.Stat(m.stub)
	if err != nil {
		return err
	}
	kernel, err := fs.Stat(m.files, m.kernel)
	if err != nil {
		return err
	}
	initrd, err := fs.Stat(m.files, m.initrd)
	if err != nil {
		return err
	}
	now := [3]fs.FileInfo{stub, kernel, initrd}
	if m.template != nil && isSameFiles(m.made, now) {
		return nil
	}
	program, err := os.ReadFile(m.stub)
	if err != nil {
		return err
	}
	kernelFile, err := openSection(m.files, m.kernel)
	if err != nil {
		return err
	}
	initrdFile, err := openSection(m.files, m.initrd)
	if err != nil {
		return err
	}
	template, err := uki.New(program, mediaRelease, kernelFile, initrdFile)
	if err != nil {
		return err
	}
	layout, err := iso.New(m.name, template.Size())
	if err != nil {
		return err
	}
	m.template, m.layout, m.made = template, layout, now
	return nil
}

func isSameFiles(one, other [3]fs.FileInfo) bool {
	for i := range one {
		if one[i].Size() != other[i].Size() || !one[i].ModTime().Equal(other[i].ModTime()) {
			return false
		}
	}
	return true
}

// openSection opens a file for reading at any offset. It stays open for the images that are made of it; the runtime closes it after the last one.
func openSection(files fs.FS, name string) (*io.SectionReader, error) {
	file, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	source, canReadAt := file.(io.ReaderAt)
	if err != nil || !canReadAt {
		return nil, errors.Join(fmt.Errorf("the file %s cannot be read in parts", name), err, file.Close())
	}
	return io.NewSectionReader(source, 0, info.Size()), nil
}
