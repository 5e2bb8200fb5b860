package kernel

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// Config is what the command line and modprobe.d say of modules. Names have underscores: the kernel takes both.
type Config struct {
	denied          map[string]bool
	blacklisted     map[string]bool
	options         map[string]map[string]string
	before          map[string][]string
	after           map[string][]string
	aliases         map[string]string
	installCommands map[string]string
}

// folders are where programs look for configuration, the first first.
var directories = []string{"/etc/", "/run/", "/usr/local/lib/", "/usr/lib/", "/lib/"}

// Folders are the directories of a kind of configuration, such as modprobe.d: of files with the same name the first
// directory's counts.
func Directories(kind string) []string {
	var out []string
	for _, folder := range directories {
		out = append(out, folder+kind)
	}
	return out
}

// inOrder are the paths of a kind's files as they are read: by their names, whichever directory they are in.
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

// Configured reads the files of modprobe.d, by absolute path, and then the command line, whose parameters come last and
// win. What kmod would not understand it leaves out, and so does this.
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

// command is a line of modprobe.d.
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

// argument is a word of the kernel's command line.
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

// Name is the kernel's spelling of a module's name.
func CanonicalName(name string) string { return strings.ReplaceAll(name, "-", "_") }

// Blacklisted says whether the module stays away from devices that it could drive.
func (c Config) IsBlacklisted(module string) bool {
	module = CanonicalName(module)
	return c.blacklisted[module] || c.denied[module]
}

// Options are the parameters that the module is loaded with. One without a value has the empty one.
func (c Config) Options(module string) map[string]string {
	return maps.Clone(c.options[CanonicalName(module)])
}

// Before are the modules that are loaded before this one.
func (c Config) SoftDependencies(module string) []string {
	return slices.Clone(c.before[CanonicalName(module)])
}
