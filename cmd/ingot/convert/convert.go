package convert

import (
	"slices"

	"github.com/ingot-dev/ingot/cmd/ingot/convert/conversion"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// group is the API group of vMetal.
const group = "management.loft.sh"

// converter holds the objects that others refer to, and the report.
type converter struct {
	templates, keys map[string]offline.Manifest
	used            map[string]bool
	// hasTenants is true where something names the cluster that nodes join.
	hasTenants bool
	conversion.Report
}

// Convert converts the objects of vMetal that have a counterpart.
func Convert(all []offline.Manifest) conversion.Report {
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
	c.hasTenants = slices.ContainsFunc(all, func(m offline.Manifest) bool { return vClusterOf(m) != "" })
	// In the order in which the results are applied.
	for _, kind := range []string{"OSImage", "NodeProvider", "BareMetalHost"} {
		for _, m := range all {
			if m.Kind() != kind || !isVMetal(m) && kind != "BareMetalHost" {
				continue
			}
			c.Begin()
			map[string]func(offline.Manifest){"OSImage": c.convertOSImage, "NodeProvider": c.convertNodeProvider, "BareMetalHost": c.keepHost}[kind](m)
		}
	}
	c.convertJoins(all)
	for _, m := range all {
		if isVMetal(m) {
			c.reportNotConverted(m)
		}
	}
	return c.Report
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
			c.AddFinding(m, "", conversion.RuleLost, "nothing in the files refers to it")
		}
	default:
		if m.Kind() == "NodeClaim" {
			c.reportKubeletArgs(m)
		}
		if what := notConverted[m.Kind()]; what != "" {
			c.AddFinding(m, "", conversion.RuleLost, "%s", what)
			return
		}
		c.AddFinding(m, "", conversion.RuleLost, "this version does not know what to make of it")
	}
}
