package join

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/ingot-dev/ingot/cloudinit"
	"github.com/ingot-dev/ingot/controllers/plan/nodeidentity"
	"github.com/ingot-dev/ingot/test/management"
)

// checkIdentity sets the Node's providerID as the cluster's own cloud provider does. kubelet must leave it, and the Node must be known without it.
func checkIdentity(ctx context.Context, t *testing.T, clients kubernetes.Interface, in cloudinit.Input) {
	t.Helper()
	nodes, name := clients.CoreV1().Nodes(), in.Machine.Name
	patch := []byte(`{"spec": {"providerID": "vcluster://` + name + `"}}`)
	node, err := nodes.Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	patched := heartbeat(node)
	management.Eventually(t, "kubelet has written the Node's status twice since", func() bool {
		if node, err = nodes.Get(ctx, name, metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
		return heartbeat(node).After(patched.Add(time.Second))
	})
	if node.Spec.ProviderID != "vcluster://"+name {
		t.Errorf("kubelet changed the providerID to %q", node.Spec.ProviderID)
	}
	claim := nodeidentity.Claim{MachineUID: "4be1a5a0", Attempt: 2, ByCluster: true, SystemUUID: systemUUID(t)}
	if found := nodeidentity.Of(claim, nodeidentity.NodeOf(node)); found.Owner != nodeidentity.ThisAttempt {
		t.Errorf("%+v", found)
	}
	claim.Attempt++
	if found := nodeidentity.Of(claim, nodeidentity.NodeOf(node)); found.Owner != nodeidentity.EarlierAttempt {
		t.Errorf("for the next installation of the server: %+v", found)
	}
}

// heartbeat is when kubelet last wrote the Node's status.
func heartbeat(node *corev1.Node) time.Time {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.LastHeartbeatTime.Time
		}
	}
	return time.Time{}
}

// systemUUID returns what the agent reads from DMI or, on a machine without DMI, what kubelet takes instead.
func systemUUID(t *testing.T) string {
	t.Helper()
	for _, path := range []string{"/sys/class/dmi/id/product_uuid", "/etc/machine-id"} {
		if text, err := os.ReadFile(path); err == nil {
			return strings.TrimSpace(string(text))
		}
	}
	t.Fatal("this machine has neither a system UUID nor a machine id")
	return ""
}
