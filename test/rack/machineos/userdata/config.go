package userdata

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// Document is the content of user data.
type Document struct {
	Config
	// Scripts in the order of their parts.
	Scripts []Script
}

// Config has the modules of cloud-init that matter for a node. Commands are lists of words, or text for the shell.
type Config struct {
	Hostname string   `json:"hostname"`
	FQDN     string   `json:"fqdn"`
	Files    []File   `json:"write_files"`
	BootCmd  []any    `json:"bootcmd"`
	RunCmd   []any    `json:"runcmd"`
	SSHKeys  []string `json:"ssh_authorized_keys"`
	// Packages to install: names, or lists of a name and a version.
	Packages []any `json:"packages"`
}

// File is an entry of write_files.
type File struct {
	Path        string `json:"path"`
	Content     string `json:"content"`
	Encoding    string `json:"encoding"`
	Permissions any    `json:"permissions"`
	Append      bool   `json:"append"`
	Defer       bool   `json:"defer"`
}

// Script is a script in user data.
type Script struct {
	// Name of its file.
	Name string
	Text string
}

// Parse reads user data. Empty user data is valid. Together with an error it returns the parts that could be read.
func Parse(text []byte) (Document, error) {
	var out Document
	parts, failed := splitParts(text)
	merged := map[string]any{}
	for _, p := range parts {
		if p.kind == kindShell {
			out.Scripts = append(out.Scripts, Script{Name: cleanFileName(p.name), Text: string(p.text)})
			continue
		}
		next, err := mergeConfig(merged, p)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		merged = next
	}
	// What is of another shape is the error of one module, and the others do their work.
	raw, err := json.Marshal(merged)
	if err == nil {
		err = json.Unmarshal(raw, &out.Config)
	}
	if err != nil {
		failed = errors.Join(failed, fmt.Errorf("%w: a key's value is of another shape than cloud-init takes", ErrUserData))
	}
	return out, failed
}

func mergeConfig(earlier map[string]any, p part) (map[string]any, error) {
	config := map[string]any{}
	if err := yaml.Unmarshal(p.text, &config); err != nil {
		return nil, fmt.Errorf("%w: %s is no YAML, or no mapping", ErrUserData, p.name)
	}
	if config == nil {
		return earlier, nil
	}
	how, err := newMerger(config, p.merge)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	out, ok := how.merge(earlier, config).(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%w: %s cannot be merged", ErrUserData, p.name)
	}
	return out, nil
}

// cleanFileName returns a file name as cloud-init writes it.
func cleanFileName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("_-.()", r):
			return r
		case r == '/':
			return '_'
		}
		return -1
	}, name)
}

// Decode returns the file's content without its encoding.
func (f File) Decode() ([]byte, error) {
	switch strings.ToLower(f.Encoding) {
	case "", "text/plain":
		return []byte(f.Content), nil
	case "b64", "base64":
		return DecodeBase64(f.Content)
	case "gz+b64", "gz+base64", "gzip+b64", "gzip+base64":
		packed, err := DecodeBase64(f.Content)
		if err != nil {
			return nil, err
		}
		return gunzip(packed)
	}
	return nil, fmt.Errorf("%w: %s has an encoding that cloud-init does not know", ErrUserData, f.Path)
}

// Mode returns the file's permissions in octal. YAML turns 0644 without quotes into a number.
func (f File) Mode() string {
	switch mode := f.Permissions.(type) {
	case string:
		if mode != "" {
			return mode
		}
	case float64:
		return fmt.Sprintf("%04o", int64(mode))
	}
	return "0644"
}

// CommandLines splits a command of runcmd into one list of words for each program that a shell would start.
func CommandLines(command any) [][]string {
	switch command := command.(type) {
	case []any:
		var words []string
		for _, word := range command {
			words = append(words, fmt.Sprint(word))
		}
		if len(words) == 0 {
			return nil
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
