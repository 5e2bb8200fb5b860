package kernel

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// Kernel is a kernel with its modules.
type Kernel struct {
	// Release is what uname -r prints.
	Release string
	// ImagePath is the path of the kernel's image in the tree.
	ImagePath string
	// Architecture is that of the image: amd64 or arm64.
	Architecture string
	// Modules are all modules by name.
	Modules map[string]Module
	// Builtin are the modules that are part of the image, by name, with their aliases and firmware as far as the package says them.
	Builtin map[string]Module
	// BuiltinUnknown is set when the package does not say what is part of the image: a module that is needed and is no file counts as part of it.
	BuiltinUnknown bool

	tree  fs.FS
	image []byte
}

// Read reads the kernel of a tree that has lib/modules/RELEASE, or usr/lib/modules/RELEASE, and its image as boot/vmlinuz-RELEASE or vmlinuz
// beside the modules. release may be "" when there is only one.
func Read(tree fs.FS, release string) (*Kernel, error) {
	below, release, err := findModules(tree, release)
	if err != nil {
		return nil, err
	}
	k := &Kernel{Release: release, Modules: map[string]Module{}, Builtin: map[string]Module{}, tree: tree}
	if k.ImagePath, err = findImage(tree, below, release); err != nil {
		return nil, err
	}
	if err := errors.Join(k.readImage(), checkConfig(tree, below, release), k.readBuiltin(below)); err != nil {
		return nil, err
	}
	err = fs.WalkDir(tree, path.Clean(below), func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || !isModule(file) {
			return err
		}
		content, err := readModule(tree, file)
		if err != nil {
			return err
		}
		m, err := parseModule(file, below, content)
		if err != nil {
			return err
		}
		k.addModule(m)
		return nil
	})
	if err == nil && len(k.Modules) == 0 {
		err = fmt.Errorf("%s has no modules: expected the kernel of a distribution with its modules", below)
	}
	return k, err
}

// findModules returns the directory of the modules with a slash at the end, and the release.
func findModules(tree fs.FS, release string) (dir, found string, err error) {
	var releases []string
	for _, parent := range []string{"lib/modules", "usr/lib/modules"} {
		entries, err := fs.ReadDir(tree, parent)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", "", err
		}
		for _, entry := range entries {
			if release == "" || entry.Name() == release {
				dir, releases = parent+"/"+entry.Name()+"/", append(releases, entry.Name())
			}
		}
		if len(releases) > 0 {
			break // A merged /usr shows the same directory twice.
		}
	}
	switch len(releases) {
	case 0:
		return "", "", fmt.Errorf("no kernel %s: expected lib/modules/RELEASE and boot/vmlinuz-RELEASE", release)
	case 1:
		return dir, releases[0], nil
	}
	return "", "", fmt.Errorf("several kernels, name one with --release: %s", strings.Join(releases, ", "))
}

// findImage returns the path of the kernel's image.
func findImage(tree fs.FS, below, release string) (string, error) {
	candidates := []string{"boot/vmlinuz-" + release, below + "vmlinuz", "boot/vmlinux-" + release, "boot/Image-" + release}
	for _, name := range candidates {
		if info, err := fs.Stat(tree, name); err == nil && info.Mode().IsRegular() {
			return name, nil
		}
	}
	return "", fmt.Errorf("kernel %s has no image: expected one of %s", release, strings.Join(candidates, ", "))
}

// searchOrder are the directories below lib/modules/RELEASE in the order in which a module of the same name wins: depmod.d(5) has updates, where
// DKMS and vendors put newer drivers, before what the kernel came with; RHEL has extra between them.
var searchOrder = []string{"updates", "extra", "kernel"}

// addModule adds the module, unless a directory that comes first has one of this name.
func (k *Kernel) addModule(m Module) {
	old, found := k.Modules[m.Name]
	if found && searchRank(old) < searchRank(m) {
		old, m = m, old
	}
	if found {
		m.Replaces = cmp.Or(old.Replaces, old.Path)
	}
	k.Modules[m.Name] = m
}

// searchRank returns the place of the module's directory in the search, directories that are not named last.
func searchRank(m Module) int {
	top, _, _ := strings.Cut(m.Path, "/")
	if i := slices.Index(searchOrder, top); i >= 0 {
		return i
	}
	return len(searchOrder)
}

// checkConfig refuses a kernel that cannot unpack the ramdisk, where the package has the kernel's configuration.
func checkConfig(tree fs.FS, below, release string) error {
	for _, name := range []string{"boot/config-" + release, below + "config"} {
		content, err := fs.ReadFile(tree, name)
		if err == nil && !slices.Contains(strings.Split(string(content), "\n"), "CONFIG_RD_ZSTD=y") {
			return fmt.Errorf("kernel %s cannot unpack a ramdisk that is compressed with zstd: expected CONFIG_RD_ZSTD=y in %s; "+
				"use a newer kernel (Debian 12, Ubuntu 22.04 and RHEL 9 have it)", release, name)
		}
	}
	return nil
}

// readBuiltin reads what is part of the kernel's image.
func (k *Kernel) readBuiltin(below string) error {
	content, err := fs.ReadFile(k.tree, below+"modules.builtin")
	if errors.Is(err, fs.ErrNotExist) {
		k.BuiltinUnknown = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("what is built into the kernel: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		file := strings.TrimSpace(line)
		name := NormalizeName(strings.TrimSuffix(path.Base(file), ".ko"))
		k.Builtin[name] = Module{Name: name, Path: file}
	}
	info, err := fs.ReadFile(k.tree, below+"modules.builtin.modinfo")
	if errors.Is(err, fs.ErrNotExist) {
		return nil // Kernels before 5.2 do not have it.
	}
	// Entries are NAME.KEY=VALUE, ended by a zero byte.
	for entry := range strings.SplitSeq(string(info), "\x00") {
		key, value, _ := strings.Cut(entry, "=")
		name, key, _ := strings.Cut(key, ".")
		if m, found := k.Builtin[NormalizeName(name)]; found {
			m.addInfo(key, value)
			k.Builtin[m.Name] = m
		}
	}
	return err
}

// Content returns the decompressed content of the module. A signature at its end is kept.
func (k *Kernel) Content(m Module) ([]byte, error) { return readModule(k.tree, m.file) }

// Serving returns the names of the modules, in order, that serve the alias: the name of a module, or what a device shows as its modalias.
func (k *Kernel) Serving(alias string) []string {
	if name := NormalizeName(alias); k.Modules[name].Name != "" {
		return []string{name}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(k.Modules)) {
		if slices.ContainsFunc(k.Modules[name].Aliases, func(pattern string) bool { return isMatch(pattern, alias) }) {
			out = append(out, name)
		}
	}
	return out
}

// isMatch compares a modalias with a pattern as fnmatch(3) does. A pattern that is malformed matches nothing.
func isMatch(pattern, alias string) bool {
	pattern, alias = NormalizeAlias(pattern), NormalizeAlias(alias)
	if !strings.ContainsAny(pattern, "*?[") {
		return pattern == alias
	}
	ok, err := path.Match(pattern, alias)
	return ok && err == nil
}

// IsServedByImage reports whether a driver in the kernel's image serves the alias.
func (k *Kernel) IsServedByImage(alias string) bool {
	for _, m := range k.Builtin {
		if slices.ContainsFunc(m.Aliases, func(pattern string) bool { return isMatch(pattern, alias) }) {
			return true
		}
	}
	return false
}

// Closure returns the names of the modules with all that they depend on, in order. It fails when a module depends on one that is neither there
// nor part of the kernel.
func (k *Kernel) Closure(names []string) ([]string, error) {
	seen := map[string]bool{}
	queue := slices.Clone(names)
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if seen[name] || k.Builtin[name].Name != "" {
			continue
		}
		m, found := k.Modules[name]
		if !found && k.BuiltinUnknown {
			continue
		}
		if !found {
			return nil, fmt.Errorf("module %s is needed and neither a file nor part of kernel %s: "+
				"give every package that the kernel is split into (Ubuntu: linux-image, linux-modules and linux-modules-extra)", name, k.Release)
		}
		seen[name] = true
		queue = append(queue, m.Depends...)
		for _, alias := range slices.Concat(m.Before, m.After) {
			queue = append(queue, k.Serving(alias)...)
		}
	}
	return slices.Sorted(maps.Keys(seen)), nil
}

// Needed returns the modules that the module depends on, directly or not, each before what it needs itself: the order of modules.dep.
func (k *Kernel) Needed(name string) []Module {
	var out []Module
	seen := map[string]bool{name: true}
	var visit func(name string)
	visit = func(name string) {
		for _, needed := range k.Modules[name].Depends {
			if m := k.Modules[needed]; m.Name != "" && !seen[needed] {
				seen[needed] = true
				visit(needed)
				out = append(out, m)
			}
		}
	}
	visit(name)
	slices.Reverse(out)
	return out
}
