package image

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/ingot-dev/ingot/imagebuilder/deb"
	"github.com/ingot-dev/ingot/imagebuilder/kernel"
	"github.com/ingot-dev/ingot/imagebuilder/uki"
)

// stubFiles are the names of systemd's EFI stub by the architecture of the servers. The manager looks for it beside the kernel.
var stubFiles = map[string]string{"amd64": "linuxx64.efi.stub", "arm64": "linuxaa64.efi.stub"}

// readStub returns the stub of the architecture from a file or from the package systemd-boot-efi, which it unpacks to dir;
// nothing without a source.
func readStub(source, dir, architecture string, k *kernel.Kernel) ([]byte, error) {
	if source == "" {
		return nil, nil
	}
	name := stubFiles[architecture]
	path := source
	if strings.HasSuffix(source, ".deb") {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, err
		}
		if err := deb.UnpackFile(source, dir, func(file string) bool { return filepath.Base(file) == name }); err != nil {
			return nil, fmt.Errorf("--efi-stub: %w", err)
		}
		path = filepath.Join(dir, "usr/lib/systemd/boot/efi", name)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--efi-stub %s: expected %s: %w", source, name, err)
	}
	// Whether the stub goes with the kernel is found now, and not when a server does not boot.
	image := bytes.NewReader(k.Image())
	if _, err := uki.New(content, "", io.NewSectionReader(image, 0, image.Size()), io.NewSectionReader(image, 0, 0)); err != nil {
		return nil, fmt.Errorf("--efi-stub %s: %w", source, err)
	}
	return content, nil
}
