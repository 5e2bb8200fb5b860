package modules

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Index are the modules of a ramdisk.
type Index struct {
	// dir is lib/modules/RELEASE/.
	dir string
	// files and needs have the path of each module below dir and the names of those that it depends on.
	files map[string]string
	needs map[string][]string
	// before and after are the aliases that a module wants to be loaded first, and after itself.
	before  map[string][]string
	after   map[string][]string
	aliases []alias
}

// alias says that a module serves the devices whose modalias matches the pattern.
type alias struct{ pattern, module string }

// ReadIndex reads modules.dep, modules.alias and modules.softdep (modules.dep(5)) of the kernel from the root file system.
func ReadIndex(root fs.FS, release string) (*Index, error) {
	x := &Index{dir: "lib/modules/" + release + "/", files: map[string]string{}, needs: map[string][]string{}, before: map[string][]string{}, after: map[string][]string{}}
	for file, add := range map[string]func([]string){"modules.dep": x.addDependency, "modules.alias": x.addAlias, "modules.softdep": x.addSoft} {
		content, err := fs.ReadFile(root, x.dir+file)
		if err != nil {
			return nil, fmt.Errorf("the ramdisk has no modules for kernel %s: %w", release, err)
		}
		for line := range strings.Lines(string(content)) {
			if fields := strings.Fields(line); len(fields) > 0 && !strings.HasPrefix(fields[0], "#") {
				add(fields)
			}
		}
	}
	return x, nil
}

// nameOf returns the name of the module in the file as the kernel prints it.
func nameOf(file string) string {
	return strings.ReplaceAll(strings.TrimSuffix(path.Base(file), ".ko"), "-", "_")
}

func (x *Index) addDependency(fields []string) {
	file := strings.TrimSuffix(fields[0], ":")
	name := nameOf(file)
	x.files[name] = file
	for _, needed := range fields[1:] {
		x.needs[name] = append(x.needs[name], nameOf(needed))
	}
}

func (x *Index) addAlias(fields []string) {
	if len(fields) == 3 {
		x.aliases = append(x.aliases, alias{pattern: normalizeAlias(fields[1]), module: nameOf(fields[2])})
	}
}

// addSoft reads "softdep NAME pre: A B post: C".
func (x *Index) addSoft(fields []string) {
	if len(fields) < 3 {
		return
	}
	list, name := x.before, nameOf(fields[1])
	for _, word := range fields[2:] {
		switch word {
		case "pre:":
			list = x.before
		case "post:":
			list = x.after
		default:
			list[name] = append(list[name], word)
		}
	}
}

// Serving returns the names of the modules that serve the alias: a module's own name, or what a device shows as its modalias.
func (x *Index) Serving(wanted string) []string {
	if name := nameOf(wanted); x.files[name] != "" {
		return []string{name}
	}
	wanted = normalizeAlias(wanted)
	var out []string
	for _, a := range x.aliases {
		// A module with a name of its own may have an alias with brackets that are no pattern; a malformed one matches nothing.
		if ok, err := path.Match(a.pattern, wanted); a.pattern == wanted || ok && err == nil {
			out = append(out, a.module)
		}
	}
	return out
}

// normalizeAlias returns the alias with underscores for hyphens, except in a set in brackets, as modprobe compares them (kmod's alias_normalize):
// modules.alias has them as the drivers' authors wrote them.
func normalizeAlias(alias string) string {
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

// Following returns the names of the modules that the module asks to be loaded after it.
func (x *Index) Following(name string) []string {
	var out []string
	for _, wanted := range x.after[name] {
		out = append(out, x.Serving(wanted)...)
	}
	return out
}

// Order returns the names of the modules to load for the module, in order, itself last.
func (x *Index) Order(name string) []string {
	var out []string
	seen := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		if seen[name] || x.files[name] == "" {
			return
		}
		seen[name] = true
		for _, wanted := range x.before[name] {
			for _, first := range x.Serving(wanted) {
				visit(first)
			}
		}
		for _, needed := range x.needs[name] {
			visit(needed)
		}
		out = append(out, name)
	}
	visit(name)
	return out
}
