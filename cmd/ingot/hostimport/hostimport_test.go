package hostimport

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cmd/ingot/cli"
	"github.com/ingot-dev/ingot/test/management"
)

const (
	secret = "calvin-7"
	header = "name,bmc address,boot mac,user,password file\n"
	good   = "rack-a-01,redfish://10.0.0.11/redfish/v1/Systems/1,52-54-00-0A-00-01,root,passwords/a\n"
)

// write makes a directory with a table and two password files, and returns the table's path.
func write(t *testing.T, table string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "passwords"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"hosts.csv": table, "passwords/a": secret + "\n", "passwords/dos": " spaced \r\n", "empty": "\n", "two": secret + "\n" + secret + "\n",
		"long": strings.Repeat(secret, 1000),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "hosts.csv")
}

func ingot(args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = cli.Run(context.Background(), cli.NewGroup("ingot", "", cli.NewGroup("host", "", Command())), append([]string{"host", "import"}, args...), &out, &err)
	return status, out.String(), err.String()
}

// decode reads what was printed into the API's own types, and refuses a field that they do not have.
func decode(t *testing.T, text string) ([]*metal3.BareMetalHost, []*corev1.Secret) {
	t.Helper()
	var hosts []*metal3.BareMetalHost
	var secrets []*corev1.Secret
	for documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text))); ; {
		document, err := documents.Read()
		if err == io.EOF {
			return hosts, secrets
		}
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(document), "kind: Secret") {
			secrets = append(secrets, new(corev1.Secret))
			err = yaml.UnmarshalStrict(document, secrets[len(secrets)-1])
		} else {
			hosts = append(hosts, new(metal3.BareMetalHost))
			err = yaml.UnmarshalStrict(document, hosts[len(hosts)-1])
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
	}
}

func TestATableBecomesHostsAndSecretsThatTheAPIServerTakes(t *testing.T) {
	table := "\xef\xbb\xbfUser, Password File ,Name,BMC Address,Boot-MAC,label:rack\n" +
		"# the first delivery\n" +
		"root,passwords/a,rack-a-01,redfish://10.0.0.11/redfish/v1/Systems/1,52-54-00-0A-00-01,a\n" +
		"admin,passwords/dos,rack-a-02,https://bmc-2.example.com,5254.000a.0002,\n"
	status, stdout, stderr := ingot(write(t, table), "--namespace", "metal", "--labels", "hall=1,rack=none")
	if status != cli.ExitOK || strings.Contains(stderr, secret) {
		t.Fatalf("status %d: %s", status, stderr)
	}
	hosts, secrets := decode(t, stdout)
	if len(hosts) != 2 || len(secrets) != 2 {
		t.Fatalf("%d hosts, %d Secrets in\n%s", len(hosts), len(secrets), stdout)
	}
	first, second := hosts[0], hosts[1]
	if first.Name != "rack-a-01" || first.Namespace != "metal" || first.Labels["rack"] != "a" || first.Labels["hall"] != "1" || first.Spec.Online ||
		first.Spec.BootMACAddress != "52:54:00:0a:00:01" || first.Spec.BMC.Address != "redfish://10.0.0.11/redfish/v1/Systems/1" {
		t.Errorf("%+v", first)
	}
	if second.Labels["rack"] != "none" || second.Spec.BMC.Address != "redfish+https://bmc-2.example.com" || second.Spec.BootMACAddress != "52:54:00:0a:00:02" {
		t.Errorf("%+v", second)
	}
	for i, want := range [][2]string{{"root", secret}, {"admin", " spaced "}} {
		if s := secrets[i]; s.Name != hosts[i].Spec.BMC.CredentialsName || s.Namespace != "metal" || string(s.Data["username"]) != want[0] || string(s.Data["password"]) != want[1] {
			t.Errorf("%+v", s)
		}
	}
	if testing.Short() {
		return
	}
	server, err := management.Start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	namespace := server.Namespace(t)
	for i := range hosts {
		for _, o := range []client.Object{secrets[i], hosts[i]} {
			o.SetNamespace(namespace)
			if err := server.Client.Create(t.Context(), o); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestIPMIIsForProvidersThatSpeakIt(t *testing.T) {
	path := write(t, header+strings.Replace(good, "redfish://10.0.0.11/redfish/v1/Systems/1", "ipmi://10.0.0.11:6230", 1))
	for _, provider := range []string{"ironic", "metal3"} {
		status, stdout, stderr := ingot(path, "--provider", provider)
		if status != cli.ExitOK {
			t.Fatalf("%s: status %d: %s", provider, status, stderr)
		}
		if hosts, _ := decode(t, stdout); len(hosts) != 1 || hosts[0].Spec.BMC.Address != "ipmi://10.0.0.11:6230" {
			t.Errorf("%s: the hosts are %+v", provider, hosts)
		}
	}
	if status, _, stderr := ingot(path, "--provider", "vmware"); status != cli.ExitUsage || !strings.Contains(stderr, "expected one of redfish, ironic, metal3") {
		t.Errorf("a kind that there is not: status %d: %s", status, stderr)
	}
}

func TestAHostNamesTheNodeThatIronicHasForIt(t *testing.T) {
	table := strings.TrimSpace(header) + ",ironic node\n" + strings.TrimSpace(good) + ",node-7\nb,ipmi://10.0.0.12,52:54:00:0a:00:02,root,passwords/a,\nc,,52:54:00:0a:00:03,,,node-9\n"
	status, stdout, stderr := ingot(write(t, table), "--provider", "ironic")
	if status != cli.ExitOK {
		t.Fatalf("status %d: %s", status, stderr)
	}
	hosts, secrets := decode(t, stdout)
	if len(hosts) != 3 || len(secrets) != 2 || hosts[0].Annotations[v1alpha1.AnnotationIronicNode] != "node-7" || len(hosts[1].Annotations) > 0 {
		t.Errorf("the hosts are %+v, with %d Secrets", hosts, len(secrets))
	}
	if c := hosts[2]; c.Spec.BMC != (metal3.BMCDetails{}) || c.Annotations[v1alpha1.AnnotationIronicNode] != "node-9" || strings.Contains(stdout, "c-bmc") {
		t.Errorf("a host whose BMC Ironic knows: %+v", c)
	}
}

func TestAHostListsTheTPMOfItsServer(t *testing.T) {
	fingerprint := strings.Repeat("AB:", 31) + "AB"
	table := strings.TrimSpace(header) + ",TPM key\n" + strings.TrimSpace(good) + ",SHA256:" + fingerprint + "\nb,redfish://10.0.0.12,52:54:00:0a:00:02,root,passwords/a,\nc,redfish://10.0.0.13,52:54:00:0a:00:03,root,passwords/a,none\nd,redfish://10.0.0.14,52:54:00:0a:00:04,root,passwords/a,none\n"
	status, stdout, stderr := ingot(write(t, table))
	if status != cli.ExitOK {
		t.Fatalf("status %d: %s", status, stderr)
	}
	hosts, _ := decode(t, stdout)
	for i, want := range []string{strings.Repeat("ab", 32), "", "none", "none"} {
		if got := hosts[i].Annotations[v1alpha1.AnnotationTPMKey]; got != want {
			t.Errorf("%s lists %q, expected %q", hosts[i].Name, got, want)
		}
	}
}

func TestEveryWrongLineIsToldAndNothingIsPrinted(t *testing.T) {
	for _, c := range []struct {
		name, table string
		want        []string // the findings, each from its line on
		provider    string   // empty: redfish
	}{
		{"no file but a header", header, []string{":1: no host"}, ""},
		{"an empty file", "", []string{":1: expected a first line with the columns name, bmc address"}, ""},
		{"semicolons", strings.ReplaceAll(header+good, ",", ";"), []string{":1: the columns are separated by semicolons"}, ""},
		{"a missing column", "name,bmc address,boot mac,user\n", []string{`:1: no column "password file"`}, ""},
		{"a strange column", "name,colour\n", []string{`:1: unknown column "colour"`}, ""},
		{"a column twice", "name,Name\n", []string{`:1: column "Name" is there twice`}, ""},
		{"Ingot's own label", "label:gpu.ingot.dev/model,name\n", []string{":1: ", "Ingot sets it"}, ""},
		{"too few cells and a bad name in one table", header + "a,b\n" + strings.Replace(good, "rack-a-01", "Rack_A", 1), []string{":2: expected 5 columns", `:3: name "Rack_A"`}, ""},
		{"a broken quotation", header + good + "\"rack,b\n", []string{":3: not readable from here on: a double quote"}, ""},
		{"duplicates", header + good + "\n" + good, []string{":4: the name is that of line 2", ":4: the boot mac is that of line 2", ":4: the bmc address is that of line 2"}, ""},
		{"one address written in two ways", header + good + "b,redfish+https://10.0.0.11:443/redfish/v1/Systems/1/,52:54:00:0a:00:02,root,passwords/a\n", []string{":3: the bmc address is that of line 2"}, ""},
		{"one BMC by IPMI and without a system", header + good + "b,ipmi://[::ffff:10.0.0.11],52:54:00:0a:00:02,root,passwords/a\n", []string{":3: the bmc address is that of line 2"}, "ironic"},
		{"IPMI for Redfish", header + strings.Replace(good, "redfish://10.0.0.11/redfish/v1/Systems/1", "ipmi://10.0.0.11", 1), []string{":2: bmc address: NodeProviders of kind redfish do not speak IPMI", "--provider ironic"}, ""},
		{"everything in one line", header + ",10.0.0.1,ff:ff:ff:ff:ff:ff,,none\n", []string{
			`:2: name ""`, ":2: bmc address: expected one such as redfish://", ":2: boot mac", ":2: user: expected", `:2: password file "none": no such file`,
		}, ""},
		{"a password in the address", header + strings.Replace(good, "10.0.0.11", "root:"+secret+"@10.0.0.11", 1), []string{":2: bmc address: it holds a user or a password"}, ""},
		{"an unknown protocol", header + strings.Replace(good, "redfish://", "telnet://", 1), []string{`:2: bmc address: `, `protocol "telnet"`}, ""},
		{"a protocol that Ironic gets no address of", header + strings.Replace(good, "redfish://", "irmc://", 1), []string{":2: bmc address: ", "irmc is not Redfish over TLS"}, "ironic"},
		{"a directory", header + strings.Replace(good, "passwords/a", "passwords", 1), []string{`:2: password file "passwords": is a directory`}, ""},
		{"an empty password", header + strings.Replace(good, "passwords/a", "empty", 1), []string{`:2: password file "empty": it is empty`}, ""},
		{"a node of Ironic for Redfish", strings.TrimSpace(header) + ",ironic node\n" + strings.TrimSpace(good) + ",node-7\n", []string{`:2: ironic node "node-7": only NodeProviders of kind ironic`}, ""},
		{"two hosts on one node of Ironic", strings.TrimSpace(header) + ",Ironic-Node\n" + strings.TrimSpace(good) + ",node-7\nb,ipmi://10.0.0.12,52:54:00:0a:00:02,root,passwords/a,NODE-7\n", []string{":3: the ironic node is that of line 2"}, "ironic"},
		{"no fingerprint of a TPM", strings.TrimSpace(header) + ",tpm key\n" + strings.TrimSpace(good) + ",ab12\n", []string{`:2: tpm key "ab12": expected the SHA-256 digest`}, ""},
		{"a TPM of two hosts", strings.TrimSpace(header) + ",tpm key\n" + strings.TrimSpace(good) + "," + strings.Repeat("ab", 32) + "\nb,redfish://10.0.0.12,52:54:00:0a:00:02,root,passwords/a," + strings.Repeat("AB", 32) + "\n", []string{":3: the tpm key is that of line 2"}, ""},
		{"a TPM for Ironic", strings.TrimSpace(header) + ",tpm key\n" + strings.TrimSpace(good) + "," + strings.Repeat("ab", 32) + "\n", []string{":2: tpm key: the agents of NodeProviders of kind ironic prove no TPM"}, "ironic"},
		{"no BMC and no node", strings.TrimSpace(header) + ",ironic node\na,,52:54:00:0a:00:01,,,\n", []string{":2: bmc address: expected one such as", ":2: user: expected", `:2: password file ""`}, "ironic"},
		{"half a BMC beside a node", strings.TrimSpace(header) + ",ironic node\na,ipmi://10.0.0.12,52:54:00:0a:00:01,,,node-7\n", []string{":2: user: expected", `:2: password file ""`}, "ironic"},
		{"two lines", header + strings.Replace(good, "passwords/a", "two", 1), []string{`:2: password file "two": expected one line`}, ""},
		{"no password at all", header + strings.Replace(good, "passwords/a", "long", 1), []string{`:2: password file "long": expected a password`}, ""},
		{"a bad label", strings.TrimSpace(header) + ",label:rack\n" + strings.TrimSpace(good) + ",a b\n", []string{`:2: label rack: `}, ""},
	} {
		path, provider := write(t, c.table), cmp.Or(c.provider, "redfish")
		status, stdout, stderr := ingot(path, "--provider", provider)
		if status != cli.ExitFailed || stdout != "" {
			t.Errorf("%s: status %d, standard output %q", c.name, status, stdout)
		}
		rest := stderr
		for _, want := range c.want {
			_, after, found := strings.Cut(rest, want)
			if !found {
				t.Errorf("%s: %q is not told, or not in its order:\n%s", c.name, want, stderr)
			}
			rest = after
		}
		if strings.Contains(stderr, secret) {
			t.Errorf("%s: a password is told: %s", c.name, stderr)
		}
		if lines := strings.Count(stderr, path+":"); lines < 1 {
			t.Errorf("%s: no finding names the file: %s", c.name, stderr)
		}
	}
}

func TestWhatTheCommandLineGetsWrongIsUsage(t *testing.T) {
	path := write(t, header+good)
	for _, args := range [][]string{{}, {path, "--labels", "a"}, {path, "--labels", "gpu.ingot.dev/count=8"}, {path, "--namespace", "Metal"}} {
		if status, stdout, stderr := ingot(args...); status != cli.ExitUsage || stdout != "" || !strings.Contains(stderr, "usage: ingot host import FILE.csv") {
			t.Errorf("%v: status %d, %q, %q", args, status, stdout, stderr)
		}
	}
	if status, _, stderr := ingot(filepath.Join(t.TempDir(), "none.csv")); status != cli.ExitFailed || !strings.Contains(stderr, "no such file") {
		t.Errorf("status %d: %s", status, stderr)
	}
}

func FuzzReadSurvivesWhateverASpreadsheetWrites(f *testing.F) {
	f.Add(header + good)
	f.Add("name,\"bmc address\n")
	f.Fuzz(func(t *testing.T, table string) {
		hosts, findings := Read(strings.NewReader(table), "ironic", func(string) (fs.File, error) { return nil, os.ErrNotExist })
		if len(hosts) > 0 || len(findings) == 0 {
			t.Errorf("%d hosts without a password, %d findings", len(hosts), len(findings))
		}
	})
}
