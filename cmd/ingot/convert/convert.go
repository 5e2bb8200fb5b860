package convert

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// group is the API group of vMetal.
const group = "management.loft.sh"

// Rules of findings.
const (
	// RuleAdd: Ingot needs a value that vMetal does not have.
	RuleAdd = "convert/add"
	// RuleCheck: the value was carried over, and its meaning in Ingot is different.
	RuleCheck = "convert/check"
	// RuleLost: Ingot has no field for the value.
	RuleLost = "convert/not-carried-over"
)

// Converted is one of Ingot's objects with the findings about it.
type Converted struct {
	// Object as it is applied.
	cli.Object
	// Findings about the manifest that it was converted from.
	Findings []offline.Finding
}

// Result is the outcome of a conversion.
type Result struct {
	// Objects in the order in which they are applied.
	Objects []Converted
	// Findings in the order of the manifests.
	Findings []offline.Finding
}

// converter holds the objects that others refer to, and the result.
type converter struct {
	templates, keys map[string]offline.Manifest
	used            map[string]bool
	out             Result
	// reported is how many findings belong to objects that are converted.
	reported int
}

// Convert converts the objects of vMetal that have a counterpart.
func Convert(all []offline.Manifest) Result {
	c := &converter{templates: map[string]offline.Manifest{}, keys: map[string]offline.Manifest{}, used: map[string]bool{}}
	for _, m := range all {
		switch {
		case !isVMetal(m):
		case m.Kind() == "MachineConfigTemplate":
			c.templates[m.Name()] = m
		case m.Kind() == "SSHKey":
			c.keys[m.Name()] = m
		}
	}
	// In the order in which the results are applied.
	for _, kind := range []string{"OSImage", "NodeProvider", "BareMetalHost"} {
		for _, m := range all {
			if m.Kind() != kind || !isVMetal(m) && kind != "BareMetalHost" {
				continue
			}
			c.reported = len(c.out.Findings)
			map[string]func(offline.Manifest){"OSImage": c.convertOSImage, "NodeProvider": c.convertNodeProvider, "BareMetalHost": c.keepHost}[kind](m)
		}
	}
	for _, m := range all {
		if isVMetal(m) {
			c.reportNotConverted(m)
		}
	}
	return c.out
}

func isVMetal(m offline.Manifest) bool {
	g, _, found := cutGroup(m.APIVersion())
	return found && g == group
}

// notConverted says what to do about kinds that are not converted.
var notConverted = map[string]string{
	"NodeProfile":     "put its nodeLabels and taints into spec.node of the NodeTypes that it is for; startup taints are not needed, because the gate keeps pods off until the verdict passes",
	"NodeClaim":       "make a Machine, or a NodePool with so many replicas, whose nodeTypeRef is the node type; its host is installed again",
	"NodeEnvironment": "say what the network is with spec.network of the NodeProvider",
}

// reportNotConverted adds a finding for an object that was not converted.
func (c *converter) reportNotConverted(m offline.Manifest) {
	switch m.Kind() {
	case "OSImage", "NodeProvider":
	case "MachineConfigTemplate", "SSHKey":
		if !c.used[m.String()] {
			c.addFinding(m, "", RuleLost, "nothing in the files refers to it")
		}
	default:
		if m.Kind() == "NodeClaim" {
			c.reportKubeletArgs(m)
		}
		if what := notConverted[m.Kind()]; what != "" {
			c.addFinding(m, "", RuleLost, "%s", what)
			return
		}
		c.addFinding(m, "", RuleLost, "this version does not know what to make of it")
	}
}

func (c *converter) addFinding(m offline.Manifest, field, rule, format string, args ...any) {
	c.out.Findings = append(c.out.Findings, m.NewFinding(field, rule, format, args...))
}

// addConverted adds one of Ingot's objects, with the findings since the object before it.
func (c *converter) addConverted(kind string, metadata, spec map[string]any) {
	c.addObject(cli.Object{"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind, "metadata": metadata, "spec": spec})
}

func (c *converter) addObject(o cli.Object) {
	c.out.Objects = append(c.out.Objects, Converted{o, c.out.Findings[c.reported:]})
	c.reported = len(c.out.Findings)
}

// valueAt returns a part of an object; the zero value: it is not there or has another type.
func valueAt[T any](object map[string]any, path ...string) T {
	var here any = object
	for _, step := range path {
		inner, _ := here.(map[string]any)
		here = inner[step]
	}
	value, _ := here.(T)
	return value
}

// copyField sets a field when the value is not empty.
func copyField(into map[string]any, key string, value any) {
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

// reportDroppedFields adds a finding for each field that is not in read. why has the reasons for fields that Ingot does not have.
func (c *converter) reportDroppedFields(m offline.Manifest, object map[string]any, within string, why map[string]string, read ...string) {
	for _, field := range slices.Sorted(maps.Keys(object)) {
		switch {
		case why[field] != "":
			c.addFinding(m, within+"."+field, RuleLost, "%s", why[field])
		case !slices.Contains(read, field):
			c.addFinding(m, within+"."+field, RuleLost, "this version does not know what to make of it")
		}
	}
}

// newMetadata returns the metadata of an object that is converted from a manifest.
func newMetadata(m offline.Manifest) map[string]any {
	out := map[string]any{"name": m.Name()}
	copyField(out, "labels", valueAt[map[string]any](m.Object, "metadata", "labels"))
	return out
}
