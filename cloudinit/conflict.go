package cloudinit

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ingot-dev/ingot/api/v1alpha1"
)

// owned are top-level keys that people's user data may not have, and what to do instead.
var owned = map[string]string{
	"hostname":                  "the host name is the Machine's name, which the Node must have: remove it",
	"fqdn":                      "the host name is the Machine's name, which the Node must have: remove it",
	"preserve_hostname":         "the host name is the Machine's name, which the Node must have: remove it",
	"prefer_fqdn_over_hostname": "the host name is the Machine's name, which the Node must have: remove it",
	"cloud_init_modules":        "it can leave out the modules that write files and run commands: remove it",
	"cloud_config_modules":      "it can leave out the modules that write files and run commands: remove it",
	"cloud_final_modules":       "it can leave out the modules that write files and run commands: remove it",
	"network":                   "cloud-init takes no network configuration from user data: use the NodeProvider's network",
}

// lists are top-level keys that Ingot appends to, so they must be lists.
var lists = []string{"runcmd", "write_files", "packages", "ssh_authorized_keys"}

// Validate reports what is wrong with people's user data whatever the machine: an *Invalid, else a *Conflict, that names
// every path in every layer. Render finds nothing more in the same layers, whatever plan it is given the result for.
func Validate(layers []Layer, sshKeys []string, plan v1alpha1.NodePlan) error {
	_, _, err := mergeLayers(layers, len(sshKeys) > 0, reserved(plan))
	return err
}

// mergeLayers parses, checks and merges people's layers. files are the paths that are Ingot's. Scripts are left as they
// are.
func mergeLayers(layers []Layer, keys bool, files []string) (Document, []Layer, error) {
	merged := Document{root: mapping()}
	var scripts []Layer
	var invalid Invalid
	var conflict Conflict
	for _, layer := range layers {
		if isScript(layer.Text) {
			invalid.Findings = append(invalid.Findings, findingsOf(layer, scriptFindings(layer))...)
			scripts = append(scripts, layer)
			continue
		}
		doc, err := Parse(layer)
		if err != nil {
			bad, ok := err.(*Invalid)
			if !ok {
				return Document{}, nil, err
			}
			invalid.Findings = append(invalid.Findings, findingsOf(layer, bad.Findings)...)
			continue
		}
		invalid.Findings = append(invalid.Findings, findingsOf(layer, kinds(doc.root))...)
		conflict.Findings = append(conflict.Findings, findingsOf(layer, fights(doc.root, keys, files))...)
		merged = Merge(merged, doc)
	}
	if len(invalid.Findings) > 0 {
		return Document{}, nil, &invalid
	}
	if len(conflict.Findings) > 0 {
		return Document{}, nil, &conflict
	}
	return merged, scripts, nil
}

// findingsOf are the findings with the layer that they are in.
func findingsOf(layer Layer, findings []Finding) []Finding {
	for i := range findings {
		findings[i].Layer, findings[i].Property = layer.Name, layer.Property
	}
	return findings
}

func kinds(root *yaml.Node) []Finding {
	var out []Finding
	for _, key := range lists {
		if n := get(root, key); n != nil && n.Kind != yaml.SequenceNode && !isNull(n) {
			out = append(out, Finding{Path: key, Message: "it must be a list"})
		}
	}
	return out
}

// fights finds what Ingot cannot live with. It looks at one layer, so that the message can name it.
func fights(root *yaml.Node, keys bool, files []string) []Finding {
	out := fightingKeys(root)
	out = append(out, fightingFiles(get(root, "write_files"), files)...)
	out = append(out, fightingCommands(get(root, "runcmd"))...)
	if n := get(root, "users"); keys && n != nil && n.Kind == yaml.SequenceNode && !hasDefaultUser(n) {
		out = append(out, Finding{Path: "users", Message: "it leaves out default, the user that sshKeys are authorized for: add - default"})
	}
	return out
}

func fightingKeys(root *yaml.Node) []Finding {
	var out []Finding
	for i := 0; i+1 < len(root.Content); i += 2 {
		if why, ok := owned[root.Content[i].Value]; ok {
			out = append(out, Finding{Path: root.Content[i].Value, Message: why})
		}
	}
	return out
}

func fightingFiles(list *yaml.Node, files []string) []Finding {
	var out []Finding
	for i, item := range items(list) {
		if p := get(item, "path"); p != nil && slices.Contains(files, clean(p.Value)) {
			out = append(out, Finding{Path: fmt.Sprintf("write_files[%d].path", i), Message: clean(p.Value) + " is written by Ingot: remove the entry"})
		}
	}
	return out
}

func fightingCommands(list *yaml.Node) []Finding {
	var out []Finding
	for i, item := range items(list) {
		if verb := endsScript(item); verb != "" {
			out = append(out, Finding{Path: fmt.Sprintf("runcmd[%d]", i),
				Message: verb + " ends the script that all of runcmd is, before kubelet is started: put it into a script of its own with write_files"})
		}
	}
	return out
}

// items of a list; none of anything else.
func items(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

// clean is the path as the node sees it; cloud-init takes it relative to the root.
func clean(p string) string { return path.Clean("/" + p) }

// endsScript finds an item that ends the shell that runs all of runcmd. Text of several lines is not judged: there the
// word may stand in a branch, or in a file that the text writes.
func endsScript(item *yaml.Node) string {
	text := item.Value
	if item.Kind == yaml.SequenceNode && len(item.Content) > 0 {
		text = item.Content[0].Value
	}
	fields := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\t' || r == ';' })
	if strings.Contains(strings.TrimSpace(text), "\n") || len(fields) == 0 {
		return ""
	}
	if verb := strings.TrimSpace(fields[0]); verb == "exit" || verb == "exec" {
		return verb
	}
	return ""
}

func hasDefaultUser(users *yaml.Node) bool {
	for _, u := range users.Content {
		if name := get(u, "name"); u.Value == "default" || name != nil && name.Value == "default" {
			return true
		}
	}
	return false
}
