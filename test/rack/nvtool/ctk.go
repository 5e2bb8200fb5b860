package nvtool

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// ToolkitConfig is where NVIDIA's container toolkit has its configuration.
const ToolkitConfig = "/etc/nvidia-container-runtime/config.toml"

// toolkitDefaults are the members of the configuration that decide for what a container gets devices, in the order in which nvidia-ctk prints them.
var toolkitDefaults = [][2]string{
	{"accept-nvidia-visible-devices-as-volume-mounts", "false"}, {"accept-nvidia-visible-devices-envvar-when-unprivileged", "true"},
}

// CTK is nvidia-ctk, of whose commands only config is simulated.
type CTK struct {
	// Read returns a file; an error: there is none.
	Read func(path string) ([]byte, error)
	// Write writes a file.
	Write func(path string, content []byte) error
}

// Run runs nvidia-ctk. Without --in-place the configuration is printed; a member that has its default is a comment (1.16.2, 1.18.0: internal/config/toml.go).
func (c CTK) Run(arguments []string, stdout io.Writer) error {
	if len(arguments) == 0 || arguments[0] != "config" {
		return errors.New("only nvidia-ctk config is simulated")
	}
	text, err := c.Read(ToolkitConfig)
	if err != nil {
		text = nil
	}
	values := toolkitValues(string(text))
	inPlace, err := setToolkitValues(values, arguments[1:])
	if err != nil {
		return err
	}
	var out strings.Builder
	for _, member := range toolkitDefaults {
		if values[member[0]] == member[1] {
			out.WriteString("#")
		}
		fmt.Fprintf(&out, "%s = %s\n", member[0], values[member[0]])
	}
	if inPlace {
		return c.Write(ToolkitConfig, []byte(out.String()))
	}
	_, err = io.WriteString(stdout, out.String())
	return err
}

// setToolkitValues sets what the options say. inPlace means that the file is to be written.
func setToolkitValues(values map[string]string, options []string) (inPlace bool, err error) {
	for i := 0; i < len(options); i++ {
		switch {
		case options[i] == "--in-place":
			inPlace = true
		case options[i] == "--set" && i+1 < len(options):
			i++
			name, value, _ := strings.Cut(options[i], "=")
			if values[name] == "" || value != "true" && value != "false" {
				return false, fmt.Errorf("invalid --set option %s", options[i])
			}
			values[name] = value
		default:
			return false, fmt.Errorf("%s is not simulated", options[i])
		}
	}
	return inPlace, nil
}

// IsToolkitOpen reports whether a container toolkit with this configuration gives a container that is not privileged the devices that
// NVIDIA_VISIBLE_DEVICES names.
func IsToolkitOpen(config []byte) bool {
	return toolkitValues(string(config))["accept-nvidia-visible-devices-envvar-when-unprivileged"] == "true"
}

// toolkitValues returns the members of a configuration by name. One that is absent, or a comment, has its default.
func toolkitValues(config string) map[string]string {
	out := map[string]string{}
	for _, member := range toolkitDefaults {
		out[member[0]] = member[1]
	}
	for line := range strings.Lines(config) {
		name, value, isSet := strings.Cut(strings.TrimSpace(line), "=")
		if name = strings.TrimSpace(name); isSet && out[name] != "" {
			out[name] = strings.TrimSpace(value)
		}
	}
	return out
}
