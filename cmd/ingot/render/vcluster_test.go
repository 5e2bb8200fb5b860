package render

import (
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
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
		{name: "a cluster that nodes join", args: []string{"-f", samples, "--tenant", "research"}, stdout: "privateNodes:\n  enabled: true\n", stderr: "paid feature"},
		{
			name: "a label of its own", args: []string{"-f", "-", "--tenant", "a"},
			stdin: "apiVersion: ingot.dev/v1alpha1\nkind: Entitlement\nmetadata: {name: a, namespace: s}\n" +
				"spec: {tenantClusterRef: {name: s}, tenant: a, tenantLabel: example.com/team, namespaces: {names: [a]}}\n",
			stdout: "          example.com/team: a\n", stderr: "shared cluster, which schedules the pods",
		},
		{name: "nobody", args: []string{"-f", samples, "--tenant", "none"}, status: cli.ExitFailed, stderr: "expected Entitlement of tenant, or TenantCluster, none in"},
		{name: "without a tenant", args: []string{"-f", samples}, status: cli.ExitUsage, stderr: "expected --tenant"},
	} {
		status, stdout, stderr := render(c.stdin, append(c.args, "--output", "vcluster-values")...)
		if status != c.status || !strings.Contains(stdout, c.stdout) || (c.stdout == "") != (stdout == "") || !strings.Contains(stderr, c.stderr) {
			t.Errorf("%s: status %d\n%s%s", c.name, status, stdout, stderr)
		}
	}
}
