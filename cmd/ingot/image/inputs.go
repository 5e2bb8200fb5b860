package image

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ingot-dev/ingot/imagebuilder/deb"
	"github.com/ingot-dev/ingot/imagebuilder/kernel"
	"github.com/ingot-dev/ingot/imagebuilder/ramdisk"
)

// openKernelTree returns the tree of the directory, or of the packages together.
func openKernelTree(paths []string, work string, stderr io.Writer) (fs.FS, error) {
	if err := os.MkdirAll(work, 0o755); err != nil {
		return nil, err
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("--kernel: %w", err)
		}
		if info.IsDir() && len(paths) > 1 {
			return nil, fmt.Errorf("--kernel: %s is a directory: expected one directory with all files of the kernel, or packages only", path)
		}
		if info.IsDir() {
			return os.DirFS(path), nil
		}
		if err := refuseRPM(path, "--kernel"); err != nil {
			return nil, err
		}
		fmt.Fprintf(stderr, "unpacking %s\n", path)
		if err := deb.UnpackFile(path, work, isOfKernel); err != nil {
			return nil, err
		}
	}
	return openUnpacked(work)
}

// isOfKernel reports whether the file of a kernel's package is needed.
func isOfKernel(name string) bool {
	for _, part := range []string{"boot/vmlinuz-", "boot/vmlinux-", "boot/Image-", "boot/config-", "lib/modules/", "lib/firmware/"} {
		if strings.HasPrefix(strings.TrimPrefix(name, "usr/"), part) {
			return true
		}
	}
	return false
}

// refuseRPM says what to do with an RPM, which starts with these bytes (the lead in rpm's format).
func refuseRPM(path, flag string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	magic := make([]byte, 4)
	if _, err := io.ReadFull(f, magic); err == nil && bytes.Equal(magic, []byte{0xed, 0xab, 0xee, 0xdb}) {
		return fmt.Errorf("%s: expected a Debian package or a directory, seen the RPM %s: unpack it (and RHEL's kernel-core, kernel-modules-core and kernel-modules) "+
			"by `rpm2cpio PACKAGE.rpm | cpio -idm -D DIR` into one directory, and give %s DIR", flag, path, flag)
	}
	return nil
}

// checkArchitecture refuses an agent that the kernel cannot start.
func checkArchitecture(agent io.ReaderAt, k *kernel.Kernel) error {
	f, err := elf.NewFile(agent)
	if err != nil {
		return err
	}
	want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[k.Architecture]
	if f.Machine != want {
		return fmt.Errorf("kernel %s is for %s, the agent is not (%s): build it with GOARCH=%s, or give a kernel for its architecture",
			k.Release, k.Architecture, f.Machine, k.Architecture)
	}
	return nil
}

// openFirmware returns the trees of the directories and packages. A directory may be lib/firmware itself.
func openFirmware(paths []string, work string) (ramdisk.Firmware, error) {
	var out ramdisk.Firmware
	for i, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("--firmware: %w", err)
		}
		if info.IsDir() {
			out = append(out, os.DirFS(path), below{os.DirFS(path), "lib/firmware/"})
			continue
		}
		if err := refuseRPM(path, "--firmware"); err != nil {
			return nil, err
		}
		dir := filepath.Join(work, fmt.Sprint(i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		if err := deb.UnpackFile(path, dir, func(name string) bool { return strings.Contains(name, "lib/firmware/") }); err != nil {
			return nil, err
		}
		unpacked, err := openUnpacked(dir)
		if err != nil {
			return nil, err
		}
		out = append(out, unpacked)
	}
	return out, nil
}

// openUnpacked returns the tree of an unpacked package. A link in it that leads out is not followed: what it names is a file of this machine, and every
// server would get it.
func openUnpacked(dir string) (fs.FS, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return root.FS(), nil // The root stays open as long as the program runs.
}

// below shows a file system as if it were mounted at prefix.
type below struct {
	fs.FS
	prefix string
}

// Open implements fs.FS.
func (b below) Open(name string) (fs.File, error) {
	rest, found := strings.CutPrefix(name, b.prefix)
	if !found {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return b.FS.Open(rest)
}
