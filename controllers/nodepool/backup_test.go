package nodepool

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/management"
	"github.com/ingot-dev/ingot/test/require"
)

// restoreCommands returns the lines of README that back up and restore Machines, as they are.
func restoreCommands(t *testing.T) (backup, restore string) {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, "kubectl get machines -A -o json"):
			backup = line
		case strings.HasPrefix(line, "kubectl create -f machines.json"):
			restore = line
		}
	}
	if backup == "" || restore == "" {
		t.Fatal("README has no commands for a backup of Machines")
	}
	return backup, restore
}

// TestMachinesThatAreRestoredByTheCommandsOfTheREADMEAreNotCollected deletes a pool and its Machine, and creates both again from a backup. Only the
// garbage collector's verdict about a sibling that kept its owner reference says that it has run.
func TestMachinesThatAreRestoredByTheCommandsOfTheREADMEAreNotCollected(t *testing.T) {
	for _, program := range []string{"kubectl", "jq", "sh"} {
		if _, err := exec.LookPath(program); err != nil {
			require.Missing(t, program, "install it")
		}
	}
	backup, restore := restoreCommands(t)
	kubeconfig, dir := server.KubeconfigFile(t), t.TempDir()
	sh := func(command string) string {
		c := exec.CommandContext(t.Context(), "sh", "-c", command)
		c.Dir, c.Env = dir, append(os.Environ(), "KUBECONFIG="+kubeconfig)
		out, err := c.CombinedOutput()
		t.Logf("%s\n%s%v", command, out, err)
		return string(out)
	}
	newNodeType(t, "backup")
	pool := newPool(t, "backup", 1)
	if _, err := reconciler(server.Client).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(pool)}); err != nil {
		t.Fatal(err)
	}
	before := machines(t, pool)[0]
	sh(backup)
	if text, err := os.ReadFile(filepath.Join(dir, "machines.json")); err != nil || !strings.Contains(string(text), before.Name) {
		t.Fatalf("the backup lacks Machine %s: %v", before.Name, err)
	}
	if err := server.Client.Patch(t.Context(), before.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	if err := server.Client.Delete(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	management.Eventually(t, "the Machine is gone", func() bool {
		return apierrors.IsNotFound(server.Client.Get(t.Context(), client.ObjectKeyFromObject(&before), &v1alpha1.Machine{}))
	})
	sibling := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: pool.Namespace, Name: "with-its-reference", OwnerReferences: before.OwnerReferences}, Spec: before.Spec}
	sh(restore)
	server.Create(t, sibling)
	management.Eventually(t, "the garbage collector has collected the sibling", func() bool {
		return apierrors.IsNotFound(server.Client.Get(t.Context(), client.ObjectKeyFromObject(sibling), &v1alpha1.Machine{}))
	})
	left := machines(t, pool)
	at := slices.IndexFunc(left, func(m v1alpha1.Machine) bool { return m.Name == before.Name })
	if at < 0 || left[at].UID == before.UID || len(left[at].OwnerReferences) > 0 || left[at].Labels[v1alpha1.LabelNodePool] != pool.Name {
		t.Errorf("left are %+v, want %s with another uid and without an owner", left, before.Name)
	}
}
