package nvtool

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/test/rack/gpu"
)

// MIGParted simulates nvidia-mig-parted on a server with these GPUs.
type MIGParted struct {
	GPUs []*gpu.GPU
	// RenameProfile, if set, replaces the names of the profiles to create, to simulate a wrong layout.
	RenameProfile func(profile string) string
}

// command has the flags of a subcommand, which can be set by the environment too.
type command struct {
	configFile, selected, hooksFile string
	modeOnly                        bool
}

// Run runs the program. arguments are the words after its name; readFile reads a file of the machine.
func (m MIGParted) Run(arguments []string, environment map[string]string, readFile func(string) ([]byte, error)) error {
	for len(arguments) > 0 && strings.HasPrefix(arguments[0], "-") {
		arguments = arguments[1:] // --debug
	}
	if len(arguments) == 0 || arguments[0] != "apply" && arguments[0] != "assert" {
		return nil // prints something, changes nothing
	}
	if err := m.run(arguments[0], arguments[1:], environment, readFile); err != nil {
		return fmt.Errorf("nvidia-mig-parted %s: %w", arguments[0], err)
	}
	return nil
}

func (m MIGParted) run(verb string, arguments []string, environment map[string]string, readFile func(string) ([]byte, error)) error {
	c, err := parseCommand(arguments, environment)
	if err != nil {
		return err
	}
	config, err := c.selectedConfig(readFile)
	if err != nil {
		return err
	}
	if c.hooksFile != "" {
		if err := checkHooks(c.hooksFile, readFile); err != nil {
			return err
		}
	}
	if verb == "assert" {
		return m.assert(config, c.modeOnly)
	}
	return m.apply(config, c.modeOnly)
}

func parseCommand(arguments []string, environment map[string]string) (command, error) {
	var c command
	flags := flag.NewFlagSet("nvidia-mig-parted", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	for _, f := range []struct {
		into               *string
		long, short, named string
	}{
		{&c.configFile, "config-file", "f", "MIG_PARTED_CONFIG_FILE"}, {&c.selected, "selected-config", "c", "MIG_PARTED_SELECTED_CONFIG"},
		{&c.hooksFile, "hooks-file", "k", "MIG_PARTED_HOOKS_FILE"},
	} {
		flags.StringVar(f.into, f.long, environment[f.named], "")
		flags.StringVar(f.into, f.short, environment[f.named], "")
	}
	modeOnly := environment["MIG_PARTED_MODE_CHANGE_ONLY"] == "true"
	var skipReset bool // a mode change needs no reset here
	flags.BoolVar(&c.modeOnly, "mode-only", modeOnly, "")
	flags.BoolVar(&c.modeOnly, "m", modeOnly, "")
	flags.BoolVar(&skipReset, "skip-reset", false, "")
	flags.BoolVar(&skipReset, "s", false, "")
	if err := flags.Parse(arguments); err != nil {
		return c, err
	}
	if c.configFile == "" {
		return c, errors.New("missing required flags 'config-file'")
	}
	return c, nil
}

// selectedConfig returns the selected configuration. When the file has only one, none need be selected.
func (c command) selectedConfig(readFile func(string) ([]byte, error)) ([]migConfig, error) {
	text, err := readFile(c.configFile)
	if err != nil {
		return nil, fmt.Errorf("error parsing config file: read error: %w", err)
	}
	configs, err := parseConfig(text)
	if err != nil {
		return nil, fmt.Errorf("error parsing config file: unmarshal error: %w", err)
	}
	name := c.selected
	if name == "" && len(configs) == 1 {
		name = slices.Collect(maps.Keys(configs))[0]
	}
	selected, ok := configs[name]
	if !ok {
		return nil, fmt.Errorf("error selecting MIG config: selected mig-config not present: %s", name)
	}
	return selected, nil
}

// checkHooks checks the hooks file (api/hooks/v1).
func checkHooks(path string, readFile func(string) ([]byte, error)) error {
	text, err := readFile(path)
	if err != nil {
		return fmt.Errorf("error parsing hooks file: read error: %w", err)
	}
	var file struct {
		Version string `json:"version"`
		Hooks   any    `json:"hooks"`
	}
	if err := decodeStrict(text, &file); err != nil {
		return fmt.Errorf("error parsing hooks file: unmarshal error: %w", err)
	}
	if file.Version != "v1" {
		return fmt.Errorf("error parsing hooks file: unmarshal error: unknown version: %s", file.Version)
	}
	return nil
}

// forEach calls do for each entry and each GPU that it applies to. A GPU without MIG is skipped when the entry is for all
// GPUs, or turns the mode off.
func (m MIGParted) forEach(config []migConfig, do func(*migConfig, *gpu.GPU) error) error {
	for c := range config {
		entry := &config[c]
		for i, g := range m.GPUs {
			if !entry.isFor(i, g) || !g.HasMIGMode() && (entry.all || !*entry.MIGEnabled) {
				continue
			}
			if !g.HasMIGMode() {
				return fmt.Errorf("cannot set MIG mode on non MIG-capable GPU %s", g.Address)
			}
			if err := do(entry, g); err != nil {
				return err
			}
		}
	}
	return nil
}

// apply sets the modes of all GPUs and then their layouts, where they differ.
func (m MIGParted) apply(config []migConfig, modeOnly bool) error {
	err := m.forEach(config, func(entry *migConfig, g *gpu.GPU) error { return g.SetMIG(*entry.MIGEnabled) })
	if err != nil {
		return fmt.Errorf("error setting MIG mode: %w", err)
	}
	if modeOnly {
		return nil
	}
	return m.forEach(config, func(entry *migConfig, g *gpu.GPU) error {
		wanted := m.wantedLayout(entry)
		if !*entry.MIGEnabled || maps.Equal(g.Layout(), wanted) {
			return nil
		}
		if err := g.Partition(wanted); err != nil {
			return fmt.Errorf("error setting MIGConfig: %w", err)
		}
		return nil
	})
}

// assert returns an error unless every GPU is as an entry configures it.
func (m MIGParted) assert(config []migConfig, modeOnly bool) error {
	matched := map[*gpu.GPU]bool{}
	err := m.forEach(config, func(entry *migConfig, g *gpu.GPU) error {
		matched[g] = true
		if g.MIG != *entry.MIGEnabled {
			return fmt.Errorf("assertion failure: GPU %s: MIG mode is %t", g.Address, g.MIG)
		}
		if wanted := m.wantedLayout(entry); !modeOnly && !maps.Equal(g.Layout(), wanted) {
			return fmt.Errorf("assertion failure: GPU %s has %v, not %v", g.Address, g.Layout(), wanted)
		}
		return nil
	})
	if err == nil && slices.ContainsFunc(m.GPUs, func(g *gpu.GPU) bool { return g.HasMIGMode() && !matched[g] }) {
		err = errors.New("assertion failure: not all GPUs match the specified config")
	}
	return err
}

// wantedLayout returns the entry's layout without profiles whose count is 0.
func (m MIGParted) wantedLayout(entry *migConfig) map[string]int {
	out := map[string]int{}
	for profile, count := range entry.MIGDevices {
		if m.RenameProfile != nil {
			profile = m.RenameProfile(profile)
		}
		if count > 0 {
			out[profile] += count
		}
	}
	return out
}

// configFile is nvidia-mig-parted's configuration file, version v1.
type configFile struct {
	Version    string                 `json:"version"`
	MIGConfigs map[string][]migConfig `json:"mig-configs"`
}

// migConfig is the configuration of some of the GPUs.
type migConfig struct {
	DeviceFilter json.RawMessage `json:"device-filter"`
	Devices      json.RawMessage `json:"devices"`
	MIGEnabled   *bool           `json:"mig-enabled"`
	MIGDevices   map[string]int  `json:"mig-devices"`

	filter  []string
	all     bool
	indices []int
}

// parseConfig reads the file as strictly as mig-parted does: it refuses unknown fields.
func parseConfig(text []byte) (map[string][]migConfig, error) {
	var file configFile
	if err := decodeStrict(text, &file); err != nil {
		return nil, err
	}
	if file.Version != "v1" {
		return nil, fmt.Errorf("unknown version: %s", file.Version)
	}
	if len(file.MIGConfigs) == 0 {
		return nil, errors.New("at least one entry in 'mig-configs' is required")
	}
	for name, list := range file.MIGConfigs {
		if len(list) == 0 {
			return nil, fmt.Errorf("at least one entry in '%s' is required", name)
		}
		for i := range list {
			if err := list[i].validate(); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return file.MIGConfigs, nil
}

func decodeStrict(text []byte, into any) error {
	converted, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(converted))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// validate makes the checks that mig-parted makes before it reads a GPU, and reads the members that have two forms.
func (c *migConfig) validate() error {
	switch {
	case c.Devices == nil:
		return errors.New("missing required field: devices")
	case c.MIGEnabled == nil:
		return errors.New("missing required field: mig-enabled")
	case *c.MIGEnabled && c.MIGDevices == nil:
		return errors.New("missing required field 'mig-devices' when 'mig-enabled' is true")
	case !*c.MIGEnabled && len(c.MIGDevices) > 0:
		return errors.New("MIG devices included when 'mig-enabled' is false")
	}
	return errors.Join(c.readDevices(), c.readFilter(), c.validateCounts())
}

func (c *migConfig) readDevices() error {
	var word string
	if json.Unmarshal(c.Devices, &word) == nil && word == "all" {
		c.all = true
		return nil
	}
	if json.Unmarshal(c.Devices, &c.indices) != nil {
		return fmt.Errorf("invalid input for 'devices': %s", c.Devices)
	}
	return nil
}

func (c *migConfig) readFilter() error {
	var word string
	if len(c.DeviceFilter) == 0 || json.Unmarshal(c.DeviceFilter, &c.filter) == nil {
		return nil
	}
	if json.Unmarshal(c.DeviceFilter, &word) != nil {
		return fmt.Errorf("invalid input for 'device-filter': %s", c.DeviceFilter)
	}
	c.filter = []string{word}
	return nil
}

func (c *migConfig) validateCounts() error {
	total := 0
	for profile, count := range c.MIGDevices {
		if count < 0 || !strings.Contains(profile, "g.") {
			return fmt.Errorf("error validating values in 'mig-devices' field: %s: %d", profile, count)
		}
		total += count
	}
	if len(c.MIGDevices) > 0 && total == 0 {
		return errors.New("error validating values in 'mig-devices' field: all counts are 0")
	}
	return nil
}

// isFor reports whether the entry applies to the i-th GPU.
func (c *migConfig) isFor(i int, g *gpu.GPU) bool {
	matches := len(c.filter) == 0
	for _, id := range c.filter {
		// "0x233010DE", since v0.15 maybe with ":0x<subsystem>" behind it.
		id, _, _ = strings.Cut(id, ":")
		matches = matches || strings.EqualFold(id, "0x"+g.DeviceID+"10de")
	}
	for _, index := range c.indices {
		if index == i {
			return matches
		}
	}
	return matches && c.all
}
