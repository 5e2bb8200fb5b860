package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

var update = flag.Bool("update", false, "write the golden files")

const (
	samples = "../../../config/samples"
	classes = samples + "/tenant/nvidia-dra-driver.yaml"
)

func verify(stdin string, args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	c := Command()
	c.SetIn(strings.NewReader(stdin))
	status = cli.Run(context.Background(), c, append([]string{"-f", samples}, args...), &out, &err)
	return status, out.String(), err.String()
}

func text(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(filepath.Join("testdata", file), []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(text(t, file), got); diff != "" {
		t.Errorf("%s is stale: write it with -update and read it: %s", file, diff)
	}
}

func TestWhatIsAsPromisedPasses(t *testing.T) {
	for name, args := range map[string][]string{
		"h100.txt": {"--nodetype", "h100", "--node", "testdata/node-h100.yaml"},
		"h200.txt": {"--nodetype", "h200-dra", "--node", "testdata/node-h200.json", "--slices", "testdata/slices.json", "--deviceclasses", classes},
	} {
		status, stdout, stderr := verify("", args...)
		if status != cli.ExitOK || stderr != "" {
			t.Errorf("%s: status %d: %s%s", name, status, stdout, stderr)
		}
		golden(t, name, stdout)
	}
}

func TestTheMachineTellsWhoTheNodeIs(t *testing.T) {
	args := []string{"--nodetype", "h100", "--node", "-", "-f", "testdata/machine.yaml", "--machine", "training-7xk2p", "-o", "json"}
	status, stdout, stderr := verify(text(t, "node-h100.yaml"), args...)
	if status != cli.ExitOK || !strings.Contains(stdout, `"identity/provider-id"`) || strings.Contains(stdout, "which installation") {
		t.Errorf("status %d: %s%s", status, stdout, stderr)
	}
	status, _, stderr = verify(strings.ReplaceAll(text(t, "node-h100.yaml"), "ingot://6f1c/1", "ingot://6f1c/2"), args...)
	if status != cli.ExitFailed || !strings.Contains(stderr, "identity/provider-id: expected ingot://6f1c/1, observed ingot://6f1c/2") {
		t.Errorf("status %d: %s", status, stderr)
	}
}

// TestOneChangedLineFailsTheRightCheck changes one thing that a cluster shows and names the check that must tell.
func TestOneChangedLineFailsTheRightCheck(t *testing.T) {
	h100 := []string{"--nodetype", "h100", "--node", "-", "-o", "json"}
	node := []string{"--nodetype", "h200-dra", "--node", "-", "--slices", "testdata/slices.json", "--deviceclasses", classes, "-o", "json"}
	slice := []string{"--nodetype", "h200-dra", "--node", "testdata/node-h200.json", "--slices", "-", "--deviceclasses", classes, "-o", "json"}
	class := []string{"--nodetype", "h200-dra", "--node", "testdata/node-h200.json", "--slices", "testdata/slices.json", "--deviceclasses", "-", "-o", "json"}
	const noClass = "apiVersion: v1\nkind: List\nitems: []\n"
	for sentence, c := range map[string]struct {
		args           []string
		text, old, new string
		check          string
		result         v1alpha1.CheckResult
	}{
		"a GPU is missing":           {h100, text(t, "node-h100.yaml"), `nvidia.com/gpu: "8"`, `nvidia.com/gpu: "7"`, "resource/nvidia.com/gpu", v1alpha1.CheckWait},
		"a GPU too many":             {h100, text(t, "node-h100.yaml"), `nvidia.com/gpu: "8"`, `nvidia.com/gpu: "9"`, "resource/nvidia.com/gpu", v1alpha1.CheckFail},
		"another presentation":       {h100, text(t, "node-h100.yaml"), `pods: "110"`, `nvidia.com/mig-1g.10gb: "7"`, "foreign/nvidia.com/mig-1g.10gb", v1alpha1.CheckFail},
		"another kernel":             {h100, text(t, "node-h100.yaml"), "6.12.107", "6.12.99", "software/kernel", v1alpha1.CheckFail},
		"another driver":             {h100, text(t, "node-h100.yaml"), "570.172.08", "570.133.20", "software/gpu-driver", v1alpha1.CheckFail},
		"kubelet is silent":          {h100, text(t, "node-h100.yaml"), `status: "True"`, `status: Unknown`, "node/ready", v1alpha1.CheckWait},
		"less memory":                {h100, text(t, "node-h100.yaml"), "765Gi", "512Gi", "resource/memory", v1alpha1.CheckFail},
		"the device plugin runs too": {node, text(t, "node-h200.json"), `"nvidia.com/gpu": "0"`, `"nvidia.com/gpu": "8"`, "foreign/nvidia.com/gpu", v1alpha1.CheckFail},
		"another architecture":       {slice, text(t, "slices.json"), `"Hopper"`, `"Ampere"`, "slices/gpu.nvidia.com/gpu/architecture", v1alpha1.CheckFail},
		"the slices of another node": {slice, text(t, "slices.json"), "serving-1", "serving-3", "slices/gpu.nvidia.com", v1alpha1.CheckWait},
		"the DeviceClass is missing": {class, noClass, "", "", "deviceclass/gpu.nvidia.com", v1alpha1.CheckWait},
	} {
		if !strings.Contains(c.text, c.old) {
			t.Fatalf("%s: there is no %q", sentence, c.old)
		}
		status, stdout, stderr := verify(strings.ReplaceAll(c.text, c.old, c.new), c.args...)
		var r Report
		if err := json.Unmarshal([]byte(stdout), &r); err != nil {
			t.Errorf("%s: %v: %s%s", sentence, err, stdout, stderr)
			continue
		}
		if first := r.decidingCheck(); status != cli.ExitFailed || first.Name != c.check || r.Result != c.result {
			t.Errorf("%s: status %d, %s by %s, want %s by %s: %s", sentence, status, r.Result, first.Name, c.result, c.check, stderr)
		}
		if !strings.Contains(stderr, c.check) {
			t.Errorf("%s: standard error does not name the check: %s", sentence, stderr)
		}
	}
}

func TestWhatIsNotToldIsNotCompared(t *testing.T) {
	status, stdout, _ := verify("", "--nodetype", "h200-dra", "--node", "testdata/node-h200.json", "--slices", "testdata/slices.json")
	if status != cli.ExitOK || strings.Contains(stdout, "deviceclass/") || !strings.Contains(stdout, "not compared: what the DeviceClasses select") {
		t.Errorf("status %d: %s", status, stdout)
	}
	const driver = "nvidia.com/cuda.driver-version.full"
	node := text(t, "node-h100.yaml")
	if !strings.Contains(node, driver) {
		t.Fatalf("the node has no label %s", driver)
	}
	for stdin, want := range map[string]bool{node: false, strings.ReplaceAll(node, driver, "another"): true} {
		status, stdout, _ = verify(stdin, "--nodetype", "h100", "--node", "-")
		if got := strings.Contains(stdout, "not compared: what labels tell") && strings.Contains(stdout, driver); status != cli.ExitOK || got != want {
			t.Errorf("status %d, told that the driver is not compared: %v, want %v: %s", status, got, want, stdout)
		}
	}
}

func TestTheCommandLineIsJudged(t *testing.T) {
	node := "testdata/node-h100.yaml"
	for _, c := range []struct {
		stdin  string
		args   []string
		status int
		want   string
	}{
		{"", []string{"--nodetype", "h100"}, cli.ExitUsage, "expected --node"},
		{"", []string{"--nodetype", "h100", "--node", "none.json"}, cli.ExitFailed, "none.json: no such file"},
		{"", []string{"--nodetype", "h200-dra", "--node", node}, cli.ExitUsage, "expected --slices"},
		{"", []string{"--node", node}, cli.ExitFailed, "--nodetype"},
		{"", []string{"--nodetype", "h100", "--node", samples + "/osimage.yaml"}, cli.ExitFailed, "expected v1 Node, seen ingot.dev/v1alpha1 OSImage: get it with kubectl get nodes -o json"},
		{"", []string{"--nodetype", "h100", "--node", node, "--slices", node}, cli.ExitFailed, "kubectl get resourceslices.v1.resource.k8s.io -o json"},
		{"{apiVersion: v1, kind: List, items: []}", []string{"--nodetype", "h100", "--node", "-"}, cli.ExitFailed, "expected one Node, seen none: kubectl get node"},
		{"{apiVersion: v1, kind: Node, status: 3}", []string{"--nodetype", "h100", "--node", "-"}, cli.ExitFailed, "standard input:1: Node"},
		{"", []string{"--nodetype", "h100", "--node", node, "--machine", "x"}, cli.ExitFailed, "expected Machine x in " + samples},
		{"", []string{"--nodetype", "h100", "--node", node, "-o", "table"}, cli.ExitUsage, "text or json"},
	} {
		status, stdout, stderr := verify(c.stdin, c.args...)
		if status != c.status || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: status %d, want %d and %q: %s%s", c.args, status, c.status, c.want, stdout, stderr)
		}
	}
}
