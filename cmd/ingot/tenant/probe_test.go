package tenant

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/test/management"
)

func TestTheRightsOfAProbeAreAskedForWhereANodeTypeHasOne(t *testing.T) {
	namespace := server.Namespace(t)
	common := []string{"research", "-n", namespace, "--kubeconfig", write(t, "kubeconfig", serviceAccount(t, namespace))}
	sample, err := os.ReadFile("../../../config/samples/nodetype.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const without = "  validation: {"
	if strings.Count(string(sample), without) != 1 {
		t.Fatalf("the sample has %q %d times", without, strings.Count(string(sample), without))
	}
	probed := strings.Replace(string(sample), without, without+"probe: {kind: NvidiaSMI, image: cuda}, ", 1)
	_, _, stderr := ingot(append(common, "-f", write(t, "plain.yaml", string(sample)))...)
	if strings.Contains(stderr, "pods in namespace default") {
		t.Errorf("rights are asked for that nobody needs:\n%s", stderr)
	}
	common = append(common, "-f", write(t, "probed.yaml", probed))
	_, _, stderr = ingot(common...)
	says(t, stderr, "mend  rights: the user may not get, create, delete pods in namespace default, to use a node's devices once")
	_, roles, _ := ingot(append(common, "--tenant-side")...)
	for _, o := range apply(t, roles) {
		t.Cleanup(func() { _ = server.Client.Delete(context.Background(), o) })
	}
	management.Eventually(t, "with the roles no right is missing", func() bool {
		_, _, stderr := ingot(common...)
		return strings.Contains(stderr, "the user may do all that Ingot does")
	})
}
