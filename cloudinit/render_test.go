package cloudinit

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit/kubelet"
	"github.com/ingot-dev/ingot/cloudinit/network"
	"github.com/ingot-dev/ingot/presentation"
	"github.com/ingot-dev/ingot/presentation/spec"
)

var update = flag.Bool("update", false, "write the golden files")

const secretToken = "abcdef.0123456789abcdef"

// h100 is the plan of a server with eight H100, resolved as the controllers do.
func h100(t testing.TB) v1alpha1.NodePlan {
	t.Helper()
	plan, err := presentation.Resolve(spec.Request{
		GPU: &v1alpha1.GPUSpec{Vendor: v1alpha1.VendorNVIDIA, Model: "H100-SXM5-80GB", Count: 8, Presentation: v1alpha1.Presentation{Mode: v1alpha1.ModePassthrough}},
		Image: v1alpha1.OSImageSpec{KernelArguments: []string{"modprobe.blacklist=nouveau"}, Software: v1alpha1.OSImageSoftware{
			Kubelet: "1.37.0", ContainerToolkit: "1.18.0", GPUDriver: &v1alpha1.GPUDriverSoftware{Vendor: v1alpha1.VendorNVIDIA, Version: "550.163.01"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// plain is a node without GPUs and without anything of people's.
func plain() Input {
	return Input{
		Machine: MachineInput{Name: "training-7xk2p", UID: "6f1c1d0e-0000-4000-8000-000000000001", Revision: "h100-77aa", Attempt: 1},
		Host:    HostInput{BootMAC: "52:54:00:AA:BB:01"},
		Gate:    v1alpha1.DefaultGateTaintKey,
		Join:    &kubelet.Join{Endpoint: "https://research.example.com:6443", CA: []byte("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"), Token: secretToken},
	}
}

// full has everything at once.
func full(t testing.TB) Input {
	in := plain()
	in.Plan = h100(t)
	in.Layers = []Layer{
		{Name: "NodeProvider hall-1", Text: "#cloud-config\n# of the hall\ntimezone: Europe/Vienna\npackages: [chrony]\nntp:\n  enabled: true\n  servers: [10.20.0.1]\nruncmd:\n- [echo, provider]\n"},
		{Name: "NodeType h100", Text: "#cloud-config\ntimezone: UTC\npackages: [lldpd]\npackage_upgrade: no\nntp:\n  servers: [10.20.0.2]\nruncmd:\n- echo node type\nwrite_files:\n- path: /etc/motd\n  permissions: '0644'\n  content: |\n    yes\n     indented\n"},
	}
	in.SSHKeys = []string{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOps ops"}
	in.Host.IPAddress = "10.20.5.17/22"
	in.Network = &v1alpha1.NetworkSpec{CIDR: "10.20.4.1/22", DNSServers: []string{"10.20.0.1", "fd00::1"}}
	in.Node = NodeInput{
		Labels: map[string]string{"team": "research", "topology.kubernetes.io/zone": "hall-1", "node-role.kubernetes.io/gpu": "", "ingot.dev/machine-uid": in.Machine.UID},
		Taints: []corev1.Taint{{Key: "dedicated", Value: "research", Effect: corev1.TaintEffectNoExecute}},
	}
	return in
}

func cases(t testing.TB) map[string]Input {
	joined := full(t)
	joined.Join = nil
	six := plain()
	six.Host.IPAddress = "fd00:20::17"
	six.Network = &v1alpha1.NetworkSpec{CIDR: "fd00:20::1/64"}
	dynamic := plain()
	dynamic.Network = six.Network
	unknownNIC := plain()
	unknownNIC.Host = HostInput{}
	return map[string]Input{"plain": plain(), "full": full(t), "joined": joined, "ipv6": six, "ipv6-dhcp": dynamic, "unknown-nic": unknownNIC, "described": described(t), "script": scripted(t),
		"fcos": ignited(t, "fedora"), "flatcar": ignited(t, "flatcar"), "openshift": ignited(t, "rhcos")}
}

func TestDocumentsAreAsInTheGoldenFiles(t *testing.T) {
	for name, in := range cases(t) {
		t.Run(name, func(t *testing.T) {
			docs, err := Render(in)
			if err != nil {
				t.Fatal(err)
			}
			config, err := NetworkConfig(in)
			if err != nil {
				t.Fatal(err)
			}
			kind := ".user-data.yaml"
			if in.Kind == v1alpha1.UserDataIgnition {
				kind = ".user-data.ign"
			} else if !bytes.HasPrefix(docs.UserData, []byte(header)) {
				kind = ".user-data.mime"
			}
			golden(t, name+kind, docs.UserData)
			golden(t, name+".network_data.json", docs.NetworkData)
			golden(t, name+".network-config.yaml", config)
			golden(t, name+".meta_data.json", docs.MetaData)
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if got == nil {
			_ = os.Remove(path)
			return
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not what is rendered; run go test ./cloudinit -update and read the difference:\n%s", name, diff)
	}
}

func TestRenderingIsDeterministic(t *testing.T) {
	for name, in := range cases(t) {
		first, err := Render(in)
		if err != nil {
			t.Fatal(err)
		}
		for range 30 {
			again, err := Render(in)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(first.UserData, again.UserData) || !bytes.Equal(first.NetworkData, again.NetworkData) || !bytes.Equal(first.MetaData, again.MetaData) {
				t.Fatalf("%s: the same input gave other bytes", name)
			}
		}
	}
}

func TestUserDataNamesNoResourceAndNoCount(t *testing.T) {
	in := full(t)
	docs, err := Render(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range in.Plan.Expectation.Resources {
		if bytes.Contains(docs.UserData, []byte(r.Name)) {
			t.Errorf("user data holds the resource name %s: a node must advertise what its hardware says, and not what it was told", r.Name)
		}
		if count := regexp.MustCompile(`\b` + r.Quantity.String() + `\b`); count.Match(docs.UserData) {
			t.Errorf("user data holds the count %s: %s", r.Quantity.String(), count.FindString(string(docs.UserData)))
		}
	}
	for _, domain := range []string{"nvidia.com/", "amd.com/"} {
		if bytes.Contains(docs.UserData, []byte(domain)) {
			t.Errorf("user data holds %s", domain)
		}
	}
}

func TestAfterTheJoinTheDocumentsAreTheSameWithoutWhatIsSecret(t *testing.T) {
	in := full(t)
	with, err := Render(in)
	if err != nil {
		t.Fatal(err)
	}
	in.Join = nil
	without, err := Render(in)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(with.UserData, []byte(secretToken)) || bytes.Contains(without.UserData, []byte(secretToken)) {
		t.Error("the token must be in the user data before the join, and in none after it")
	}
	var before, after map[string]any
	if err := yaml.Unmarshal(with.UserData, &before); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(without.UserData, &after); err != nil {
		t.Fatal(err)
	}
	files := before["write_files"].([]any)
	before["write_files"] = files[:len(files)-2]
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("more than the last two files differs:\n%s", diff)
	}
	if !bytes.Equal(with.MetaData, without.MetaData) || !bytes.Equal(with.NetworkData, without.NetworkData) {
		t.Error("meta-data and network data must not change at the join: cloud-init would take the node for another instance")
	}
}

func TestPeoplesCommandsRunFirstAndKubeletStartsLast(t *testing.T) {
	docs, err := Render(full(t))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		RunCmd []any `yaml:"runcmd"`
	}
	if err := yaml.Unmarshal(docs.UserData, &doc); err != nil {
		t.Fatal(err)
	}
	want := []any{
		[]any{"echo", "provider"}, "echo node type", []any{"systemctl", "daemon-reload"}, []any{"systemctl", "stop", "kubelet"},
		[]any{"rm", "-f", "/var/lib/kubelet/cpu_manager_state", "/var/lib/kubelet/memory_manager_state"}, []any{"systemctl", "restart", "systemd-modules-load.service"},
		[]any{"systemctl", "enable", "--now", "nvidia-persistenced.service"}, []any{"systemctl", "enable", "--now", "nvidia-fabricmanager.service"},
		[]any{"systemctl", "enable", "--now", "ingot-gpu-report.service"}, []any{"systemctl", "enable", "--now", "ingot-gpu-mode.service"}, []any{"systemctl", "enable", "--now", "kubelet"},
	}
	if diff := cmp.Diff(want, doc.RunCmd); diff != "" {
		t.Error(diff)
	}
}

func TestEveryInstallationIsAnotherInstanceToCloudInit(t *testing.T) {
	ids := map[string]bool{}
	for _, revision := range []string{"h100-77aa", "h100-4be1"} {
		for attempt := range int64(3) {
			in := plain()
			in.Machine.Revision, in.Machine.Attempt = revision, attempt
			docs, err := Render(in)
			if err != nil {
				t.Fatal(err)
			}
			ids[string(docs.MetaData)] = true
		}
	}
	if len(ids) != 6 {
		t.Errorf("6 installations have %d instance ids", len(ids))
	}
}

func TestWhatCannotStandIsRefusedByPath(t *testing.T) {
	const head = "#cloud-config\n"
	tests := []struct {
		sentence, text, path string
		conflict             bool
	}{
		{"a script for another system", "#!/bin/sh\r\necho\r\n", "", false},
		{"a script without an interpreter", "#!sh\necho\n", "", false},
		{"a MIME message", "Content-Type: multipart/mixed; boundary=x\n\n--x--\n", "", false},
		{"a template", "## template: jinja\n#cloud-config\n", "", false},
		{"no header", "packages: []\n", "", false},
		{"no YAML", head + "a: [\n", "", false},
		{"a list", head + "- a\n", "", false},
		{"two documents", head + "a: 1\n---\nb: 2\n", "", false},
		{"a key twice", head + "users:\n- name: a\n  name: b\n", "users[0].name", false},
		{"a runcmd that is no list", head + "runcmd: reboot\n", "runcmd", false},
		{"aliases that explode", head + "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + bomb(), "", false},
		{"a host name", head + "hostname: mine\n", "hostname", true},
		{"a network configuration", head + "network: {version: 2}\n", "network", true},
		{"modules left out", head + "cloud_final_modules: []\n", "cloud_final_modules", true},
		{"kubelet's configuration", head + "write_files:\n- path: /etc/motd\n- path: /etc/kubernetes/../kubernetes/kubelet.yaml\n", "write_files[1].path", true},
		{"the GPU mode's unit", head + "write_files:\n- path: etc/systemd/system/ingot-gpu-mode.service\n", "write_files[0].path", true},
		{"an end of the script", head + "runcmd:\n- echo a\n- exit 0\n", "runcmd[1]", true},
		{"an end of the script as a list", head + "runcmd:\n- [exec, reboot]\n", "runcmd[0]", true},
		{"users without the default user", head + "users:\n- name: a\n", "users", true},
	}
	for _, tt := range tests {
		t.Run(tt.sentence, func(t *testing.T) {
			in := full(t)
			in.Layers = append(in.Layers, Layer{Name: "the team's", Text: tt.text})
			_, err := Render(in)
			var conflict *Conflict
			var invalid *Invalid
			var findings []Finding
			if errors.As(err, &conflict) {
				findings = conflict.Findings
			} else if errors.As(err, &invalid) {
				findings = invalid.Findings
			}
			if len(findings) != 1 || (conflict != nil) != tt.conflict || findings[0].Layer != "the team's" {
				t.Fatalf("error %v, want one finding in that layer, conflict %v", err, tt.conflict)
			}
			if tt.path != "" && findings[0].Path != tt.path {
				t.Errorf("the path is %q, want %q", findings[0].Path, tt.path)
			}
			if got := Validate(in.Layers, in.SSHKeys, in.Plan); got == nil || got.Error() != err.Error() {
				t.Errorf("Validate says %v, Render %v", got, err)
			}
		})
	}
}

// bomb nests aliases: each line has ten times the nodes of the one before.
func bomb() string {
	var b strings.Builder
	for c := 'b'; c < 'k'; c++ {
		b.WriteString(string(c) + ": &" + string(c) + " [")
		b.WriteString(strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 10), ",") + "]\n")
	}
	return b.String()
}

func TestWhatIsPeoplesOwnIsLeftAlone(t *testing.T) {
	for sentence, text := range map[string]string{
		"nothing":                           "",
		"a comment":                         "#cloud-config\n# nothing yet\n",
		"null lists":                        "#cloud-config\nruncmd:\nwrite_files: ~\n",
		"a file beside ours":                "#cloud-config\nwrite_files:\n- path: /etc/kubernetes/audit.yaml\n",
		"an exit within a text of commands": "#cloud-config\nruncmd:\n- |\n  if test -e /x; then\n    exit 0\n  fi\n",
		"a reboot afterwards":               "#cloud-config\npower_state: {mode: reboot}\n",
		"users with the default user":       "#cloud-config\nusers: [default, {name: a}]\n",
		"aliases and merge keys":            "#cloud-config\na: &a {x: 1}\nb:\n  <<: *a\n  y: 2\n",
		"windows line ends":                 "#cloud-config\r\npackages:\r\n- vim\r\n",
	} {
		t.Run(sentence, func(t *testing.T) {
			in := full(t)
			in.Layers = append(in.Layers, Layer{Name: "the team's", Text: text})
			if _, err := Render(in); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestErrorsNeverQuoteUserData(t *testing.T) {
	for _, text := range []string{"#cloud-config\npassword: hunter2: x\n", "#cloud-config\nkey: !!int hunter2\n", "#cloud-config\n- hunter2\n", "#cloud-config\nruncmd: hunter2\n", "hunter2\n", "#cloud-config\nwrite_files:\n- path: /etc/kubernetes/kubelet.yaml\n  content: hunter2\n"} {
		in := full(t)
		in.Layers = []Layer{{Name: "l", Text: text}}
		if _, err := Render(in); err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error quotes the user data: %v", err)
		}
	}
}

func TestTooLargeAndUnknownKindsAreTypedErrors(t *testing.T) {
	in := plain()
	in.Layers = []Layer{{Name: "l", Text: "#cloud-config\nbig: " + strings.Repeat("x", Limit) + "\n"}}
	var large *TooLarge
	if _, err := Render(in); !errors.As(err, &large) || large.Bytes <= Limit {
		t.Errorf("error %v, want *TooLarge", err)
	}
	in = plain()
	in.Kind = "Kickstart"
	var unsupported *Unsupported
	if _, err := Render(in); !errors.As(err, &unsupported) {
		t.Errorf("error %v, want *Unsupported", err)
	}
}

func TestNetworksThatCannotWorkAreRefused(t *testing.T) {
	for sentence, change := range map[string]func(*Input){
		"an address that is none":           func(in *Input) { in.Host.IPAddress = "server-1" },
		"an address outside of the network": func(in *Input) { in.Host.IPAddress = "10.21.0.1/22" },
		"the gateway's own address":         func(in *Input) { in.Host.IPAddress = "10.20.4.1" },
		"the network's address":             func(in *Input) { in.Host.IPAddress = "10.20.4.0/22" },
		"the broadcast address":             func(in *Input) { in.Host.IPAddress = "10.20.7.255/22" },
		"another IP version":                func(in *Input) { in.Host.IPAddress = "fd00::1/64" },
		"no prefix length anywhere":         func(in *Input) { in.Network = nil; in.Host.IPAddress = "10.20.5.17" },
		"an address for an unknown NIC":     func(in *Input) { in.Host.BootMAC = "" },
	} {
		t.Run(sentence, func(t *testing.T) {
			in := full(t)
			change(&in)
			var bad *network.Invalid
			if _, err := Render(in); !errors.As(err, &bad) {
				t.Errorf("error %v, want *network.Invalid", err)
			}
		})
	}
}
