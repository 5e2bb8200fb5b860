package render

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

const samples = "../../../config/samples"

// site is a Machine and its host as the management cluster shows them.
const site = `
apiVersion: ingot.dev/v1alpha1
kind: Machine
metadata: {name: training-7xk2p, namespace: research, uid: 6f1c}
spec: {nodeTypeRef: {name: h100-mig}, tenantClusterRef: {name: research}}
status: {attempt: 3, hostRef: {namespace: metal, name: server-17}}
---
apiVersion: metal3.io/v1alpha1
kind: BareMetalHost
metadata: {name: server-17, namespace: metal, annotations: {ingot.dev/ip-address: 10.20.4.17}}
spec: {bootMACAddress: "02:00:00:00:00:17", online: true}
---
apiVersion: metal3.io/v1alpha1
kind: BareMetalHost
metadata: {name: server-18, namespace: metal}
spec: {bootMACAddress: "02:00:00:00:00:18", online: true}
`

func render(stdin string, args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	c := Command()
	c.SetIn(strings.NewReader(stdin))
	status = cli.Run(context.Background(), c, args, &out, &err)
	return status, out.String(), err.String()
}

// files are the contents of a #cloud-config's files.
func files(t *testing.T, text string) map[string]string {
	t.Helper()
	var config struct {
		WriteFiles []struct{ Path, Content string } `json:"write_files"`
	}
	if err := yaml.Unmarshal([]byte(text), &config); err != nil || !strings.HasPrefix(text, "#cloud-config\n") {
		t.Fatalf("%v in %s", err, text)
	}
	out := map[string]string{}
	for _, f := range config.WriteFiles {
		out[f.Path] = f.Content
	}
	return out
}

func TestUserDataIsThatOfTheMachine(t *testing.T) {
	status, stdout, stderr := render(site, "-f", samples, "-f", "-", "--nodetype", "h100-mig", "--machine", "training-7xk2p", "--output", "user-data")
	if status != cli.ExitOK {
		t.Fatal(stderr)
	}
	got := files(t, stdout)
	for path, wants := range map[string][]string{
		"/etc/kubernetes/kubelet.yaml":                        {"providerID: ingot://6f1c/3", "key: ingot.dev/unvalidated"},
		"/etc/kubernetes/bootstrap-kubeconfig":                {"server: https://research.example.com:6443", "token: PLACEHOLDER-BOOTSTRAP-TOKEN"},
		"/etc/kubernetes/pki/ca.crt":                          {"PLACEHOLDER"},
		"/etc/systemd/system/kubelet.service.d/90-ingot.conf": {"--hostname-override=training-7xk2p", "ingot.dev/nodetype=h100-mig", "ingot.dev/machine-uid=6f1c"},
		"/etc/nvidia-mig-manager/ingot.yaml":                  {"1g.10gb"},
	} {
		for _, want := range wants {
			if !strings.Contains(got[path], want) {
				t.Errorf("%s does not have %q: %s", path, want, got[path])
			}
		}
	}
	for _, want := range []string{`"PLACEHOLDER-BOOTSTRAP-TOKEN" stands for the bootstrap token, which is secret`, "CA certificate"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("%q does not tell that %s", stderr, want)
		}
	}
	if strings.Contains(stderr, "API server") || strings.Contains(stderr, "uid") {
		t.Errorf("what the files have is called a placeholder: %s", stderr)
	}
}

func TestAMachineNeedNotBeThere(t *testing.T) {
	status, stdout, stderr := render("", "-f", samples, "--nodetype", "h100", "--machine", "any", "-o", "meta-data")
	var meta map[string]string
	if err := json.Unmarshal([]byte(stdout), &meta); err != nil || status != cli.ExitOK {
		t.Fatalf("%v: %s%s", err, stdout, stderr)
	}
	if meta["local-hostname"] != "any" || !strings.HasPrefix(meta["uuid"], "00000000-") || !strings.Contains(stderr, "stands for the Machine's uid") {
		t.Errorf("%v, %s", meta, stderr)
	}
	if strings.Contains(stderr, "TOKEN") {
		t.Errorf("the meta-data has no token: %s", stderr)
	}
	if _, again, _ := render("", "-f", samples, "--nodetype", "h100", "--machine", "any", "-o", "meta-data"); again != stdout {
		t.Errorf("the second time it is %s", again)
	}
}

func TestTheNetworkIsThatOfTheHost(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"the Machine's host": {[]string{"--machine", "training-7xk2p", "-o", "network-data"}, []string{`"02:00:00:00:00:17"`, `"10.20.4.17"`, `"10.20.4.1"`}},
		"another host":       {[]string{"--machine", "x", "--host", "server-18", "-o", "network-data"}, []string{`"02:00:00:00:00:18"`, "ipv4_dhcp"}},
		"for NoCloud":        {[]string{"--machine", "training-7xk2p", "-o", "network-config"}, []string{"version: 2", "02:00:00:00:00:17", "10.20.4.17/22"}},
	} {
		status, stdout, stderr := render(site, append([]string{"-f", samples, "-f", "-", "--nodetype", "h100"}, c.args...)...)
		if status != cli.ExitOK {
			t.Errorf("%s: %s", name, stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(stdout, want) {
				t.Errorf("%s: no %s in %s", name, want, stdout)
			}
		}
	}
}

func TestPropertiesOfTheMachineWin(t *testing.T) {
	machine := strings.Replace(site, "tenantClusterRef: {name: research}}", `tenantClusterRef: {name: research}, properties: {vcluster.com/user-data: "#cloud-config\npackages: [mine]\n"}}`, 1)
	status, stdout, stderr := render(machine, "-f", samples, "-f", "-", "--nodetype", "h100-mig", "--machine", "training-7xk2p", "-o", "user-data")
	if status != cli.ExitOK || !strings.Contains(stdout, "mine") {
		t.Errorf("status %d: %s%s", status, stdout, stderr)
	}
}

func TestIgnitionIsForImagesThatReadIt(t *testing.T) {
	const flatcar = `
apiVersion: ingot.dev/v1alpha1
kind: OSImage
metadata: {name: flatcar}
spec:
  url: https://images.example.com/flatcar.raw.zst
  checksum: sha256:9b74c9897bac770ffc029102a200c5de9b74c9897bac770ffc029102a200c5de
  format: raw.zst
  userData: Ignition
  ignitionPlatform: openstack
  os: {id: flatcar, version: "4230.2.1"}
  software: {kubelet: 1.37.0}
---
apiVersion: ingot.dev/v1alpha1
kind: NodeType
metadata: {name: plain}
spec: {providerRef: {name: hall-1}, hostSelector: {matchLabels: {use: plain}}, osImageRef: {name: flatcar}}
`
	args := []string{"-f", "-", "-f", samples + "/nodeprovider.yaml", "--machine", "a", "-o"}
	status, stdout, stderr := render(flatcar, append(args, "ignition")...)
	var config struct {
		Ignition struct{ Version string }
	}
	if err := json.Unmarshal([]byte(stdout), &config); status != cli.ExitOK || err != nil || config.Ignition.Version == "" {
		t.Errorf("status %d, %v: %s%s", status, err, stdout, stderr)
	}
	if status, _, stderr := render(flatcar, append(args, "user-data")...); status != cli.ExitFailed || !strings.Contains(stderr, "OSImage flatcar reads user data of kind Ignition: use --output ignition") {
		t.Errorf("status %d: %s", status, stderr)
	}
}

func TestAChecksumFileLeavesTheRevisionOpen(t *testing.T) {
	text, err := os.ReadFile(samples + "/osimage.yaml")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), "checksum: ")
	_, after, _ := strings.Cut(rest, "\n")
	image := before + "checksum: https://images.example.com/SHA256SUMS\n" + after
	status, stdout, stderr := render(image, "-f", samples+"/nodetype.yaml", "-f", samples+"/nodeprovider.yaml", "-f", "-", "--nodetype", "h100", "--machine", "a", "-o", "user-data")
	if status != cli.ExitOK || !strings.Contains(stdout, "ingot.dev/revision=h100-unpinned") || !strings.Contains(stderr, `"h100-unpinned" stands for the revision`) {
		t.Errorf("status %d: %s", status, stderr)
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	all := []string{"-f", samples, "--nodetype", "h100"}
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"-f", samples, "--machine", "a"}, cli.ExitUsage, "--output : expected user-data, network-data, network-config, meta-data, ignition, operator-values"},
		{append(all, "--machine", "a", "-o", "cloud"), cli.ExitUsage, "--output cloud: expected user-data"},
		{append(all, "-o", "user-data"), cli.ExitUsage, "--machine : expected the name of a Machine"},
		{append(all, "--machine", "A_1", "-o", "user-data"), cli.ExitUsage, "--machine A_1"},
		{[]string{"--machine", "a", "-o", "user-data"}, cli.ExitUsage, "expected -f"},
		{append(all, "--machine", "a", "-o", "network-data"), cli.ExitFailed, "there is no BareMetalHost with a bootMACAddress"},
		{append(all, "--machine", "a", "-o", "network-config"), cli.ExitFailed, "there is no BareMetalHost with a bootMACAddress"},
		{append(all, "--machine", "a", "-o", "ignition"), cli.ExitFailed, "OSImage debian-13-nvidia-570 reads user data of kind CloudInit: use --output user-data"},
		{append(all, "--machine", "a", "--host", "none", "-o", "user-data"), cli.ExitFailed, "expected BareMetalHost none in"},
		{[]string{"-f", samples + "/nodetype.yaml", "-f", samples + "/osimage.yaml", "--nodetype", "h100", "--machine", "a", "-o", "user-data"}, cli.ExitFailed, "NodeType h100: spec.providerRef: expected NodeProvider hall-1"},
	} {
		status, stdout, stderr := render("", c.args...)
		if status != c.status || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: status %d, want %d and %q: %s%s", c.args, status, c.status, c.want, stdout, stderr)
		}
	}
}
