package kernel

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Denied is the error of a module that may not be loaded.
type LoadError struct{ Module, Reason string }

// Error says why.
func (d *LoadError) Error() string {
	return fmt.Sprintf("could not insert %q: %s", d.Module, d.Reason)
}

// Modules are the loaded modules of a boot. The zero value has none.
type Modules struct {
	// Exists says whether the image has a module; nil: it has all.
	Exists func(module string) bool
	loaded map[string]map[string]string
}

// Loaded says whether the module is loaded.
func (m *Modules) IsLoaded(module string) bool {
	_, ok := m.loaded[CanonicalName(module)]
	return ok
}

// Options are the parameters that a loaded module was loaded with. What is configured later no longer reaches it.
func (m *Modules) Options(module string) map[string]string {
	return maps.Clone(m.loaded[CanonicalName(module)])
}

// Configure is systemd-modules-load: it loads what the command line and modules-load.d name, unless it is blacklisted.
// The error joins nothing: it is the first, and the others are loaded all the same.
func (m *Modules) LoadConfigured(c Config, arguments []string, files map[string][]byte) error {
	var names []string
	for _, argument := range arguments {
		if list, ok := strings.CutPrefix(argument, "modules_load="); ok {
			names = append(names, strings.Split(list, ",")...)
		}
	}
	for _, path := range orderedFiles(files, "modules-load.d") {
		for line := range strings.Lines(string(files[path])) {
			if line = strings.TrimSpace(line); line != "" && !strings.ContainsAny(line[:1], "#;") {
				names = append(names, line)
			}
		}
	}
	var first error
	for _, name := range names {
		if name = c.resolve(name); c.IsBlacklisted(name) {
			continue
		}
		if err := m.insert(c, name, nil, nil); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// Probe is modprobe: with -r modules go, with -b a blacklisted one is left alone, and without either they are loaded with
// the parameters that follow the first, or all of them with -a.
func (m *Modules) Modprobe(c Config, arguments []string) error {
	words, flags := splitFlags(arguments)
	if len(words) == 0 {
		return errors.New("missing parameters, see -h")
	}
	if flags["-r"] || flags["--remove"] {
		for _, name := range words {
			delete(m.loaded, c.resolve(name))
		}
		return nil
	}
	names, parameters := words[:1], words[1:]
	if flags["-a"] || flags["--all"] {
		names, parameters = words, nil
	}
	for _, name := range names {
		name = c.resolve(name)
		if c.IsBlacklisted(name) && (flags["-b"] || flags["--use-blacklist"]) {
			continue
		}
		if err := m.insert(c, name, parameters, nil); err != nil {
			return err
		}
	}
	return nil
}

// parsed takes flags, which have no values, from between the words.
func splitFlags(arguments []string) (words []string, flags map[string]bool) {
	flags = map[string]bool{}
	for _, argument := range arguments {
		if strings.HasPrefix(argument, "-") {
			flags[argument] = true
		} else {
			words = append(words, argument)
		}
	}
	return words, flags
}

// resolve finds the module behind an alias.
func (c Config) resolve(name string) string {
	name = CanonicalName(name)
	if to, ok := c.aliases[name]; ok {
		return to
	}
	return name
}

// insert loads a module with its soft dependencies around it, whose failure does not count. above are the modules that
// are being loaded, so that a circle ends.
func (m *Modules) insert(c Config, module string, parameters, above []string) error {
	if m.IsLoaded(module) || slices.Contains(above, module) || c.isReplaced(module) {
		return nil
	}
	if m.Exists != nil && !m.Exists(module) {
		return &LoadError{module, "the image has no such module"}
	}
	above = append(slices.Clone(above), module)
	for _, name := range c.before[module] {
		_ = m.insert(c, name, nil, above)
	}
	if c.denied[module] {
		return &LoadError{module, "module_blacklist= is on the kernel's command line"}
	}
	options := c.Options(module)
	if options == nil {
		options = map[string]string{}
	}
	for _, word := range parameters {
		key, value, _ := strings.Cut(word, "=")
		options[key] = value
	}
	if m.loaded == nil {
		m.loaded = map[string]map[string]string{}
	}
	m.loaded[module] = options
	for _, name := range c.after[module] {
		_ = m.insert(c, name, nil, above)
	}
	return nil
}

// replaced says whether a command runs instead of loading the module, and does not load it in its turn.
func (c Config) isReplaced(module string) bool {
	command, ok := c.installCommands[module]
	return ok && !strings.Contains(command, "--ignore-install") && !strings.Contains(command, " -i ")
}
