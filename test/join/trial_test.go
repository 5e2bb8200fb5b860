package join

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/cmd/ingot/tenant"
)

// tryJoin has `ingot tenant add --try-join` examine the cluster that kubeadm made, in which nodes join then.
func tryJoin(t *testing.T, method v1alpha1.JoinMethod) {
	t.Helper()
	var out, said bytes.Buffer
	cli.Run(context.Background(), cli.NewGroup("ingot", "", tenant.Command()),
		[]string{"tenant", "add", "research", "-n", "research", "--kubeconfig", server.Cluster.KubeconfigPath(), "--try-join", "--join", string(method)}, &out, &said)
	if !strings.Contains(said.String(), "ok    trial of a join") || strings.Contains(said.String(), "mend  ") {
		t.Errorf("%s:\n%s", method, &said)
	}
}
