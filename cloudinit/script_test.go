package cloudinit

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v3_4 "github.com/coreos/ignition/v2/config/v3_4"
	"github.com/vincent-petithory/dataurl"
	sigsyaml "sigs.k8s.io/yaml"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/cloudinit/kubelet/script"
	"github.com/ingot-dev/ingot/test/require"
)

// agentScript has what is hard to carry: tabs, quotes, a tail of blanks, another language's letters, and no line end.
const agentScript = "#!/bin/sh\n# Knoten für '${X}' \"y\" %n \\\t \nexec agent --token \"$INGOT_TOKEN\"   \n\n{{ not a template }}\n#cloud-config"

// scripted is a node that a script joins.
func scripted(t testing.TB) Input {
	t.Helper()
	in := full(t)
	in.Node.Method, in.Kubelet = v1alpha1.JoinScript, KubeletInput{Version: "1.37.0", Members: []byte(`{"maxPods":64}`)}
	in.Node.Networks, in.Node.ClusterDNS, in.Node.ClusterDomain = []string{"10.20.0.0/22"}, []string{"10.43.0.10", "fd00::a"}, "tenant.example"
	in.Join.Script = []byte(agentScript)
	return in
}

func TestAScriptReachesTheNodeAsItIsAndOnlyUntilTheJoin(t *testing.T) {
	for system, kind := range map[string]v1alpha1.UserDataKind{"": v1alpha1.UserDataCloudInit, "fedora": v1alpha1.UserDataIgnition, "flatcar": v1alpha1.UserDataIgnition} {
		in := scripted(t)
		in.Kind, in.OS, in.Layers = kind, system, nil
		docs, err := Render(in)
		if err != nil {
			t.Fatal(err)
		}
		if content, mode := fileOf(t, docs.UserData, script.Path); content != agentScript || mode != "0700" {
			t.Errorf("%s: the script has the mode %s and is %q", system, mode, content)
		}
		if content, mode := fileOf(t, docs.UserData, script.EnvironmentPath); !strings.Contains(content, secretToken) || mode != "0600" {
			t.Errorf("%s: the environment has the mode %s", system, mode)
		}
		in.Join = nil
		after, err := Render(in)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(after.UserData), secretToken) || strings.Contains(string(after.UserData), "agent --token") {
			t.Errorf("%s: a secret stays after the join", system)
		}
	}
}

// fileOf returns content and mode of a file of user data.
func fileOf(t *testing.T, userData []byte, path string) (content, mode string) {
	t.Helper()
	if strings.HasPrefix(string(userData), "{") {
		return ignitionFile(t, userData, path)
	}
	var doc struct {
		Files []struct{ Path, Permissions, Content string } `json:"write_files"`
	}
	if err := sigsyaml.Unmarshal(userData, &doc); err != nil {
		t.Fatal(err)
	}
	for _, f := range doc.Files {
		if f.Path == path {
			return f.Content, f.Permissions
		}
	}
	return "", ""
}

func ignitionFile(t *testing.T, userData []byte, path string) (content, mode string) {
	t.Helper()
	config, said, err := v3_4.Parse(userData)
	if err != nil {
		t.Fatal(err, said.String())
	}
	for _, f := range config.Storage.Files {
		if f.Path != path {
			continue
		}
		source, err := dataurl.DecodeString(*f.Contents.Source)
		if err != nil {
			t.Fatal(err)
		}
		text := source.Data
		if f.Contents.Compression != nil && *f.Contents.Compression == "gzip" {
			packed, err := gzip.NewReader(bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if text, err = io.ReadAll(packed); err != nil {
				t.Fatal(err)
			}
		}
		return string(text), fmt.Sprintf("%04o", *f.Mode)
	}
	return "", ""
}

func TestTheEnvironmentOfAScript(t *testing.T) {
	in := scripted(t)
	files := written(t, in)
	want := map[string]string{
		"INGOT_NODE_NAME": "training-7xk2p", "INGOT_API_ENDPOINT": in.Join.Endpoint, "INGOT_TOKEN": secretToken, "INGOT_CA_FILE": "/etc/kubernetes/ingot-join/ca.crt",
		"INGOT_NODE_TAINTS": in.Gate + "=ChecksWaiting:NoSchedule,dedicated=research:NoExecute", "INGOT_CLUSTER_DNS": "10.43.0.10,fd00::a", "INGOT_CLUSTER_DOMAIN": "tenant.example",
		"INGOT_KUBELET_CONFIG_DIR": "/etc/kubernetes/kubelet.conf.d", "INGOT_PROVIDER_ID": v1alpha1.ProviderID("", 1)[:len("ingot://")] + in.Machine.UID + "/1",
	}
	// What systemd reads between double quotes, a shell reads alike.
	path := filepath.Join(t.TempDir(), "environment")
	if err := os.WriteFile(path, []byte(files[script.EnvironmentPath]), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("env", "-i", "/bin/sh", "-c", "set -a; . "+path+"; env").Output()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, line := range strings.Split(string(out), "\n") {
		if name, value, ok := strings.Cut(line, "="); ok && strings.HasPrefix(name, "INGOT_") {
			got[name] = value
		}
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %q, expected %q", name, got[name], value)
		}
	}
	documented := map[string]bool{"INGOT_NODE_IP": true}
	for _, v := range script.Variables {
		documented[v.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if !documented[name] {
			t.Errorf("%s is in the environment, and is not documented", name)
		}
	}
	if !strings.HasPrefix(got["INGOT_KUBELET_ARGS"], "--hostname-override=training-7xk2p --provider-id=ingot://") || got["INGOT_NODE_LABELS"] == "" || got["INGOT_GPU_UNITS"] == "" {
		t.Errorf("the environment is %v", got)
	}
	if files[script.CAPath] != string(in.Join.CA) {
		t.Error("the certificate authority is not byte for byte that of the kubeconfig")
	}
	var config kubeletconfig.KubeletConfiguration
	if err := sigsyaml.UnmarshalStrict([]byte(files["/etc/kubernetes/kubelet.conf.d/50-node.conf"]), &config); err != nil || config.ProviderID != want["INGOT_PROVIDER_ID"] || config.RegisterWithTaints[0].Key != in.Gate {
		t.Errorf("%v: the settings are %+v", err, config)
	}
	if !strings.Contains(files["/etc/kubernetes/ingot-node-ip"], `"INGOT_NODE_IP=$found"`) {
		t.Error("the script is told a flag in place of its node's address")
	}
}

func TestSystemdTakesTheUnitOfAScript(t *testing.T) {
	verify := require.Tool(t, "systemd-analyze", "apt-get install -y systemd")
	text := written(t, scripted(t))[script.UnitPath]
	path := filepath.Join(t.TempDir(), script.Unit)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(verify, "verify", path).CombinedOutput()
	if err != nil || strings.Contains(string(out), "join") {
		t.Errorf("systemd-analyze verify: %v\n%s\n%s", err, out, text)
	}
	for _, want := range []string{"After=network-online.target containerd.service ", "ingot-gpu-mode.service", "ExecStartPre=/bin/sh /etc/kubernetes/ingot-node-ip\n", "ConditionPathExists=" + script.Path + "\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the unit lacks %s:\n%s", want, text)
		}
	}
}

func TestAScriptThatCannotRunIsRefusedAndNotQuoted(t *testing.T) {
	for want, text := range map[string]string{
		"is empty": " \n", "131073 bytes": "#!/bin/sh\n" + strings.Repeat("x", script.MaxBytes-9), "is no text": "#!/bin/sh\nhush\x00", "is no text: a program": "#!/bin/sh\nhush\xff",
		"begin it with #!/bin/sh": "hush\n", "Unix line ends": "#!/bin/sh\r\nhush\r\n",
	} {
		in := scripted(t)
		in.Join.Script = []byte(text)
		if _, err := Render(in); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%v, expected %q", err, want)
		}
	}
	if why := script.Problem([]byte("#!/usr/bin/env bash\n" + strings.Repeat("x", script.MaxBytes-20))); why != "" {
		t.Error(why)
	}
}

func TestAnOlderKubeletOfAScriptIsGivenNoDirectory(t *testing.T) {
	in := scripted(t)
	in.Kubelet = KubeletInput{Version: "1.29.3"}
	files := written(t, in)
	if text := files[script.EnvironmentPath]; strings.Contains(text, "CONFIG_DIR") || strings.Contains(text, "config-dir") || !strings.Contains(text, "--register-with-taints="+in.Gate) {
		t.Errorf("the environment has a directory:\n%s", strings.ReplaceAll(text, secretToken, ""))
	}
}
