package kernel

import (
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
	// Modules are all modules by name.
	Modules map[string]Module

	tree    fs.FS
	builtin map[string]bool
}

// Read reads the kernel of a tree that has lib/modules/RELEASE, or usr/lib/modules/RELEASE, and its image as boot/vmlinuz-RELEASE or vmlinuz
// beside the modules. release may be "" when there is only one.
func Read(tree fs.FS, release string) (*Kernel, error) {
	below, release, err := findModules(tree, release)
	if err != nil {
		return nil, err
	}
	k := &Kernel{Release: release, Modules: map[string]Module{}, builtin: map[string]bool{}, tree: tree}
	if k.ImagePath, err = findImage(tree, below, release); err != nil {
		return nil, err
	}
	if err := k.readBuiltin(below); err != nil {
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
		k.Modules[m.Name] = m
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

// readBuiltin reads what is part of the kernel's image.
func (k *Kernel) readBuiltin(below string) error {
	content, err := fs.ReadFile(k.tree, below+"modules.builtin")
	if err != nil {
		return fmt.Errorf("what is built into the kernel: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		k.builtin[NormalizeName(strings.TrimSuffix(path.Base(strings.TrimSpace(line)), ".ko"))] = true
	}
	return nil
}

// Image opens the image of the kernel.
func (k *Kernel) Image() (fs.File, error) { return k.tree.Open(k.ImagePath) }

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
	if !strings.ContainsAny(pattern, "*?[") {
		return pattern == alias
	}
	ok, err := path.Match(pattern, alias)
	return ok && err == nil
}

// Closure returns the names of the modules with all that they depend on, in order. It fails when a module depends on one that is neither there
// nor part of the kernel.
func (k *Kernel) Closure(names []string) ([]string, error) {
	seen := map[string]bool{}
	queue := slices.Clone(names)
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if seen[name] || k.builtin[name] {
			continue
		}
		m, found := k.Modules[name]
		if !found {
			return nil, fmt.Errorf("module %s is needed and neither a file nor part of kernel %s", name, k.Release)
		}
		seen[name] = true
		queue = append(queue, m.Depends...)
		for _, alias := range slices.Concat(m.Before, m.After) {
			queue = append(queue, k.Serving(alias)...)
		}
	}
	return slices.Sorted(maps.Keys(seen)), nil
}
