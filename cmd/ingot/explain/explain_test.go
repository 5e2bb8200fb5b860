package explain

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

var update = flag.Bool("update", false, "write the golden files")

const samples = "../../../config/samples"

func explain(stdin string, args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	c := Command()
	c.SetIn(strings.NewReader(stdin))
	status = cli.Run(context.Background(), c, args, &out, &err)
	return status, out.String(), err.String()
}

func TestTheTextIsAsWritten(t *testing.T) {
	raw, err := os.ReadFile("testdata/explanation.json")
	if err != nil {
		t.Fatal(err)
	}
	var e Explanation
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&e); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := e.write(&got); err != nil {
		t.Fatal(err)
	}
	const file = "testdata/explanation.txt"
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s is stale: write it with -update and read it: %s", file, diff)
	}
}

func TestTheSamplesAreExplained(t *testing.T) {
	for name, wants := range map[string][]string{
		"h100":     {"8 H100-SXM5-80GB presented as Passthrough", "  nvidia.com/gpu   8\n", "  modprobe.blacklist=nouveau\n", "  /usr/local/sbin/ingot-gpu-mode     0755\n", "  ingot-gpu-mode.service         written by Ingot\n"},
		"h100-mig": {"presented as MIG", "  nvidia.com/mig-1g.10gb   28\n  nvidia.com/mig-3g.40gb   8\n", "nvidia.com/mig.strategy", "/etc/nvidia-mig-manager/ingot.yaml"},
		"h200-dra": {"presented as DRA", "Driver gpu.nvidia.com must publish", "  DeviceClass gpu.nvidia.com   8   selected\n", "nvidia.com/dra-kubelet-plugin"},
	} {
		status, stdout, stderr := explain("", "-f", samples, "--nodetype", name)
		if status != cli.ExitOK || stderr != "" {
			t.Fatalf("%s: status %d: %s", name, status, stderr)
		}
		for _, want := range wants {
			if !strings.Contains(stdout, want) {
				t.Errorf("%s: no %q in\n%s", name, want, stdout)
			}
		}
	}
}

func explained(t *testing.T, name string) Explanation {
	t.Helper()
	status, stdout, stderr := explain("", "-f", samples, "--nodetype", name, "-o", "json")
	if status != cli.ExitOK {
		t.Fatalf("%s: status %d: %s", name, status, stderr)
	}
	var e Explanation
	decoder := json.NewDecoder(strings.NewReader(stdout))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&e); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestJSONHasTheExactNamesAndCounts(t *testing.T) {
	for name, want := range map[string]map[string]int64{
		"h100":     {"nvidia.com/gpu": 8},
		"h100-mig": {"nvidia.com/mig-1g.10gb": 28, "nvidia.com/mig-3g.40gb": 8},
		"h200-dra": {},
	} {
		if diff := cmp.Diff(want, explained(t, name).Resources); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	e := explained(t, "h200-dra")
	if len(e.Slices) != 1 || e.Slices[0].Driver != "gpu.nvidia.com" || e.Slices[0].Devices[0].Count != 8 || e.Slices[0].DeviceClasses[0].Name != "gpu.nvidia.com" {
		t.Errorf("slices %+v", e.Slices)
	}
	if e.Labels["nvidia.com/dra-kubelet-plugin"] != "true" || e.Labels["nvidia.com/cuda.driver-version.full"] != "570.172.08" {
		t.Errorf("labels %v lack those of kubelet or those of the vendor", e.Labels)
	}
}

func TestNothingIsNullInJSON(t *testing.T) {
	const bare = `
apiVersion: ingot.dev/v1alpha1
kind: NodeType
metadata: {name: plain}
spec: {providerRef: {name: x}, hostSelector: {matchLabels: {a: b}}, osImageRef: {name: debian-13-nvidia-570}}
`
	status, stdout, stderr := explain(bare, "-f", "-", "-f", samples+"/osimage.yaml", "-o", "json")
	if status != cli.ExitOK || strings.Contains(stdout, "null") {
		t.Errorf("status %d: %s%s", status, stdout, stderr)
	}
}

func TestDevicesWithoutATypeAreNamed(t *testing.T) {
	var out bytes.Buffer
	for _, line := range (Slice{Driver: "gaudi.intel.com", Devices: []Device{{Count: 8}}}).lines() {
		out.WriteString(strings.Join(line, "|"))
	}
	if out.String() != "devices without a type|8|" {
		t.Errorf("got %s", out.String())
	}
}

func TestANodeProviderThatIsWrongIsLeftOutAndTold(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"nodetype.yaml", "osimage.yaml", "nodeprovider.yaml"} {
		text, err := os.ReadFile(samples + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if name == "nodeprovider.yaml" {
			text = bytes.Replace(text, []byte("spec:\n"), []byte("spec:\n  rack: 7\n"), 1)
		}
		if err := os.WriteFile(dir+"/"+name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, want, _ := explain("", "-f", samples, "--nodetype", "h100-mig")
	status, stdout, stderr := explain("", "-f", dir, "--nodetype", "h100-mig")
	if status != cli.ExitOK || stdout != want || !strings.Contains(stderr, "spec.rack: there is no such field") || !strings.Contains(stderr, "is left out here") {
		t.Errorf("status %d: %s: %s", status, stderr, cmp.Diff(want, stdout))
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	changed := func(old, new string) string {
		text, err := os.ReadFile(samples + "/nodetype.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), old) {
			t.Fatalf("the sample has no %q", old)
		}
		return strings.ReplaceAll(string(text), old, new)
	}
	rest := []string{"-f", samples + "/osimage.yaml", "-f", samples + "/nodeprovider.yaml"}
	mig := append([]string{"-f", "-", "--nodetype", "h100-mig"}, rest...)
	whole := append([]string{"-f", "-", "--nodetype", "h100"}, rest...)
	for _, c := range []struct {
		stdin  string
		args   []string
		status int
		want   []string
	}{
		{"", nil, cli.ExitUsage, []string{"expected -f", "usage: explain -f FILE"}},
		{"", []string{"-f", "none.yaml"}, cli.ExitFailed, []string{"none.yaml", "no such file"}},
		{"", []string{"-f", "-", "--nodetype", "x"}, cli.ExitFailed, []string{"expected NodeType x in standard input, seen none"}},
		{"", []string{"-f", samples}, cli.ExitFailed, []string{"h100, h100-mig, h200-dra", "--nodetype"}},
		{"", []string{"-f", samples, "--nodetype", "b200"}, cli.ExitFailed, []string{"expected NodeType b200", "seen h100, h100-mig, h200-dra"}},
		{"", []string{"-f", samples + "/nodetype.yaml", "--nodetype", "h100"}, cli.ExitFailed, []string{"spec.osImageRef", "OSImage debian-13-nvidia-570", "add its file with -f"}},
		{"", []string{"-f", samples, "--nodetype", "h100", "-o", "yaml"}, cli.ExitUsage, []string{"-o yaml: expected text or json"}},
		{"", []string{"-f", samples, "h100"}, cli.ExitUsage, []string{"usage:"}},
		{changed("{1g.10gb: 7}", "{1g.10gb: 5, 3g.40gb: 2}"), mig, cli.ExitFailed, []string{"impossible", "does not fit on one H100-SXM5-80GB", "rule mig/"}},
		{changed("H100-SXM5-80GB", "H100"), whole, cli.ExitFailed, []string{`"H100" is not in the catalogue`, "H100-SXM5-80GB"}},
		{changed("count: 8", "cuont: 8"), whole, cli.ExitFailed, []string{"standard input:", "NodeType h100: spec.gpu.cuont", "and 1 more"}},
		{changed("packages: [lldpd]", "hostname: x"), whole, cli.ExitFailed, []string{"NodeType h100 is impossible: spec.userData: hostname", "remove it"}},
		{"kind: NodeType\n", []string{"-f", "-"}, cli.ExitFailed, []string{"standard input:1:", "apiVersion"}},
	} {
		status, stdout, stderr := explain(c.stdin, c.args...)
		if status != c.status || stdout != "" {
			t.Errorf("%v: status %d, want %d; standard output %q", c.args, status, c.status, stdout)
		}
		for _, want := range c.want {
			if !strings.Contains(stderr, want) {
				t.Errorf("%v: %q does not say %q", c.args, stderr, want)
			}
		}
	}
}
