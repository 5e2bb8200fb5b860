package cloudinit

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit/ignition"
	"github.com/ingot-dev/ingot/cloudinit/network"
	"github.com/ingot-dev/ingot/cloudinit/properties"
)

// ownedKeys are top-level keys that the users' user data may not have, with what to do instead.
var ownedKeys = map[string]string{
	"hostname":                  "the host name is the Machine's name, which the Node must have: remove it",
	"fqdn":                      "the host name is the Machine's name, which the Node must have: remove it",
	"preserve_hostname":         "the host name is the Machine's name, which the Node must have: remove it",
	"prefer_fqdn_over_hostname": "the host name is the Machine's name, which the Node must have: remove it",
	"cloud_init_modules":        "it can leave out the modules that write files and run commands: remove it",
	"cloud_config_modules":      "it can leave out the modules that write files and run commands: remove it",
	"cloud_final_modules":       "it can leave out the modules that write files and run commands: remove it",
	"network":                   "cloud-init takes no network configuration from user data: use the NodeProvider's network",
}

// listKeys are top-level keys that Ingot appends to, so that their values must be lists.
var listKeys = []string{"runcmd", "write_files", "packages", "ssh_authorized_keys"}

// Validate checks the users' user data without a machine. The error is an *Invalid, or else a *Conflict, and names every path in
// every layer. Render finds no other errors in the same layers when it is given the same plan.
func Validate(layers []Layer, sshKeys []string, plan v1alpha1.NodePlan) error {
	_, _, err := mergeLayers(layers, len(sshKeys) > 0, reservedPaths(plan))
	return err
}

// mergeLayers parses, checks and merges the users' layers. files are the paths of Ingot's files. It returns scripts as they are.
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
		invalid.Findings = append(invalid.Findings, findingsOf(layer, kindFindings(doc.root))...)
		conflict.Findings = append(conflict.Findings, findingsOf(layer, findConflicts(doc.root, keys, files))...)
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

// findingsOf returns the findings with the layer that they are in.
func findingsOf(layer Layer, findings []Finding) []Finding {
	for i := range findings {
		findings[i].Layer, findings[i].Property = layer.Name, layer.Property
	}
	return findings
}

func kindFindings(root *yaml.Node) []Finding {
	var out []Finding
	for _, key := range listKeys {
		if n := get(root, key); n != nil && n.Kind != yaml.SequenceNode && !isNull(n) {
			out = append(out, Finding{Path: key, Message: "it must be a list"})
		}
	}
	return out
}

// findConflicts returns the places of one layer that conflict with what Ingot needs. It sees one layer only, so that the message
// can name it.
func findConflicts(root *yaml.Node, keys bool, files []string) []Finding {
	out := keyConflicts(root)
	out = append(out, fileConflicts(get(root, "write_files"), files)...)
	out = append(out, commandConflicts(get(root, "runcmd"))...)
	if n := get(root, "users"); keys && n != nil && n.Kind == yaml.SequenceNode && !hasDefaultUser(n) {
		out = append(out, Finding{Path: "users", Message: "it leaves out default, the user that sshKeys are authorized for: add - default"})
	}
	return out
}

func keyConflicts(root *yaml.Node) []Finding {
	var out []Finding
	for i := 0; i+1 < len(root.Content); i += 2 {
		if why, ok := ownedKeys[root.Content[i].Value]; ok {
			out = append(out, Finding{Path: root.Content[i].Value, Message: why})
		}
	}
	return out
}

func fileConflicts(list *yaml.Node, files []string) []Finding {
	var out []Finding
	for i, item := range items(list) {
		if p := get(item, "path"); p != nil && slices.Contains(files, cleanPath(p.Value)) {
			out = append(out, Finding{Path: fmt.Sprintf("write_files[%d].path", i), Message: cleanPath(p.Value) + " is written by Ingot: remove the entry"})
		}
	}
	return out
}

func commandConflicts(list *yaml.Node) []Finding {
	var out []Finding
	for i, item := range items(list) {
		if verb := endsScript(item); verb != "" {
			out = append(out, Finding{Path: fmt.Sprintf("runcmd[%d]", i),
				Message: verb + " ends the script that all of runcmd is, before kubelet is started: put it into a script of its own with write_files"})
		}
	}
	return out
}

// items returns the items of a list, and none of anything else.
func items(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

// cleanPath returns the path as the node resolves it. cloud-init takes paths relative to the root.
func cleanPath(p string) string { return path.Clean("/" + p) }

// endsScript returns the word of an item that ends the shell which runs all of runcmd, or an empty text. Text of several lines is
// not checked: there the word may stand in a branch, or in a file that the text writes.
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

// Finding is one place of the users' user data that is refused.
type Finding struct {
	// Layer is the name of the layer: NodeProvider hall-1.
	Layer string
	// Property of that object which has the layer; empty: its userData.
	Property string
	// Path within the layer: write_files[2].path; empty: all of the layer.
	Path string
	// Message says why, and what to do instead. It never quotes a value of the user data, which may be secret.
	Message string
}

// String returns the layer, the path and the message.
func (f Finding) String() string {
	text := Layer{Name: f.Layer, Property: f.Property}.String() + ": "
	if f.Path != "" {
		text += f.Path + ": "
	}
	return text + f.Message
}

// Conflict says that user data contradicts what Ingot needs.
type Conflict struct {
	// Findings in the order of the layers.
	Findings []Finding
}

// Error returns every finding.
func (c *Conflict) Error() string { return "user data fights what the node needs: " + join(c.Findings) }

// Invalid says that user data is not a #cloud-config document.
type Invalid struct {
	// Findings in the order of the layers.
	Findings []Finding
}

// Error returns every finding.
func (i *Invalid) Error() string { return "user data is invalid: " + join(i.Findings) }

func join(findings []Finding) string {
	parts := make([]string, len(findings))
	for i, f := range findings {
		parts[i] = f.String()
	}
	return strings.Join(parts, "; ")
}

// TooLarge says that the documents of a node exceed Limit.
type TooLarge struct {
	// Bytes of all documents together.
	Bytes int
}

// Error returns both sizes.
func (t *TooLarge) Error() string {
	return fmt.Sprintf("the node's documents have %d bytes, the limit is %d: fetch large files at the first boot, or bake them into the image", t.Bytes, Limit)
}

// Unsupported says what the node needs and the image's kind of user data does not have.
type Unsupported struct {
	// Kind of user data.
	Kind string
	// What is lacking, and what to do instead; empty: this version does not render the kind at all.
	What string
}

// Error returns what is missing.
func (u *Unsupported) Error() string {
	if u.What != "" {
		return u.What
	}
	return fmt.Sprintf("this version does not render user data of kind %s; it renders CloudInit and Ignition", u.Kind)
}

// Check reports errors that do not depend on a machine or a host: in layers, properties, templates and the network, and what the
// image's kind of user data does not have. Machine, Host, Join and Secrets may be empty. The errors are those of Render.
func Check(in Input) error {
	in = withContainerd(in)
	resolved, err := properties.Resolve(in.Properties)
	if err != nil {
		return err
	}
	in.Properties, in.Host = nil, HostInput{}
	in.SSHKeys = v1alpha1.AuthorizedKeys(in.SSHKeys, resolved.SSHKeys)
	if resolved.UserData.Text != "" {
		in.Layers = append(slices.Clone(in.Layers), layer(resolved.UserData))
	}
	if resolved.NetworkData.Text != "" {
		in.NetworkData = layer(resolved.NetworkData)
	}
	if err := checkNetwork(overrideNetwork(in.Network, resolved), resolved.Ranges); err != nil {
		return err
	}
	if _, _, err := networkOf(in); err != nil {
		return err
	}
	switch in.Kind {
	case "", v1alpha1.UserDataCloudInit:
		if err := checkSystem(in); err != nil {
			return err
		}
		return Validate(in.Layers, in.SSHKeys, in.Plan)
	case v1alpha1.UserDataIgnition:
		config, err := ignitionConfig(in)
		if err != nil {
			return err
		}
		return convertError(ignition.Validate(config))
	}
	return &Unsupported{Kind: string(in.Kind)}
}

func checkNetwork(spec *v1alpha1.NetworkSpec, text string) error {
	if text == "" {
		return nil
	}
	ranges, err := network.ParseRanges(text)
	if err != nil {
		return err
	}
	gateway, err := netip.ParsePrefix(spec.CIDR)
	if err != nil {
		return &network.Invalid{Field: "network.cidr", Message: "it must be the gateway's address with a prefix length, such as 10.20.4.1/22, where address ranges are given"}
	}
	return ranges.CheckWithin(gateway)
}
