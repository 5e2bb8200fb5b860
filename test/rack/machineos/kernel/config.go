package kernel

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// Config is the configuration of modules by the command line and modprobe.d. Module names have underscores, because the
// kernel accepts both spellings.
type Config struct {
	denied          map[string]bool
	blacklisted     map[string]bool
	options         map[string]map[string]string
	before          map[string][]string
	after           map[string][]string
	aliases         map[string]string
	installCommands map[string]string
}

// directories are searched for configuration in this order.
var directories = []string{"/etc/", "/run/", "/usr/local/lib/", "/usr/lib/", "/lib/"}

// Directories returns the directories of a kind of configuration, such as modprobe.d. Of several files with the same name
// the one in the first directory counts.
func Directories(kind string) []string {
	var out []string
	for _, folder := range directories {
		out = append(out, folder+kind)
	}
	return out
}

// orderedFiles returns the paths of a kind's files in the order in which they are read: by file name, in whichever
// directory they are.
func orderedFiles(files map[string][]byte, kind string) []string {
	found := map[string]string{}
	for _, folder := range Directories(kind) {
		for name := range files {
			base := path.Base(name)
			if path.Dir(name) == folder && strings.HasSuffix(base, ".conf") && found[base] == "" {
				found[base] = name
			}
		}
	}
	var out []string
	for _, base := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[base])
	}
	return out
}

// ParseConfig reads the files of modprobe.d, by absolute path, and then the command line, whose parameters take precedence.
// Lines that kmod does not understand are left out.
func ParseConfig(arguments []string, files map[string][]byte) Config {
	c := Config{
		denied: map[string]bool{}, blacklisted: map[string]bool{}, options: map[string]map[string]string{},
		before: map[string][]string{}, after: map[string][]string{}, aliases: map[string]string{}, installCommands: map[string]string{},
	}
	for _, name := range orderedFiles(files, "modprobe.d") {
		for line := range strings.Lines(strings.ReplaceAll(string(files[name]), "\\\n", " ")) {
			if words := strings.Fields(line); len(words) > 1 && !strings.HasPrefix(words[0], "#") {
				c.parseLine(words[0], CanonicalName(words[1]), words[2:])
			}
		}
	}
	for _, argument := range arguments {
		c.parseArgument(argument)
	}
	return c
}

// parseLine reads a line of modprobe.d.
func (c *Config) parseLine(command, module string, words []string) {
	switch command {
	case "blacklist":
		c.blacklisted[module] = true
	case "options":
		for _, word := range words {
			c.setOption(module, word)
		}
	case "alias":
		if len(words) > 0 {
			c.aliases[module] = CanonicalName(words[0])
		}
	case "install":
		c.installCommands[module] = strings.Join(words, " ")
	case "softdep":
		into := map[string][]string(nil)
		for _, word := range words {
			switch word {
			case "pre:":
				into = c.before
			case "post:":
				into = c.after
			default:
				if into != nil {
					into[module] = append(into[module], CanonicalName(word))
				}
			}
		}
	}
}

func (c *Config) setOption(module, word string) {
	key, value, _ := strings.Cut(word, "=")
	if c.options[module] == nil {
		c.options[module] = map[string]string{}
	}
	c.options[module][key] = strings.Trim(value, `"`)
}

// parseArgument reads an argument of the kernel's command line.
func (c *Config) parseArgument(word string) {
	key, value, _ := strings.Cut(word, "=")
	into := map[string]map[string]bool{"modprobe.blacklist": c.blacklisted, "module_blacklist": c.denied}[key]
	if into != nil {
		for name := range strings.SplitSeq(value, ",") {
			into[CanonicalName(name)] = true
		}
		return
	}
	if module, _, ok := strings.Cut(key, "."); ok {
		c.setOption(CanonicalName(module), word[len(module)+1:])
	}
}

// CanonicalName returns the kernel's spelling of a module's name.
func CanonicalName(name string) string { return strings.ReplaceAll(name, "-", "_") }

// IsBlacklisted reports whether the module is not loaded for devices that it could drive.
func (c Config) IsBlacklisted(module string) bool {
	module = CanonicalName(module)
	return c.blacklisted[module] || c.denied[module]
}

// Options returns the parameters with which the module is loaded. A parameter without a value has the empty value.
func (c Config) Options(module string) map[string]string {
	return maps.Clone(c.options[CanonicalName(module)])
}

// SoftDependencies returns the modules that are loaded before this one.
func (c Config) SoftDependencies(module string) []string {
	return slices.Clone(c.before[CanonicalName(module)])
}
