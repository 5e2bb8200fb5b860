package clusterapi

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ingot-dev/ingot/cmd/ingot/offline"
	"github.com/ingot-dev/ingot/cmd/ingot/validate"
)

var update = flag.Bool("update", false, "write the golden files")

// convertFile returns the objects as they are printed, and the findings.
func convertFile(t *testing.T, path string) (objects, findings string) {
	t.Helper()
	all, err := offline.Read([]string{path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	report := Convert(all)
	var printed, found bytes.Buffer
	if err := report.Write(&printed); err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		found.WriteString(f.String() + "\n")
	}
	return printed.String(), found.String()
}

// convertText is convertFile of a text.
func convertText(t *testing.T, text string) (objects, findings string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "site.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return convertFile(t, path)
}

// deploymentWith returns a MachineDeployment and its template, of a namespace of its own for hosts unless the template says another one.
func deploymentWith(name, cluster, version, template string) string {
	return fmt.Sprintf(`---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineDeployment
metadata: {name: %[1]s, namespace: metal3}
spec:
  clusterName: %[2]s
  template: {spec: {version: %[3]s, infrastructureRef: {kind: Metal3MachineTemplate, name: %[1]s}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: Metal3MachineTemplate
metadata: {name: %[1]s, namespace: metal3}
spec: {template: {spec: {%[4]s}}}
`, name, cluster, version, template)
}

// expectLines fails the test for each text that is not in exactly one line.
func expectLines(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if n := strings.Count(text, want); n != 1 {
			t.Errorf("%q is there %d times in\n%s", want, n, text)
		}
	}
}

// TestEachImageHasANameOfItsOwn has files of the same name in two folders, and two in folders of the same name.
func TestEachImageHasANameOfItsOwn(t *testing.T) {
	text := ""
	for i, url := range []string{"http://x/v1.34/rootfs.raw", "http://x/v1.35/rootfs.raw", "http://y/v1.35/rootfs.raw", "http://y/v1.35/rootfs.qcow2"} {
		text += deploymentWith(fmt.Sprint("d", i), "research", "v1.34.0", `image: {url: "`+url+`"}`)
	}
	objects, _ := convertText(t, text)
	for _, name := range []string{"rootfs", "v1.35-rootfs", "y-v1.35-rootfs", "y-v1.35-rootfs-2"} {
		expectLines(t, objects, "  name: "+name+"\nspec:\n  format", "  osImageRef:\n    name: "+name+"\n")
	}
}

// TestAnImageThatIsSaidToBeTwoThingsIsReported has one URL with two versions and two checksums.
func TestAnImageThatIsSaidToBeTwoThingsIsReported(t *testing.T) {
	image := func(checksum string) string {
		return `image: {url: "http://x/rootfs.raw", checksum: "` + checksum + `", format: raw}`
	}
	objects, findings := convertText(t, deploymentWith("a", "research", "v1.34.0", image("aaa"))+deploymentWith("b", "research", "v1.35.0", image("bbb"))+
		deploymentWith("c", "research", "v1.34.0", image("aaa")))
	if n := strings.Count(objects, "kind: OSImage"); n != 1 {
		t.Errorf("there are %d OSImages", n)
	}
	expectLines(t, findings, "MachineDeployment metal3/b: spec.template.spec.version: it says kubelet 1.35.0 of the URL of which OSImage rootfs was made with kubelet 1.34.0",
		"Metal3MachineTemplate metal3/b: spec.template.spec.image.checksum: OSImage rootfs was made of the same URL with the checksum aaa")
	if strings.Contains(findings, "metal3/c: spec.template.spec.version") || strings.Contains(findings, "metal3/c: spec.template.spec.image.checksum") {
		t.Errorf("what is said twice alike is reported: %s", findings)
	}
}

// TestWhatKeepsAHostFromBeingClaimedIsReported has a host for each reason, and one that is fit.
func TestWhatKeepsAHostFromBeingClaimedIsReported(t *testing.T) {
	host := func(name, annotations, spec string) string {
		return fmt.Sprintf("---\napiVersion: metal3.io/v1alpha1\nkind: BareMetalHost\nmetadata: {name: %s, namespace: metal3, annotations: {%s}}\nspec: {online: false%s}\n", name, annotations, spec)
	}
	_, findings := convertText(t, host("fit", "", ", automatedCleaningMode: metadata")+host("always-on", "", ", disablePowerOff: true")+
		host("by-hand", "", `, image: {url: "http://x/a"}`)+host("custom", "", `, customDeploy: {method: coreos}`)+
		host("held", "", `, image: {url: "http://x/a"}, consumerRef: {kind: Metal3Machine, name: m}`)+
		host("paused", "baremetalhost.metal3.io/paused: a", "")+host("detached", `baremetalhost.metal3.io/detached: ""`, "")+host("kept", "", ", automatedCleaningMode: disabled"))
	expectLines(t, findings,
		"metal3/always-on: spec.disablePowerOff: a host that is never powered off is passed over",
		"metal3/by-hand: spec.image: somebody has had it installed",
		"metal3/custom: spec.customDeploy: somebody has had it installed",
		"metal3/held: spec.consumerRef: Metal3Machine m holds it",
		"metal3/paused: metadata.annotations: baremetalhost.metal3.io/paused keeps",
		"metal3/detached: metadata.annotations: baremetalhost.metal3.io/detached keeps",
		"metal3/kept: spec.automatedCleaningMode: it is never cleaned for Ingot",
	)
	if n := strings.Count(findings, "BareMetalHost"); n != 7 {
		t.Errorf("%d findings:\n%s", n, findings)
	}
}

// TestTheCleaningOfATemplateIsThatOfItsProvider has a template for each mode, in a namespace of hosts of its own.
func TestTheCleaningOfATemplateIsThatOfItsProvider(t *testing.T) {
	text := ""
	for namespace, mode := range map[string]string{"cleans": "automatedCleaningMode: metadata, ", "keeps": "automatedCleaningMode: disabled, ", "silent": ""} {
		text += deploymentWith(namespace, "research", "v1.34.0", mode+"hostSelector: {namespace: "+namespace+"}")
	}
	objects, findings := convertText(t, text)
	expectLines(t, objects, "spec:\n  erase:\n    onRelease: Metadata\n    onRoll: Metadata\n  hostNamespace: cleans\n",
		"spec:\n  erase:\n    onRelease: None\n  hostNamespace: keeps\n", "spec:\n  erase:\n    onRelease: Metadata\n  hostNamespace: silent\n")
	expectLines(t, findings, "metal3/keeps: "+cleaningField, "add erase.onRoll: Metadata to NodeProvider silent")
}

// TestHostsOfSeveralClustersAreReported has one namespace with the hosts of two Clusters, and one with those of a third.
func TestHostsOfSeveralClustersAreReported(t *testing.T) {
	_, findings := convertText(t, deploymentWith("a", "one", "v1.34.0", "")+deploymentWith("b", "two", "v1.34.0", "")+deploymentWith("c", "two", "v1.34.0", "")+
		deploymentWith("d", "three", "v1.34.0", "hostSelector: {namespace: other}"))
	expectLines(t, findings, "the hosts of NodeProvider metal3 are those of the Clusters metal3/one, metal3/two:")
	if strings.Contains(findings, "NodeProvider other are those") {
		t.Error(findings)
	}
}

func TestASiteBecomesWhatIsWritten(t *testing.T) {
	objects, findings := convertFile(t, "testdata/site.yaml")
	for file, got := range map[string]string{"ingot.yaml": objects, "findings.txt": findings} {
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

// TestWhatIsLeftToDoIsWhatValidateAsksFor: the result is refused only for what the comments ask to add, and nothing is wrong once that is there.
func TestWhatIsLeftToDoIsWhatValidateAsksFor(t *testing.T) {
	objects, _ := convertFile(t, "testdata/site.yaml")
	if diff := cmp.Diff([]string{
		"OSImage ubuntu-24.04-node-image-k8s-v1.34.2 spec.os schema/required",
		"NodeType plain spec.hostSelector schema/required",
	}, findingsOf(t, objects)); diff != "" {
		t.Error(diff)
	}
	completed := strings.NewReplacer(
		"  software:\n    kubelet:", "  os: {id: ubuntu, version: \"24.04\"}\n  software:\n    kubelet:",
		"  name: plain\nspec:\n", "  name: plain\nspec:\n  hostSelector: {matchLabels: {rack: r3}}\n",
	).Replace(objects)
	if got := findingsOf(t, completed); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

func findingsOf(t *testing.T, objects string) []string {
	t.Helper()
	files, err := offline.Open([]string{"-"}, strings.NewReader(objects))
	if err != nil {
		t.Fatal(err)
	}
	report, err := validate.Validate(files, validate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range report.Findings {
		out = append(out, f.Object+" "+f.Field+" "+f.Rule)
	}
	return out
}

// FuzzConvert: whatever is in a manifest, the conversion ends and what it prints is YAML.
func FuzzConvert(f *testing.F) {
	site, err := os.ReadFile("testdata/site.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(site))
	f.Add("apiVersion: cluster.x-k8s.io/v1beta1\nkind: MachineDeployment\nmetadata: {name: a}\nspec: {template: 1, replicas: {}}\n")
	f.Add("apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {name: 1}\nspec: []\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := offline.Read([]string{"-"}, strings.NewReader(text))
		if err != nil {
			t.Skip()
		}
		report := Convert(all)
		var out bytes.Buffer
		if err := report.Write(&out); err != nil {
			t.Fatal(err)
		}
		if _, err := offline.Read([]string{"-"}, &out); len(report.Objects) > 0 && err != nil {
			t.Errorf("%v", err)
		}
	})
}
