package machineos

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"
)

// errUserData is what user data that cloud-init would not take ends with. It quotes no content, which may be secret.
var errUserData = errors.New("user data")

// cloudConfig are the modules of cloud-init that make a node. Commands are lists of words, or text for the shell.
type cloudConfig struct {
	Hostname string      `json:"hostname"`
	FQDN     string      `json:"fqdn"`
	Files    []writeFile `json:"write_files"`
	BootCmd  []any       `json:"bootcmd"`
	RunCmd   []any       `json:"runcmd"`
}

// writeFile is an entry of write_files.
type writeFile struct {
	Path        string `json:"path"`
	Content     string `json:"content"`
	Encoding    string `json:"encoding"`
	Permissions any    `json:"permissions"`
	Append      bool   `json:"append"`
	Defer       bool   `json:"defer"`
}

// parseUserData reads #cloud-config. Empty user data is none.
func parseUserData(text []byte) (cloudConfig, error) {
	var config cloudConfig
	if len(bytes.TrimSpace(text)) == 0 {
		return config, nil
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	if string(bytes.TrimSpace(first)) != "#cloud-config" {
		return config, fmt.Errorf("%w: the first line is not #cloud-config", errUserData)
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		return cloudConfig{}, fmt.Errorf("%w: no YAML, or of another shape", errUserData)
	}
	return config, nil
}

// decoded is the file's content.
func (f writeFile) decoded() ([]byte, error) {
	switch strings.ToLower(f.Encoding) {
	case "", "text/plain":
		return []byte(f.Content), nil
	case "b64", "base64":
		return fromBase64(f.Content)
	case "gz+b64", "gz+base64", "gzip+b64", "gzip+base64":
		packed, err := fromBase64(f.Content)
		if err != nil {
			return nil, err
		}
		reader, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return nil, fmt.Errorf("%w: %s is not compressed as it says", errUserData, f.Path)
		}
		return io.ReadAll(io.LimitReader(reader, maxDocument))
	}
	return nil, fmt.Errorf("%w: %s has an encoding that cloud-init does not know", errUserData, f.Path)
}

func fromBase64(text string) ([]byte, error) {
	out, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return nil, fmt.Errorf("%w: a file is not encoded as it says", errUserData)
	}
	return out, nil
}

// mode is the file's, "0644" where nothing is said.
func (f writeFile) mode() string {
	if text, ok := f.Permissions.(string); ok && text != "" {
		return text
	}
	return "0644"
}

// commandLines turns a command of runcmd into lists of words, one for each that a shell would start.
func commandLines(command any) [][]string {
	switch command := command.(type) {
	case []any:
		var words []string
		for _, word := range command {
			words = append(words, fmt.Sprint(word))
		}
		return [][]string{words}
	case string:
		var out [][]string
		for _, line := range strings.FieldsFunc(command, func(r rune) bool { return r == '\n' || r == ';' || r == '&' || r == '|' }) {
			if words := strings.Fields(line); len(words) > 0 {
				out = append(out, words)
			}
		}
		return out
	}
	return nil
}
