package clusterapi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/cmd/ingot/convert/conversion"
)

const cleaningField = "spec.template.spec.automatedCleaningMode"

// convertProvider makes the NodeProvider of the namespace of the hosts, the first time that one is needed. clusters are those whose nodes are made of its
// hosts.
func (c *converter) convertProvider(d deployment, clusters []string) {
	mode := conversion.ValueAt[string](d.hosts, "automatedCleaningMode")
	erase := eraseOf(mode)
	if there := c.providers[d.hostNamespace]; there != nil {
		if d.hosts != nil && fmt.Sprint(there["erase"]) != fmt.Sprint(erase) {
			made := conversion.ValueAt[map[string]any](there, "erase")
			c.AddFinding(d.template, cleaningField, conversion.RuleCheck,
				"a NodeProvider erases all of its hosts alike, and NodeProvider %s has %s: give hosts with another rule a namespace of their own", d.hostNamespace, eraseText(made))
		}
		return
	}
	switch {
	case d.hosts == nil:
	case mode == "disabled":
		c.AddFinding(d.template, cleaningField, conversion.RuleCheck, "a host whose disks are not erased stays with its tenant: another one gets it after an erase only")
	case mode == "":
		c.AddFinding(d.template, cleaningField, conversion.RuleCheck,
			"without it Cluster API has a host cleaned between two Machines as the host itself says, also when a MachineDeployment is rolled: add erase.onRoll: Metadata to NodeProvider %s if a roll is to clean all disks", d.hostNamespace)
	}
	if len(clusters) > 1 {
		c.AddFinding(d.Manifest, "spec.clusterName", conversion.RuleCheck,
			"the hosts of NodeProvider %s are those of the Clusters %s: Cluster API lets any of them have a host, and Ingot one other than the last only with erase.allowMetadataBetweenTenants, after a metadata clean",
			d.hostNamespace, strings.Join(clusters, ", "))
	}
	spec := map[string]any{"hostNamespace": d.hostNamespace, "metal3": map[string]any{}, "erase": erase}
	c.providers[d.hostNamespace] = spec
	c.AddConverted("NodeProvider", map[string]any{"name": d.hostNamespace}, spec)
}

// eraseOf returns what a NodeProvider erases as a template with that mode has it: Cluster API cleans a host after each Machine, whether its MachineDeployment is
// rolled or scaled down. Where a template leaves it to the hosts, a roll erases nothing.
func eraseOf(mode string) map[string]any {
	switch mode {
	case "disabled":
		return map[string]any{"onRelease": "None"}
	case "metadata":
		return map[string]any{"onRelease": "Metadata", "onRoll": "Metadata"}
	}
	return map[string]any{"onRelease": "Metadata"}
}

// eraseText returns what eraseOf has returned as it is written.
func eraseText(erase map[string]any) string {
	text := "onRelease: " + conversion.ValueAt[string](erase, "onRelease")
	if onRoll := conversion.ValueAt[string](erase, "onRoll"); onRoll != "" {
		text += ", onRoll: " + onRoll
	}
	return text
}

// clustersOf returns the Clusters whose nodes are made of the hosts of the namespace, in order. Clusters of one name in two namespaces are two.
func clustersOf(deployments []deployment, hostNamespace string) []string {
	var clusters []string
	for _, d := range deployments {
		if name := d.Namespace() + "/" + d.cluster(); d.hostNamespace == hostNamespace && !slices.Contains(clusters, name) {
			clusters = append(clusters, name)
		}
	}
	slices.Sort(clusters)
	return clusters
}
