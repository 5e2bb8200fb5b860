package ramdisk

import (
	"errors"
	"fmt"
	"io/fs"
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

// find returns the content of the firmware file with the name, decompressed, as the agent's kernel may be built without decompression.
func (f Firmware) find(name string) ([]byte, error) {
	for _, tree := range f {
		for _, dir := range []string{"lib/firmware", "usr/lib/firmware"} {
			for _, suffix := range []string{"", ".zst", ".xz"} {
				content, err := deb.ReadCompressed(tree, path.Join(dir, name)+suffix, suffix, maxFirmware)
				if !errors.Is(err, fs.ErrNotExist) {
					return content, err
				}
			}
		}
	}
	return nil, fs.ErrNotExist
}

// Report says what a ramdisk includes.
type Report struct {
	Release string `json:"release"`
	// Modules are the names of the modules.
	Modules []string `json:"modules"`
	// Firmware are the names of the firmware files.
	Firmware []string `json:"firmware"`
	// MissingFirmware are the names of the firmware files that modules may ask for and no firmware tree has, by module.
	MissingFirmware map[string][]string `json:"missingFirmware,omitempty"`
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
	report := Report{Release: k.Release, Modules: names, MissingFirmware: map[string][]string{}}
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
	slices.Sort(report.Firmware)
	report.Firmware = slices.Compact(report.Firmware)
	addIndexes(files, below, k, names)
	return report, nil
}

// addFirmware adds the firmware files of the module that are found.
func addFirmware(files map[string][]byte, m kernel.Module, firmware Firmware, report *Report) error {
	for _, name := range m.Firmware {
		if !fs.ValidPath(name) {
			return fmt.Errorf("module %s asks for a firmware file outside lib/firmware: %q", m.Name, name)
		}
		content, err := firmware.find(name)
		if errors.Is(err, fs.ErrNotExist) {
			report.MissingFirmware[m.Name] = append(report.MissingFirmware[m.Name], name)
			continue
		}
		if err != nil {
			return err
		}
		files["lib/firmware/"+name] = content
		report.Firmware = append(report.Firmware, name)
	}
	return nil
}

// addIndexes adds modules.dep, modules.alias and modules.softdep of the modules.
func addIndexes(files map[string][]byte, below string, k *kernel.Kernel, names []string) {
	var dep, alias, soft strings.Builder
	for _, name := range names {
		m := k.Modules[name]
		dep.WriteString(m.Path + ":")
		for _, needed := range m.Depends {
			if file := k.Modules[needed].Path; file != "" {
				dep.WriteString(" " + file)
			}
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
