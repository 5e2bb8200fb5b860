package render

import (
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

// ownNodes is a virtual cluster that nodes join, and ownTenant an Entitlement of a tenant of that name.
const (
	ownNodes  = "apiVersion: ingot.dev/v1alpha1\nkind: TenantCluster\nmetadata: {name: own, namespace: v}\nspec: {kubeconfigSecretRef: {name: x}, join: {vcluster: {}}}\n"
	ownTenant = "apiVersion: ingot.dev/v1alpha1\nkind: Entitlement\nmetadata: {name: e, namespace: s}\nspec: {tenantClusterRef: {name: s}, tenant: own, namespaces: {names: [a]}}\n"
)

func TestTheValuesOfAVirtualClusterFollowFromTheTenant(t *testing.T) {
	for _, c := range []struct {
		name, stdin string
		args        []string
		status      int
		stdout      string
		stderr      string
	}{
		{
			name: "a tenant of a shared cluster", args: []string{"-f", samples + "/sharing", "--tenant", "legal-ai"}, stderr: "paid feature",
			stdout: `sync:
  fromHost:
    deviceClasses:
      enabled: true
      selector:
        matchLabels:
          gpu.platform/tenant: legal-ai
  toHost:
    resourceClaimTemplates:
      enabled: true
    resourceClaims:
      enabled: true
`,
		},
		{name: "a virtual cluster that nodes join", args: []string{"-f", "-", "--tenant", "own"}, stdin: ownNodes, stdout: "privateNodes:\n  enabled: true\n", stderr: "paid feature"},
		{
			name: "a cluster that nodes join otherwise", args: []string{"-f", samples, "--tenant", "research"}, status: cli.ExitFailed,
			stderr: "TenantCluster research joins by tlsBootstrap, not by vcluster: expected the tenant of an Entitlement, or a TenantCluster that joins by vcluster",
		},
		{
			name: "the shared cluster in place of a tenant", args: []string{"-f", samples + "/sharing", "--tenant", "gpus"}, status: cli.ExitFailed,
			stderr: "TenantCluster gpus joins by tlsBootstrap, not by vcluster; did you mean tenant legal-ai or research-ai?",
		},
		{
			name: "a tenant and a virtual cluster of one name", args: []string{"-f", "-", "--tenant", "own"}, status: cli.ExitFailed, stdin: ownNodes + "---\n" + ownTenant,
			stderr: "expected one tenant or TenantCluster own, seen Entitlement s/e, TenantCluster v/own: say which with -f",
		},
		{
			name: "a tenant and another cluster of one name", args: []string{"-f", "-", "--tenant", "own"}, stdin: strings.ReplaceAll(ownNodes, "vcluster", "kubeadm") + "---\n" + ownTenant,
			stdout: "          gpu.platform/tenant: own\n", stderr: "shared cluster, which schedules the pods",
		},
		{
			name: "the tenant of a cluster of that name elsewhere", args: []string{"-f", "-", "--tenant", "own"}, status: cli.ExitFailed,
			stdin:  strings.ReplaceAll(ownNodes, "vcluster", "kubeadm") + "---\n" + strings.NewReplacer("tenant: own", "tenant: a", "{name: s}", "{name: own}").Replace(ownTenant),
			stderr: "TenantCluster own joins by kubeadm, not by vcluster: expected the tenant",
		},
		{name: "with a NodeType", args: []string{"-f", samples + "/sharing", "--tenant", "legal-ai", "--nodetype", "a100"}, status: cli.ExitUsage, stderr: "neither --nodetype, --machine"},
		{
			name: "a label of its own", args: []string{"-f", "-", "--tenant", "a"},
			stdin: "apiVersion: ingot.dev/v1alpha1\nkind: Entitlement\nmetadata: {name: a, namespace: s}\n" +
				"spec: {tenantClusterRef: {name: s}, tenant: a, tenantLabel: example.com/team, namespaces: {names: [a]}}\n",
			stdout: "          example.com/team: a\n", stderr: "shared cluster, which schedules the pods",
		},
		{
			name: "nobody", args: []string{"-f", samples + "/sharing", "--tenant", "none"}, status: cli.ExitFailed,
			stderr: "expected Entitlement of tenant, or TenantCluster, none in " + samples + "/sharing",
		},
		{name: "nobody, and what there is", args: []string{"-f", "-", "--tenant", "none"}, status: cli.ExitFailed, stdin: ownNodes + "---\n" + strings.ReplaceAll(ownTenant, "own", "a"), stderr: "seen tenant a, TenantCluster own"},
		{name: "without a tenant", args: []string{"-f", samples}, status: cli.ExitUsage, stderr: "expected --tenant"},
	} {
		status, stdout, stderr := render(c.stdin, append(c.args, "--output", "vcluster-values")...)
		if status != c.status || !strings.Contains(stdout, c.stdout) || (c.stdout == "") != (stdout == "") || !strings.Contains(stderr, c.stderr) {
			t.Errorf("%s: status %d\n%s%s", c.name, status, stdout, stderr)
		}
	}
}
