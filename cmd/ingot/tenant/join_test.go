package tenant

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/test/management"
)

// without takes a ClusterRoleBinding away until the test ends.
func without(t *testing.T, name string) {
	t.Helper()
	binding := &rbacv1.ClusterRoleBinding{}
	if err := server.Client.Get(t.Context(), client.ObjectKey{Name: name}, binding); err != nil {
		t.Fatal(err)
	}
	if err := server.Client.Delete(t.Context(), binding.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		binding.ResourceVersion, binding.UID = "", ""
		if err := server.Client.Create(context.Background(), binding); err != nil {
			t.Error(err)
		}
	})
}

func TestWhatJoiningNodesLackIsNamedAndPrinted(t *testing.T) {
	without(t, "kubeadm:kubelet-bootstrap")
	args := []string{"research", "-n", "research", "--kubeconfig", server.Cluster.KubeconfigPath()}
	var stderr string
	management.Eventually(t, "the missing right is found", func() bool {
		_, _, stderr = ingot(args...)
		return strings.Contains(stderr, "mend  join: a node may not ask for its certificate: bind ClusterRole system:node-bootstrapper")
	})
	_, _, stderr = ingot(append(args, "--try-join")...)
	says(t, stderr, "mend  trial of a join: a node may not ask for its certificate")
	_, grants, _ := ingot(append(args, "--tenant-side")...)
	for _, o := range apply(t, grants) {
		t.Cleanup(func() {
			if err := server.Client.Delete(context.Background(), o); err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		})
	}
	management.Eventually(t, "what is printed mends it", func() bool {
		_, _, stderr = ingot(append(args, "--try-join")...)
		return strings.Contains(stderr, "ok    trial of a join")
	})
}

func TestACertificateThatNobodyApprovesIsNamedSo(t *testing.T) {
	without(t, "kubeadm:node-autoapprove-bootstrap")
	subject := &tenant{random: rand.Reader, issueTimeout: 4 * time.Second}
	if err := subject.open(server.Cluster.Kubeconfig(), 30*time.Second); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the right is gone", func() bool {
		allowed, err := subject.canJoin(t.Context(), joinRights[1])
		return err == nil && !allowed
	})
	subject.tryJoin(t.Context())
	if f := subject.findings[len(subject.findings)-1]; f.level != levelMend || !strings.Contains(f.text, errNotApproved.Error()) || len(subject.grants) != 2 {
		t.Errorf("%+v, %d grants", f, len(subject.grants))
	}
}
