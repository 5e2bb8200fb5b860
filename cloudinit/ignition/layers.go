package ignition

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/coreos/butane/config"
	"github.com/coreos/butane/config/common"
	"github.com/coreos/ignition/v2/config/v3_4"
	"github.com/coreos/ignition/v2/config/v3_4/types"
	"github.com/coreos/vcontext/report"
	"gopkg.in/yaml.v3"
)

// Finding is a place in a user's layer that is refused.
type Finding struct {
	// Layer is the name of the object that has the layer, and Property the key of its property; an empty Property: the layer is the
	// object's userData.
	Layer, Property string
	// Path within the layer; empty: the finding is about all of the layer.
	Path string
	// Message says why, and what to do instead. It quotes no value.
	Message string
}

// Invalid is the error about layers that are not valid butane documents of the variant.
type Invalid struct {
	// Findings in the order of the layers.
	Findings []Finding
}

// Error returns the number of findings and the first of them.
func (i *Invalid) Error() string {
	return fmt.Sprintf("%d findings, the first: %s", len(i.Findings), i.Findings[0])
}

// Conflict is the error about layers that conflict with what the node needs.
type Conflict struct {
	// Findings in the order of the layers.
	Findings []Finding
}

// Error returns the number of findings and the first of them.
func (c *Conflict) Error() string {
	return fmt.Sprintf("%d findings, the first: %s", len(c.Findings), c.Findings[0])
}

// String returns the layer, the path and the message.
func (f Finding) String() string { return f.Layer + ": " + f.Path + ": " + f.Message }

// mergeLayers translates the users' layers, checks that they do not conflict with Ingot's document, and merges them.
func (c Config) mergeLayers(ours butane) (types.Config, error) {
	// In a merge the version of the child takes precedence, and the parent must have a version.
	merged := types.Config{Ignition: types.Ignition{Version: types.MaxVersion.String()}}
	var wrong Invalid
	var conflict Conflict
	for _, layer := range c.Layers {
		if strings.TrimSpace(layer.Text) == "" {
			continue
		}
		read, findings := translate(c.Variant, layer)
		wrong.Findings = append(wrong.Findings, findingsOf(layer, findings)...)
		conflict.Findings = append(conflict.Findings, findingsOf(layer, c.findConflicts(read, ours))...)
		merged = v3_4.Merge(merged, read)
	}
	if len(wrong.Findings) > 0 {
		return types.Config{}, &wrong
	}
	if len(conflict.Findings) > 0 {
		return types.Config{}, &conflict
	}
	return merged, nil
}

// findingsOf sets the layer of the findings, and returns them.
func findingsOf(layer Layer, findings []Finding) []Finding {
	for i := range findings {
		findings[i].Layer, findings[i].Property = layer.Name, layer.Property
	}
	return findings
}

// maxAliases limits the YAML aliases in one layer, because a few lines of nested aliases can mean billions of values.
const maxAliases = 100

// translate returns the Ignition configuration that a layer means, or findings when the layer is not valid.
func translate(variant Variant, layer Layer) (out types.Config, findings []Finding) {
	finding := func(at, format string, args ...any) []Finding {
		return []Finding{{Path: at, Message: fmt.Sprintf(format, args...)}}
	}
	defer func() {
		// Malformed text has made YAML parsers panic before.
		if recover() != nil {
			out, findings = types.Config{}, finding("", "the parser gave up: it is not butane")
		}
	}()
	var node yaml.Node
	if strings.HasPrefix(layer.Text, "#!") || strings.HasPrefix(layer.Text, "#cloud-config") {
		return out, finding("", "the image reads Ignition, which runs neither scripts nor cloud-config: write a butane document with variant: %s", variant)
	}
	if err := yaml.Unmarshal([]byte(layer.Text), &node); err != nil {
		return out, finding("", "it is not YAML, and must be a butane document with variant: %s", variant)
	}
	if countAliases(&node) > maxAliases {
		return out, finding("", "it has more than %d YAML aliases: write the values out", maxAliases)
	}
	var head struct{ Variant, Version string }
	if err := node.Decode(&head); err != nil || head.Variant != string(variant) {
		return out, finding("variant", "it must be %s, the image's: Ignition's own JSON is not merged, write a butane document", variant)
	}
	text, messages, err := config.TranslateBytes([]byte(layer.Text), common.TranslateBytesOptions{
		// A compressor of another version can give other bytes for the same text.
		Raw: true, TranslateOptions: common.TranslateOptions{NoResourceAutoCompression: true},
	})
	if err != nil || len(messages.Entries) > 0 {
		return out, reportFindings(messages, err)
	}
	out, messages, err = v3_4.ParseCompatibleVersion(text)
	if err != nil {
		if !messages.IsFatal() {
			return out, finding("version", "it becomes an Ignition version that is newer than 3.4.0: use %s or older", newestVersions[variant])
		}
		return out, reportFindings(messages, err)
	}
	return out, nil
}

// countAliases returns the number of YAML aliases in the document.
func countAliases(n *yaml.Node) int {
	if n.Kind == yaml.AliasNode {
		return 1
	}
	sum := 0
	for _, c := range n.Content {
		sum += countAliases(c)
	}
	return sum
}

// quoted matches the quotations in messages of the translators. They can be values, and a value can be secret.
var quoted = regexp.MustCompile("\"[^\"]*\"|'[^']*'|`[^`]*`")

// reportFindings returns a finding for each message of the translators, including warnings: a misspelt key or a section that is left
// out is only a warning to them.
func reportFindings(messages report.Report, err error) []Finding {
	var out []Finding
	for _, e := range messages.Entries {
		out = append(out, Finding{Path: strings.TrimPrefix(e.Context.String(), "$."), Message: quoted.ReplaceAllString(e.Message, "...")})
	}
	if len(out) > 0 {
		return out
	}
	var version common.ErrUnknownVersion
	if errors.As(err, &version) {
		return []Finding{{Path: "version", Message: "butane does not know it for this variant"}}
	}
	if errors.Is(err, common.ErrInvalidVersion) {
		return []Finding{{Path: "version", Message: "it must be a version such as 1.5.0"}}
	}
	return []Finding{{Message: "butane cannot read it: a value is of the wrong kind, or a key is there twice"}}
}
