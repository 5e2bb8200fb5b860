package kernel

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// LoadError is the error of a module that cannot be loaded.
type LoadError struct{ Module, Reason string }

// Error returns the message of modprobe.
func (d *LoadError) Error() string {
	return fmt.Sprintf("could not insert %q: %s", d.Module, d.Reason)
}

// Modules are the modules that are loaded in a boot. The zero value has none.
type Modules struct {
	// Exists reports whether the image has a module; nil means that it has all.
	Exists func(module string) bool
	loaded map[string]map[string]string
}

// IsLoaded reports whether the module is loaded.
func (m *Modules) IsLoaded(module string) bool {
	_, ok := m.loaded[CanonicalName(module)]
	return ok
}

// Options returns the parameters with which a module was loaded. Later configuration does not change them.
func (m *Modules) Options(module string) map[string]string {
	return maps.Clone(m.loaded[CanonicalName(module)])
}

// LoadConfigured does what systemd-modules-load does: it loads the modules that the command line and modules-load.d name,
// except blacklisted ones. It goes on after an error and returns the first one.
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

// Modprobe runs modprobe. With -r it unloads modules; with -b it skips blacklisted ones; otherwise it loads the first with
// the parameters that follow it, or all of them with -a.
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

// splitFlags separates flags, which have no values, from the other words.
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

// resolve returns the module for an alias.
func (c Config) resolve(name string) string {
	name = CanonicalName(name)
	if to, ok := c.aliases[name]; ok {
		return to
	}
	return name
}

// insert loads a module, and its soft dependencies before and after it, whose failure is ignored. above are the modules
// whose loading is in progress, so that circular dependencies end.
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

// isReplaced reports whether modprobe runs a command instead of loading the module, and the command does not load it.
func (c Config) isReplaced(module string) bool {
	command, ok := c.installCommands[module]
	return ok && !strings.Contains(command, "--ignore-install") && !strings.Contains(command, " -i ")
}
