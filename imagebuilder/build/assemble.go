package build

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/ingot-dev/ingot/imagebuilder/recipe"
	"github.com/ingot-dev/ingot/imagebuilder/rootfs"
)

// leftovers are patterns of files that packages leave behind and that differ from build to build, or must differ from node to node.
var leftovers = []string{
	"etc/ssh/ssh_host_*", "etc/hostname", "etc/resolv.conf", "var/lib/dbus/machine-id", "var/lib/systemd/random-seed", "var/lib/systemd/credential.secret",
	"var/lib/apt/lists/*", "var/cache/apt/*", "var/cache/debconf/*-old", "var/cache/ldconfig/*", "var/log/*.log", "var/log/apt/*", "var/lib/dpkg/*-old",
	"tmp/*", "var/tmp/*", "run/*", "dev/*", "etc/*-", "var/lib/cloud/*",
}

// assemble puts the tree together from the archive, the files and the programs.
func (b *builder) assemble(archive *archiveFile) error {
	var err error
	if archive.file, err = os.Open(b.archivePath()); err != nil {
		return err
	}
	if b.tree, err = rootfs.Read(archive.file); err != nil {
		return err
	}
	for _, pattern := range leftovers {
		for _, name := range b.tree.Glob(pattern) {
			b.tree.Remove(name)
		}
	}
	for _, part := range []func() error{b.addIdentity, b.addSources, b.addFiles, b.addPrograms, b.addUnits, b.addLoader, b.addManifest, b.datePython} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// addIdentity leaves the files by which a node gets an identity of its own at its first boot (machine-id(5)).
func (b *builder) addIdentity() error {
	if err := b.addText("etc/machine-id", nil); err != nil {
		return err
	}
	if _, err := b.tree.Stat("usr/lib/systemd/systemd-resolved"); err != nil {
		return nil
	}
	return b.tree.Add("etc/resolv.conf", rootfs.File{Mode: fs.ModeSymlink | 0o777, Target: "../run/systemd/resolve/stub-resolv.conf"})
}

func (b *builder) addText(name string, content []byte) error {
	return b.tree.Add(name, rootfs.File{Mode: 0o644, Content: content})
}

// addSources lets the node's apt trust the same keys for the same repositories.
func (b *builder) addSources() error {
	var list strings.Builder
	for i, r := range b.Recipe.Debian.Repositories {
		key, err := b.readKey(r)
		if err != nil {
			return err
		}
		file := recipe.KeyPath(i, isArmored(key))
		if err := b.addText(strings.TrimPrefix(file, "/"), key); err != nil {
			return err
		}
		list.WriteString(r.SourcesLine(file) + "\n")
	}
	return b.addText("etc/apt/sources.list", []byte(list.String()))
}

// addFiles adds the files of the recipe.
func (b *builder) addFiles() error {
	users, err := b.tree.ReadOwners("etc/passwd")
	if err != nil {
		return err
	}
	groups, err := b.tree.ReadOwners("etc/group")
	if err != nil {
		return err
	}
	for i, f := range b.Recipe.Files {
		added, err := b.newFile(f)
		if err == nil && f.Owner != "" {
			user, group, _ := strings.Cut(f.Owner, ":")
			if added.UID, err = ownerNumber(users, user); err == nil {
				added.GID, err = ownerNumber(groups, group)
			}
		}
		if err == nil {
			err = b.tree.Add(strings.TrimPrefix(f.Path, "/"), added)
		}
		if err == nil {
			err = b.listFile(f.Path, added)
		}
		if err != nil {
			return fmt.Errorf("files[%d]: %s: %w", i, f.Path, err)
		}
	}
	return nil
}

// newFile returns the file without its owner.
func (b *builder) newFile(f recipe.File) (rootfs.File, error) {
	mode, err := f.Permissions()
	if err != nil {
		return rootfs.File{}, err
	}
	out := rootfs.File{Mode: fileMode(mode)}
	switch {
	case f.Content != nil:
		out.Content = []byte(*f.Content)
	case f.From != "":
		out.Source = b.path(f.From)
	case f.Link != "":
		out.Mode, out.Target = fs.ModeSymlink|0o777, f.Link
	case f.Directory:
		out.Mode |= fs.ModeDir
	}
	return out, nil
}

// fileMode returns the permissions as package fs has them.
func fileMode(mode uint32) fs.FileMode {
	out := fs.FileMode(mode & 0o777)
	for bit, flag := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if mode&bit != 0 {
			out |= flag
		}
	}
	return out
}

func ownerNumber(known map[string]int, name string) (int, error) {
	if n, ok := known[name]; ok {
		return n, nil
	}
	n, err := strconv.ParseUint(name, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("the image has no user or group %q", name)
	}
	return int(n), nil
}

// addPrograms adds the programs that were built.
func (b *builder) addPrograms() error {
	for i, p := range b.Recipe.Programs {
		if err := b.tree.Add(strings.TrimPrefix(p.Path, "/"), rootfs.File{Mode: 0o755, Source: b.programPath(i)}); err != nil {
			return fmt.Errorf("programs[%d]: %w", i, err)
		}
	}
	return nil
}

// addLoader copies the boot loader to the EFI system partition.
func (b *builder) addLoader() error {
	kernels := b.tree.Glob("boot/vmlinuz-*")
	if len(kernels) != 1 {
		return fmt.Errorf("expected one kernel, seen %d (%s): correct kernel.package", len(kernels), strings.Join(kernels, ", "))
	}
	b.release = strings.TrimPrefix(path.Base(kernels[0]), "vmlinuz-")
	if _, err := b.tree.Stat("boot/initrd.img-" + b.release); err != nil {
		return fmt.Errorf("the kernel has no initial ramdisk: %w", err)
	}
	l := recipe.Loaders[b.Recipe.Architecture]
	for to, from := range map[string]string{l.ShimName: l.Shim, l.MenuName: l.Menu, l.GRUBName: l.GRUB} {
		content, err := b.tree.ReadFile(from)
		if err != nil {
			return err
		}
		if err := b.addText("boot/efi/"+to, content); err != nil {
			return err
		}
	}
	return b.tree.Add("boot/efi/"+path.Dir(recipe.GRUBConfigPath), rootfs.File{Mode: fs.ModeDir | 0o755})
}

// addManifest writes what is found in the image.
func (b *builder) addManifest() error {
	status, err := b.tree.ReadFile("var/lib/dpkg/status")
	if err != nil {
		return err
	}
	b.contents.Packages = recipe.ParsePackages(status)
	software, err := b.Recipe.FindSoftware(b.contents.Packages)
	if err != nil {
		return err
	}
	content, err := recipe.Manifest{Architecture: b.Recipe.Architecture, KernelArguments: b.Recipe.Kernel.Arguments, Software: software}.JSON()
	if err != nil {
		return err
	}
	if b.contents.Programs, err = b.findPrograms(); err != nil {
		return err
	}
	return b.addText(recipe.ManifestPath, content)
}

// datePython writes the time of the image into Python's compiled files (PEP 552), as the time of their sources. Without it: Python sees that the
// sources have another time, and every start of cloud-init compiles all of it again.
func (b *builder) datePython() error {
	return fs.WalkDir(b.tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || path.Ext(name) != ".pyc" {
			return err
		}
		content, err := b.tree.ReadFile(name)
		if err != nil || len(content) < 16 || binary.LittleEndian.Uint32(content[4:]) != 0 {
			return err
		}
		binary.LittleEndian.PutUint32(content[8:], b.Epoch)
		return b.addText(name, content)
	})
}
