package main

import (
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

const samples = "../../config/samples"

func TestManifestsAreAnsweredForWithoutACluster(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"explain", "-f", samples, "--nodetype", "h100"}, "nvidia.com/gpu   8"},
		{[]string{"validate", "-f", samples}, ""},
		{[]string{"render", "-f", samples, "--nodetype", "h100", "--machine", "a", "--output", "user-data"}, "#cloud-config"},
		{[]string{"verify", "-f", samples, "--nodetype", "h100", "--node", "verify/testdata/node-h100.yaml"}, "Node training-7xk2p as NodeType h100: Pass"},
		{[]string{"mig", "layouts", "--gpu", "H100-SXM5-80GB", "--contains", "3g.40gb=2"}, "3g.40gb@0 3g.40gb@4"},
		{[]string{"convert", "vmetal", "convert/testdata/vmetal.yaml"}, "kind: NodeProvider"},
	} {
		if status, stdout, stderr := ingot(c.args...); status != cli.ExitOK || !strings.Contains(stdout, c.want) {
			t.Errorf("%v: status %d, want %q: %s%s", c.args, status, c.want, stdout, stderr)
		}
	}
	if status, _, stderr := ingot("explain"); status != cli.ExitUsage || !strings.Contains(stderr, "usage: ingot explain -f FILE") {
		t.Errorf("status %d: %s", status, stderr)
	}
}
