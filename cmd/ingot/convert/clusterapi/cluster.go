package clusterapi

import (
	"cmp"
	"fmt"
	"net"

	"github.com/ingot-dev/ingot/api/input"
	"github.com/ingot-dev/ingot/cmd/ingot/convert/conversion"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
)

// convertCluster makes a TenantCluster that nodes join by kubeadm.
func (c *converter) convertCluster(m offline.Manifest) {
	spec := conversion.ValueAt[map[string]any](m.Object, "spec")
	if conversion.ValueAt[map[string]any](spec, "topology") != nil {
		c.AddFinding(m, "spec.topology", conversion.RuleLost, "%s", notConverted["ClusterClass"])
	}
	kubeadm := map[string]any{}
	conversion.CopyField(kubeadm, "endpoint", c.endpointOf(m, spec))
	// Not the name that `ingot tenant add` gives: that is the name of Cluster API's own Secret.
	secret := m.Name() + "-ingot"
	c.AddFinding(m, "", conversion.RuleAdd, "Secret %s must have the cluster's kubeconfig in the key kubeconfig, best one with no more rights than nodes and drains need: kubectl -n %s create secret generic %s --from-file=kubeconfig=FILE. "+
		"`ingot tenant add %s --join kubeadm --kubeconfig FILE` checks it; do not apply what that prints, because Cluster API keeps an administrator's kubeconfig in Secret %s-kubeconfig, whose name it gives",
		secret, input.ShellWord(cmp.Or(m.Namespace(), "NAMESPACE")), input.ShellWord(secret), input.ShellWord(m.Name()), m.Name())
	out := map[string]any{"kubeconfigSecretRef": map[string]any{"name": secret}, "join": map[string]any{"kubeadm": kubeadm}}
	if domain := conversion.ValueAt[string](spec, "clusterNetwork", "serviceDomain"); domain != "cluster.local" {
		conversion.CopyField(out, "clusterDomain", domain)
	}
	metadata := map[string]any{"name": m.Name()}
	conversion.CopyField(metadata, "namespace", m.Namespace())
	c.AddConverted("TenantCluster", metadata, out)
}

// endpointOf returns the URL of the cluster's API server; empty: nothing in the files says it.
func (c *converter) endpointOf(m offline.Manifest, spec map[string]any) string {
	said := conversion.ValueAt[map[string]any](spec, "controlPlaneEndpoint")
	ref := conversion.ValueAt[map[string]any](spec, "infrastructureRef")
	if conversion.ValueAt[string](ref, "kind") == kindMetal3Cluster {
		if of, there := c.find(m, "spec.infrastructureRef", kindMetal3Cluster, ref); there && conversion.ValueAt[string](said, "host") == "" {
			said = conversion.ValueAt[map[string]any](of.Object, "spec", "controlPlaneEndpoint")
		}
	}
	host := conversion.ValueAt[string](said, "host")
	if host == "" {
		c.AddFinding(m, "spec.controlPlaneEndpoint", conversion.RuleAdd, "the files do not say the API server's address: add spec.join.kubeadm.endpoint where nodes reach it by another one than the kubeconfig has")
		return ""
	}
	port := "6443"
	if n := said["port"]; n != nil {
		port = fmt.Sprint(n)
	}
	return "https://" + net.JoinHostPort(host, cmp.Or(port, "6443"))
}
