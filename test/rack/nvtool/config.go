package nvtool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/test/rack/gpu"
)

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
