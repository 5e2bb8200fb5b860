package script

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/test/require"
)

const root = "../../../"

func TestREADMEHasTheVariables(t *testing.T) {
	text, err := os.ReadFile(root + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range Variables {
		if row := fmt.Sprintf("| `%s` | %s |\n", v.Name, v.Text); !strings.Contains(string(text), row) {
			t.Errorf("README.md lacks the row\n%s", row)
		}
	}
}

func TestAValueIsReadAsItIs(t *testing.T) {
	const odd = "a \"b\" $HOME `id` \\n 'c' %n"
	out, err := exec.Command("/bin/sh", "-c", Environment(map[string]string{"INGOT_TOKEN": odd, "ANOTHER": "x"})+`printf %s "$INGOT_TOKEN${ANOTHER:-}"`).Output()
	if err != nil || string(out) != odd {
		t.Errorf("%q, %v", out, err)
	}
}

// sample returns the script of a sample.
func sample(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(root + "config/samples/join/" + name)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(text), "\n---\n") {
		var secret struct {
			Kind       string
			StringData map[string]string
		}
		if err := yaml.Unmarshal([]byte(part), &secret); err != nil {
			t.Fatal(err)
		}
		if secret.Kind == "Secret" {
			return secret.StringData["script"]
		}
	}
	t.Fatal("there is no Secret in " + name)
	return ""
}

// TestTheSamplesMakeAnAgentsConfiguration runs them in a directory of their own, with a systemctl that writes down what it is asked for.
func TestTheSamplesMakeAnAgentsConfiguration(t *testing.T) {
	verify := require.Tool(t, "systemd-analyze", "apt-get install -y systemd")
	for name, agent := range map[string]string{"k3s.yaml": "k3s", "rke2.yaml": "rke2"} {
		text, dir := sample(t, name), t.TempDir()
		if why := Problem([]byte(text)); why != "" {
			t.Errorf("%s: %s", name, why)
		}
		for _, used := range regexp.MustCompile(`INGOT_[A-Z_]+`).FindAllString(text, -1) {
			if !slices.ContainsFunc(Variables, func(v Variable) bool { return v.Name == used }) {
				t.Errorf("%s uses %s, which no script is given", name, used)
			}
		}
		values := map[string]string{
			"INGOT_NODE_NAME": "training-7xk2p", "INGOT_PROVIDER_ID": "ingot://u/1", "INGOT_NODE_TAINTS": "ingot.dev/unvalidated=:NoSchedule,a=b:NoExecute", "INGOT_NODE_LABELS": "team=research,x=",
			"INGOT_NODE_IP": "10.0.0.1,fd00::1", "INGOT_KUBELET_CONFIG_DIR": "/etc/kubernetes/kubelet.conf.d", "INGOT_API_ENDPOINT": "https://a:6443", "INGOT_TOKEN": "abcdef.0123456789abcdef",
			"INGOT_CA_FILE": filepath.Join(dir, "ca.crt"), "INGOT_GPU_UNITS": "nvidia-fabricmanager.service ingot-gpu-mode.service",
		}
		// The authority is not a certificate here: the agent hashes the file as it is.
		write(t, values["INGOT_CA_FILE"], "-----BEGIN CERTIFICATE-----\n", 0o600)
		write(t, filepath.Join(dir, "systemctl"), "#!/bin/sh\necho \"$@\" >> "+dir+"/asked\n", 0o700)
		for _, d := range []string{"etc/systemd/system", "etc/rancher"} {
			if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		moved := regexp.MustCompile(`/etc/(rancher|systemd)`).ReplaceAllString(text, dir+"/etc/$1")
		for range 2 { // a script is run again after one that failed
			command := exec.Command("/bin/sh", "-c", moved)
			command.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
			for k, v := range values {
				command.Env = append(command.Env, k+"="+v)
			}
			if out, err := command.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, out)
			}
		}
		config := read(t, filepath.Join(dir, "etc/rancher", agent, "config.yaml"))
		const want = `server: "https://a:6443"
token: "K10::abcdef.0123456789abcdef"
node-name: "training-7xk2p"
node-label:
- "team=research"
- "x="
node-taint:
- "ingot.dev/unvalidated=:NoSchedule"
- "a=b:NoExecute"
node-ip:
- "10.0.0.1"
- "fd00::1"
kubelet-arg:
- "provider-id=ingot://u/1"
- "config-dir=/etc/kubernetes/kubelet.conf.d"
`
		if hash := regexp.MustCompile(`K10[0-9a-f]*::`); hash.ReplaceAllString(config, "K10::") != hash.ReplaceAllString(want, "K10::") || len(hash.FindString(config)) != 3+64+2 {
			t.Errorf("%s makes\n%s", name, config)
		}
		if asked := read(t, filepath.Join(dir, "asked")); !strings.HasPrefix(asked, "daemon-reload\nenable --now "+agent+"-agent.service\n") {
			t.Errorf("%s asks systemctl for %s", name, asked)
		}
		checkUnit(t, verify, dir, agent)
	}
}

// checkUnit checks that the agent comes after the units of the GPUs' mode.
func checkUnit(t *testing.T, verify, dir, agent string) {
	t.Helper()
	unit := filepath.Join(dir, "etc/systemd/system", agent+"-agent.service")
	text := ""
	if agent == "rke2" {
		text = read(t, unit+".d/10-ingot.conf")
	} else {
		text = read(t, unit)
		write(t, unit, strings.ReplaceAll(text, "/usr/local/bin/k3s agent", "/bin/true"), 0o644)
		for _, u := range []string{"nvidia-fabricmanager.service", "ingot-gpu-mode.service"} {
			write(t, filepath.Join(filepath.Dir(unit), u), "[Service]\nExecStart=/bin/true\n", 0o644)
		}
		if out, err := exec.Command(verify, "verify", unit).CombinedOutput(); err != nil || strings.Contains(string(out), agent) {
			t.Errorf("systemd-analyze verify: %v\n%s", err, out)
		}
	}
	if !regexp.MustCompile(`\nAfter=.*ingot-gpu-mode.service\n`).MatchString(text) || !strings.Contains(text, "Wants=nvidia-fabricmanager.service ingot-gpu-mode.service\n") {
		t.Errorf("the agent starts before the GPUs have their mode:\n%s", text)
	}
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
