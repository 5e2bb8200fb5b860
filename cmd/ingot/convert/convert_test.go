package convert

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/cmd/ingot/convert/conversion"
	"github.com/ingot-dev/ingot/cmd/ingot/offline"
	"github.com/ingot-dev/ingot/cmd/ingot/validate"
)

var update = flag.Bool("update", false, "write the golden files")

func convert(stdin string, args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	c := Command()
	c.SetIn(strings.NewReader(stdin))
	status = cli.Run(context.Background(), c, append([]string{"vmetal"}, args...), &out, &err)
	return status, out.String(), err.String()
}

func TestTheResultIsAsWritten(t *testing.T) {
	status, stdout, stderr := convert("", "testdata/vmetal.yaml")
	if status != cli.ExitOK {
		t.Fatalf("status %d: %s", status, stderr)
	}
	for file, got := range map[string]string{"ingot.yaml": stdout, "findings.txt": stderr} {
		file = filepath.Join("testdata", file)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s is stale: write it with -update and read it: %s", file, diff)
		}
	}
}

// TestWhatIsLeftToDoIsWhatValidateAsksFor: the result is refused only for what the comments ask to add or to check.
func TestWhatIsLeftToDoIsWhatValidateAsksFor(t *testing.T) {
	_, stdout, _ := convert("", "testdata/vmetal.yaml")
	files, err := offline.Open([]string{"-"}, strings.NewReader(stdout))
	if err != nil {
		t.Fatal(err)
	}
	report, err := validate.Validate(files, validate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range report.Findings {
		got = append(got, f.Object+" "+f.Field+" "+f.Rule)
	}
	if diff := cmp.Diff([]string{
		"OSImage ubuntu-noble spec.os schema/required",
		"OSImage ubuntu-noble spec.software schema/required",
		"OSImage old spec.checksum schema/required",
		"OSImage old spec.format schema/required",
		"OSImage old spec.os schema/required",
		"OSImage old spec.software schema/required",
		"NodeType compute spec.hostSelector schema/required",
		"NodeType unknown-gpu spec.gpu.model schema/required",
		"OSImage a100-mig-image spec.os schema/required",
		"OSImage a100-mig-image spec.software schema/required",
	}, got); diff != "" {
		t.Error(diff)
	}
}

// TestACompletedResultIsAdmitted adds what the comments ask for, and nothing else.
func TestACompletedResultIsAdmitted(t *testing.T) {
	_, stdout, _ := convert("", "testdata/vmetal.yaml")
	var kept []string
	for _, document := range strings.Split(stdout, "---\n") {
		if strings.Contains(document, "name: old") || strings.Contains(document, "name: compute") || strings.Contains(document, "name: unknown-gpu") || strings.Contains(document, "name: a100-mig") {
			continue
		}
		kept = append(kept, document)
	}
	text := strings.Replace(strings.Join(kept, "---\n"), "  format: qcow2\n", `  format: qcow2
  os: {id: ubuntu, version: "24.04"}
  kernelArguments: [modprobe.blacklist=nouveau]
  software: {kubelet: 1.37.0, containerToolkit: 1.18.0, gpuDriver: {vendor: nvidia, version: 570.172.08, kernelModule: Open}, fabricManager: 570.172.08}
`, 1)
	files, err := offline.Open([]string{"-"}, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	report, err := validate.Validate(files, validate.Options{})
	if err != nil || len(report.Findings) > 0 || report.Judged != 4 {
		t.Errorf("%v: %d judged, findings %v in\n%s", err, report.Judged, report.Findings, text)
	}
}

func TestOtherKindsAndFilesAreTold(t *testing.T) {
	const other = "apiVersion: management.loft.sh/v1\nkind: "
	for _, c := range []struct {
		stdin  string
		args   []string
		status int
		want   string
	}{
		{"", nil, cli.ExitUsage, "usage: convert vmetal FILE"},
		{"", []string{"none.yaml"}, cli.ExitFailed, "none.yaml: no such file"},
		{"{apiVersion: v1, kind: ConfigMap}", []string{"-"}, cli.ExitFailed, "expected objects of management.loft.sh such as NodeProvider"},
		{other + "MachineConfigTemplate\nmetadata: {name: a}\n", []string{"-"}, cli.ExitOK, "nothing in the files refers to it"},
		{other + "NodeProvider\nmetadata: {name: vms}\nspec: {kubeVirt: {}}\n", []string{"-"}, cli.ExitOK, "standard input:4: NodeProvider vms: spec: it is not of the kind metal3"},
		{other + "Team\nmetadata: {name: a}\n", []string{"-"}, cli.ExitOK, "Team a: this version does not know what to make of it (convert/not-carried-over)"},
		{other + "NodeClaim\nmetadata: {name: a}\n", []string{"-"}, cli.ExitOK, "make a Machine"},
	} {
		status, stdout, stderr := convert(c.stdin, c.args...)
		if status != c.status || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: status %d, want %d and %q: %s%s", c.args, status, c.status, c.want, stdout, stderr)
		}
	}
}

func TestNoFieldIsDroppedInSilence(t *testing.T) {
	manifest := strings.NewReplacer(
		"  displayName: Metal3\n", "  displayName: Metal3\n  quota: 3\n",
		"    clusterRef: {cluster: hall", "    region: north\n    clusterRef: {cluster: hall",
		"      displayName: 8x H100\n", "      displayName: 8x H100\n      startupTaints: []\n",
		"    metal3.vcluster.com/image-checksum-type: md5\n", "    metal3.vcluster.com/image-checksum-type: md5\n    metal3.vcluster.com/image-key: k\n",
		"metadata: {name: metal3-provider}", "metadata: {name: metal3-provider, labels: {hall: north}}",
	)
	raw, err := os.ReadFile("testdata/vmetal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	status, stdout, stderr := convert(manifest.Replace(string(raw)), "-")
	if status != cli.ExitOK || !strings.Contains(stdout, "    hall: north\n") {
		t.Errorf("status %d, and labels are lost: %s", status, stdout)
	}
	for _, field := range []string{"spec.quota", "spec.metal3.region", "spec.metal3.nodeTypes[0].startupTaints", "spec.properties.metal3.vcluster.com/image-key"} {
		if !strings.Contains(stderr, field+": this version does not know what to make of it ("+conversion.RuleLost+")") {
			t.Errorf("nobody tells of %s: %s", field, stderr)
		}
	}
}

func TestNothingOfAnotherShapeStopsIt(t *testing.T) {
	for _, spec := range []string{"3", "{metal3: x}", "{metal3: {nodeTypes: [1, {}, {resources: 3, properties: []}]}}", "{metal3: {nodeTypes: {}}, properties: [a]}", "null"} {
		for _, kind := range []string{"NodeProvider", "OSImage", "MachineConfigTemplate"} {
			convert("apiVersion: management.loft.sh/v1\nkind: "+kind+"\nmetadata: {name: a}\nspec: "+spec+"\n", "-")
		}
	}
}

func TestChecksumsArePinnedOrRefused(t *testing.T) {
	hex := strings.Repeat("0a", 32)
	for _, c := range []struct{ sum, kind, want, finding string }{
		{hex, "", "sha256:" + hex, ""},
		{"SHA256:" + strings.ToUpper(hex), "", "sha256:" + hex, ""},
		{hex + hex, "sha512", "sha512:" + hex + hex, ""},
		{"https://images.example.com/SHA256SUMS", "", "https://images.example.com/SHA256SUMS", conversion.RuleCheck},
		{hex[:32], "", "", conversion.RuleAdd},
		{hex[:40], "", "", conversion.RuleAdd},
		{strings.Repeat("xy", 32), "", "", conversion.RuleAdd},
		{"", "", "", conversion.RuleAdd},
	} {
		m := offline.Manifest{Object: map[string]any{"apiVersion": "management.loft.sh/v1", "kind": "OSImage", "metadata": map[string]any{"name": "a"},
			"spec": map[string]any{"properties": map[string]any{domain + "image-url": "http://x/a.raw", domain + "image-checksum": c.sum, domain + "image-checksum-type": c.kind}}}}
		out := Convert([]offline.Manifest{m})
		if got := conversion.ValueAt[string](out.Objects[0].Object, "spec", "checksum"); got != c.want {
			t.Errorf("%s: %s, want %s", c.sum, got, c.want)
		}
		rule := ""
		for _, f := range out.Findings {
			if strings.Contains(f.Message, "checksum") {
				rule = f.Rule
			}
		}
		if rule != c.finding {
			t.Errorf("%s: finding %q, want %q", c.sum, rule, c.finding)
		}
	}
}
