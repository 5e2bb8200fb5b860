package validate

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ingot-dev/ingot/cmd/ingot/cli"
)

const samples = "../../../config/samples"

func validate(stdin string, args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	c := Command()
	c.SetIn(strings.NewReader(stdin))
	status = cli.Run(context.Background(), c, args, &out, &err)
	return status, out.String(), err.String()
}

// all is every sample in one stream, with one text replaced everywhere.
func all(t *testing.T, old, new string) string {
	t.Helper()
	files, err := filepath.Glob(samples + "/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	var out strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString(string(text) + "---\n")
	}
	if !strings.Contains(out.String(), old) {
		t.Fatalf("the samples have no %q", old)
	}
	return strings.ReplaceAll(out.String(), old, new)
}

func TestNothingIsWrongWithTheSamples(t *testing.T) {
	for _, args := range [][]string{{"-f", samples}, {"-f", "-"}} {
		status, stdout, stderr := validate(all(t, "", ""), args...)
		if status != cli.ExitOK || stdout != "" || !strings.Contains(stderr, "objects judged, 7 of other kinds passed over") {
			t.Errorf("%v: status %d: %s%s", args, status, stdout, stderr)
		}
	}
}

func TestEachThingThatIsWrongIsOneLine(t *testing.T) {
	for sentence, c := range map[string]struct{ old, new, want string }{
		"a reference to nothing":           {"osImageRef: {name: debian-13-nvidia-570}\n  # Promised", "osImageRef: {name: ubuntu}\n  # Promised", "NodeType h100: spec.osImageRef.name: there is no OSImage ubuntu in the files: correct the name, add its file, or say --allow-missing if it is applied already (reference/missing)"},
		"a tenant of another namespace":    {"tenantClusterRef: {name: inference}", "tenantClusterRef: {name: research}", "NodePool inference/serving: spec.tenantClusterRef.name: there is no TenantCluster research in namespace inference"},
		"a quantity below the minimum":     {"failureBudget: 1", "failureBudget: -1", "NodeType h100: spec.rollout.failureBudget: Invalid value: -1"},
		"a value that is none of the enum": {"mode: Passthrough", "mode: Pass", `NodeType h100: spec.gpu.presentation.mode: Unsupported value: "Pass"`},
		"a rule about one field":           {"kubelet: 1.37.0", "kubelet: v1.37.0", "OSImage debian-13-nvidia-570: spec.software.kubelet: kubelet must be a version such as 1.37.0, without a leading v (rule)"},
		"a layout that does not fit":       {"{3g.40gb: 2}", "{3g.40gb: 2, 1g.10gb: 1}", "NodeType h100-mig: spec.gpu.presentation.mig.layout[1].profiles: "},
		"a promise that disagrees":         {"resources: {cpu: \"192\", memory: 2048Gi}", "resources: {cpu: \"192\", nvidia.com/gpu: 8}", "NodeType h200-dra: spec.resources[nvidia.com/gpu]: it is promised, and no such resource follows from spec.gpu"},
		"user data that fights":            {"packages: [lldpd]", "hostname: x", "NodeType h100: spec.userData: hostname: the host name is the Machine's name, which the Node must have: remove it (user-data/conflict)"},
		"user data that is none":           {"#cloud-config", "#include", "NodeType h100: spec.userData: the first line must be #cloud-config"},
		"a provider's user data":           {"  hostNamespace: metal\n", "  hostNamespace: metal\n  userData: \"#cloud-config\\nruncmd: no\"\n", "NodeProvider hall-1: spec.userData: runcmd: it must be a list (user-data/invalid)"},
		"a property that is not known":     {"displayName: 8x H100, whole GPUs", "properties: {ingot.dev/x: z}", "NodeType h100: spec.properties[ingot.dev/x]: "},
		"a property that fights":           {"displayName: 8x H100, whole GPUs", `properties: {vcluster.com/user-data: "#cloud-config\nhostname: x\n"}`, "NodeType h100: spec.properties[vcluster.com/user-data]: hostname: "},
		"ranges outside of the network":    {"  hostNamespace: metal\n", "  hostNamespace: metal\n  properties: {metal3.vcluster.com/network-ip-range: 10.99.0.1-10.99.0.9}\n", "NodeProvider hall-1: spec.network: "},
		"a selector against itself":        {"{key: use, operator: NotIn, values: [mig]}", "{key: gpu-model, operator: NotIn, values: [h100]}", "NodeType h100: spec.hostSelector: no value of the label gpu-model fits all that is asked of it, so that no host can be selected (selector/contradiction)"},
		"a selector against the GPUs":      {"{gpu-model: h200, gpu-count: \"8\"}", "{gpu.ingot.dev/model: H100-SXM5-80GB}", "NodeType h200-dra: spec.hostSelector: gpu.ingot.dev/model=H100-SXM5-80GB selects no host that also has spec.gpu.model H200-SXM-141GB"},
		"a selector with a bad operator":   {"operator: NotIn, values: [mig]", "operator: NotIn", "NodeType h100: spec.hostSelector:"},
		"an object that is there twice":    {"  name: notebooks\n", "  name: training\n", "NodePool research/training: metadata.name: NodePool research/training is at standard input:"},
		"a name that no server takes":      {"name: notebooks", "name: Note_books", "NodePool research/Note_books: metadata.name: Invalid value"},
		"a kind that does not exist":       {"kind: NodePool\nmetadata:\n  name: training", "kind: NodePol\nmetadata:\n  name: training", "NodePol research/training: kind: expected ingot.dev/v1alpha1 of kind Entitlement, HostRecord"},
		"metadata that does not exist":     {"  name: hall-1\n", "  name: hall-1\n  label: {a: b}\n", "NodeProvider hall-1: metadata.label: there is no such field: correct or remove it (metadata/unknown-field)"},
		"a namespace for what has none":    {"  name: hall-1\n", "  name: hall-1\n  namespace: metal\n", "NodeProvider metal/hall-1: metadata.namespace: Forbidden"},
	} {
		status, stdout, stderr := validate(all(t, c.old, c.new), "-f", "-")
		lines := strings.Split(strings.TrimSpace(stdout), "\n")
		if status != cli.ExitFailed || len(lines) != 1 || !strings.Contains(stdout, c.want) || !strings.HasPrefix(stdout, "standard input:") || !strings.HasSuffix(lines[0], ")") {
			t.Errorf("%s: status %d, want one line with %q, got\n%s%s", sentence, status, c.want, stdout, stderr)
		}
		if !strings.Contains(stderr, ": 1 thing is wrong in ") {
			t.Errorf("%s: standard error %q", sentence, stderr)
		}
	}
}

func TestTheProviderMustBeServedAndWriteTheImage(t *testing.T) {
	const redfish = "  redfish:\n    caBundleSecretRef: {name: bmc-ca}\n    netboot:\n      address: 10.20.0.2\n"
	for old, c := range map[string]struct{ new, want string }{
		"format: raw.zst": {"format: qcow2", ": spec.osImageRef: the OSImage debian-13-nvidia-570 has the format qcow2, which the redfish provider hall-1 cannot write; ironic, metal3 can (image/format)"},
		redfish:           {"  ironic: {endpoint: https://ironic.example.com}\n", ": spec.osImageRef: the OSImage debian-13-nvidia-570 has the format raw.zst, which the ironic provider hall-1 cannot write; redfish can (image/format)"},
	} {
		status, stdout, stderr := validate(all(t, old, c.new), "-f", "-")
		if status != cli.ExitFailed || strings.Count(stdout, "\n") != 3 || strings.Count(stdout, c.want) != 3 {
			t.Errorf("want it of each of the three NodeTypes: %q, got status %d\n%s%s", c.want, status, stdout, stderr)
		}
	}
}

func TestSettingsOfKubeletNeedAJoinThatAppliesThem(t *testing.T) {
	const endpoint = `tlsBootstrap: {endpoint: "https://research.example.com:6443"}`
	text := all(t, endpoint, "script: {secretRef: {name: join}}")
	status, stdout, stderr := validate(text, "-f", "-")
	const want = ": NodePool research/notebooks: spec.tenantClusterRef.name: spec.kubelet of the NodeType cannot be applied by the join script of the TenantCluster"
	if status != cli.ExitFailed || strings.Count(stdout, "\n") != 1 || !strings.Contains(stdout, want) || !strings.HasSuffix(stdout, "(join/kubelet)\n") {
		t.Errorf("want one line with %q, got status %d\n%s%s", want, status, stdout, stderr)
	}
	if status, stdout, stderr := validate(strings.Replace(text, "script: {secretRef: {name: join}}", "kubeadm: {}", 1), "-f", "-"); status != cli.ExitOK {
		t.Errorf("by kubeadm: status %d\n%s%s", status, stdout, stderr)
	}
}

func TestSeveralThingsKeepTheirLines(t *testing.T) {
	text := all(t, "kernelModule: Open", "kernelModul: Open")
	text = strings.Replace(text, "failureBudget: 1", "failureBudget: -1", 1)
	_, stdout, _ := validate(text, "-f", "-", "-o", "json")
	var report Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	lines := strings.Split(text, "\n")
	for _, f := range report.Findings {
		last := f.Field[strings.LastIndexByte(f.Field, '.')+1:]
		if f.Line < 1 || f.Line > len(lines) || !strings.Contains(lines[f.Line-1], last) {
			t.Errorf("%s: line %d does not have it", f, f.Line)
		}
	}
	if len(report.Findings) != 2 || report.Findings[0].Object != "NodeType h100" || report.Findings[1].Rule != "schema/unknown-field" {
		t.Errorf("findings %v", report.Findings)
	}
}

func TestWhatIsElsewhereIsNotMissed(t *testing.T) {
	status, stdout, stderr := validate("", "-f", samples+"/nodetype.yaml", "-f", samples+"/nodepool.yaml", "--allow-missing")
	if status != cli.ExitOK || stdout != "" {
		t.Errorf("status %d: %s%s", status, stdout, stderr)
	}
	status, stdout, _ = validate("", "-f", samples+"/nodetype.yaml")
	if status != cli.ExitFailed || strings.Count(stdout, "reference/missing") != 6 {
		t.Errorf("status %d: %s", status, stdout)
	}
}

func TestWhatIsNotCertainIsAWarning(t *testing.T) {
	text := all(t, "      mode: DRA\n", "      mode: DRA\n      dra: {devices: MIG, featureGates: [DynamicMIG]}\n")
	text = strings.ReplaceAll(text, "570.172.08", "580.126.09")
	status, stdout, stderr := validate(text, "-f", "-")
	if status != cli.ExitOK || stdout != "" || !strings.Contains(stderr, "warning: standard input:") || !strings.Contains(stderr, "NodeType h200-dra: spec.gpu: ") {
		t.Errorf("status %d: %s%s", status, stdout, stderr)
	}
}

func TestABareMetalHostIsJudgedToo(t *testing.T) {
	const host = "apiVersion: metal3.io/v1alpha1\nkind: BareMetalHost\nmetadata: {name: s1, namespace: metal}\nspec:\n  bootMACAddres: 02:00:00:00:00:01\n  online: true\n"
	status, stdout, _ := validate(host, "-f", "-")
	if status != cli.ExitFailed || !strings.HasPrefix(stdout, "standard input:5: BareMetalHost metal/s1: spec.bootMACAddres: there is no such field") {
		t.Errorf("status %d: %s", status, stdout)
	}
}

func TestHostsHaveAddressesThatTheirNetworkTakes(t *testing.T) {
	host := func(name, address, mac, labels string) string {
		return "---\napiVersion: metal3.io/v1alpha1\nkind: BareMetalHost\nmetadata:\n  name: " + name + "\n  namespace: metal\n  labels: " + labels +
			"\n  annotations: {ingot.dev/ip-address: " + address + "}\nspec: {online: true, bootMACAddress: '" + mac + "'}\n"
	}
	const h100, other = `{gpu-model: h100, gpu-count: "8"}`, `{gpu-model: other}`
	good := host("a", "10.20.4.7", "02:00:00:00:00:01", h100)
	for sentence, c := range map[string]struct{ hosts, want string }{
		"as the network takes them": {good + host("b", "10.20.4.8/22", "02:00:00:00:00:02", h100), ""},
		"another network":           {host("a", "10.99.0.1/22", "02:00:00:00:00:01", h100), "BareMetalHost metal/a: metadata.annotations: as NodeType h100 of NodeProvider hall-1: the host's annotation ingot.dev/ip-address: "},
		"no address":                {host("a", "soon", "02:00:00:00:00:01", h100), "(host/network)"},
		"no NodeType selects it":    {host("a", "10.99.0.1/22", "02:00:00:00:00:01", other), ""},
		"one address twice":         {good + host("b", "10.20.4.7/22", "02:00:00:00:00:02", h100), "BareMetalHost metal/b: metadata.annotations: 10.20.4.7 is that of BareMetalHost a too: correct one of them (host/address-twice)"},
		"one NIC twice":             {good + host("b", "10.20.4.8", "02:00:00:00:00:01", h100), "BareMetalHost metal/b: spec.bootMACAddress: 02:00:00:00:00:01 is that of BareMetalHost a too"},
	} {
		status, stdout, stderr := validate(c.hosts, "-f", samples, "-f", "-")
		if (status == cli.ExitOK) != (c.want == "") || !strings.Contains(stdout, c.want) || c.want == "" && stdout != "" {
			t.Errorf("%s: status %d, want %q: %s%s", sentence, status, c.want, stdout, stderr)
		}
	}
}

func TestTheCommandLineIsJudged(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{nil, cli.ExitUsage, "expected -f"},
		{[]string{"-f", "none"}, cli.ExitFailed, "none: no such file"},
		{[]string{"-f", samples, "-o", "xml"}, cli.ExitUsage, "text or json"},
		{[]string{"-f", "validate_test.go"}, cli.ExitFailed, "validate_test.go:1:"},
	} {
		status, stdout, stderr := validate("", c.args...)
		if status != c.status || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: status %d: %s%s", c.args, status, stdout, stderr)
		}
	}
}

func TestTwoHostsOfOneServerAreFoundBeforeTheyAreApplied(t *testing.T) {
	host := func(namespace, name, address, mac string) string {
		return "---\napiVersion: metal3.io/v1alpha1\nkind: BareMetalHost\nmetadata: {name: " + name + ", namespace: " + namespace + "}\n" +
			"spec: {online: true, bootMACAddress: '" + mac + "', bmc: {address: '" + address + "', credentialsName: " + name + "-bmc}}\n"
	}
	first := host("metal", "a", "redfish://10.0.0.7/redfish/v1/Systems/1", "02:00:00:00:00:01")
	for sentence, c := range map[string]struct{ hosts, want string }{
		"two servers":                  {first + host("metal", "b", "redfish://10.0.0.8/redfish/v1/Systems/1", "02:00:00:00:00:02"), ""},
		"two systems of one BMC":       {first + host("metal", "b", "redfish://10.0.0.7/redfish/v1/Systems/2", "02:00:00:00:00:02"), ""},
		"one BMC in another spelling":  {first + host("other", "b", "idrac-redfish://10.0.0.7:443", "02:00:00:00:00:02"), "BareMetalHost other/b: spec.bmc.address: BareMetalHost metal/a has the same BMC 10.0.0.7/redfish/v1/systems/1, so both are one server"},
		"one NIC in another namespace": {first + host("other", "b", "redfish://10.0.0.8", "02:00:00:00:00:01"), "BareMetalHost other/b: spec.bootMACAddress: 02:00:00:00:00:01 is that of BareMetalHost a too"},
	} {
		status, stdout, stderr := validate(c.hosts, "-f", samples, "-f", "-")
		if (status == cli.ExitOK) != (c.want == "") || !strings.Contains(stdout, c.want) || c.want == "" && stdout != "" {
			t.Errorf("%s: status %d, want %q: %s%s", sentence, status, c.want, stdout, stderr)
		}
	}
}
