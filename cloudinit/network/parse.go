package network

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"gopkg.in/yaml.v3"
)

// maxSize of a document that somebody wrote, in bytes.
const maxSize = 64 << 10

// netplan are keys that tell a document of another format.
var netplan = []string{"network", "version", "ethernets", "bonds", "vlans", "config"}

// Parse reads a network_data document in JSON or YAML and checks it. The error is an *Invalid, and quotes no value but
// names, addresses and types.
func Parse(field, text string) (Data, error) {
	if len(text) > maxSize {
		return Data{}, invalid(field, "it has %d bytes, the limit is %d", len(text), maxSize)
	}
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	var d Data
	err := decode(decoder, &d)
	if err != nil || len(d.Links) == 0 {
		if other := foreign(field, text); other != nil {
			return Data{}, other
		}
	}
	if err != nil {
		return Data{}, invalid(field, "it is not OpenStack's network_data (links, networks, services): %s", reason(err))
	}
	if err := decode(decoder, &yaml.Node{}); !errors.Is(err, io.EOF) {
		return Data{}, invalid(field, "it holds more than one document")
	}
	if err := d.Validate(field); err != nil {
		return Data{}, err
	}
	return d, nil
}

// foreign recognises a network configuration of cloud-init or netplan. As network data of a config drive it would give
// the node no network at all, without an error.
func foreign(field, text string) error {
	var top yaml.Node
	if err := decode(yaml.NewDecoder(strings.NewReader(text)), &top); err != nil {
		return invalid(field, "it is neither JSON nor YAML: %s", reason(err))
	}
	if len(top.Content) == 0 || top.Content[0].Kind != yaml.MappingNode {
		return invalid(field, "it must be a mapping with links, networks and services")
	}
	for i := 0; i < len(top.Content[0].Content); i += 2 {
		for _, key := range netplan {
			if top.Content[0].Content[i].Value == key {
				return invalid(field, "%s is a key of cloud-init's network-config or of netplan, of which a config drive's reader makes an empty network: write OpenStack's links, networks and services", key)
			}
		}
	}
	return nil
}

// decode reads one document. The parser has panicked on malformed text before; such text is an error like any other.
func decode(d *yaml.Decoder, into any) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("yaml: the parser gave up")
		}
	}()
	return d.Decode(into)
}

// reason is what the parser says, without the values that it quotes.
func reason(err error) string {
	var typed *yaml.TypeError
	if errors.As(err, &typed) && len(typed.Errors) > 0 {
		first := typed.Errors[0]
		if strings.Contains(first, " not found in type ") {
			before, _, _ := strings.Cut(first, " in type ")
			return before
		}
		if line, _, ok := strings.Cut(first, ":"); ok {
			return line + " has a value of the wrong kind"
		}
	}
	if _, after, ok := strings.Cut(err.Error(), "yaml: line "); ok {
		line, _, _ := strings.Cut(after, ":")
		return fmt.Sprintf("see line %s", line)
	}
	return "it cannot be read"
}
