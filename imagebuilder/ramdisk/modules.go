package ramdisk

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/imagebuilder/deb"
	"github.com/ingot-dev/ingot/imagebuilder/kernel"
)

// Firmware are trees with a directory lib/firmware or usr/lib/firmware, in the order in which they are searched.
type Firmware []fs.FS

// maxFirmware limits the size of a firmware file; the largest of network cards have 3 MiB.
const maxFirmware = 64 << 20

// find returns the files with the name, which may be a pattern as MODULE_FIRMWARE has them, by their own name. They are decompressed, as the agent's
// kernel may be built without decompression. The first tree that has a name wins. A file of the kernel's release, or an update, goes first, as the
// kernel itself looks for them (fw_path in drivers/base/firmware_loader/main.c).
func (f Firmware) find(pattern, release string) (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, tree := range f {
		for _, parent := range []string{"lib/firmware", "usr/lib/firmware"} {
			for _, place := range []string{"updates/" + release, "updates", release, ""} {
				if err := findIn(tree, path.Join(parent, place), pattern, out); err != nil {
					return nil, err
				}
			}
		}
	}
	return out, nil
}

// findIn adds the files of the directory that the pattern matches and that are not there yet.
func findIn(tree fs.FS, dir, pattern string, out map[string][]byte) error {
	for _, suffix := range []string{"", ".zst", ".xz"} {
		files := []string{path.Join(dir, pattern) + suffix}
		if strings.ContainsAny(pattern, "*?[") {
			var err error
			if files, err = fs.Glob(tree, files[0]); err != nil {
				return fmt.Errorf("firmware %q: %w", pattern, err)
			}
		}
		for _, file := range files {
			name := strings.TrimSuffix(strings.TrimPrefix(file, dir+"/"), suffix)
			if suffix == "" && slices.Contains([]string{".zst", ".xz"}, path.Ext(name)) && path.Ext(pattern) != path.Ext(name) {
				continue // A pattern that ends with * matches the compressed file too, which has its turn.
			}
			if _, found := out[name]; found {
				continue
			}
			content, err := deb.ReadCompressed(tree, file, suffix, maxFirmware)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			out[name] = content
		}
	}
	return nil
}

// Report says what a ramdisk includes.
type Report struct {
	Release string `json:"release"`
	// Architecture is that of the kernel and the agent: amd64 or arm64.
	Architecture string `json:"architecture"`
	// Modules are the names of the modules.
	Modules []string `json:"modules"`
	// Firmware are the names of the firmware files.
	Firmware []string `json:"firmware"`
	// MissingFirmware are the names of the firmware files that modules may ask for and no firmware tree has, by module. Most cards work without.
	MissingFirmware map[string][]string `json:"missingFirmware,omitempty"`
	// MissingPackages are the modules that miss firmware by the package of Debian that brings it. The modules of "" miss files that no package has.
	MissingPackages map[string][]string `json:"missingPackages,omitempty"`
	// Warnings are what the kernel's packages leave open.
	Warnings []string `json:"warnings,omitempty"`
}

// AddModules adds the modules that servers need to the files of a ramdisk, with their firmware and indexes.
func AddModules(files map[string][]byte, k *kernel.Kernel, firmware Firmware) (Report, error) {
	var wanted []string
	for name, m := range k.Modules {
		if isSelected(m) {
			wanted = append(wanted, name)
		}
	}
	names, err := k.Closure(wanted)
	if err != nil {
		return Report{}, err
	}
	report := Report{Release: k.Release, Architecture: k.Architecture, Modules: names, Firmware: []string{}, MissingFirmware: map[string][]string{}}
	if k.BuiltinUnknown {
		report.Warnings = append(report.Warnings, "the kernel's packages have no modules.builtin: a module that another one needs and that is no file is taken for a part of the kernel")
	}
	below := "lib/modules/" + k.Release + "/"
	for _, name := range names {
		m := k.Modules[name]
		if files[below+m.Path], err = k.Content(m); err != nil {
			return Report{}, err
		}
		if err := addFirmware(files, m, firmware, &report); err != nil {
			return Report{}, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(k.Builtin)) {
		if m := k.Builtin[name]; isSelected(m) {
			if err := addFirmware(files, m, firmware, &report); err != nil {
				return Report{}, err
			}
		}
	}
	slices.Sort(report.Firmware)
	report.Firmware = slices.Compact(report.Firmware)
	report.MissingPackages = missingPackages(report.MissingFirmware)
	addIndexes(files, below, k, names)
	return report, nil
}

// addFirmware adds the firmware files of the module that are found.
func addFirmware(files map[string][]byte, m kernel.Module, firmware Firmware, report *Report) error {
	for _, name := range m.Firmware {
		if !fs.ValidPath(name) {
			return fmt.Errorf("module %s asks for a firmware file outside lib/firmware: %q", m.Name, name)
		}
		found, err := firmware.find(name, report.Release)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			report.MissingFirmware[m.Name] = append(report.MissingFirmware[m.Name], name)
		}
		for file, content := range found {
			files["lib/firmware/"+file] = content
			report.Firmware = append(report.Firmware, file)
		}
	}
	return nil
}

// addIndexes adds modules.dep, modules.alias and modules.softdep of the modules, as depmod writes them.
func addIndexes(files map[string][]byte, below string, k *kernel.Kernel, names []string) {
	var dep, alias, soft strings.Builder
	for _, name := range names {
		m := k.Modules[name]
		dep.WriteString(m.Path + ":")
		for _, needed := range k.Needed(name) {
			dep.WriteString(" " + needed.Path)
		}
		dep.WriteString("\n")
		for _, pattern := range m.Aliases {
			fmt.Fprintf(&alias, "alias %s %s\n", pattern, name)
		}
		if len(m.Before)+len(m.After) > 0 {
			fmt.Fprintf(&soft, "softdep %s pre: %s post: %s\n", name, strings.Join(m.Before, " "), strings.Join(m.After, " "))
		}
	}
	for file, text := range map[string]string{"modules.dep": dep.String(), "modules.alias": alias.String(), "modules.softdep": soft.String()} {
		files[below+file] = []byte(text)
	}
}
