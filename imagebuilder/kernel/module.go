package kernel

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/imagebuilder/deb"
)

// Module is a kernel module.
type Module struct {
	// Name is the name with underscores, as the kernel prints it.
	Name string
	// Path is the path of the file below lib/modules/RELEASE, without the suffix of a compression.
	Path string
	// Replaces is the path of the module of the same name that this one is loaded instead of, "" for none.
	Replaces string
	// Aliases are the patterns of the devices, file systems and algorithms that the module serves.
	Aliases []string
	// Depends are the names of the modules whose symbols it uses.
	Depends []string
	// Before and After are the aliases of modules that should be loaded before and after it ("softdep"): nothing links to them, and the module
	// asks for them when it runs.
	Before, After []string
	// Firmware are the names of the files that the module may ask for, relative to lib/firmware.
	Firmware []string

	// file is the path of the file in the tree.
	file string
}

// maxModule limits the size of a decompressed module; the largest, of graphics, have about 30 MiB.
const maxModule = 256 << 20

// readModule returns the decompressed content of the module at file.
func readModule(tree fs.FS, file string) ([]byte, error) {
	return deb.ReadCompressed(tree, file, compression(file), maxModule)
}

// compression returns the suffix of the file's compression, "" for none.
func compression(file string) string {
	if ext := path.Ext(file); ext != ".ko" {
		return ext
	}
	return ""
}

// isModule reports whether the file is a module.
func isModule(file string) bool {
	return slices.Contains([]string{".ko", ".ko.xz", ".ko.zst", ".ko.gz"}, path.Ext(strings.TrimSuffix(file, compression(file)))+compression(file))
}

// NormalizeName returns the name of a module as the kernel prints it: file names and dependencies use hyphens and underscores alike.
func NormalizeName(name string) string { return strings.ReplaceAll(name, "-", "_") }

// NormalizeAlias returns the alias as modprobe looks it up: with underscores for hyphens, except in a set in brackets, where a hyphen is
// a range (kmod's alias_normalize).
func NormalizeAlias(alias string) string {
	out, isSet := []byte(alias), false
	for i, c := range out {
		switch {
		case c == '[' && strings.IndexByte(alias[i:], ']') > 0:
			isSet = true
		case c == ']':
			isSet = false
		case c == '-' && !isSet:
			out[i] = '_'
		}
	}
	return string(out)
}

// parseModule reads the section .modinfo: strings KEY=VALUE that end with a zero byte.
func parseModule(file, below string, content []byte) (Module, error) {
	name := strings.TrimSuffix(file, compression(file))
	m := Module{Name: NormalizeName(strings.TrimSuffix(path.Base(name), ".ko")), Path: strings.TrimPrefix(name, below), file: file}
	f, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return m, fmt.Errorf("%s: expected a kernel module: %w", file, err)
	}
	section := f.Section(".modinfo")
	if section == nil {
		return m, fmt.Errorf("%s: expected a kernel module, seen an ELF file without .modinfo", file)
	}
	info, err := section.Data()
	if err != nil {
		return m, fmt.Errorf("%s: reading .modinfo: %w", file, err)
	}
	for entry := range strings.SplitSeq(string(info), "\x00") {
		key, value, _ := strings.Cut(entry, "=")
		m.addInfo(key, value)
	}
	return m, nil
}

// addInfo adds one entry of .modinfo.
func (m *Module) addInfo(key, value string) {
	switch key {
	case "alias":
		m.Aliases = append(m.Aliases, value)
	case "firmware":
		m.Firmware = append(m.Firmware, value)
	case "depends":
		for name := range strings.SplitSeq(value, ",") {
			if name != "" {
				m.Depends = append(m.Depends, NormalizeName(name))
			}
		}
	case "softdep":
		list := &m.Before
		for word := range strings.FieldsSeq(value) {
			switch word {
			case "pre:":
				list = &m.Before
			case "post:":
				list = &m.After
			default:
				*list = append(*list, word)
			}
		}
	}
}
