package convert

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/cmd/ingot/convert/conversion"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// kubeadmEndpoint matches the server of a command `kubeadm join HOST:PORT`.
var kubeadmEndpoint = regexp.MustCompile(`kubeadm\s+join\b[^\n;|&]*?\s((?:[A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\]):[0-9]{1,5})(?:["'\s]|$)`)

// convertJoins makes a TenantCluster of each vCluster that a NodeClaim or a NodeEnvironment names: nodes join it as a vCluster with private nodes.
func (c *converter) convertJoins(all []offline.Manifest) {
	said := map[string]bool{}
	for _, m := range all {
		name, namespace := vClusterOf(m), m.Namespace()
		if name == "" || said[namespace+"/"+name] {
			continue
		}
		said[namespace+"/"+name] = true
		c.Begin()
		c.AddFinding(m, "spec.vClusterRef", conversion.RuleAdd, "nodes join the vCluster %s with private nodes: add spec.join.vcluster.endpoint, https://HOST:PORT as servers reach it, and the Secret %s-kubeconfig with the key kubeconfig; "+
			"ingot tenant add %s --join vcluster --try-join --include-secret checks the cluster and prints both", name, name, input.ShellWord(name))
		metadata := map[string]any{"name": name}
		if namespace == "" {
			c.AddFinding(m, "metadata.namespace", conversion.RuleAdd, "add metadata.namespace to TenantCluster %s, that of its NodePools and Machines", name)
		} else {
			metadata["namespace"] = namespace
		}
		c.AddConverted("TenantCluster", metadata, map[string]any{
			"kubeconfigSecretRef": map[string]any{"name": name + "-kubeconfig"}, "join": map[string]any{"vcluster": map[string]any{}},
		})
	}
}

// vClusterOf returns the vCluster that the nodes of an object join; empty: it names none.
func vClusterOf(m offline.Manifest) string {
	if !isVMetal(m) || m.Kind() != "NodeClaim" && m.Kind() != "NodeEnvironment" {
		return ""
	}
	return conversion.ValueAt[string](m.Object, "spec", "vClusterRef")
}

// reportJoin says how the nodes of a NodeProvider join where nothing else does: by the command of its user data, or by what must be filled in.
func (c *converter) reportJoin(m offline.Manifest) {
	endpoints := map[string]bool{}
	texts := c.userData(conversion.ValueAt[map[string]any](m.Object, "spec", "properties"))
	for _, item := range conversion.ValueAt[[]any](m.Object, "spec", "metal3", "nodeTypes") {
		one, _ := item.(map[string]any)
		texts = append(texts, c.userData(conversion.ValueAt[map[string]any](one, "properties"))...)
	}
	for _, text := range texts {
		for _, found := range kubeadmEndpoint.FindAllStringSubmatch(text, -1) {
			endpoint := "https://" + found[1]
			if u, err := url.Parse(endpoint); err == nil && u.Hostname() != "" {
				endpoints[endpoint] = true
			}
		}
	}
	switch named := slices.Sorted(maps.Keys(endpoints)); {
	case len(named) > 0:
		c.AddFinding(m, "spec", conversion.RuleAdd, "user data joins nodes by kubeadm at %s: make a TenantCluster of that cluster with spec.join.kubeadm.endpoint; ingot tenant add NAME --join kubeadm --endpoint %s --try-join checks the cluster and prints it",
			strings.Join(named, " and "), input.ShellWord(named[0]))
	case !c.hasTenants:
		c.AddFinding(m, "spec", conversion.RuleAdd, "no NodeClaim says which cluster its nodes join: make a TenantCluster; ingot tenant add NAME --join vcluster, or kubeadm or tlsBootstrap, with --try-join checks the cluster and prints it")
	}
}
