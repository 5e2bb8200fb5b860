package convert

import (
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

func TestTheJoinOfNodesIsConvertedOrAskedFor(t *testing.T) {
	const provider = "apiVersion: management.loft.sh/v1\nkind: NodeProvider\nmetadata: {name: hall}\nspec:\n  metal3: {clusterRef: {namespace: metal}, nodeTypes: [{name: cpu, properties: {vcluster.com/user-data: %q}}]}\n"
	const claim = "---\napiVersion: management.loft.sh/v1\nkind: NodeClaim\nmetadata: {name: a}\nspec: {vClusterRef: research}\n"
	for name, c := range map[string]struct {
		stdin        string
		want, absent string
	}{
		"nothing":              {strings.ReplaceAll(provider, "%q", "''"), "NodeProvider hall: spec: no NodeClaim says which cluster its nodes join: make a TenantCluster", "kubeadm at"},
		"kubeadm":              {strings.ReplaceAll(provider, "%q", "'#!/bin/sh\n\n      kubeadm join 10.0.0.1:6443 --token abcdef.0123456789abcdef'"), "user data joins nodes by kubeadm at https://10.0.0.1:6443: make a TenantCluster of that cluster with spec.join.kubeadm.endpoint", "abcdef.0123456789abcdef"},
		"kubeadm, flags first": {strings.ReplaceAll(provider, "%q", "'#!/bin/sh\n\n      kubeadm join --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash sha256:0123456789012345678901234567890123456789012345678901234567890123 [fd00::1]:6443'"), "by kubeadm at https://[fd00::1]:6443:", "abcdef.0123456789abcdef"},
		"a vCluster":           {strings.ReplaceAll(provider, "%q", "''") + claim, "add spec.join.vcluster.endpoint, https://HOST:PORT as servers reach it, and the Secret research-kubeconfig", "no NodeClaim says"},
		"without a namespace":  {claim, "add metadata.namespace to TenantCluster research", "no NodeClaim says"},
	} {
		status, stdout, stderr := convert(c.stdin, "-")
		if status != cli.ExitOK || !strings.Contains(stderr, c.want) || strings.Contains(stderr, c.absent) {
			t.Errorf("%s: status %d, expected %q: %s", name, status, c.want, stderr)
		}
		if strings.Contains(c.stdin, "vClusterRef") != strings.Contains(stdout, "  join:\n    vcluster: {}\n  kubeconfigSecretRef:\n    name: research-kubeconfig\n") {
			t.Errorf("%s: %s", name, stdout)
		}
	}
}
