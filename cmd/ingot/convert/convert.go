package convert

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// group is vMetal's.
const group = "management.loft.sh"

// Rules of findings.
const (
	// RuleAdd: Ingot needs what vMetal does not say.
	RuleAdd = "convert/add"
	// RuleCheck: it was carried over, and means something else here.
	RuleCheck = "convert/check"
	// RuleLost: it has no place here.
	RuleLost = "convert/not-carried-over"
)

// Converted is one of Ingot's objects.
type Converted struct {
	// Object as it is applied.
	cli.Object
	// Findings of what it was made of.
	Findings []offline.Finding
}

// Result is what became of the manifests.
type Result struct {
	// Objects in the order in which they are applied.
	Objects []Converted
	// Findings in the order of the manifests.
	Findings []offline.Finding
}

// converter has what objects refer to.
type converter struct {
	templates, keys map[string]offline.Manifest
	used            map[string]bool
	out             Result
	// told is how many findings belong to objects that are done.
	told int
}

// Convert converts what it knows of vMetal's objects.
func Convert(all []offline.Manifest) Result {
	c := &converter{templates: map[string]offline.Manifest{}, keys: map[string]offline.Manifest{}, used: map[string]bool{}}
	for _, m := range all {
		switch {
		case !ofVMetal(m):
		case m.Kind() == "MachineConfigTemplate":
			c.templates[m.Name()] = m
		case m.Kind() == "SSHKey":
			c.keys[m.Name()] = m
		}
	}
	// In the order in which the results are applied.
	for _, kind := range []string{"OSImage", "NodeProvider", "BareMetalHost"} {
		for _, m := range all {
			if m.Kind() != kind || !ofVMetal(m) && kind != "BareMetalHost" {
				continue
			}
			c.told = len(c.out.Findings)
			map[string]func(offline.Manifest){"OSImage": c.osImage, "NodeProvider": c.nodeProvider, "BareMetalHost": c.host}[kind](m)
		}
	}
	for _, m := range all {
		if ofVMetal(m) {
			c.leftOver(m)
		}
	}
	return c.out
}

func ofVMetal(m offline.Manifest) bool {
	g, _, found := cutGroup(m.APIVersion())
	return found && g == group
}

// elsewhere says what becomes of kinds that are not converted.
var elsewhere = map[string]string{
	"NodeProfile":     "put its nodeLabels and taints into spec.node of the NodeTypes that it is for; startup taints are not needed, because the gate keeps pods off until the verdict passes",
	"NodeClaim":       "make a Machine, or a NodePool with so many replicas, whose nodeTypeRef is the node type; its host is installed again",
	"NodeEnvironment": "say what the network is with spec.network of the NodeProvider",
}

// leftOver tells of objects that nothing was made of.
func (c *converter) leftOver(m offline.Manifest) {
	switch m.Kind() {
	case "OSImage", "NodeProvider":
	case "MachineConfigTemplate", "SSHKey":
		if !c.used[m.String()] {
			c.add(m, "", RuleLost, "nothing in the files refers to it")
		}
	default:
		if what := elsewhere[m.Kind()]; what != "" {
			c.add(m, "", RuleLost, "%s", what)
			return
		}
		c.add(m, "", RuleLost, "this version does not know what to make of it")
	}
}

func (c *converter) add(m offline.Manifest, field, rule, format string, args ...any) {
	c.out.Findings = append(c.out.Findings, m.Finding(field, rule, format, args...))
}

// made adds one of Ingot's objects, to which the findings since the last one belong.
func (c *converter) made(kind string, metadata, spec map[string]any) {
	c.object(cli.Object{"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind, "metadata": metadata, "spec": spec})
}

func (c *converter) object(o cli.Object) {
	c.out.Objects = append(c.out.Objects, Converted{o, c.out.Findings[c.told:]})
	c.told = len(c.out.Findings)
}

// at is a part of an object; nil: it is not there, or of another kind.
func at[T any](object map[string]any, path ...string) T {
	var here any = object
	for _, step := range path {
		inner, _ := here.(map[string]any)
		here = inner[step]
	}
	value, _ := here.(T)
	return value
}

// carried copies a field where it is there.
func carried(into map[string]any, key string, value any) {
	switch v := value.(type) {
	case nil:
	case string:
		if v != "" {
			into[key] = v
		}
	case map[string]any:
		if len(v) > 0 {
			into[key] = v
		}
	case []any:
		if len(v) > 0 {
			into[key] = v
		}
	default:
		into[key] = fmt.Sprint(v)
	}
}

// lost tells of fields that have no place here, and of all but the ones that somebody else reads.
func (c *converter) lost(m offline.Manifest, object map[string]any, within string, why map[string]string, read ...string) {
	for _, field := range slices.Sorted(maps.Keys(object)) {
		switch {
		case why[field] != "":
			c.add(m, within+"."+field, RuleLost, "%s", why[field])
		case !slices.Contains(read, field):
			c.add(m, within+"."+field, RuleLost, "this version does not know what to make of it")
		}
	}
}

// named is the metadata of an object that is made of a manifest.
func named(m offline.Manifest) map[string]any {
	out := map[string]any{"name": m.Name()}
	carried(out, "labels", at[map[string]any](m.Object, "metadata", "labels"))
	return out
}
