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

// Finding is one place of people's layers that cannot stand.
type Finding struct {
	// Layer that it is in, and the property of the object that has it.
	Layer, Property string
	// Path within the layer; empty: the whole layer.
	Path string
	// Message says why, and what to do instead. It quotes no value.
	Message string
}

// Invalid is layers that are no butane documents of the variant.
type Invalid struct {
	// Findings in the order of the layers.
	Findings []Finding
}

// Error says how many there are, and the first.
func (i *Invalid) Error() string {
	return fmt.Sprintf("%d findings, the first: %s", len(i.Findings), i.Findings[0])
}

// Conflict is layers that fight what the node needs.
type Conflict struct {
	// Findings in the order of the layers.
	Findings []Finding
}

// Error says how many there are, and the first.
func (c *Conflict) Error() string {
	return fmt.Sprintf("%d findings, the first: %s", len(c.Findings), c.Findings[0])
}

// String is the layer, the path and the message.
func (f Finding) String() string { return f.Layer + ": " + f.Path + ": " + f.Message }

// mergeLayers translates, checks and merges the users' layers.
func (c Config) mergeLayers(ours butane) (types.Config, error) {
	// As a child it would win over the version of a parent, and a parent must have one.
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

// findingsOf are the findings with the layer that they are in.
func findingsOf(layer Layer, findings []Finding) []Finding {
	for i := range findings {
		findings[i].Layer, findings[i].Property = layer.Name, layer.Property
	}
	return findings
}

// maxAliases limits the YAML aliases in one layer, because a few lines of nested aliases can mean billions of values.
const maxAliases = 100

// translate reads one layer.
func translate(variant Variant, layer Layer) (out types.Config, findings []Finding) {
	one := func(at, format string, args ...any) []Finding {
		return []Finding{{Path: at, Message: fmt.Sprintf(format, args...)}}
	}
	defer func() {
		// Parsers of YAML have panicked on malformed text before.
		if recover() != nil {
			out, findings = types.Config{}, one("", "the parser gave up: it is not butane")
		}
	}()
	var node yaml.Node
	if strings.HasPrefix(layer.Text, "#!") || strings.HasPrefix(layer.Text, "#cloud-config") {
		return out, one("", "the image reads Ignition, which runs neither scripts nor cloud-config: write a butane document with variant: %s", variant)
	}
	if err := yaml.Unmarshal([]byte(layer.Text), &node); err != nil {
		return out, one("", "it is not YAML, and must be a butane document with variant: %s", variant)
	}
	if countAliases(&node) > maxAliases {
		return out, one("", "it has more than %d YAML aliases: write the values out", maxAliases)
	}
	var head struct{ Variant, Version string }
	if err := node.Decode(&head); err != nil || head.Variant != string(variant) {
		return out, one("variant", "it must be %s, the image's: Ignition's own JSON is not merged, write a butane document", variant)
	}
	text, said, err := config.TranslateBytes([]byte(layer.Text), common.TranslateBytesOptions{
		// What a compressor of another version makes of the same text is other bytes.
		Raw: true, TranslateOptions: common.TranslateOptions{NoResourceAutoCompression: true},
	})
	if err != nil || len(said.Entries) > 0 {
		return out, reportFindings(said, err)
	}
	out, said, err = v3_4.ParseCompatibleVersion(text)
	if err != nil {
		if !said.IsFatal() {
			return out, one("version", "it becomes an Ignition version that is newer than 3.4.0: use %s or older", newestVersions[variant])
		}
		return out, reportFindings(said, err)
	}
	return out, nil
}

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

// quoted is what messages of the translators quote: it may be a value, and a value may be secret.
var quoted = regexp.MustCompile("\"[^\"]*\"|'[^']*'|`[^`]*`")

// reportFindings are the translators' errors, and their warnings: a misspelt key and a section that is left out are no more.
func reportFindings(said report.Report, err error) []Finding {
	var out []Finding
	for _, e := range said.Entries {
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
