package containerd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/ingot-dev/ingot/api/v1alpha1"
	"github.com/ingot-dev/ingot/test/require"
)

// node is the root directory of a node, with the real containerd and the files of the drop-in.
type node struct {
	t    *testing.T
	root string
}

// newNode writes the files of the node below a directory. main is the image's own configuration of containerd; empty: there is none.
func newNode(t *testing.T, n Node, main string) node {
	t.Helper()
	program, err := filepath.Abs("../../bin/node-programs/containerd")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		require.Missing(t, "bin/node-programs/containerd", "make node-programs")
	}
	out := node{t, t.TempDir()}
	for _, f := range Files(n) {
		out.write(f.Path, f.Content)
	}
	if main != "" {
		out.write("/etc/containerd/config.toml", main)
	}
	// systemctl notes that it was called. containerd is the real one.
	out.write("/bin/systemctl", "#!/bin/sh\necho \"$@\" >> "+out.root+"/restarts\n")
	out.write("/bin/containerd", "#!/bin/sh\nexec "+program+" --config /etc/containerd/config.toml \"$@\"\n")
	out.write(runtimeProgram, "#!/bin/sh\n")
	for _, dir := range []string{"run", "var/lib"} {
		if err := os.MkdirAll(filepath.Join(out.root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// write writes the file below the root, and lets its absolute paths point there.
func (n node) write(path, content string) {
	n.t.Helper()
	name := filepath.Join(n.root, path)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		n.t.Fatal(err)
	}
	for _, dir := range []string{"/etc/containerd/conf", "/run/ingot", "/var/lib/ingot", "/var/lib/kubelet/", "/etc/kubernetes/", runtimeProgram} {
		content = strings.ReplaceAll(content, dir, n.root+dir)
	}
	if err := os.WriteFile(name, []byte(content), 0o755); err != nil {
		n.t.Fatal(err)
	}
}

// check runs the program of the node's unit and returns its finding.
func (n node) check() string {
	n.t.Helper()
	n.run("check")
	return strings.TrimSpace(n.read("/run/ingot-containerd"))
}

// run runs the program as a unit does.
func (n node) run(command string) {
	n.t.Helper()
	cmd := exec.Command(filepath.Join(n.root, checkProgramPath), command)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(n.root, "bin")+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		n.t.Fatalf("%v: %s", err, out)
	}
}

func (n node) read(path string) string {
	text, err := os.ReadFile(filepath.Join(n.root, path))
	if err != nil {
		return ""
	}
	return strings.ReplaceAll(string(text), n.root, "")
}

// sampleConfig returns the configuration of containerd in the sample image.
func sampleConfig(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../config/images/debian-kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var recipe struct {
		Files []struct{ Path, Content string }
	}
	if err := yaml.Unmarshal(text, &recipe); err != nil {
		t.Fatal(err)
	}
	for _, f := range recipe.Files {
		if f.Path == "/etc/containerd/config.toml" {
			return f.Content
		}
	}
	t.Fatal("the sample image configures no containerd")
	return ""
}

// TestContainerdMergesTheDropIn reads back what the real containerd makes of the sample image's configuration with the drop-in.
func TestContainerdMergesTheDropIn(t *testing.T) {
	t.Parallel()
	n := newNode(t, whole(), sampleConfig(t))
	if got := n.check(); got != v1alpha1.ContainerdOK {
		t.Fatalf("it lacks %s:\n%s", got, n.read("/run/ingot-containerd.toml"))
	}
	dump := n.read("/run/ingot-containerd.toml")
	for _, want := range []string{
		"BinaryName = '" + runtimeProgram + "'", "enable_cdi = true", "config_path = '/etc/containerd/certs.d'", "sandbox = 'registry.example.com/pause:3.10.1'",
		"[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia.options]", "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]",
		"default_runtime_name = 'runc'", "bin_dirs = ['/opt/cni/bin']",
	} {
		if !strings.Contains(dump, want) {
			t.Errorf("it lacks %s", want)
		}
	}
	// The image's own runtime keeps its cgroup driver.
	if got := strings.Count(dump, "SystemdCgroup = true"); got != 2 {
		t.Errorf("%d runtimes have the cgroup driver systemd:\n%s", got, dump)
	}
	if got := n.read("/restarts"); got != "restart containerd\n" {
		t.Errorf("systemctl %q", got)
	}
	n.check()
	if got := n.read("/restarts"); got != "restart containerd\n" {
		t.Errorf("containerd is restarted although nothing changed: systemctl %q", got)
	}
}

func TestWhatContainerdLacksIsFound(t *testing.T) {
	t.Parallel()
	withoutImports := strings.ReplaceAll(sampleConfig(t), "imports =", "# imports =")
	older := "version = 2\nimports = ['/etc/containerd/conf.d/*.toml']\n[plugins.'io.containerd.grpc.v1.cri']\n  enable_cdi = true\n" +
		"  [plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc]\n    runtime_type = 'io.containerd.runc.v2'\n" +
		"    [plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc.options]\n      SystemdCgroup = true\n"
	own := "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia.options]\n  BinaryName = '" + runtimeProgram + "'\n"
	for name, c := range map[string]struct{ main, want string }{
		"the image imports nothing":       {withoutImports, "nvidia-runtime,sandbox-image,imports"},
		"the image has no configuration":  {"", "nvidia-runtime,sandbox-image,imports"},
		"the image has the runtime":       {own, "sandbox-image,imports"},
		"the image turns CDI off":         {strings.ReplaceAll(withoutImports, "enable_cdi = true", "enable_cdi = false"), "cdi,nvidia-runtime,sandbox-image,imports"},
		"the configuration is an older":   {older, "nvidia-runtime,sandbox-image,config-version"},
		"the configuration is not read":   {"version = 3\n[plugins\n", "config-invalid,cdi,nvidia-runtime,registry-mirrors,sandbox-image"},
		"the image has mirrors elsewhere": {withoutImports + "[plugins.'io.containerd.cri.v1.images'.registry]\n  config_path = '/etc/registries'\n", "nvidia-runtime,registry-mirrors,sandbox-image,imports"},
	} {
		n := newNode(t, whole(), c.main)
		if got := n.check(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if name == "the configuration is an older" {
			if got := strings.Count(n.read("/run/ingot-containerd.toml"), "SystemdCgroup = true"); got != 1 || n.read(pathDropIn) != "" {
				t.Errorf("the image's own section is lost: %d runtimes with systemd's cgroups", got)
			}
			if again := n.check(); again != c.want {
				t.Errorf("at the next boot: %s", again)
			}
		}
	}
	n := newNode(t, whole(), sampleConfig(t))
	if err := os.Remove(filepath.Join(n.root, runtimeProgram)); err != nil {
		t.Fatal(err)
	}
	if got := n.check(); got != v1alpha1.ContainerdRuntime {
		t.Errorf("the runtime's program is missing: %s", got)
	}
}

// TestAnAgentWithAContainerdOfItsOwnIsLeftAlone: K3s and RKE2 have theirs, and no program of that name.
func TestAnAgentWithAContainerdOfItsOwnIsLeftAlone(t *testing.T) {
	t.Parallel()
	n := newNode(t, whole(), "")
	if err := os.Remove(filepath.Join(n.root, "bin/containerd")); err != nil {
		t.Fatal(err)
	}
	if path, err := exec.LookPath("containerd"); err == nil {
		t.Skipf("this machine has one: %s", path)
	}
	if got := n.check() + n.read("/restarts"); got != "" {
		t.Errorf("%s", got)
	}
	n.run("report")
}

// TestADropInBreaksNothing: a file of Ingot that containerd does not understand is taken away, and containerd starts as before.
func TestADropInBreaksNothing(t *testing.T) {
	t.Parallel()
	n := newNode(t, whole(), sampleConfig(t))
	n.write(pathDropIn, "version = 3\n[plugins\n")
	if got := n.check(); got != "nvidia-runtime,sandbox-image,config-invalid" {
		t.Errorf("found %s", got)
	}
	if n.read(pathDropIn) != "" || n.read("/restarts") != "restart containerd\n" {
		t.Errorf("the drop-in stays, or containerd is not started again: systemctl %q", n.read("/restarts"))
	}
}

func whole() Node {
	return Node{Version: "2.2.0", Runtime: true, CDI: true, Settings: &v1alpha1.ContainerdSpec{
		SandboxImage: "registry.example.com/pause:3.10.1",
		RegistryMirrors: []v1alpha1.RegistryMirror{
			{Registry: "docker.io", Endpoints: []string{"https://registry.example.com/v2/docker-hub", "http://10.0.0.1:5000"}, CABundle: "-----BEGIN CERTIFICATE-----\n"},
			{Registry: "10.0.0.2:5000", Endpoints: []string{"https://registry.example.com/"}},
		},
	}}
}
