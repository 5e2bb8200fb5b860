package explain

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/test/management"
)

var server *management.Server

func TestMain(m *testing.M) { os.Exit(management.Main(m, &server)) }

// rendered is a rendering of revision r-1 that asks for kernel arguments.
func rendered(name string, arguments ...string) *v1alpha1.NodeTypeRendering {
	return &v1alpha1.NodeTypeRendering{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.NodeTypeRenderingSpec{
		RevisionRef: v1alpha1.LocalReference{Name: "r-1"}, Encoding: 1,
		Plan: v1alpha1.NodePlan{KernelArguments: arguments, Expectation: v1alpha1.NodeExpectation{Kubelet: "1.37.0"}},
	}}
}

func TestWhatAMachineWasInstalledWithIsExplainedFromTheCluster(t *testing.T) {
	namespace := server.Namespace(t)
	machine := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m1"}, Spec: v1alpha1.MachineSpec{
		NodeTypeRef: v1alpha1.LocalReference{Name: "plain"}, TenantClusterRef: v1alpha1.LocalReference{Name: "research"},
	}}
	server.Create(t,
		&v1alpha1.NodeType{ObjectMeta: metav1.ObjectMeta{Name: "plain"}, Spec: v1alpha1.NodeTypeSpec{
			ProviderRef: v1alpha1.LocalReference{Name: "x"}, OSImageRef: v1alpha1.LocalReference{Name: "newer"}, HostSelector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
		}, Status: v1alpha1.NodeTypeStatus{TargetRevision: "r-1", TargetRendering: "r-1-new", Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionRenderingCurrent, Status: metav1.ConditionTrue, Reason: "RenderingCurrent", Message: "makes the same", LastTransitionTime: metav1.Now(),
		}}}},
		&v1alpha1.NodeTypeRevision{ObjectMeta: metav1.ObjectMeta{Name: "r-1"}, Spec: v1alpha1.NodeTypeRevisionSpec{
			NodeTypeRef: v1alpha1.LocalReference{Name: "plain"}, HashVersion: 1,
			Image: v1alpha1.RevisionImage{Name: "debian", Checksum: "sha256:" + strings.Repeat("ab", 32), Format: v1alpha1.FormatRaw, UserData: v1alpha1.UserDataCloudInit},
		}},
		rendered("r-1-old", "quiet"), rendered("r-1-new", "quiet", "iommu=pt"), machine)
	kubeconfig := server.KubeconfigFile(t)
	run := func(args ...string) (int, string, string) {
		var out, err bytes.Buffer
		status := cli.Run(context.Background(), Command(), append(args, "--kubeconfig", kubeconfig), &out, &err)
		return status, out.String(), err.String()
	}
	if status, _, stderr := run("--installed", namespace+"/m1"); status != cli.ExitFailed || !strings.Contains(stderr, "nothing is installed for Machine") {
		t.Errorf("before it is installed: status %d: %s", status, stderr)
	}
	before := machine.DeepCopy()
	machine.Status.Revision, machine.Status.Rendering = "r-1", "r-1-old"
	if err := server.Client.Status().Patch(t.Context(), machine, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	status, text, stderr := run("--installed", "m1", "-n", namespace)
	for _, want := range []string{"NodeType plain with OSImage debian: no GPUs", "r-1-old", "kernelArguments[iommu=pt] would be added", "makes the same", "1.37.0"} {
		if status != cli.ExitOK || !strings.Contains(text, want) {
			t.Errorf("status %d, %s: no %q in\n%s", status, stderr, want, text)
		}
	}
	_, text, _ = run("--installed", "m1", "-n", namespace, "-o", "json")
	var e Explanation
	if err := json.Unmarshal([]byte(text), &e); err != nil || e.Installed == nil || e.Installed.Rendering != "r-1-old" || len(e.KernelArguments) != 1 || len(e.Installed.Differences) != 1 {
		t.Errorf("%v in %s", err, text)
	}
	if status, _, stderr := run("--installed", "nobody"); status != cli.ExitFailed || !strings.Contains(stderr, "there is no Machine nobody") {
		t.Errorf("a Machine that is not there: status %d: %s", status, stderr)
	}
	if status, _, stderr := run("--installed", "m1", "-f", "x.yaml"); status != cli.ExitUsage {
		t.Errorf("with files: status %d: %s", status, stderr)
	}
}
